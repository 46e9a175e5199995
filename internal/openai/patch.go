package openai

import (
	"bytes"
	"slices"
	"strings"
)

// Patch collects edits of a request's body. The edits refer to the request as it was parsed:
// message indices do not change when messages are inserted. Bytes applies all edits at once.
//
// A Patch belongs to one goroutine. Any number of patches of one request may exist, so that each
// attempt at an upstream can have its own.
type Patch struct {
	req      *Request
	fields   []fieldEdit
	messages []messageEdit
	inserts  []insertEdit
}

type fieldEdit struct {
	name    string
	value   []byte // unused if removed
	removed bool
}

type messageEdit struct {
	index    int
	removed  bool
	replaced bool
	text     string // valid if replaced
	prefix   string // inserted before the text, replaced or not
}

type insertEdit struct {
	index      int
	role, text string
}

// NewPatch returns a patch without edits. The result of Bytes nevertheless never contains the
// proxy's own object "signalbox".
func NewPatch(r *Request) *Patch { return &Patch{req: r} }

// SetModel replaces the model. If the request already names this model, its spelling stays.
func (p *Patch) SetModel(model string) {
	if model == p.req.Model {
		p.revert("model")
		return
	}
	if p.req.form {
		p.SetField("model", []byte(model))
		return
	}
	p.SetField("model", appendString(nil, model))
}

// SetField sets a field of the body, in place if the field exists and after the last field
// otherwise. rawJSON must be one valid JSON value; it is not checked, and must stay unchanged until
// Bytes. The last edit of a field takes precedence, for messages also over edits of single
// messages. The proxy's own object cannot be set.
func (p *Patch) SetField(name string, rawJSON []byte) {
	if name != extrasField {
		p.put(fieldEdit{name: name, value: rawJSON})
	}
}

// DeleteField removes a field of the body, if there is one.
func (p *Patch) DeleteField(name string) { p.put(fieldEdit{name: name, removed: true}) }

// SetNested sets a member of a field's object and keeps the object's other members. If the field is
// absent, null or not an object, it becomes an object. The requirements for rawJSON are those of
// SetField.
func (p *Patch) SetNested(field, key string, rawJSON []byte) {
	object := p.current(field)
	if len(object) == 0 {
		p.SetField(field, append(append(append(appendString([]byte{'{'}, key), ':'), rawJSON...), '}'))
		return
	}
	edits := []fieldEdit{{name: key, value: rawJSON}}
	members, ok := scanObject(object)
	if !ok {
		object, members = []byte("{}"), nil
	}
	p.SetField(field, apply(object, spliceObject(nil, object, members, edits)))
}

// InsertMessage inserts a message before message index, or at the end if index is the number of
// messages. Messages inserted at the same index appear in the order of the calls. It panics if
// index is out of range, or if the request is not a chat completion.
func (p *Patch) InsertMessage(index int, role, text string) {
	if p.req.API != Chat {
		panic("openai: message inserted into a request that is no chat completion")
	}
	_ = p.req.Messages[max(index-1, 0)] // bounds checks
	_ = p.req.Messages[index:]
	p.inserts = append(p.inserts, insertEdit{index: index, role: role, text: text})
}

// ReplaceMessageText replaces the whole text of message i, whether its content is a string, a list
// of parts, null or absent. In a list the first text part receives the new text and the other text
// parts are removed; images and other media stay. Text prepended earlier is replaced too. It panics
// if i is out of range.
func (p *Patch) ReplaceMessageText(i int, text string) {
	e := p.message(i)
	*e = messageEdit{index: i, removed: e.removed, replaced: true, text: text}
}

// PrependToMessageText inserts text before the text of message i, whose spelling stays. Text
// prepended later comes first. It panics if i is out of range.
func (p *Patch) PrependToMessageText(i int, text string) {
	e := p.message(i)
	e.prefix = text + e.prefix
}

// SetInstructions replaces the instructions of a Response.
func (p *Patch) SetInstructions(text string) { p.SetField(instructionsField, appendString(nil, text)) }

// PrependToInstructions inserts text before the instructions of a Response, whose spelling stays.
// Without instructions, text becomes the instructions.
func (p *Patch) PrependToInstructions(text string) {
	quoted := appendString(nil, text)
	if at := p.req.instructions; at.Present() && p.req.Raw[at.Start] == '"' {
		quoted = append(quoted[:len(quoted)-1], p.req.Raw[at.Start+1:at.End]...)
	}
	p.SetField(instructionsField, quoted)
}

const instructionsField = "instructions"

// StripExtras removes the proxy's own object "signalbox". Bytes always does this; the method makes
// it explicit.
func (p *Patch) StripExtras() { p.DeleteField(extrasField) }

// extrasField is the field of the body that is addressed to the proxy.
const extrasField = "signalbox"

// Bytes returns the body with the edits applied. Without edits this is the request's Raw itself, so
// the caller must not write to it. The patch can be edited further and applied again.
func (p *Patch) Bytes() []byte {
	r := p.req
	fields := p.fields
	if r.form {
		if e, ok := find(fields, "model"); ok {
			return apply(r.Raw, []edit{{r.modelAt, e.value}})
		}
		return r.Raw
	}
	if r.Extras.Present {
		fields = append(slices.Clip(fields), fieldEdit{name: extrasField, removed: true})
	}
	edits := spliceObject(nil, r.Raw, r.members, fields)
	if _, whole := find(fields, "messages"); !whole {
		edits = p.spliceMessages(edits)
	}
	return apply(r.Raw, edits)
}

