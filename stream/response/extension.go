package response

import (
	"signalbox/internal/openai"
)

// Member is the position of the member x_signalbox.
type Member struct {
	Value openai.Span // empty if there is none yet
	Lead  string      // what must precede a new value
}

// ExtensionOf finds the member x_signalbox at the top level of a response, or the place to add it.
// ok is false if the response is not an object, or has several such members.
func ExtensionOf(body []byte) (at Member, ok bool) {
	const name = "x_signalbox"
	dec := decoderOf(body)
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return at, false
	}
	at.Lead = `"` + name + `":`
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return at, false
		}
		hit := t.String() == name
		value, err := dec.ReadValue()
		if err != nil || hit && at.Value.End > 0 {
			return at, false
		}
		if end := int(dec.InputOffset()); hit {
			at.Value = openai.Span{Start: end - len(value), End: end}
		}
		at.Lead = `,"` + name + `":`
	}
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '}' {
		return at, false
	}
	if at.Value.End == 0 {
		end := int(dec.InputOffset()) - 1
		at.Value = openai.Span{Start: end, End: end}
	}
	return at, true
}
