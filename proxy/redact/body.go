package redact

import (
	"bytes"

	"signalbox/internal/openai"
)

// Body restores an answer that is one JSON value, in pieces of any size. The zero value and nil
// pass everything on as it is.
type Body struct {
	v *Vault

	out  []byte
	in   []byte // what was held, and the piece behind it
	held []byte // the front of what may become a placeholder

	inside  bool // a string
	escaped bool // behind a backslash
	value   bool // the string, or what comes next, is the value of a member
	nested  bool // the string is JSON itself
	name    [len(argumentsName) + 1]byte
	nameLen int // bytes of the last string, len(name) at most
}

// Body returns a restorer for one answer. A nil vault gives a nil Body.
func (v *Vault) Body() *Body {
	if v == nil {
		return nil
	}
	return &Body{v: v}
}

// Feed returns the next part of the answer, restored. It may be empty, may share memory with piece,
// and is valid until the next call.
func (b *Body) Feed(piece []byte) []byte {
	if b == nil || b.v == nil {
		return piece
	}
	if len(b.held) > 0 {
		b.in = append(append(b.in[:0], b.held...), piece...)
		b.held, piece = b.held[:0], b.in
	}
	b.out = b.out[:0]
	from := 0 // what is before it is in out
	for i := 0; i < len(piece); {
		if !b.inside {
			i = b.between(piece, i)
			continue
		}
		c := piece[i]
		if (c == '[' || c == '\\') && !b.escaped {
			s, length, partial := b.v.at(piece[i:])
			if partial {
				b.out = append(b.out, piece[from:i]...)
				b.held = append(b.held[:0], piece[i:]...)
				return b.out
			}
			if s != nil {
				b.out = append(append(b.out, piece[from:i]...), s.as(b.nested)...)
				i += length
				from = i
				continue
			}
		}
		b.within(c)
		i++
	}
	if from == 0 && len(b.out) == 0 {
		return piece
	}
	b.out = append(b.out, piece[from:]...)
	return b.out
}

// Rest returns what Feed held back, at the end of the answer.
func (b *Body) Rest() []byte {
	if b == nil {
		return nil
	}
	held := b.held
	b.held = nil
	return held
}

// between passes over what is outside of strings, from i to behind the next quote.
func (b *Body) between(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		switch piece[i] {
		case '"':
			b.inside = true
			b.nested = b.value && b.v.nested(b.name[:b.nameLen])
			if !b.value {
				b.nameLen = 0
			}
			return i + 1
		case ':':
			b.value = true
		case ',', '{', '[', '}', ']':
			b.value = false
		}
	}
	return i
}

// within takes note of a byte of a string.
func (b *Body) within(c byte) {
	switch {
	case b.escaped:
		b.escaped = false
	case c == '\\':
		b.escaped = true
	case c == '"':
		b.inside = false
		return
	}
	if !b.value && b.nameLen < len(b.name) {
		b.name[b.nameLen] = c
		b.nameLen++
	}
}

// nested reports whether the string that a member of this name holds is JSON itself.
func (v *Vault) nested(name []byte) bool {
	return string(name) == argumentsName || v.json && string(name) == v.contentName()
}

// contentName is the member that holds what the model says.
func (v *Vault) contentName() string {
	if v.api == openai.Chat {
		return "content"
	}
	return "text"
}

// as returns the value as it is spelled inside a JSON string, nested or not.
func (s *secret) as(nested bool) []byte { //nolint:revive // a fact about the place
	if nested {
		return s.nested
	}
	return s.quoted
}

// restore replaces the placeholders in the inside of a JSON string. It appends to dst and returns,
// as rest, the front of what may become a placeholder; with whole set there is no such front.
func (v *Vault) restore(dst, inside []byte, nested, whole bool) (out, rest []byte) {
	for {
		at := bytes.IndexAny(inside, `[\`)
		if at < 0 {
			return append(dst, inside...), nil
		}
		dst = append(dst, inside[:at]...)
		inside = inside[at:]
		s, length, partial := v.at(inside)
		switch {
		case s != nil:
			dst = append(dst, s.as(nested)...)
			inside = inside[length:]
		case partial && !whole:
			return dst, inside
		default:
			n := 1
			if inside[0] == '\\' { // with what it escapes
				n = min(2, len(inside))
			}
			dst = append(dst, inside[:n]...)
			inside = inside[n:]
		}
	}
}
