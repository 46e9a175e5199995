package response

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// What changes in few answers is looked for in the data when it does, and not noted by the scanner.

func decoderOf(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(
		bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// memberIn returns where the value of a member stands, of an object that stands at a place in the
// data; zero without one. Of several it is the last, as most readers have it.
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

// elementsIn returns where the elements of a list stand that stands at a place in the data; nil where
// it is none.
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

// choicesIn returns where the choices stand, by their indexes.
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
