package simulator

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

// vllmVersion is the version in GET /version: the simulator does not follow a specific release.
const vllmVersion = "0.0.0-simulated"

// Server is a simulated vLLM server. It is safe for concurrent use and needs no closing.
type Server struct {
	opt      Options
	live     atomic.Pointer[metrics] // a restart begins new ones
	recorder *recorder
	started  int64 // Unix seconds
	requests atomic.Uint64
	seats    chan struct{} // one element per running request; nil when unbounded or with an engine
	engine   *engine       // nil without KV
	bodies   sync.Pool     // *bytes.Buffer
	chunks   sync.Pool     // *[]byte
}

// New returns a server, or every problem of opt joined.
func New(opt Options) (*Server, error) {
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("simulator options: %w", err)
	}
	s := &Server{
		opt:      opt,
		recorder: newRecorder(opt.Record),
		started:  time.Now().Unix(),
	}
	switch {
	case opt.KV.Blocks > 0:
		s.engine = newEngine(opt)
	case opt.MaxNumSeqs > 0:
		s.seats = make(chan struct{}, opt.MaxNumSeqs)
	}
	s.live.Store(newMetrics(opt, s.engine))
	s.bodies.New = func() any { return new(bytes.Buffer) }
	s.chunks.New = func() any {
		b := make([]byte, 0, 1024)
		return &b
	}
	return s, nil
}

// Handler returns the HTTP surface: POST /v1/chat/completions, /v1/completions, /v1/responses,
// /v1/embeddings and /tokenize; GET /v1/models, /health, /version and /metrics; GET /sim/requests
// if requests are recorded; in DevMode POST /reset_prefix_cache, /sleep, /wake_up and /sim/restart,
// and GET /is_sleeping. Every other path returns 404 and every other method 405, with an error
// body. The handler is safe for concurrent use and may be served by several listeners at once.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(method, path string, h http.HandlerFunc) {
		mux.Handle(method+" "+path, s.authorized(path, h))
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", method)
			s.fail(w, &requestError{http.StatusMethodNotAllowed, "Method Not Allowed", "", "Method Not Allowed"})
		})
	}
	handle(http.MethodPost, "/v1/chat/completions", s.chat)
	handle(http.MethodPost, "/v1/completions", s.completion)
	handle(http.MethodPost, "/v1/responses", s.response)
	handle(http.MethodPost, "/v1/embeddings", s.embeddings)
	handle(http.MethodPost, "/tokenize", s.tokenize)
	handle(http.MethodGet, "/v1/models", s.models)
	handle(http.MethodGet, "/health", func(http.ResponseWriter, *http.Request) {})
	handle(http.MethodGet, "/version", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, http.StatusOK, map[string]string{"version": vllmVersion})
	})
	handle(http.MethodGet, "/metrics", func(w http.ResponseWriter, r *http.Request) {
		s.live.Load().handler().ServeHTTP(w, r)
	})
	if s.opt.DevMode {
		s.handleDev(handle)
	}
	if s.opt.Record > 0 {
		handle(http.MethodGet, "/sim/requests", func(w http.ResponseWriter, _ *http.Request) {
			s.reply(w, http.StatusOK, map[string][]Request{"requests": s.recorder.list()})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, &requestError{http.StatusNotFound, "Not Found", "", "Not Found"})
	})
	return mux
}

// authorized requires the API key on paths below /v1, which vLLM's --api-key guards.
func (s *Server) authorized(path string, h http.HandlerFunc) http.Handler {
	if s.opt.APIKey == "" || !strings.HasPrefix(path, "/v1/") {
		return h
	}
	want := []byte("Bearer " + s.opt.APIKey)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			s.reply(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
			return
		}
		h(w, r)
	})
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var req chatRequest
	if !s.read(w, r, &req) {
		return
	}
	g, err := s.planChat(r, &req, "chatcmpl-")
	if err != nil {
		s.fail(w, err)
		return
	}
	s.serve(w, r, g, &chatFramer{newFrame(g, "chat.completion.chunk", s.opt.Model), s.opt.ReasoningField}, func() any {
		return g.chatResponse(s.opt.Model, s.opt.ReasoningField)
	})
}

func (s *Server) completion(w http.ResponseWriter, r *http.Request) {
	var req completionRequest
	if !s.read(w, r, &req) {
		return
	}
	g, err := s.planCompletion(r, &req)
	if err != nil {
		s.fail(w, err)
		return
	}
	s.serve(w, r, g, &textFramer{newFrame(g, "text_completion", s.opt.Model)}, func() any {
		return g.completionResponse(s.opt.Model)
	})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	s.reply(w, http.StatusOK, modelList{Object: "list", Data: []modelCard{{
		ID: s.opt.Model, Object: "model", Created: s.started, OwnedBy: "vllm",
		Root: s.opt.Model, MaxModelLen: s.opt.MaxModelLen,
	}}})
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var req tokenizeRequest
	if !s.read(w, r, &req) {
		return
	}
	if req.Model != "" && req.Model != s.opt.Model {
		s.fail(w, &requestError{http.StatusNotFound, "NotFoundError", "model", fmt.Sprintf("The model `%s` does not exist.", req.Model)})
		return
	}
	out := tokenizeResponse{MaxModelLen: s.opt.MaxModelLen}
	var words []string
	add := func(token string) {
		out.Tokens = append(out.Tokens, tokenID(token))
		words = append(words, token)
	}
	switch {
	case req.Messages != nil:
		eachPromptToken(req.Messages, req.Tools, req.AddGenerationPrompt == nil || *req.AddGenerationPrompt, add)
	case req.Prompt != nil:
		eachToken(*req.Prompt, add)
	default:
		s.fail(w, badRequest("prompt", "either prompt or messages is required"))
		return
	}
	out.Count = len(out.Tokens)
	if req.ReturnTokenStrs {
		out.TokenStrs = &words
	}
	s.reply(w, http.StatusOK, out)
}

// read reads, records and decodes the body. If that fails, it sends the error response and returns
// false.
func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) bool {
	buf, _ := s.bodies.Get().(*bytes.Buffer)
	buf.Reset()
	defer s.bodies.Put(buf)
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, s.opt.MaxBodyBytes)); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			s.fail(w, &requestError{
				http.StatusRequestEntityTooLarge, "Request Entity Too Large", "",
				fmt.Sprintf("the body is larger than %d bytes", s.opt.MaxBodyBytes),
			})
			return false
		}
		s.fail(w, badRequest("", "read body: %v", err))
		return false
	}
	s.recorder.add(r, buf.Bytes())
	if err := decode(buf.Bytes(), into); err != nil {
		s.fail(w, err)
		return false
	}
	return true
}

// Requests returns the recorded requests, oldest first. It is empty unless Options.Record is
// positive. The caller owns the slice but must not change its headers and bodies.
func (s *Server) Requests() []Request { return s.recorder.list() }

// reply sends v as JSON. If the client has gone, the error is ignored.
func (*Server) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("simulator: unencodable response: " + err.Error())
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// fail sends err, a *requestError, in vLLM's error shape.
func (s *Server) fail(w http.ResponseWriter, err error) {
	e, known := errors.AsType[*requestError](err)
	if !known {
		e = &requestError{http.StatusInternalServerError, "InternalServerError", "", err.Error()}
	}
	s.reply(w, e.status, errorResponse{errorBody{e.message, e.kind, orNull(e.param), e.status}})
}
