package response

import (
	"cmp"
	"encoding/json"
	"slices"
)

// maxPartial is the maximum size of what a Partial keeps, in bytes: about 60,000 tokens.
const maxPartial = 256 << 10

// Partial keeps what a client has received of an answer of the Responses API, so that the answer
// can be closed where it is cut: the output items that have ended, and the open messages. For an
// answer longer than maxPartial it keeps nothing. The zero value is ready for one answer.
type Partial struct {
	reader Reader
	items  []partialItem
	size   int
	over   bool // the answer was longer
}

// partialItem is an output item.
type partialItem struct {
	index int
	id    []byte // as the value of item_id
	data  []byte // as announced, or as ended
	done  bool
	parts []partialPart
}

// partialPart is a part of the content of an item.
type partialPart struct {
	index int
	kind  Kind   // Text or Refusal
	data  []byte // as announced, or as ended
	text  []byte // so far
	told  bool   // sent as a whole
	done  bool
}

// The types of the events that begin and end items, parts and their texts.
const (
	typeItemAdded    = "response.output_item.added"
	typeItemDone     = "response.output_item.done"
	typePartAdded    = "response.content_part.added"
	typePartDone     = "response.content_part.done"
	typeTextDone     = "response.output_text.done"
	typeRefusalDelta = "response.refusal.delta"
	typeRefusalDone  = "response.refusal.done"
)

// Add processes the data of an event that the client receives.
func (p *Partial) Add(data []byte) {
	if p.over {
		return
	}
	e := p.reader.Read(data)
	l := &e.layout
	switch string(e.Type) {
	case typeItemAdded, typeItemDone:
		it := p.item(l.outputIndex)
		it.data = p.keep(it.data[:0], data[l.item.Start:l.item.End])
		if it.done = string(e.Type) == typeItemDone; it.done {
			it.parts = nil
		}
	case typePartAdded, typePartDone:
		part := p.part(e)
		part.data = p.keep(part.data[:0], data[l.part.Start:l.part.End])
		part.done = string(e.Type) == typePartDone
	case typeTextDelta, typeRefusalDelta, typeTextDone, typeRefusalDone:
		p.addText(e)
	}
	if p.size > maxPartial {
		*p = Partial{over: true}
	}
}

func (p *Partial) addText(e *Event) {
	part := p.part(e)
	if part.kind = Text; string(e.Type) == typeRefusalDelta || string(e.Type) == typeRefusalDone {
		part.kind = Refusal
	}
	if string(e.Type) == typeTextDone || string(e.Type) == typeRefusalDone {
		part.told, part.text = true, part.text[:0]
	}
	for i := range e.Deltas {
		part.text = p.keep(part.text, e.Deltas[i].Text)
	}
}

// keep appends to what is kept.
func (p *Partial) keep(to, more []byte) []byte {
	p.size += len(more)
	return append(to, more...)
}

// rowSize is the approximate size of an item or a part besides its bytes.
const rowSize = 128

func (p *Partial) item(index int) *partialItem {
	i := slices.IndexFunc(p.items, func(it partialItem) bool { return it.index == index })
	if i < 0 {
		i = len(p.items)
		p.size += rowSize
		p.items = append(p.items, partialItem{index: index})
	}
	return &p.items[i]
}

// part returns the part that an event belongs to.
func (p *Partial) part(e *Event) *partialPart {
	l := &e.layout
	it := p.item(l.outputIndex)
	if len(it.id) == 0 && l.itemID.Present() {
		it.id = p.keep(nil, e.data[l.itemID.Start:l.itemID.End])
	}
	i := slices.IndexFunc(it.parts, func(x partialPart) bool { return x.index == l.contentIndex })
	if i < 0 {
		i = len(it.parts)
		p.size += rowSize
		it.parts = append(it.parts, partialPart{index: l.contentIndex})
	}
	return &it.parts[i]
}

// Close passes the events that end the open messages to put, numbered after what r has read. It
// returns the output so far as a JSON list, or nil if that is unknown. Open items other than
// messages, such as a tool call, remain open, so that a client does not take them for complete.
func (p *Partial) Close(r *Reader, put func(name string, data []byte)) (output []byte) {
	if p.over {
		return nil
	}
	slices.SortFunc(p.items, func(a, b partialItem) int { return cmp.Compare(a.index, b.index) })
	list := []any{}
	for i := range p.items {
		it := &p.items[i]
		if it.done {
			list = append(list, json.RawMessage(it.data))
			continue
		}
		message := it.message()
		if message["type"] != "message" {
			continue
		}
		c := closing{r: r, put: put, item: it}
		message["content"] = c.parts()
		c.event(typeItemDone, members{"item": message})
		list = append(list, message)
	}
	output, err := json.Marshal(list)
	if err != nil {
		return nil // the members were read from JSON
	}
	return output
}

// message returns the item as it ends here, without its content.
func (it *partialItem) message() members {
	m := members{"type": "message", "role": "assistant"}
	if len(it.id) > 0 {
		m["id"] = json.RawMessage(it.id)
	}
	_ = json.Unmarshal(it.data, &m) // empty if it was not announced
	m["status"] = "incomplete"
	return m
}

// closing ends one item.
type closing struct {
	r    *Reader
	put  func(name string, data []byte)
	item *partialItem
}

// parts ends the open parts, and returns all of them.
func (c *closing) parts() []any {
	slices.SortFunc(c.item.parts, func(a, b partialPart) int { return cmp.Compare(a.index, b.index) })
	list := []any{}
	for i := range c.item.parts {
		x := &c.item.parts[i]
		if x.done {
			list = append(list, json.RawMessage(x.data))
			continue
		}
		kind, field := "output_text", "text"
		part := members{"annotations": []any{}}
		if x.kind == Refusal {
			kind, field, part = "refusal", "refusal", members{}
		}
		_ = json.Unmarshal(x.data, &part) // empty if it was not announced
		part["type"], part[field] = kind, string(x.text)
		if !x.told {
			told := members{field: string(x.text)}
			if x.kind != Refusal {
				told["logprobs"] = []any{}
			}
			c.ofPart("response."+kind+".done", x, told)
		}
		c.ofPart(typePartDone, x, members{"part": part})
		list = append(list, part)
	}
	return list
}

func (c *closing) ofPart(name string, x *partialPart, m members) {
	m["content_index"], m["item_id"] = x.index, ""
	if len(c.item.id) > 0 {
		m["item_id"] = json.RawMessage(c.item.id)
	}
	c.event(name, m)
}

func (c *closing) event(name string, m members) {
	m["type"], m["output_index"] = name, c.item.index
	if c.r.sequence >= 0 {
		m["sequence_number"] = c.r.sequence + 1
	}
	data, err := json.Marshal(m)
	if err != nil {
		return // the members were read from JSON
	}
	c.r.Read(data)
	c.put(name, data)
}
