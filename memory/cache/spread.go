package cache

import (
	"encoding/json"
	"fmt"
	"strings"
)

// pieceSize is about how many bytes of text an event of a spread answer holds.
const pieceSize = 64

// spread returns the stream that a body may have come as, with the usage if the body tells it. Its pieces have no times: they are given at once. Bodies of the
// Responses API have too many kinds of events to be spread.
func (a *Answer) spread() (*Answer, error) {
	var m members
	if err := json.Unmarshal(a.Data, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShape, err)
	}
	object, err := m.text("object")
	if err != nil {
		return nil, err
	}
	if object != "chat.completion" && object != "text_completion" {
		return nil, fmt.Errorf("%w: a body of %q", ErrShape, object)
	}
	if name := m.unknown("id", "object", "created", "model", "system_fingerprint", "service_tier", "choices", "usage"); name != "" {
		return nil, fmt.Errorf("%w: body with %q", ErrShape, name)
	}
	var list []members
	if err := json.Unmarshal(m["choices"], &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("%w: choices", ErrShape)
	}
	s := spreading{head: m, chat: object == "chat.completion", total: m["usage"]}
	delete(m, "usage")
	if s.chat {
		m["object"] = json.RawMessage(`"chat.completion.chunk"`)
	}
	for _, c := range list {
		if err := s.choice(c); err != nil {
			return nil, err
		}
	}
	if err := s.usage(); err != nil {
		return nil, err
	}
	s.out = append(s.out, "data: [DONE]\n\n"...)
	out := *a
	out.Data, out.ContentType = s.out, "text/event-stream; charset=utf-8"
	out.Pieces = []Piece{{End: len(s.out)}}
	return &out, nil
}

// spreading is a stream in the making.
type spreading struct {
	head  members
	chat  bool
	total json.RawMessage
	out   []byte
}

// event writes one event with one choice, or none.
func (s *spreading) event(choices ...members) error {
	if choices == nil {
		choices = []members{}
	}
	if err := s.head.put("choices", choices); err != nil {
		return err
	}
	data, err := json.Marshal(s.head)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	s.out = append(append(append(s.out, "data: "...), data...), "\n\n"...)
	return nil
}

func (s *spreading) choice(c members) error {
	if name := c.unknown("index", "message", "text", "finish_reason"); name != "" {
		return fmt.Errorf("%w: choice with %q", ErrShape, name)
	}
	if !s.chat {
		return s.completion(c)
	}
	var message members
	if err := json.Unmarshal(c["message"], &message); err != nil {
		return fmt.Errorf("%w: message: %w", ErrShape, err)
	}
	if name := message.unknown(append([]string{"role", "tool_calls"}, textMembers...)...); name != "" {
		return fmt.Errorf("%w: message with %q", ErrShape, name)
	}
	if err := s.delta(c, members{"role": message["role"], "content": json.RawMessage(`""`)}, nil); err != nil {
		return err
	}
	for _, name := range [...]string{"reasoning_content", "reasoning", "content", "refusal"} {
		if err := s.texts(c, message, name); err != nil {
			return err
		}
	}
	if err := s.calls(c, message["tool_calls"]); err != nil {
		return err
	}
	return s.delta(c, members{}, c["finish_reason"])
}

// completion writes the events of a choice that is no message.
func (s *spreading) completion(c members) error {
	text, err := c.text("text")
	if err != nil {
		return err
	}
	for piece := range pieces(text) {
		m := members{"index": c["index"], "finish_reason": json.RawMessage("null")}
		if err := m.put("text", piece); err != nil {
			return err
		}
		if err := s.event(m); err != nil {
			return err
		}
	}
	return s.event(members{"index": c["index"], "text": json.RawMessage(`""`), "finish_reason": c["finish_reason"]})
}

// delta writes an event of choice c.
func (s *spreading) delta(c, delta members, finish json.RawMessage) error {
	if finish == nil {
		finish = json.RawMessage("null")
	}
	m := members{"index": c["index"], "finish_reason": finish}
	if err := m.put("delta", delta); err != nil {
		return err
	}
	return s.event(m)
}

// texts writes a text of a message piece by piece.
func (s *spreading) texts(c, message members, name string) error {
	if void(message[name]) {
		return nil
	}
	text, err := message.text(name)
	if err != nil {
		return err
	}
	for piece := range pieces(text) {
		m := members{}
		if err := m.put(name, piece); err != nil {
			return err
		}
		if err := s.delta(c, m, nil); err != nil {
			return err
		}
	}
	return nil
}

// calls writes the calls of tools, which a stream numbers.
func (s *spreading) calls(c members, list json.RawMessage) error {
	if void(list) {
		return nil
	}
	var calls []members
	if err := json.Unmarshal(list, &calls); err != nil {
		return fmt.Errorf("%w: tool_calls: %w", ErrShape, err)
	}
	for i := range calls {
		if err := calls[i].put("index", i); err != nil {
			return err
		}
	}
	m := members{}
	if err := m.put("tool_calls", calls); err != nil {
		return err
	}
	return s.delta(c, m, nil)
}

// usage writes the event that tells it, if anything does.
func (s *spreading) usage() error {
	if void(s.total) {
		return nil
	}
	s.head["usage"] = s.total
	return s.event()
}

// pieces cuts a text in front of spaces into pieces of about pieceSize bytes.
func pieces(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			cut := len(text)
			if cut > pieceSize {
				if i := strings.IndexByte(text[pieceSize:], ' '); i >= 0 {
					cut = pieceSize + i
				}
			}
			if !yield(text[:cut]) {
				return
			}
			text = text[cut:]
		}
	}
}
