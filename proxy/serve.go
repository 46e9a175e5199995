package proxy

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"signalbox/internal/openai"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
)

// Handler returns the handler of the main listener. Paths match exactly; any other path is an API
// error. A request reaches an upstream only through the pipeline.
func (p *Proxy) Handler() http.Handler {
	r, forwarded := p.router()
	return refuseUpgrades(p, routeForwarded(forwarded, r))
}

// modelsPath is the path that lists models.
const modelsPath = "/v1/models"

// router returns the router with all routes, and the handlers of forwarded paths by path.
func (p *Proxy) router() (chi.Router, map[string]http.HandlerFunc) {
	r := chi.NewRouter()
	r.Use(middleware.GetHead) // load balancers probe with HEAD
	forwarded := make(map[string]http.HandlerFunc, len(surfaces))
	for i := range surfaces {
		s := &surfaces[i]
		forwarded[s.Path] = p.serve(func(st *State, w *downstream.Writer, r *http.Request) error {
			return p.handle(st, w, r, s)
		})
		r.Post(s.Path, forwarded[s.Path])
	}
	r.Post(downstream.CountPath, p.serve(p.countMessage))
	r.Get(modelsPath, p.serve(p.listModels))
	r.Get(modelsPath+"/*", p.serve(p.oneModel))
	r.Post("/signalbox/v1/classify", p.serve(p.classifyRequest))
	r.Post("/signalbox/v1/explain", p.serve(p.explainRequest))
	r.Post("/signalbox/v1/verify", p.serve(p.verifyRequest))
	r.Post("/signalbox/v1/feedback", p.serve(p.feedbackRequest))
	r.Get("/signalbox/v1/intents", p.serve(p.listIntents))
	r.Post("/signalbox/v1/intents/{name}/examples", p.serve(p.addExamples))
	p.contextRoutes(r)
	r.Get("/healthz", p.serve(p.live))
	r.Get("/readyz", p.serve(p.ready))
	r.Get("/health", p.serve(p.ready)) // the path that clients of vLLM use
	r.NotFound(p.serve(func(_ *State, _ *downstream.Writer, r *http.Request) error { return noRoute(r.URL.Path) }))
	r.MethodNotAllowed(p.serve(refuseMethod(r)))
	return r, forwarded
}

