package response

import (
	"bytes"
	"slices"

	"signalbox/internal/openai"
)

// pair finds the texts that stand there twice: as the text of a choice that has a delta too
// (Together AI answers so, to chat and to completions), and as output_text, the sum of a response.
// The second is kept as the twin of the first, so that a change comes to both. A text of a choice
// that says something else makes the event Opaque; such an output_text is Unread.
func (e *Event) pair() {
	for i := 0; i < len(e.Deltas); {
		d := e.Deltas[i]
		if d.field != outputText && (d.field != completionText || !e.layout.chat) {
			i++
			continue
		}
		first := e.original(&d)
		switch {
		case first != nil:
			first.twin, first.spelled = d.At, d.escaped
		case d.field == completionText:
			e.opaque(whyBoth)
			return
		default:
			e.Unread = true
		}
		e.Deltas = slices.Delete(e.Deltas, i, i+1)
	}
}

// Repeats reports whether delta i is the reasoning of a message once more: some servers give it
// under both of its names.
func (e *Event) Repeats(i int) bool {
	d := &e.Deltas[i]
	if d.field != reasoning && d.field != reasoningContent {
		return false
	}
	for k := range e.Deltas[:i] {
		o := &e.Deltas[k]
		other := o.field != d.field && (o.field == reasoning || o.field == reasoningContent)
		if other && o.Choice == d.Choice && bytes.Equal(o.Text, d.Text) {
			return true
		}
	}
	return false
}

// original returns the only text that a twin may repeat, nil when there is none or it says
// something else.
func (e *Event) original(twin *Delta) *Delta {
	var found *Delta
	for i := range e.Deltas {
		d := &e.Deltas[i]
		if d.Kind != Text || d.field == outputText || d.field == completionText || twin.field == completionText && d.Choice != twin.Choice {
			continue
		}
		if found != nil {
			return nil
		}
		found = d
	}
	if found == nil || found.twin != (openai.Span{}) || !bytes.Equal(found.Text, twin.Text) {
		return nil
	}
	return found
}
