package redact

import (
	"bytes"

	"signalbox/internal/openai"
)

// Body restores a response that is a single JSON value and arrives in pieces of any size. The zero
// value and nil pass everything through unchanged.
type Body struct {
	v *Vault

	out  []byte
	in   []byte // what was held back, and the piece after it
	held []byte // a possible beginning of a placeholder

	inside  bool // inside a string
	escaped bool // after a backslash
	value   bool // this string, or the next one, is the value of a member
	nested  bool // the string contains JSON
	name    [len(argumentsName) + 1]byte
	nameLen int // length of the last string, at most len(name)
}

// Body returns a restorer for one response. A nil vault returns a nil Body.
func (v *Vault) Body() *Body {
	if v == nil {
		return nil
	}
	return &Body{v: v}
}

// Feed returns the next restored part of the response. It may be empty, may share memory with
// piece, and is valid until the next call.
func (b *Body) Feed(piece []byte) []byte {
	if b == nil || b.v == nil {
		return piece
	}
	if len(b.held) > 0 {
		b.in = append(append(b.in[:0], b.held...), piece...)
		b.held, piece = b.held[:0], b.in
	}
	b.out = b.out[:0]
	from := 0 // everything before it is in out
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

// Rest returns what Feed held back, at the end of the response.
func (b *Body) Rest() []byte {
	if b == nil {
		return nil
	}
	held := b.held
	b.held = nil
	return held
}

// between skips what is outside of strings, from i to just after the next quote.
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

// within processes a byte inside a string.
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

// nested reports whether the string value of a member with this name contains JSON.
func (v *Vault) nested(name []byte) bool {
	return string(name) == argumentsName || v.json && string(name) == v.contentName()
}

// contentName is the member that holds the model's text.
func (v *Vault) contentName() string {
	if v.api == openai.Chat {
		return "content"
	}
	return "text"
}

// as returns the value as spelled inside a JSON string, nested or not.
func (s *secret) as(nested bool) []byte { //nolint:revive // a property of the place
	if nested {
		return s.nested
	}
	return s.quoted
}

// restore replaces the placeholders in the contents of a JSON string. It appends to dst and
// returns, as rest, a possible beginning of a placeholder at the end; with whole set, rest is
// empty.
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
			if inside[0] == '\\' { // skip the escaped character, too
				n = min(2, len(inside))
			}
			dst = append(dst, inside[:n]...)
			inside = inside[n:]
		}
	}
}
