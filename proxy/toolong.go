package proxy

import (
	"encoding/json"
	"net/http"
	"strings"

	"signalbox/internal/openai"
)

// codeTooLong is the code of the API for a prompt that does not fit into a context window, whoever
// refuses it: this proxy, or a model server in words of its own.
const codeTooLong = "context_length_exceeded"

// tooLongError reports a prompt that does not fit into the context window of any model that it could
// go to.
type tooLongError struct {
	param   string // the field that holds the prompt; empty where that is not known
	message string // for the client; empty for one without figures
}

func (*tooLongError) Error() string { return "prompt longer than any context window" }

// wire is the error as a client sees it.
func (e *tooLongError) wire() *openai.Error {
	message := e.message
	if message == "" {
		message = "the prompt is longer than the context window of every model it could go to"
	}
	return invalid(http.StatusBadRequest, codeTooLong, e.param, message)
}

// backendError is what a model server says of a request that it refuses. Fields that it does not say
// are empty.
type backendError struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Param   string          `json:"param"`
	Code    json.RawMessage `json:"code"` // a word with most servers, the status as a number with vLLM
}

// readBackendError reads an error body: the object `error` of the API, or, as older servers write it, the
// same members without it. What is neither is empty.
func readBackendError(body []byte) (r backendError) {
	var whole struct {
		backendError

		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &whole) != nil {
		return backendError{}
	}
	if whole.Error == nil {
		return whole.backendError
	}
	if json.Unmarshal(whole.Error, &r) != nil {
		return backendError{}
	}
	return r
}

// tooLong reports whether the prompt was refused for its length. A limit on the answer that does not
// fit beside the prompt is another matter: its param is the limit.
func (r *backendError) tooLong() bool {
	switch {
	case string(r.Code) == `"`+codeTooLong+`"`, r.Type == "exceed_context_size_error": // llama.cpp
		return true
	case r.Param == "input_tokens": // vLLM 0.32
		return true
	case strings.HasPrefix(r.Param, "max_"):
		return false
	}
	says := strings.ToLower(r.Message) // older vLLM, SGLang
	return strings.Contains(says, "maximum context length") ||
		strings.Contains(says, "longer than the model's context length")
}

// maxSaid bounds what is repeated of a server's own words, in bytes.
const maxSaid = 500

// shortened cuts what a server says to maxSaid bytes of valid UTF-8.
func shortened(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxSaid)], "")
}
