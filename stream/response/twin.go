package response

import (
	"bytes"
	"slices"

	"signalbox/internal/openai"
)

// pair finds texts that occur twice: as the text of a choice that also has a delta (Together AI
// answers like this, to chat and to completions), and as output_text, the whole text of a response.
// The second is recorded as the twin of the first, so that changes apply to both. If the text of a
// choice differs from its delta, the event is Opaque; if output_text differs, it is Unread.
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

// Repeats reports whether delta i is a copy of a message's reasoning, because some servers send it
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

// original returns the only text that a twin may repeat, or nil if there is none or it differs.
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
