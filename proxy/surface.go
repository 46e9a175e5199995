package proxy

import (
	"net/http"
	"strconv"

	"signalbox/internal/openai"
)

// surface is one endpoint of the API whose requests are forwarded.
type surface struct {
	path string // of the client's URL; behind the base of an endpoint it is the same without /v1
	api  openai.API
	// operation names the span, and is gen_ai.operation.name: chat, text_completion and embeddings are the
	// words of the OTel GenAI conventions, which call a request to the Responses API chat as well.
	operation string
}

// surfaces lists the endpoints that are forwarded: an allow-list with exact paths. Those of openai.Other
// go to the model that they name, and are not routed.
//
//nolint:gochecknoglobals // constant table
var surfaces = [...]surface{
	{chatPath, openai.Chat, "chat"},
	{"/v1/completions", openai.Completion, "text_completion"},
	{"/v1/responses", openai.Response, "chat"},
	{"/v1/embeddings", openai.Other, "embeddings"},
	{"/v1/rerank", openai.Other, "rerank"},
	{"/v1/tokenize", openai.Other, "tokenize"},
	{"/v1/audio/speech", openai.Other, "speech"},
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

// streams reports whether the answer to req comes as events whose end is known.
func streams(req *openai.Request) bool { return req.Stream && req.API != openai.Other }

// choices is how many answers req asks for at once.
func choices(req *openai.Request) int {
	n, err := strconv.Atoi(string(req.Field("n")))
	if err != nil {
		return 1
	}
	return n
}

// errNotRouted refuses to route what only a named model can be asked for: a model that answers questions
// gives no embeddings, and those of two models cannot be compared.
func errNotRouted(asked string) error {
	return &openai.Error{
		Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: "model",
		Message: asked + " is for requests that are routed, and this endpoint's are not: name the model",
	}
}
