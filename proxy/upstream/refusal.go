package upstream

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
	case r.coded(), r.Type == "exceed_context_size_error": // llama.cpp
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

// TooLong is the error of a prompt that the server refuses for its length, in the words of the API;
// nil for any other response, and for one that has these words already. param is the field of the
// prompt.
func (u *Response) TooLong(param string) error {
	r := u.Refusal()
	if !r.TooLong() || r.coded() {
		return nil
	}
	return &fault.TooLongError{Param: param, Message: r.Short()}
}
