package upstream

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"signalbox/proxy/fault"
)

// Refusal is what a model server says about a request that it refuses. Missing fields are empty.
type Refusal struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Param   string          `json:"param"`
	Code    json.RawMessage `json:"code"` // a word; in vLLM the status, a number
}

// ReadRefusal parses an error body: the object `error` of the API or, from older servers, the same
// members without it. It returns the zero value for any other body.
func ReadRefusal(body []byte) (r Refusal) {
	var whole struct {
		Refusal

		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &whole) != nil {
		return Refusal{}
	}
	if whole.Error == nil {
		return whole.Refusal
	}
	if json.Unmarshal(whole.Error, &r) != nil {
		return Refusal{}
	}
	return r
}

// TooLong reports whether the prompt was refused for its length. A response limit that does not fit
// next to the prompt is not meant: its param names the limit.
func (r *Refusal) TooLong() bool {
	switch {
	case r.coded(), r.Type == typeExceeded:
		return true
	case r.Param == "input_tokens": // vLLM 0.32
		return true
	case strings.HasPrefix(r.Param, "max_"):
		return false
	}
	says := strings.ToLower(r.Message) // older vLLM, SGLang
	return strings.Contains(says, "maximum context length") ||
		strings.Contains(says, longerThan)
}

// The words of llama.cpp and SGLang for a prompt that is too long on its own.
const (
	typeExceeded = "exceed_context_size_error"
	longerThan   = "longer than the model's context length"
)

// coded reports whether the refusal has the API's code for a prompt that is too long.
func (r *Refusal) coded() bool { return string(r.Code) == `"`+fault.CodeTooLong+`"` }

// maxMessage limits how much of a server's message is passed on, in bytes.
const maxMessage = 500

// Short returns the message, cut to 500 bytes of valid UTF-8.
func (r *Refusal) Short() string {
	return strings.ToValidUTF8(r.Message[:min(len(r.Message), maxMessage)], "")
}

// Refusal returns what the server says about a request that it refuses with a 400; empty for any
// other response.
func (u *Response) Refusal() (r Refusal) {
	whole := errors.Is(u.err, io.EOF)
	if u.Status != http.StatusBadRequest || !u.JSON() || !u.Plain() || !whole {
		return r
	}
	return ReadRefusal(u.buf.bytes())
}

// Asked is what a refused request needed of the context window, as far as the proxy knows.
type Asked struct {
	Prompt int   // estimated tokens of the prompt
	Limit  int64 // response limit set by the client; 0 if none

	PromptField, LimitField string // names of the request's fields
}

// TooLong returns the error, in the API's words, for a request that the server refused for its
// length. It is nil for any other response, and for one that already uses these words. The error
// names the response limit if that is the cause, otherwise the prompt.
func (u *Response) TooLong(a *Asked) error {
	r := u.Refusal()
	if !r.TooLong() {
		return nil
	}
	if a.Limit > 0 && r.ofLimit(a, u.Model.ContextWindow()) {
		return &fault.TooLongError{Param: a.LimitField, Message: r.Short()}
	}
	if r.coded() {
		return nil
	}
	return &fault.TooLongError{Param: a.PromptField, Message: r.Short()}
}

// The texts in which servers report lengths: vLLM in several versions, SGLang and OpenAI. vLLM
// stops reading a prompt at the room that the limit leaves, and then says "at least".
var (
	toldWindow = regexp.MustCompile(`context length (?:is|of) (\d{1,9}) tokens`)
	toldPrompt = regexp.MustCompile(`(at least )?(\d{1,9}) (?:input tokens|tokens from the input|` +
		`tokens of prompt|in (?:the messages|the prompt|your prompt))`)
)

// ofLimit reports whether the prompt alone would fit into the window but does not together with the
// limit. An estimated prompt length is trusted when one and a half times as much would fit.
func (r *Refusal) ofLimit(a *Asked, window int) bool {
	if m := toldWindow.FindStringSubmatch(r.Message); m != nil {
		window, _ = strconv.Atoi(m[1])
	}
	prompt := a.Prompt + a.Prompt/2
	least := a.Prompt
	if m := toldPrompt.FindStringSubmatch(r.Message); m != nil {
		n, _ := strconv.Atoi(m[2])
		if m[1] == "" {
			prompt, least = n, n
		} else {
			prompt, least = max(prompt, n), max(least, n)
		}
	}
	// SGLang and llama.cpp have other words for a prompt that is too long on its own.
	alone := r.Type == typeExceeded || strings.Contains(strings.ToLower(r.Message), longerThan)
	return !alone && prompt < window && int64(least)+a.Limit >= int64(window)
}
