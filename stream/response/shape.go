package response

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"signalbox/internal/openai"
	"signalbox/stream/sse"
)

// ErrShape is the error for an answer that cannot be converted to the requested shape.
var ErrShape = errors.New("answer has another shape")

// As converts an answer, a stream of events (streamed) or a whole body, to the shape that a client
// wants: a stream, with the usage at its end or without, or a body. For a stream that remains a
// stream, gone is the position of the usage event that was removed. If the conversion would lose
// something, the error wraps ErrShape. The result may be data itself.
func As(data []byte, streamed, stream, usage bool) (out []byte, gone openai.Span, err error) {
	switch {
	case !streamed && !stream:
		return data, gone, nil
	case !streamed:
		out, err = spread(data, usage)
		return out, gone, err
	case !stream:
		out, err = gather(data, true)
		return out, gone, err
	case bytes.Contains(data, []byte(`"response.completed"`)): // always has usage
		return data, gone, nil
	}
	if gone, err = usageEvent(data); err != nil {
		return nil, gone, err
	}
	switch {
	case usage && !gone.Present():
		return nil, gone, fmt.Errorf("%w: no usage was told", ErrShape)
	case usage || !gone.Present():
		return data, openai.Span{}, nil
	}
	return append(bytes.Clone(data[:gone.Start]), data[gone.End:]...), gone, nil
}

// events calls f for each JSON event of a stored stream, with its position, until f returns false
// or an error.
func events(stream []byte, f func(e *Event, at openai.Span) (bool, error)) error {
	s := NewStream()
	s.Reset(StreamOptions{})
	s.Feed(stream)
	s.End(io.EOF)
	at := openai.Span{}
	for c := s.Next(); c != nil; c = s.Next() {
		at = openai.Span{Start: at.End, End: at.End + len(c.Raw)}
		if !c.IsMessage() {
			continue
		}
		if e := c.Content(); e.Shape == Opaque {
			return fmt.Errorf("%w: event: %s", ErrShape, e.Why)
		} else if more, err := f(e, at); err != nil || !more {
			return err
		}
	}
	return nil
}

// usageEvent returns the position of the event with a usage and no choice, or an empty span.
func usageEvent(stream []byte) (found openai.Span, err error) {
	err = events(stream, func(e *Event, at openai.Span) (bool, error) {
		if e.HasUsage && len(e.layout.choices) == 0 {
			found = at
		}
		return !found.Present(), nil
	})
	return found, err
}

// members is a JSON object, written in the order of its names.
type members map[string]any

// headOf returns the top-level members that chunks and bodies share.
func headOf(e *Event) (m members, err error) {
	m = members{}
	for _, at := range e.layout.head {
		one := fmt.Appendf(nil, "{%s}", e.data[at.Start:at.End])
		if err := json.Unmarshal(one, &m); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrShape, err)
		}
	}
	return m, nil
}

// usageOf returns the usage of an event as JSON, or nil.
func usageOf(e *Event) json.RawMessage {
	at := e.layout.usage
	if !e.HasUsage || !at.Present() {
		return nil
	}
	_, value, _ := bytes.Cut(e.data[at.Start:at.End], []byte(":"))
	return bytes.Clone(value)
}

const (
	objectChat  = "chat.completion"
	objectChunk = "chat.completion.chunk"
)

// Said returns the body that a stream amounts to, for readers of its texts. Other content, such as
// log probabilities, is omitted. Errors wrap ErrShape, unless the body cannot be encoded.
func Said(stream []byte) ([]byte, error) { return gather(stream, false) }

