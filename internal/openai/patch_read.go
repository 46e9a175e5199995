package openai

import (
	"bytes"
	"slices"
)

// Field returns the JSON value of a field of the body as the client spelled it, or nil. The result
// aliases Raw.
func (r *Request) Field(name string) []byte {
	for _, m := range r.members {
		if nameIs(r.Raw, m, name) {
			return r.Raw[m.value.Start:m.value.End]
		}
	}
	return nil
}

// Has reports whether the body, or the form, has a field, whatever its value.
func (r *Request) Has(name string) bool {
	if r.form {
		return slices.Contains(r.parts, name)
	}
	return r.Field(name) != nil
}

// Member returns the value of a member of a JSON object, or nil if object is not an object or lacks
// it. The result aliases object.
func Member(object []byte, name string) []byte {
	members, ok := scanObject(object)
	if !ok {
		return nil
	}
	for _, m := range members {
		if nameIs(object, m, name) {
			return object[m.value.Start:m.value.End]
		}
	}
	return nil
}

// DeleteNested removes a member of a field's object and keeps the others. It has no effect if the
// field is absent, not an object or without that member.
func (p *Patch) DeleteNested(field, key string) {
	object := p.current(field)
	members, ok := scanObject(object)
	if !ok {
		return
	}
	without := apply(object, spliceObject(nil, object, members, []fieldEdit{{name: key, removed: true}}))
	if !bytes.Equal(without, object) {
		p.SetField(field, without)
	}
}

// DeleteMessage removes message i; other edits of it have no effect. Messages inserted before it
// stay, before the next message that is kept. It panics if i is out of range.
func (p *Patch) DeleteMessage(i int) { p.message(i).removed = true }

// deleted reports whether message i is to be removed.
func (p *Patch) deleted(i int) bool {
	return slices.ContainsFunc(p.messages, func(e messageEdit) bool { return e.index == i && e.removed })
}

// kept returns the first index from i on of a message that stays, or the number of messages.
func (p *Patch) kept(i int) int {
	for i < len(p.req.Messages) && p.deleted(i) {
		i++
	}
	return i
}
