package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// eventWriter puts a short stream together.
type eventWriter struct {
	out []byte
	err error
}

// add appends an event; an empty name means none.
func (s *eventWriter) add(name string, v any) {
	b, err := encode(v)
	if err != nil {
		s.err = err
		return
	}
	if name != "" {
		s.out = append(append(append(s.out, "event: "...), name...), '\n')
	}
	s.out = append(append(append(s.out, "data: "...), b...), "\n\n"...)
}

// send answers with the stream.
func (s *eventWriter) send(w *reply) error {
	if s.err != nil {
		return s.err
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
	return send(w, w.spellStream(s.out))
}

// writeJSON answers with a value.
func writeJSON(w *reply, status int, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return writeBytes(w, status, b)
}

// writeBytes answers with a body that is JSON.
func writeBytes(w *reply, status int, b []byte) error {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	return send(w, b)
}

// encode writes v as JSON. Unlike json.Marshal it leaves < and > readable, of which conditions are
// full.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
