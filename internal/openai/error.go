package openai

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The error types for errors that the client can correct, and for those that it cannot.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeServer         = "server_error"
)

// Error is an error as a client receives it. Its text is sent unchanged, so it must not contain
// anything internal.
type Error struct {
	Status  int    // HTTP status; not part of the body
	Message string // human-readable
	Type    string // such as invalid_request_error
	Param   string // the field at fault, such as messages[0].content; empty means null
	Code    string // machine-readable; empty means null
	// the problem, for logs: without the field, and without any text of the request; may be empty
	Plain string
}

// Refusal returns an error with the given status and its type: TypeServer from 500 on, else
// TypeInvalidRequest. code and param may be empty.
func Refusal(status int, code, param, message string) *Error {
	kind := TypeInvalidRequest
	if status >= http.StatusInternalServerError {
		kind = TypeServer
	}
	return &Error{Status: status, Type: kind, Code: code, Param: param, Message: message}
}

// Invalid returns a Refusal with status 400 for a field with an invalid value.
func Invalid(param, message string) *Error {
	return Refusal(http.StatusBadRequest, "", param, message)
}

// Error returns the message, which names the field at fault if there is one.
func (e *Error) Error() string { return e.Message }

// Cause describes the error for logs: its code, the field as far as the API defines its name, and
// the problem. Unlike the message it contains no text of the request.
func (e *Error) Cause() string {
	cause := cmp.Or(e.Code, e.Type)
	if e.Param != "" {
		cause += ": " + place(e.Param)
	}
	if e.Plain != "" {
		cause += ": " + e.Plain
	}
	return cause
}

// maxIndex is the maximum length of list indices in logs, in bytes: names may be numbers as well.
const maxIndex = 8

// place returns a field of the request without the names that the API does not define.
func place(param string) string {
	names := strings.Split(param, ".")
	for i, name := range names {
		name, at, _ := strings.Cut(name, "[")
		if name != "" && !isField(name) || len(at) > maxIndex || strings.Trim(at, "0123456789[]") != "" {
			names[i] = "…"
		}
	}
	return strings.Join(names, ".")
}

// MarshalJSON returns the envelope {"error": {...}}. The schema of the API requires all four
// members, null if there is no value. It never fails.
func (e *Error) MarshalJSON() ([]byte, error) { return e.append(nil), nil }

// WriteTo writes the envelope to w.
func (e *Error) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(e.append(nil))
	return int64(n), err
}

func (e *Error) append(b []byte) []byte {
	b = appendString(append(b, `{"error":{"message":`...), e.Message)
	b = appendString(append(b, `,"type":`...), e.Type)
	b = appendStringOrNull(append(b, `,"param":`...), e.Param)
	b = appendStringOrNull(append(b, `,"code":`...), e.Code)
	return append(b, `}}`...)
}

// WriteError responds with e and its status, which defaults to 500. Headers set before are kept,
// such as Retry-After. A failed write is ignored: the client has disconnected.
func WriteError(w http.ResponseWriter, e *Error) {
	body := e.append(nil)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	status := cmp.Or(e.Status, http.StatusInternalServerError)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// StreamError returns e as one server-sent event without a name. Official SDKs raise it as an error
// when it arrives in a stream. After it the connection must be closed, without [DONE].
func StreamError(e *Error) []byte {
	b := e.append([]byte("data: "))
	return append(b, "\n\n"...)
}

// ResponseError returns e as an event of a stream of the Responses API. Some of its clients ignore
// events without a type or a number; official SDKs raise this event in the same way as that of
// StreamError.
func ResponseError(e *Error, number int) []byte {
	b := strconv.AppendInt([]byte("event: error\ndata: {\"type\":\"error\",\"sequence_number\":"), int64(number), 10)
	at := len(b)
	b = e.append(b)
	b[at] = ',' // in place of the closing brace of the envelope
	return append(b, "\n\n"...)
}

// appendString appends s as a JSON string; invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error reports only the replacement of invalid UTF-8
	return b
}

func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}
