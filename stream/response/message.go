package response

import (
	"errors"
	"slices"
	"strings"
)

// Message is what an assistant said in one choice, in the form of the API's bodies.
type Message struct {
	Content          *string    `json:"content"`
	Reasoning        string     `json:"reasoning,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Refusal          string     `json:"refusal,omitempty"`
	Role             string     `json:"role"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is a function call.
type ToolCall struct {
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function Function `json:"function"`
}

// Function is what is called.
type Function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// ErrCallOrder is the error for a stream whose tool calls are numbered with gaps.
var ErrCallOrder = errors.New("tool calls out of order")

// ErrLong is the error for an answer that exceeds what is kept of one.
var ErrLong = errors.New("the answer is too long to be kept")

// Limits on what a Collector keeps: the calls of one choice, and the bytes of all choices.
const (
	maxCalls     = 1 << 10
	maxCollected = 8 << 20
	choiceSize   = 128 // approximate size of a choice or a call besides its texts
)

// Collector assembles the messages of an answer from its events, or from a body read as one. The
// zero value is ready for use.
type Collector struct {
	choices []collected // by index
	size    int         // of the choices, in bytes
	err     error
}

type collected struct {
	index  int
	role   string
	finish string
	texts  map[role]*strings.Builder
	calls  []*call
}

type call struct {
	ToolCall

	name, arguments strings.Builder
}

// Add processes an event. Events of a stream that repeat others must not be added. Texts of the
// Responses API are not collected, because its last event contains the answer.
func (c *Collector) Add(e *Event) {
	if e.Shape != Chat && e.Shape != Completion || c.full(e) {
		return
	}
	for i := range e.Calls {
		k := &e.Calls[i]
		to := c.choice(k.Choice).call(k.Part)
		if to == nil {
			c.err = ErrCallOrder
			return
		}
		fill(&to.ID, k.ID)
		fill(&to.Type, k.Type)
	}
	for i := range e.Deltas {
		d := &e.Deltas[i]
		to := c.choice(d.Choice)
		switch d.field { //nolint:exhaustive // the rest is text
		case arguments:
			if k := to.call(d.Part); k != nil {
				_, _ = k.arguments.Write(d.Text)
			}
		case toolName:
			if k := to.call(d.Part); k != nil {
				_, _ = k.name.Write(d.Text)
			}
		case callArguments:
		default:
			_, _ = to.text(d).Write(d.Text)
		}
	}
	for _, index := range e.layout.choices {
		if to := c.choice(index); len(e.Role) > 0 {
			to.role = string(e.Role)
		}
	}
	for i := range e.Finishes {
		c.choice(e.Finishes[i].Choice).finish = string(e.Finishes[i].Reason)
	}
}

// full reports whether an event makes the answer too long, and discards the answer in that case.
func (c *Collector) full(e *Event) bool {
	c.size += choiceSize * len(e.Calls)
	for i := range e.Deltas {
		c.size += len(e.Deltas[i].Text)
	}
	if c.size <= maxCollected {
		return false
	}
	c.choices, c.err = nil, ErrLong
	return true
}

func fill(to *string, inside []byte) {
	if *to == "" && len(inside) > 0 {
		*to = string(appendText(nil, inside))
	}
}

func (c *Collector) choice(index int) *collected {
	at, found := slices.BinarySearchFunc(c.choices, index, func(x collected, index int) int {
		return x.index - index
	})
	if !found {
		c.size += choiceSize
		c.choices = slices.Insert(c.choices, at, collected{index: index})
	}
	return &c.choices[at]
}

// call returns the call at an index, or nil if it is out of order.
func (c *collected) call(index int) *call {
	if index < 0 || index > len(c.calls) || index >= maxCalls {
		return nil
	}
	if index == len(c.calls) {
		c.calls = append(c.calls, new(call))
	}
	return c.calls[index]
}

// text returns the builder for the pieces of a text.
func (c *collected) text(d *Delta) *strings.Builder {
	field := content
	switch {
	case d.Kind == Refusal:
		field = refusal
	case d.field == reasoning:
		field = reasoning
	case d.Kind == Reasoning:
		field = reasoningContent
	}
	if c.texts == nil {
		c.texts = make(map[role]*strings.Builder, 1)
	}
	if c.texts[field] == nil {
		c.texts[field] = new(strings.Builder)
	}
	return c.texts[field]
}

// Len returns the number of choices. err says why the collection is incomplete, if it is.
func (c *Collector) Len() (n int, err error) { return len(c.choices), c.err }

// Message returns the i-th collected choice, its index and its finish reason, which is empty if it
// has not ended. i must be less than the result of Len.
func (c *Collector) Message(i int) (m Message, index int, finish string) {
	from := &c.choices[i]
	text := func(field role) string {
		if b := from.texts[field]; b != nil {
			return b.String()
		}
		return ""
	}
	m = Message{
		Role: from.role, Reasoning: text(reasoning), ReasoningContent: text(reasoningContent),
		Refusal: text(refusal),
	}
	if m.Role == "" {
		m.Role = "assistant"
	}
	for k := range from.calls {
		one := from.calls[k]
		one.Function = Function{one.name.String(), one.arguments.String()}
		m.ToolCalls = append(m.ToolCalls, one.ToolCall)
	}
	if s := text(content); s != "" || len(m.ToolCalls) == 0 && m.Refusal == "" {
		m.Content = &s
	}
	return m, from.index, from.finish
}