// gather returns the body that a stream amounts to. With all, a stream with other content is an
// error.
func gather(stream []byte, all bool) ([]byte, error) {
	var (
		said  Collector
		body  members
		whole []byte
	)
	err := events(stream, func(e *Event, _ openai.Span) (more bool, err error) {
		switch {
		case e.Shape == Response && string(e.Type) == typeCompleted:
			at := e.layout.response
			whole = bytes.Clone(e.data[at.Start:at.End])
			return false, nil
		case e.Shape == Response:
			return true, nil
		case all && e.Odd():
			return false, fmt.Errorf("%w: an event that tells more than an answer", ErrShape)
		case body == nil:
			if body, err = headOf(e); err != nil {
				return false, err
			}
		}
		if u := usageOf(e); u != nil {
			body["usage"] = u
		}
		said.Add(e)
		return true, nil
	})
	n, order := said.Len()
	switch {
	case err != nil:
		return nil, err
	case len(whole) > 0:
		return whole, nil
	case n == 0:
		return nil, fmt.Errorf("%w: no events", ErrShape)
	case order != nil:
		return nil, fmt.Errorf("%w: %w", ErrShape, order)
	}
	chat := body["object"] == objectChunk
	if chat {
		body["object"] = objectChat
	}
	list := make([]members, n)
	for i := range list {
		m, index, finish := said.Message(i)
		list[i] = members{"index": index, "logprobs": nil, "finish_reason": finish}
		switch {
		case finish == "":
			return nil, fmt.Errorf("%w: choice %d has no end", ErrShape, index)
		case !chat:
			list[i]["text"] = *m.Content
			continue
		}
		for k := range m.ToolCalls {
			if t := &m.ToolCalls[k].Type; *t == "" {
				*t = "function"
			} else if *t != "function" {
				return nil, fmt.Errorf("%w: a call of type %q", ErrShape, *t)
			}
		}
		list[i]["message"] = m
	}
	body["choices"] = list
	return json.Marshal(body)
}

// spread returns a stream equivalent to a body. Bodies of the Responses API have too many kinds of
// events and are not converted.
func spread(body []byte, usage bool) ([]byte, error) { //nolint:revive // a fact about the stream
	e := new(Reader).ReadBody(body)
	var all Collector
	all.Add(e)
	n, order := all.Len()
	total := usageOf(e)
	switch {
	case e.Shape != Chat && e.Shape != Completion || n == 0 || e.Odd():
		return nil, fmt.Errorf("%w: a body of shape %v", ErrShape, e.Shape)
	case order != nil:
		return nil, fmt.Errorf("%w: %w", ErrShape, order)
	case usage && total == nil:
		return nil, fmt.Errorf("%w: no usage was told", ErrShape)
	}
	head, err := headOf(e)
	if err != nil {
		return nil, err
	}
	if head["object"] == objectChat {
		head["object"] = objectChunk
	}
	s := spreading{head: head, chat: e.Shape == Chat}
	for i := range n {
		m, index, finish := all.Message(i)
		s.choice(&m, index, finish)
	}
	if usage {
		head["usage"] = total
		s.event([]members{})
	}
	s.out = append(s.out, sse.DoneEvent().Raw...)
	return s.out, s.err
}

// spreading is a stream under construction.
type spreading struct {
	head members
	chat bool
	out  []byte
	err  error
}

// event writes an event with some choices.
func (s *spreading) event(choices []members) {
	s.head["choices"] = choices
	data, err := json.Marshal(s.head)
	s.err = errors.Join(s.err, err)
	e, _ := sse.NewEvent(nil, "", data)
	s.out = append(s.out, e.Raw...)
}

// choice writes the events of one choice.
func (s *spreading) choice(m *Message, index int, finish string) {
	var why any // finish reason; null before the end
	put := func(name string, value any) {
		s.event([]members{{"index": index, name: value, "finish_reason": why}})
	}
	text := ""
	if m.Content != nil {
		text = *m.Content
	}
	if !s.chat {
		for piece := range pieces(text) {
			put("text", piece)
		}
		why = finish
		put("text", "")
		return
	}
	put("delta", members{"role": m.Role, "content": ""})
	for _, t := range [...]struct{ name, text string }{
		{"reasoning_content", m.ReasoningContent},
		{"reasoning", m.Reasoning},
		{"content", text},
		{"refusal", m.Refusal},
	} {
		for piece := range pieces(t.text) {
			put("delta", members{t.name: piece})
		}
	}
	calls := make([]members, len(m.ToolCalls))
	for i := range calls {
		c := &m.ToolCalls[i]
		// In a stream calls are numbered.
		calls[i] = members{"index": i, "id": c.ID, "type": c.Type, "function": c.Function}
	}
	if len(calls) > 0 {
		put("delta", members{"tool_calls": calls})
	}
	why = finish
	put("delta", members{})
}

// pieceSize is the approximate number of text bytes per event of a converted answer.
const pieceSize = 64

// pieces splits a text before spaces into pieces of about pieceSize bytes.
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
