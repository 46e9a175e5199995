package downstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
)

// eventWriter assembles a short stream.
type eventWriter struct {
	out []byte
	err error
}

// add appends an event; an empty name means none.
func (s *eventWriter) add(name string, v any) {
	b, err := Encode(v)
	if err != nil {
		s.err = err
		return
	}
	if name != "" {
		s.out = append(append(append(s.out, "event: "...), name...), '\n')
	}
	s.out = append(append(append(s.out, "data: "...), b...), "\n\n"...)
}

// send writes the stream as the response.
func (s *eventWriter) send(w *Writer) error {
	if s.err != nil {
		return s.err
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
	return WritePart(w, w.translateStream(s.out))
}

// WriteJSON writes a value as a JSON response.
func WriteJSON(w *Writer, status int, v any) error {
	b, err := Encode(v)
	if err != nil {
		return err
	}
	return WriteBytes(w, status, b)
}

// WriteBytes writes a JSON body as the response.
func WriteBytes(w *Writer, status int, b []byte) error {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	return WritePart(w, b)
}

// Encode returns v as JSON. Unlike json.Marshal it does not escape < and >, which conditions often
// contain.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Fail writes the error response. It writes nothing if the client has left.
func Fail(w *Writer, err error) {
	e := fault.Wire(err, w.ID)
	if e.Status == fault.StatusClientGone {
		return
	}
	h := w.Header()
	headers.DropBody(h)
	w.Lease.Describe(h)
	fault.Describe(h, err)
	if w.Messages != nil {
		w.Messages.fail(w, e)
		return
	}
	openai.WriteError(w, e)
}

// fail writes an error in the form of Anthropic's API.
func (*Dialogue) fail(w *Writer, e *openai.Error) {
	body := anthropic.AppendError(nil, e, w.ID)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(cmp.Or(e.Status, http.StatusInternalServerError))
	_, _ = w.Write(body)
}