// routeForwarded passes requests on forwarded paths directly to their handlers and all others to
// the router. The router would find the same handlers, but allocates a context and copies each
// request.
func routeForwarded(forwarded map[string]http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := forwarded[r.URL.Path]; h != nil && r.Method == http.MethodPost && r.URL.RawPath == "" {
			h(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseUpgrades refuses CONNECT, which has no path to match, and requests to switch protocols,
// which this API does not have. It wraps the router.
func refuseUpgrades(p *Proxy, next http.Handler) http.Handler {
	refuse := p.serve(func(_ *State, _ *downstream.Writer, r *http.Request) error {
		if err := noRoute(r.URL.Path); errors.As(err, new(*fault.UnservedError)) {
			return err // a client of /v1/realtime
		}
		return fault.ErrMethod
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.Method == http.MethodTrace || len(r.Header["Upgrade"]) > 0 {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// surfaces lists the endpoints that are forwarded: an allow-list of exact paths. Requests with API
// openai.Other go to the model that they name and are not routed.
//
//nolint:gochecknoglobals // constant table
var surfaces = [...]exchange.Surface{
	{Path: exchange.ChatPath, API: openai.Chat, Operation: "chat"},
	{Path: "/v1/completions", API: openai.Completion, Operation: "text_completion"},
	{Path: "/v1/responses", API: openai.Response, Operation: "chat"},
	{Path: downstream.MessagesPath, API: openai.Chat, Operation: "chat", Messages: true},
	{Path: "/v1/embeddings", API: openai.Other, Operation: exchange.Embeddings},
	{Path: "/v1/rerank", API: openai.Other, Operation: "rerank"},
	{Path: "/v1/tokenize", API: openai.Other, Operation: exchange.Tokenize},
	{Path: "/v1/audio/speech", API: openai.Other, Operation: "speech"},
	{Path: "/v1/audio/transcriptions", API: openai.Other, Operation: "transcription", Form: true},
	{Path: "/v1/audio/translations", API: openai.Other, Operation: "translation", Form: true},
}

// isForwarded reports whether requests on a path are forwarded. Package record logs their errors,
// so nothing else needs to.
func isForwarded(path string) bool {
	return slices.ContainsFunc(surfaces[:], func(s exchange.Surface) bool { return s.Path == path })
}

// unserved lists the parts of OpenAI's API that are not served, with all paths below them. They
// store state that later requests refer to, or use another protocol.
//
//nolint:gochecknoglobals // constant table
var unserved = [...]string{
	"/v1/assistants", "/v1/batches", "/v1/containers", "/v1/conversations", "/v1/evals", "/v1/files",
	"/v1/fine_tuning", "/v1/images", "/v1/moderations", "/v1/realtime", "/v1/responses/compact",
	"/v1/responses/input_tokens", "/v1/threads", "/v1/uploads", "/v1/vector_stores", "/v1/videos",
}

// noRoute returns the error for an unknown path. It says whether the path is a part of the API that
// is not served, or suggests the path that a client meant whose base URL lacks /v1 or has it twice.
func noRoute(path string) error {
	const version = "/v1"
	for _, api := range unserved {
		if path == api || strings.HasPrefix(path, api+"/") {
			return &fault.UnservedError{Path: api}
		}
	}
	// POST /v1/responses is served.
	if rest, below := strings.CutPrefix(path, "/v1/responses/"); below {
		api := "/v1/responses/{id}"
		if _, part, _ := strings.Cut(rest, "/"); part == "cancel" || part == "input_items" {
			api += "/" + part
		}
		return &fault.UnservedError{Path: api}
	}
	for _, meant := range [...]string{version + path, strings.TrimPrefix(path, version)} {
		if isForwarded(meant) || meant == modelsPath {
			return &fault.NoRouteError{Meant: meant}
		}
	}
	return fault.ErrNoRoute
}

// serve adapts a handler. It holds one state for the whole request, and is the one place where
// errors and panics become responses.
func (p *Proxy) serve(h func(st *State, w *downstream.Writer, r *http.Request) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		st := p.acquire()
		defer st.release()
		p.serving.Add(1)
		defer p.serving.Add(-1)
		w := downstream.New(rw, r)
		w.Messages = downstream.NewDialogue(w.ID, r.URL.Path)
		w.Patience, w.Limiter, w.Bytes = time.Duration(st.opts.WriteTimeout), p.limiter, &p.bytes
		defer w.Done()
		if p.draining.Load() {
			// the process is stopping: the client's next request belongs on another one
			rw.Header()["Connection"] = []string{"close"}
		}
		st.bodyLimits().Begin(w, r)
		defer p.recovered(w, r)
		err := fault.Stopped(r.Context(), h(st, w, r))
		switch {
		case err == nil, w.Told:
		case w.Status == 0 && !errors.Is(err, fault.ErrClientGone):
			if e := fault.Wire(err, w.ID); e.Status >= http.StatusInternalServerError && !isForwarded(r.URL.Path) {
				p.tel.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("id", w.ID),
					slog.String("path", r.URL.Path), slog.Int("status", e.Status),
					slog.String("cause", fault.Cause(err)))
			}
			downstream.Fail(w, err)
		default:
			// the head was sent: all that is left is to break the connection
			panic(http.ErrAbortHandler)
		}
	}
}

// recovered turns a panic into an error response, or into a broken connection when the response has
// begun.
func (p *Proxy) recovered(w *downstream.Writer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint // a sentinel that is panicked, not wrapped
		p.tel.Log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("id", w.ID), slog.Any("value", v), slog.String("stack", string(debug.Stack())))
		if w.Status == 0 {
			downstream.Fail(w, fault.ErrPanicked)
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// refuseMethod refuses a method and lists the ones that the path supports (RFC 9110, section
// 15.5.6).
func refuseMethod(routes chi.Routes) func(*State, *downstream.Writer, *http.Request) error {
	return func(_ *State, w *downstream.Writer, r *http.Request) error {
		path := cmp.Or(r.URL.RawPath, r.URL.Path)
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
