package openai

import (
	"bytes"
	"strconv"
)

// Whole stands for the place in a list, where no single one is meant.
const Whole = -1

// Place is where the client of a translated request said what a message says.
type Place struct {
	Message int // of its messages, from 0; Whole for what stands beside them, its instructions
	Block   int // of the content of that message, from 0; Whole where it is not one block alone
}

// String names the place, as messages[3].content[0], messages[3] or system.
func (p Place) String() string {
	if p.Message == Whole {
		return "system"
	}
	at := "messages[" + strconv.Itoa(p.Message) + "]"
	if p.Block != Whole {
		at += ".content[" + strconv.Itoa(p.Block) + "]"
	}
	return at
}

// SegmentField names what holds the bytes at of a segment of Text, or most of them, as the API calls
// it: the message of a chat completion, such as messages[7], or of a translated request the place in
// what the client sent; instructions, input, input[3] or input[3].content[0] of a request to the
// Responses API; the prompt of a completion. It is empty for a text outside of these.
func (r *Request) SegmentField(segment int, at Span) string {
	have, next := 0, 0
	if r.Instructions != "" {
		if segment == 0 {
			return instructionsField
		}
		have++
	}
	for i := range r.Messages {
		m, first, content := &r.Messages[i], have, Whole
		if m.Name != "" {
			have++
		}
		if m.Text != "" {
			content = have
			have++
		}
		for ; next < len(r.texts) && r.texts[next].message == i; next++ {
			have++
		}
		switch {
		case segment < first || segment >= have:
		case segment == content:
			return r.messageField(i, at)
		default:
			return r.messageField(i, Span{})
		}
	}
	return ""
}

// messageField names a message, or of its content, where that has several parts, the one that most
// of within is in; the zero Span is elsewhere in the message.
func (r *Request) messageField(i int, within Span) string {
	if i < len(r.Places) {
		return r.Places[i].String()
	}
	if r.API == Chat {
		return Place{Message: i, Block: Whole}.String()
	}
	list := r.API.list()
	if v := r.Field(list); len(v) == 0 || v[0] != '[' {
		return list
	}
	at := list + "[" + strconv.Itoa(i) + "]"
	m := &r.Messages[i]
	part := Whole
	if within.Present() {
		part = r.partAt(m.Content, within)
	}
	if part == Whole {
		return at
	}
	name := ".content["
	before := bytes.TrimRight(r.Raw[m.Span.Start:m.Content.Start], ": \t\r\n")
	if bytes.HasSuffix(before, []byte(`"output"`)) { // what a call gave
		name = ".output["
	}
	return at + name + strconv.Itoa(part) + "]"
}

// partAt is the part of a content that has most of the bytes within of the text of all, Whole where
// there are not several.
func (r *Request) partAt(content, within Span) int {
	if r.Raw[content.Start] != '[' {
		return Whole
	}
	parts := scanParts(r.Raw, content)
	if len(parts) < 2 {
		return Whole
	}
	best, most, read := Whole, 0, 0
	for i := range parts {
		for _, t := range parts[i].texts {
			n := len(appendUnquoted(nil, r.Raw[t.Start:t.End]))
			if shared := min(read+n, within.End) - max(read, within.Start); shared > most {
				best, most = i, shared
			}
			if n > 0 {
				read += n + len("\n")
			}
		}
	}
	return best
}
