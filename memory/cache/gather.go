package cache

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// gather returns the body that a stream amounts to.
func (a *Answer) gather() (*Answer, error) {
	g := gathering{choices: map[int]*choice{}}
	for data := range events(a.Data) {
		if string(data) == "[DONE]" {
			break
		}
		if err := g.event(data); err != nil {
			return nil, err
		}
	}
	body, err := g.body()
	if err != nil {
		return nil, err
	}
	out := *a
	out.Data, out.Pieces, out.ContentType = body, nil, "application/json"
	return &out, nil
}

// gathering is a body in the making.
type gathering struct {
	head     members         // of the first event
	response json.RawMessage // the body itself, of the Responses API
	usage    json.RawMessage
	choices  map[int]*choice
}

// choice is one of the answers.
type choice struct {
	texts  map[string]*strings.Builder // by member of the message
	role   string
	calls  []call
	finish json.RawMessage
}

// call is a call of a tool.
type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (g *gathering) event(data []byte) error {
	var m members
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: event: %w", ErrShape, err)
	}
	if !void(m["type"]) {
		return g.responseEvent(m)
	}
	if name := m.unknown("id", "object", "created", "model", "system_fingerprint", "service_tier", "choices", "usage", "obfuscation"); name != "" {
		return fmt.Errorf("%w: event with %q", ErrShape, name)
	}
	if g.head == nil {
		g.head = m
	}
	if !void(m["usage"]) {
		g.usage = m["usage"]
	}
	var list []members
	if err := json.Unmarshal(m["choices"], &list); err != nil {
		return fmt.Errorf("%w: choices: %w", ErrShape, err)
	}
	for _, c := range list {
		if err := g.choice(c); err != nil {
			return err
		}
	}
	return nil
}

// responseEvent keeps the body that the last event of the Responses API holds.
func (g *gathering) responseEvent(m members) error {
	kind, err := m.text("type")
	if err != nil {
		return err
	}
	if kind == "response.completed" {
		g.response = m["response"]
	}
	return nil
}

// choice adds what an event says of one choice.
func (g *gathering) choice(m members) error {
	var index int
	if err := json.Unmarshal(m["index"], &index); err != nil {
		return fmt.Errorf("%w: index: %w", ErrShape, err)
	}
	if name := m.unknown("index", "delta", "text", "finish_reason"); name != "" {
		return fmt.Errorf("%w: choice with %q", ErrShape, name)
	}
	c := g.choices[index]
	if c == nil {
		c = &choice{texts: map[string]*strings.Builder{}}
		g.choices[index] = c
	}
	if !void(m["finish_reason"]) {
		c.finish = m["finish_reason"]
	}
	if _, ok := m["text"]; ok {
		return c.add(m, "text")
	}
	var delta members
	if len(m["delta"]) > 0 {
		if err := json.Unmarshal(m["delta"], &delta); err != nil {
			return fmt.Errorf("%w: delta: %w", ErrShape, err)
		}
	}
	return c.delta(delta)
}

// textMembers are the members of a message that come in pieces.
//
//nolint:gochecknoglobals // constant table
var textMembers = []string{"content", "reasoning_content", "reasoning", "refusal"}

func (c *choice) delta(m members) error {
	if name := m.unknown(append([]string{"role", "tool_calls"}, textMembers...)...); name != "" {
		return fmt.Errorf("%w: delta with %q", ErrShape, name)
	}
	for _, name := range textMembers {
		if err := c.add(m, name); err != nil {
			return err
		}
	}
	if !void(m["role"]) {
		var err error
		if c.role, err = m.text("role"); err != nil {
			return err
		}
	}
	if void(m["tool_calls"]) {
		return nil
	}
	return c.addCalls(m["tool_calls"])
}

// add appends a piece of a text.
func (c *choice) add(m members, name string) error {
	if len(m[name]) == 0 || string(m[name]) == "null" {
		return nil
	}
	s, err := m.text(name)
	if err != nil {
		return err
	}
	if c.texts[name] == nil {
		c.texts[name] = new(strings.Builder)
	}
	c.texts[name].WriteString(s)
	return nil
}

// maxCalls bounds the calls of one answer.
const maxCalls = 1024

func (c *choice) addCalls(data json.RawMessage) error {
	var list []struct {
		call

		Index int `json:"index"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%w: tool_calls: %w", ErrShape, err)
	}
	for _, l := range list {
		if l.Index < 0 || l.Index > len(c.calls) || l.Index >= maxCalls || l.Type != "" && l.Type != "function" {
			return fmt.Errorf("%w: tool call %d of type %q", ErrShape, l.Index, l.Type)
		}
		if l.Index == len(c.calls) {
			c.calls = append(c.calls, call{Type: "function"})
		}
		to := &c.calls[l.Index]
		if l.ID != "" {
			to.ID = l.ID
		}
		to.Function.Name += l.Function.Name
		to.Function.Arguments += l.Function.Arguments
	}
	return nil
}

// body is the whole answer.
func (g *gathering) body() ([]byte, error) {
	if g.response != nil {
		return g.response, nil
	}
	if g.head == nil || len(g.choices) == 0 {
		return nil, fmt.Errorf("%w: no events", ErrShape)
	}
	object, err := g.head.text("object")
	if err != nil {
		return nil, err
	}
	chat := object == "chat.completion.chunk"
	out := g.head
	delete(out, "obfuscation")
	delete(out, "usage")
	if chat {
		out["object"] = json.RawMessage(`"chat.completion"`)
	}
	if g.usage != nil {
		out["usage"] = g.usage
	}
	indexes := make([]int, 0, len(g.choices))
	for i := range g.choices {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	list := make([]members, 0, len(indexes))
	for _, i := range indexes {
		fill := g.choices[i].completion
		if chat {
			fill = g.choices[i].message
		}
		m, err := g.choices[i].members(i)
		if err != nil {
			return nil, err
		}
		if err := fill(m); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	if err := out.put("choices", list); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// members is what every kind of choice has in a body.
func (c *choice) members(index int) (members, error) {
	if c.finish == nil {
		return nil, fmt.Errorf("%w: choice %d has no end", ErrShape, index)
	}
	out := members{"logprobs": json.RawMessage("null"), "finish_reason": c.finish}
	return out, out.put("index", index)
}

// completion adds the text of a completion.
func (c *choice) completion(out members) error {
	text := ""
	if b := c.texts["text"]; b != nil {
		text = b.String()
	}
	return out.put("text", text)
}

// message adds the message of a chat.
func (c *choice) message(out members) error {
	role := c.role
	if role == "" {
		role = "assistant"
	}
	message := members{"content": json.RawMessage("null")}
	if err := message.put("role", role); err != nil {
		return err
	}
	for name, b := range c.texts {
		if err := message.put(name, b.String()); err != nil {
			return err
		}
	}
	if len(c.calls) > 0 {
		if err := message.put("tool_calls", c.calls); err != nil {
			return err
		}
	}
	return out.put("message", message)
}
