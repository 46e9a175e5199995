package response

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// decoderOf returns a decoder for values that change in few answers. They are searched in the data
// when needed, and not recorded by the scanner.

func decoderOf(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(
		bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// memberIn returns the position of a member's value in the object at a position in the data, or the
// zero span. If the member is repeated, the last one counts, as for most readers.
func memberIn(data []byte, at openai.Span, name string) (found openai.Span) {
	d := decoderOf(data[at.Start:at.End])
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return found
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return openai.Span{}
		}
		hit := t.String() == name
		value, err := d.ReadValue()
		if err != nil {
			return openai.Span{}
		}
		if hit {
			end := at.Start + int(d.InputOffset())
			found = openai.Span{Start: end - len(value), End: end}
		}
	}
	return found
}

// elementsIn returns the positions of the elements of the list at a position in the data, or nil if
// it is not a list.
func elementsIn(data []byte, at openai.Span) (list []openai.Span) {
	d := decoderOf(data[at.Start:at.End])
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil
	}
	for k := d.PeekKind(); k != ']' && k != 0; k = d.PeekKind() {
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		end := at.Start + int(d.InputOffset())
		list = append(list, openai.Span{Start: end - len(value), End: end})
	}
	return list
}

// choicesIn returns the positions of the choices by index.
func (e *Event) choicesIn() map[int]openai.Span {
	found := map[int]openai.Span{}
	list := memberIn(e.data, openai.Span{End: len(e.data)}, "choices")
	for n, at := range elementsIn(e.data, list) {
		if told := memberIn(e.data, at, "index"); told.Present() {
			s := scanner{b: e.data}
			if index := s.integer(told); index >= 0 && index <= maxInteger {
				n = index
			}
		}
		if _, ok := found[n]; !ok {
			found[n] = at
		}
	}
	return found
}