// current returns the present value of a field: the last edit or the original; nil if absent.
func (p *Patch) current(name string) []byte {
	if e, ok := find(p.fields, name); ok {
		return e.value
	}
	for _, m := range p.req.members {
		if nameIs(p.req.Raw, m, name) {
			return p.req.Raw[m.value.Start:m.value.End]
		}
	}
	return nil
}

func (p *Patch) put(e fieldEdit) {
	p.revert(e.name)
	p.fields = append(p.fields, e)
}

// revert removes the edit of a field.
func (p *Patch) revert(name string) {
	for i := range p.fields {
		if p.fields[i].name == name {
			p.fields = append(p.fields[:i], p.fields[i+1:]...)
			return
		}
	}
}

func (p *Patch) message(i int) *messageEdit {
	_ = p.req.Messages[i] // bounds check
	for j := range p.messages {
		if p.messages[j].index == i {
			return &p.messages[j]
		}
	}
	p.messages = append(p.messages, messageEdit{index: i})
	return &p.messages[len(p.messages)-1]
}

func (p *Patch) spliceMessages(edits []edit) []edit {
	all := p.req.Messages
	alone := p.kept(0) == len(all) // no message remains that an inserted one would follow
	inserts := slices.Clone(p.inserts)
	slices.SortStableFunc(inserts, func(a, b insertEdit) int { return a.index - b.index })
	for _, in := range inserts {
		b := appendString([]byte(`,{"role":`), in.role)
		b = append(appendString(append(b, `,"content":`...), in.text), '}')
		if in.index = p.kept(in.index); in.index == len(all) {
			end := all[in.index-1].Span.End
			if alone {
				b, alone = b[1:], false
			}
			edits = append(edits, edit{Span{end, end}, b})
			continue
		}
		start := all[in.index].Span.Start
		edits = append(edits, edit{Span{start, start}, append(b[1:], ',')})
	}
	for _, e := range p.messages {
		if !e.removed && (e.replaced || e.prefix != "") {
			edits = spliceText(edits, p.req, all[e.index], e)
		}
	}
	if len(p.messages) == 0 {
		return edits
	}
	return removeRuns(edits, len(all), func(i int) Span { return all[i].Span }, p.deleted)
}

func spliceText(edits []edit, r *Request, m Message, e messageEdit) []edit {
	if !m.Content.Present() {
		at := m.Span.End - 1 // the closing brace; a message has a role, so a comma is needed
		return append(edits, edit{Span{at, at}, appendString([]byte(`,"content":`), e.prefix+e.text)})
	}
	switch r.Raw[m.Content.Start] {
	case '"':
		return append(edits, e.onString(m.Content))
	case '[':
		return e.onParts(edits, r, m.Content)
	default: // null
		return append(edits, edit{m.Content, appendString(nil, e.prefix+e.text)})
	}
}

// onString edits a text that is the JSON string at the given span.
func (e *messageEdit) onString(at Span) edit {
	if e.replaced {
		return edit{at, appendString(nil, e.prefix+e.text)}
	}
	quoted := appendString(nil, e.prefix)
	return edit{Span{at.Start + 1, at.Start + 1}, quoted[1 : len(quoted)-1]}
}

// onParts edits the texts of a content list.
func (e *messageEdit) onParts(edits []edit, r *Request, content Span) []edit {
	parts := scanParts(r.Raw, content)
	carrier := textCarrier(parts)
	if carrier < 0 {
		open := `{"type":"text","text":`
		if r.API == Response {
			open = `{"type":"input_text","text":`
		}
		b := append(appendString([]byte(open), e.prefix+e.text), '}')
		if len(parts) > 0 {
			b = append(b, ',')
		}
		at := content.Start + 1
		return append(edits, edit{Span{at, at}, b})
	}
	if !e.replaced {
		return append(edits, e.onString(parts[carrier].texts[parts[carrier].carries]))
	}
	dropped := make([]bool, len(parts))
	for i, part := range parts {
		dropped[i] = i != carrier && len(part.texts) > 0 && !part.media
		if dropped[i] {
			continue
		}
		for j, at := range part.texts {
			if i == carrier && j == part.carries {
				edits = append(edits, e.onString(at))
			} else {
				edits = append(edits, edit{at, []byte(`""`)})
			}
		}
	}
	return removeRuns(edits, len(parts), func(i int) Span { return parts[i].span }, func(i int) bool { return dropped[i] })
}

// textCarrier returns the index of the part whose text an edit applies to: the first non-empty one,
// so that prepended text is next to text, else the first, else -1.
func textCarrier(parts []contentPart) int {
	first := -1
	for i, p := range parts {
		if len(p.texts) == 0 {
			continue
		}
		if at := p.texts[p.carries]; at.End-at.Start > len(`""`) {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

func find(fields []fieldEdit, name string) (fieldEdit, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return fieldEdit{}, false
}

// nameIs reports whether a member has the given name, with or without escapes.
func nameIs(raw []byte, m member, name string) bool {
	quoted := raw[m.name.Start:m.name.End]
	switch n := len(quoted) - 2; {
	case n < len(name): // escapes only make a name longer
		return false
	case n == len(name):
		return string(quoted[1:1+n]) == name && strings.IndexByte(name, '\\') < 0
	}
	return bytes.IndexByte(quoted, '\\') >= 0 && string(appendUnquoted(nil, quoted)) == name
}
