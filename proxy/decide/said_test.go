package decide

import (
	"slices"
	"testing"

	"signalbox/internal/signal"
	"signalbox/memory/conversation"
)

// A request that continues a response omits earlier turns; one without text refers to the last one.
func TestATurnWithoutTextGoesOnWithWhatWasSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last   string
		before []string // what the text is read behind
		read   string
		said   []string // what is stored of it for the next turn
	}{
		"a text":    {"third", []string{"first", "second"}, "third", []string{"first", "second", "third"}},
		"a picture": {"", []string{"first"}, "second", []string{"first", "second"}},
	} {
		talk := &Talk{named: true, short: true, before: &conversation.State{Said: []string{"first", "second"}}}
		bare := &signal.Text{LastUser: c.last}
		if c.last == "" {
			if got := talk.said(bare); !slices.Equal(got, c.said) {
				t.Errorf("%s, not read: %q is kept, want %q", name, got, c.said)
			}
		}
		talk.addEarlierTurns(bare)
		if bare.LastUser != c.read || !slices.Equal(bare.Before, c.before) {
			t.Errorf("%s: %q behind %q, want %q behind %q", name, bare.LastUser, bare.Before, c.read, c.before)
		}
		if got := talk.said(bare); !slices.Equal(got, c.said) {
			t.Errorf("%s: %q is kept, want %q", name, got, c.said)
		}
	}
	first := &Talk{named: true, short: true, before: &conversation.State{}}
	text := &signal.Text{}
	if first.addEarlierTurns(text); text.LastUser != "" || len(first.said(text)) > 0 {
		t.Errorf("behind nothing: %+v", text)
	}
}
