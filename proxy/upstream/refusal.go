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

// Refusal is what a model server says of a request that it refuses. Fields that it leaves out are
// empty.
type Refusal struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Param   string          `json:"param"`
	Code    json.RawMessage `json:"code"` // a word; with vLLM the status, a number
}

// ReadRefusal reads an error body: the object `error` of the API, or, as older servers write it,
// the same members without it. Of any other body it is empty.
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

// TooLong reports whether the prompt was refused for its length. A limit on the response that does
// not fit beside the prompt is another matter: its param is the limit.
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

// What llama.cpp and SGLang call a prompt that is too long by itself.
const (
	typeExceeded = "exceed_context_size_error"
	longerThan   = "longer than the model's context length"
)

// coded reports whether the refusal has the code of the API for a prompt that is too long.
func (r *Refusal) coded() bool { return string(r.Code) == `"`+fault.CodeTooLong+`"` }

// maxMessage bounds how much of a server's message is repeated, in bytes.
const maxMessage = 500

// Short is the message, cut to 500 bytes of valid UTF-8.
func (r *Refusal) Short() string {
	return strings.ToValidUTF8(r.Message[:min(len(r.Message), maxMessage)], "")
}

// Refusal is what the server says of a request that it refuses with 400; empty for any other
// response.
func (u *Response) Refusal() (r Refusal) {
	whole := errors.Is(u.err, io.EOF)
	if u.Status != http.StatusBadRequest || !u.JSON() || !u.Plain() || !whole {
		return r
	}
	return ReadRefusal(u.buf.bytes())
}

// Asked is what a refused request asked of a context window, as far as the proxy knows.
type Asked struct {
	Prompt int   // an estimate, in tokens
	Limit  int64 // on the response, that the client has set; 0 for none

	PromptField, LimitField string // of the request
}

// TooLong is the error of a request that the server refuses for its length, in the words of the
// API; nil for any other response, and for one that has these words already. It names the limit on
// the response where that is at fault, and else the prompt.
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

// The words in which servers tell the lengths: those of vLLM in several versions, SGLang and OpenAI.
// vLLM reads no more of a prompt than the limit leaves room for, and then says "at least".
var (
	toldWindow = regexp.MustCompile(`context length (?:is|of) (\d{1,9}) tokens`)
	toldPrompt = regexp.MustCompile(`(at least )?(\d{1,9}) (?:input tokens|tokens from the input|` +
		`tokens of prompt|in (?:the messages|the prompt|your prompt))`)
)

// ofLimit reports whether the prompt alone would fit into the window, and does not with the limit
// beside it. An estimate of the prompt is believed where one and a half times as much would fit.
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
	// SGLang and llama.cpp have other words for a prompt that is too long by itself.
	alone := r.Type == typeExceeded || strings.Contains(strings.ToLower(r.Message), longerThan)
	return !alone && prompt < window && int64(least)+a.Limit >= int64(window)
}
