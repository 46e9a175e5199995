package proxy

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// extension is the place of the member x_signalbox.
type extension struct {
	value openai.Span // empty where there is none yet
	lead  string      // what has to stand before a new value
}

// extensionOf finds the member x_signalbox at the top level of an answer, or the place for one;
// false when the answer is no object, or has several.
func extensionOf(body []byte) (at extension, ok bool) {
	const name = "x_signalbox"
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return at, false
	}
	at.lead = `"` + name + `":`
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return at, false
		}
		hit := t.String() == name
		value, err := dec.ReadValue()
		if err != nil || hit && at.value.End > 0 {
			return at, false
		}
		if end := int(dec.InputOffset()); hit {
			at.value = openai.Span{Start: end - len(value), End: end}
		}
		at.lead = `,"` + name + `":`
	}
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '}' {
		return at, false
	}
	if at.value.End == 0 {
		end := int(dec.InputOffset()) - 1
		at.value = openai.Span{Start: end, End: end}
	}
	return at, true
}
