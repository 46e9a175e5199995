package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"signalbox/memory"
	"signalbox/proxy/contexts"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
)

// UseMemory makes m the store of contexts. Call it once, before the first request; without it
// requests that name contexts are refused.
func (p *Proxy) UseMemory(m *memory.Store) { p.resolver.Store = m }

// ServeContexts lets s answer the requests below /v1/contexts and /v1/sessions. Call it once,
// before the first request; without it they are refused.
func (p *Proxy) ServeContexts(s *contexts.Service) { p.contexts = s }

// contextRoutes registers the API of contexts.
func (p *Proxy) contextRoutes(r chi.Router) {
	for _, e := range contexts.Endpoints() {
		r.Method(e.Method, e.Path, p.serve(func(st *State, w *reply, r *http.Request) error { return p.serveContext(st, w, r, &e) }))
	}
}

// serveContext admits a request about contexts and lets the service answer it.
func (p *Proxy) serveContext(st *State, w *reply, r *http.Request, e *contexts.Endpoint) error {
	who, body, err := st.enter(w, r, e.Body)
	if err != nil {
		return err
	}
	if p.contexts == nil {
		return contexts.ErrOff
	}
	id, err := pathPart(r, "id")
	if err != nil {
		return err
	}
	lease, err := pathPart(r, "lease")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if lease == "" {
		lease = q.Get("lease")
	}
	err = e.Serve(r.Context(), p.contexts, w, &contexts.Request{
		Owner: resolve.Owner(who, r.Header.Get("X-Signalbox-Session")), May: who.May, Verdicts: st.auth.MayExplain(who), ID: id, Lease: lease, Header: r.Header,
		After: q.Get("after"), Limit: q.Get("limit"), Body: body,
	})
	if err != nil && r.Context().Err() != nil {
		return fault.ErrClientGone
	}
	return err
}

// enter admits a request, with its body where it takes one.
func (st *State) enter(w *reply, r *http.Request, body bool) (Principal, []byte, error) { //nolint:revive // the table of endpoints says it
	if body {
		return st.admit(w, r)
	}
	who, err := st.identify(w, r)
	return who, nil, err
}

// pathPart returns what a path names. The router matches the path as it was sent where that differs
// from its canonical form, and leaves the part escaped then.
func pathPart(r *http.Request, name string) (string, error) {
	part := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return part, nil
	}
	plain, err := url.PathUnescape(part)
	if err != nil {
		return "", fault.ErrNoRoute
	}
	return plain, nil
}

// refuseMethod answers a method that a path does not take with those that it does (RFC 9110,
// section 15.5.6).
func refuseMethod(routes chi.Routes) func(*State, *reply, *http.Request) error {
	return func(_ *State, w *reply, r *http.Request) error {
		path := r.URL.RawPath
		if path == "" {
			path = r.URL.Path
		}
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if !routes.Match(chi.NewRouteContext(), method, path) {
				continue
			}
			if allowed = append(allowed, method); method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		w.Header()["Allow"] = []string{strings.Join(allowed, ", ")}
		return fault.ErrMethod
	}
}
