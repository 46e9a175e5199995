package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrShape is the error of an answer that cannot be given in the shape that a client wants.
var ErrShape = errors.New("answer has another shape")

// As returns the answer in the shape that a client wants: a stream, with the usage at its end or without, or a whole body.
// What cannot be turned without losing something is an error, which wraps ErrShape. The result may share memory with a.
func (a *Answer) As(streamed, usage bool) (*Answer, error) {
	switch {
	case !streamed && !a.Streamed():
		return a, nil
	case streamed && a.Streamed():
		return a.withUsage(usage)
	case !streamed:
		return a.gather()
	}
	s, err := a.spread()
	if err != nil {
		return nil, err
	}
	return s.withUsage(usage)
}

// members is a JSON object.
type members map[string]json.RawMessage

// text returns a member that is a string, empty for null.
func (m members) text(name string) (string, error) {
	var s *string
	if err := json.Unmarshal(m[name], &s); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrShape, name, err)
	}
	if s == nil {
		return "", nil
	}
	return *s, nil
}

// void reports whether a member is absent or says nothing.
func void(v json.RawMessage) bool { return !set(v) }

// unknown returns the name of a member that is neither known nor void, the first by name, or "".
func (m members) unknown(known ...string) string {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, name) && !void(m[name]) {
			return name
		}
	}
	return ""
}

func (m members) put(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrShape, name, err)
	}
	m[name] = b
	return nil
}

// withUsage returns the stream with the event of the usage, or without it. A stream of the Responses API always has it.
func (a *Answer) withUsage(want bool) (*Answer, error) {
	if bytes.Contains(a.Data, []byte(`"response.completed"`)) {
		return a, nil
	}
	from, to, err := a.usageEvent()
	switch {
	case err != nil:
		return nil, err
	case want && from < 0:
		return nil, fmt.Errorf("%w: no usage was told", ErrShape)
	case want || from < 0:
		return a, nil
	}
	out := *a
	out.Data = append(bytes.Clone(a.Data[:from]), a.Data[to:]...)
	out.Pieces = nil
	for _, p := range a.Pieces {
		switch {
		case p.End >= to:
			p.End -= to - from
		case p.End > from:
			p.End = from
		}
		if n := len(out.Pieces); n == 0 || p.End > out.Pieces[n-1].End {
			out.Pieces = append(out.Pieces, p)
		}
	}
	return &out, nil
}

// usageEvent returns where the event stands that has a usage and no choice; -1 when there is none.
func (a *Answer) usageEvent() (from, to int, err error) {
	at := 0
	for at < len(a.Data) {
		n := nextBoundary(a.Data[at:])
		for data := range events(a.Data[at : at+n]) {
			var e struct {
				Choices []json.RawMessage `json:"choices"`
				Usage   json.RawMessage   `json:"usage"`
			}
			if string(data) == "[DONE]" {
				continue
			}
			if err := json.Unmarshal(data, &e); err != nil {
				return 0, 0, fmt.Errorf("%w: %w", ErrShape, err)
			}
			if len(e.Choices) == 0 && !void(e.Usage) {
				return at, at + n, nil
			}
		}
		at += n
	}
	return -1, -1, nil
}

// nextBoundary is the length of the first event of a stream, with the empty line behind it.
func nextBoundary(stream []byte) int {
	end := len(stream)
	for _, mark := range [...]string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(stream, []byte(mark)); i >= 0 {
			end = min(end, i+len(mark))
		}
	}
	return end
}
