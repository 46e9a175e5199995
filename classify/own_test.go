package classify

import (
	"context"
	"testing"

	"signalbox/internal/signal"
)

// sworn is a model elsewhere that says the same of everything, and counts.
type sworn struct{ asked []signal.Exchange }

func (s *sworn) Judge(_ context.Context, x signal.Exchange) (signal.Judgement, error) {
	s.asked = append(s.asked, x)
	return signal.Judgement{Label: "unsafe", Score: 0.9}, nil
}

func TestModerateReadsAnAnswerOnceForAllSignalsThatAreHere(t *testing.T) {
	f, there := newFake(), new(sworn)
	o := DefaultOptions()
	o.Own = []Own{{Name: "guard", Judge: there}}
	c := open(t, f, o)
	also := signal.MaskOf(signal.Domain, signal.Jailbreak, signal.Own)
	var set signal.Set
	x := signal.Exchange{Prompt: "word", Answer: "math attack"}
	c.Moderate(t.Context(), signal.Domain, also, x, &set)
	if have := set.Have(); have != signal.MaskOf(signal.Domain, signal.Jailbreak) || len(f.calls) != 1 {
		t.Errorf("%v from %d runs", have.Kinds(), len(f.calls))
	}
	if len(there.asked) != 0 {
		t.Error("a model elsewhere was asked for a signal that is here")
	}
	runs := len(f.calls)
	c.Moderate(t.Context(), signal.Own, also, x, &set)
	if v := set.Value(signal.Own); v.Label != "unsafe" || len(there.asked) != 1 || there.asked[0] != x ||
		len(f.calls) != runs {
		t.Errorf("%+v, asked %+v, %d runs", v, there.asked, len(f.calls))
	}
	c.Moderate(t.Context(), signal.Own+1, also, x, &set)
	if v := set.Value(signal.Own + 1); v.State != signal.Unknown || v.Reason != signal.ReasonNoModel {
		t.Errorf("a classifier that does not exist: %+v", v)
	}
}
