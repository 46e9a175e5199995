package prefix

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// span is a half-open range of bytes of a body.
type span struct{ start, end int }

// members yields the names of the members of a previously validated object, and the spans of their
// values. It ends early at invalid JSON.
func members(body []byte, object span) iter.Seq2[string, span] {
	return func(yield func(string, span) bool) {
		d := newDecoder(body, object)
		if d.open() != '{' {
			return
		}
		for d.PeekKind() == '"' {
			name, err := d.ReadToken()
			if err != nil {
				return
			}
			key := name.String()
			at, ok := d.value()
			if !ok || !yield(key, at) {
				return
			}
		}
	}
}

// elements returns the spans of the values of a previously validated list.
func elements(body []byte, list span) []span {
	d := newDecoder(body, list)
	if d.open() != '[' {
		return nil
	}
	var out []span
	for k := d.PeekKind(); k != ']'; k = d.PeekKind() {
		at, ok := d.value()
		if !ok {
			return nil
		}
		out = append(out, at)
	}
	return out
}

// field returns the span of the value of a member of the body.
func field(body []byte, name string) (span, bool) {
	for found, at := range members(body, span{0, len(body)}) {
		if found == name {
			return at, true
		}
	}
	return span{}, false
}

// decoder walks a part of a body.
type decoder struct {
	*jsontext.Decoder
	body []byte
	base int
}

func newDecoder(body []byte, at span) *decoder {
	// The decoder reads straight from a bytes.Buffer, so its offsets are relative to the part.
	return &decoder{jsontext.NewDecoder(bytes.NewBuffer(body[at.start:at.end])), body, at.start}
}

// open consumes the start of an object or list and returns its kind.
func (d *decoder) open() jsontext.Kind {
	t, err := d.ReadToken()
	if err != nil {
		return 0
	}
	return t.Kind()
}

// value skips a value and returns its span.
func (d *decoder) value() (span, bool) {
	if d.PeekKind() == 0 {
		return span{}, false
	}
	start := d.base + int(d.InputOffset())
	for start < len(d.body) && bytes.IndexByte([]byte(" \t\r\n,:"), d.body[start]) >= 0 {
		start++
	}
	if err := d.SkipValue(); err != nil {
		return span{}, false
	}
	return span{start, d.base + int(d.InputOffset())}, true
}
