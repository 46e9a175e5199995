package openai

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The error types of what the client can mend, and of what is not its fault.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeServer         = "server_error"
)

// Error is an error as a client sees it. The text reaches the client as it is, so it holds nothing
// internal.
type Error struct {
	Status  int    // HTTP status; not part of the body
	Message string // for people
	Type    string // such as invalid_request_error
	Param   string // the field at fault, as messages[0].content; empty means null
	Code    string // for programs; empty means null
	Plain   string // what is wrong, for logs: without the field, and without any text of the request; may be empty
}

// Refusal returns an error with a status, and the type that goes with it: TypeServer from 500 on,
// else TypeInvalidRequest. code and param may be empty.
func Refusal(status int, code, param, message string) *Error {
	kind := TypeInvalidRequest
	if status >= http.StatusInternalServerError {
		kind = TypeServer
	}
	return &Error{Status: status, Type: kind, Code: code, Param: param, Message: message}
}

// Invalid is the refusal, with status 400, of a field with a value that is not allowed.
func Invalid(param, message string) *Error {
	return Refusal(http.StatusBadRequest, "", param, message)
}

// Error returns the message, which names the field where one is at fault.
func (e *Error) Error() string { return e.Message }

// Cause tells the error for logs: its code, the field as far as the API names it, and what is wrong.
// It holds no text of the request, as the message may.
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

// maxIndex bounds the bytes of the places in lists that logs tell: names may be numbers as well.
const maxIndex = 8

// place is a field of the request in which names that are not of the API are left out.
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
// members, null when there is no value. It never fails.
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

// WriteError answers with e and its status, which defaults to 500. Headers set before stay, such as
// Retry-After. A failed write is dropped: the client is gone.
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
// when it arrives in a stream; it must be followed by the end of the connection, not by [DONE].
func StreamError(e *Error) []byte {
	b := e.append([]byte("data: "))
	return append(b, "\n\n"...)
}

// ResponseError returns e as an event of a stream of the Responses API. Some clients of it read no
// event that lacks a type or a number; official SDKs raise this one as StreamError's.
func ResponseError(e *Error, number int) []byte {
	b := strconv.AppendInt([]byte("event: error\ndata: {\"type\":\"error\",\"sequence_number\":"), int64(number), 10)
	at := len(b)
	b = e.append(b)
	b[at] = ',' // for the brace of the envelope
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
