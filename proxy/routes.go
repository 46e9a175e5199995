package proxy

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"signalbox/proxy/fault"
)

// Handler returns the routes of the main listener: exact paths, everything else is an error of the
// API. Nothing of a request reaches an upstream but through answer.
func (p *Proxy) Handler() http.Handler {
	r, forwarded := p.router()
	return refuseUpgrades(p, straight(forwarded, r))
}

// router holds all routes, and those that are forwarded once more by their paths.
func (p *Proxy) router() (chi.Router, map[string]http.HandlerFunc) {
	r := chi.NewRouter()
	r.Use(middleware.GetHead) // load balancers probe with HEAD
	forwarded := make(map[string]http.HandlerFunc, len(surfaces))
	for i := range surfaces {
		s := &surfaces[i]
		forwarded[s.path] = p.serve(func(st *State, w *reply, r *http.Request) error { return p.handle(st, w, r, s) })
		r.Post(s.path, forwarded[s.path])
	}
	r.Post(countPath, p.serve(p.countMessage))
	r.Get("/v1/models", p.serve(p.listModels))
	r.Get("/v1/models/*", p.serve(p.oneModel))
	r.Post("/signalbox/v1/classify", p.serve(p.classifyRequest))
	r.Post("/signalbox/v1/explain", p.serve(p.explainRequest))
	r.Post("/signalbox/v1/verify", p.serve(p.verifyRequest))
	r.Post("/signalbox/v1/feedback", p.serve(p.feedbackRequest))
	r.Get("/signalbox/v1/intents", p.serve(p.listIntents))
	r.Post("/signalbox/v1/intents/{name}/examples", p.serve(p.addExamples))
	p.contextRoutes(r)
	r.Get("/healthz", p.serve(p.live))
	r.Get("/readyz", p.serve(p.ready))
	r.Get("/health", p.serve(p.ready)) // where clients of vLLM look
	r.NotFound(p.serve(func(*State, *reply, *http.Request) error { return fault.ErrNoRoute }))
	r.MethodNotAllowed(p.serve(refuseMethod(r)))
	return r, forwarded
}

// straight hands requests that are forwarded to their handler, and all others to the router: that
// would find the same, but makes a context and a copy of each request.
func straight(forwarded map[string]http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := forwarded[r.URL.Path]; h != nil && r.Method == http.MethodPost && r.URL.RawPath == "" {
			h(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseUpgrades stands before the router: CONNECT has no path to match, and a request to switch
// protocols is no request of this API.
func refuseUpgrades(p *Proxy, next http.Handler) http.Handler {
	refuse := p.serve(func(*State, *reply, *http.Request) error { return fault.ErrMethod })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.Method == http.MethodTrace || len(r.Header["Upgrade"]) > 0 {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
