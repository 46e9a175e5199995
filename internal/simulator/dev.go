package simulator

import "net/http"

// handleDev adds the paths of VLLM_SERVER_DEV_MODE
// (vllm/entrypoints/serve/{cache,sleep}/api_router.py), and one that restarts the server.
func (s *Server) handleDev(handle func(method, path string, h http.HandlerFunc)) {
	handle(http.MethodPost, "/reset_prefix_cache", func(_ http.ResponseWriter, r *http.Request) {
		s.engine.reset(r.URL.Query().Get("reset_external") == "true") // as in vLLM, the response does not report success
	})
	handle(http.MethodPost, "/sleep", func(http.ResponseWriter, *http.Request) { s.engine.sleep() })
	handle(http.MethodPost, "/wake_up", func(http.ResponseWriter, *http.Request) { s.engine.rouse() })
	handle(http.MethodGet, "/is_sleeping", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, http.StatusOK, map[string]bool{"is_sleeping": s.engine.sleeping()})
	})
	handle(http.MethodPost, "/sim/restart", func(http.ResponseWriter, *http.Request) { s.Restart() })
}

// Restart simulates the end of the server's process and the start of another at the same address:
// connections of requests in flight are cut, the cache and the main memory are emptied, and all
// counts restart. A server without KV only resets the counts.
func (s *Server) Restart() {
	if s.engine != nil {
		s.engine.drop(true)
	}
	s.live.Store(newMetrics(s.opt, s.engine))
}
