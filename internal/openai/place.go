package openai

import (
	"bytes"
	"strconv"
)

// Whole is used for an index in a list if no single element is meant.
const Whole = -1

// Place is the place in the original of a translated request from which a message was made.
type Place struct {
	Message int // index in its messages, from 0; Whole for text beside them, such as instructions
	Block   int // index in the content of that message, from 0; Whole if it is not a single block
}

// String returns the place as a path: messages[3].content[0], messages[3] or system.
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

// SegmentField returns the path of the field that contains all or most of the bytes at of a segment
// of Text: a message of a chat completion, such as messages[7]; for a translated request the place
// in the original; for the Responses API instructions, input, input[3] or input[3].content[0]; the
// prompt of a completion. It is empty for other texts.
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

// messageField returns the path of a message or, if its content has several parts, of the part that
// contains most of within. A zero within is outside of the content.
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
	if bytes.HasSuffix(before, []byte(`"output"`)) { // the result of a call
		name = ".output["
	}
	return at + name + strconv.Itoa(part) + "]"
}

// partAt returns the index of the content part that contains most of the bytes within, counted in
// the joined text; Whole if there is only one part.
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
