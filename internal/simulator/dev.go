package simulator

import "net/http"

// handleDev adds the paths of VLLM_SERVER_DEV_MODE
// (vllm/entrypoints/serve/{cache,sleep}/api_router.py), and one that restarts the server.
func (s *Server) handleDev(handle func(method, path string, h http.HandlerFunc)) {
	handle(http.MethodPost, "/reset_prefix_cache", func(_ http.ResponseWriter, r *http.Request) {
		s.engine.reset(r.URL.Query().Get("reset_external") == "true") // as in vLLM, nobody is told whether it did
	})
	handle(http.MethodPost, "/sleep", func(http.ResponseWriter, *http.Request) { s.engine.sleep() })
	handle(http.MethodPost, "/wake_up", func(http.ResponseWriter, *http.Request) { s.engine.rouse() })
	handle(http.MethodGet, "/is_sleeping", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, http.StatusOK, map[string]bool{"is_sleeping": s.engine.sleeping()})
	})
	handle(http.MethodPost, "/sim/restart", func(http.ResponseWriter, *http.Request) { s.Restart() })
}

// Restart is the end of the server's process and the start of another at the same address:
// connections of requests under way are cut, the cache and the main memory are empty, all counts
// begin anew. Of a server without KV, which holds nothing, only the counts are.
func (s *Server) Restart() {
	if s.engine != nil {
		s.engine.drop(true)
	}
	s.live.Store(newMetrics(s.opt, s.engine))
}
