package anthropic

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// ErrorType returns the error type for an HTTP status (API reference, errors). full marks a 503 as
// overload.
func ErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return "timeout_error"
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return openai.TypeInvalidRequest
	}
	return "api_error"
}

// AppendError appends the body of an error, {"type":"error","error":{...},"request_id":"..."}. The
// API has no member for the field at fault; the message names it, in Anthropic's spelling. An empty
// id is left out.
func AppendError(b []byte, e *openai.Error, id string) []byte {
	b = append(append(b, `{"type":"error","error":{"type":"`...), ErrorType(e.Status)...)
	b = append(b, `","message":`...)
	b, _ = jsontext.AppendQuote(b, message(e)) // invalid UTF-8 is replaced
	b = append(b, '}')
	if id != "" {
		b, _ = jsontext.AppendQuote(append(b, `,"request_id":`...), id)
	}
	return append(b, '}')
}

// instructions is the field of the system prompt, a word that the text of a refusal may contain
// anyway.
const instructions = "system"

// message returns the message of an error with the field at fault: messages.3.content.0 for
// messages[3].content[0].
func message(e *openai.Error) string {
	at := strings.NewReplacer("[", ".", "]", "").Replace(e.Param)
	switch rest, named := strings.CutPrefix(e.Message, e.Param); {
	case named:
		return at + rest
	case strings.Contains(e.Message, e.Param) && e.Param != instructions:
		return e.Message
	}
	return at + ": " + e.Message
}

// Blame turns an error about Chat into one about the body as received, if the translation gave the
// field at fault another name or place: those of tools and of the format of an answer. The messages
// of the chat are written here, so they cannot be at fault themselves.
func (r *Request) Blame(err error) error {
	e, ok := errors.AsType[*openai.Error](err)
	if !ok || e.Param == "" {
		return err
	}
	out := *e
	if out.Param = r.sent(e.Param); out.Param == e.Param {
		return err
	}
	if rest, named := strings.CutPrefix(e.Message, e.Param); named {
		out.Message = out.Param + rest
	}
	return &out
}

// sent returns the field of the received body from which a field of Chat was made.
func (r *Request) sent(field string) string {
	const tool = "tools["
	if strings.HasPrefix(field, tool) {
		at, in, _ := strings.Cut(field, ".function")
		if rest, schema := strings.CutPrefix(in, ".parameters"); schema {
			in = ".input_schema" + rest
		}
		return at + in
	}
	if rest, ok := strings.CutPrefix(field, "response_format"); ok {
		return r.form + strings.TrimPrefix(rest, ".json_schema")
	}
	return field
}

// AppendStreamError appends an error as an event of a stream.
func AppendStreamError(b []byte, e *openai.Error, id string) []byte {
	b = AppendError(append(b, "event: error\ndata: "...), e, id)
	return append(b, "\n\n"...)
}
