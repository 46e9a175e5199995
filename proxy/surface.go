package proxy

import (
	"net/http"
	"strings"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/proxy/fault"
)

// surface is one endpoint of the API whose requests are forwarded.
type surface struct {
	path string // of the client's URL; behind the base of an endpoint it is the same without /v1
	api  openai.API
	// operation names the span, and is gen_ai.operation.name: chat, text_completion and embeddings
	// are the words of the OTel GenAI conventions, which call a request to the Responses API chat
	// as well.
	operation string
	form      bool // the body is multipart/form-data
	// messages: requests are those of Anthropic's Messages API, and are worked on as chat
	// completions.
	messages bool
}

// upstreamPath is the path below the base of an endpoint, without a slash in front. direct: the
// body is one of the Messages API.
func (s *surface) upstreamPath(direct bool) string { //nolint:revive // what the body is
	path := s.path
	if s.messages && !direct {
		path = chatPath
	}
	return strings.TrimPrefix(path, "/v1/")
}

// surfaces lists the endpoints that are forwarded: an allow-list with exact paths. Those of
// openai.Other go to the model that they name, and are not routed.
//
//nolint:gochecknoglobals // constant table
var surfaces = [...]surface{
	{path: chatPath, api: openai.Chat, operation: "chat"},
	{path: "/v1/completions", api: openai.Completion, operation: "text_completion"},
	{path: "/v1/responses", api: openai.Response, operation: "chat"},
	{path: messagesPath, api: openai.Chat, operation: "chat", messages: true},
	{path: "/v1/embeddings", api: openai.Other, operation: "embeddings"},
	{path: "/v1/rerank", api: openai.Other, operation: "rerank"},
	{path: "/v1/tokenize", api: openai.Other, operation: "tokenize"},
	{path: "/v1/audio/speech", api: openai.Other, operation: "speech"},
	{path: "/v1/audio/transcriptions", api: openai.Other, operation: "transcription", form: true},
	{path: "/v1/audio/translations", api: openai.Other, operation: "translation", form: true},
}

// decode reads the body of a request.
func (st *State) decode(w *reply, s *surface, h http.Header, body []byte) (*openai.Request, error) {
	l := st.limits.parse()
	if s.messages {
		return st.translate(w, body, anthropic.Options{Limits: l})
	}
	if s.form {
		kind := h["Content-Type"]
		if len(kind) != 1 {
			kind = []string{""} // refused: of two, another reader may take the other
		}
		return openai.ParseForm(kind[0], body, l)
	}
	return openai.Parse(s.api, body, l)
}

// chatPath is the path that most requests come to.
const chatPath = "/v1/chat/completions"

// isForwarded reports whether requests to a path are forwarded; record logs their faults itself.
func isForwarded(path string) bool {
	for i := range surfaces {
		if surfaces[i].path == path {
			return true
		}
	}
	return false
}

// errNotRouted refuses to route what only a named model can be asked for: a model that answers
// questions gives no embeddings, and those of two models cannot be compared.
func errNotRouted(asked string) error {
	return &openai.Error{
		Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: "model",
		Message: asked + " is for requests that are routed, and this endpoint's are not: name the model",
	}
}

// translate reads a request as the chat completion that it amounts to.
func (st *State) translate(w *reply, body []byte, o anthropic.Options) (*openai.Request, error) {
	t, err := anthropic.ToChat(body, o)
	if err != nil {
		return nil, err
	}
	if !w.hold(int64(len(body)+len(t.Chat)), st.limits.MaxBytesInFlight) {
		return nil, fault.ErrTooManyBytes
	}
	req, err := openai.ParseChat(t.Chat, o.Limits)
	if err != nil {
		return nil, err
	}
	req.Translated, req.ThinkingBudget = true, t.Budget
	w.messages.Thinking, w.messages.Prompt = t.Thinking, req.EstimateTokens()
	if len(t.LeftOut) > 0 {
		w.Header()["X-Signalbox-Left-Out"] = []string{strings.Join(t.LeftOut, ",")}
	}
	if t.Exact {
		w.messages.raw, w.messages.model = body, t.Model
	}
	return req, nil
}
