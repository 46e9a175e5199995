package classify

import (
	"context"
	"testing"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

const (
	english = "What is the weather like in the north of the country today, and will it rain tomorrow?"
	german  = "Wie wird heute das Wetter im Norden des Landes, und regnet es morgen wieder den ganzen Tag?"
)

// abroad sees an attack in every text with a German word, at the position of the attack, and law.
func abroad(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
	for i := range out {
		for r := range out[i].Shape[0] {
			switch out[i].Name {
			case "j":
				out[i].F32[2*r], out[i].F32[2*r+1] = 0, 5
			case "d":
				out[i].F32[3*r], out[i].F32[3*r+1] = 0, 9
			}
		}
	}
	return out, nil
}

// openTwo has a source for all texts and one for other languages.
func openTwo(tb testing.TB, all, other *fake) *Classifier {
	tb.Helper()
	a, err := OpenEngine(testBundle(tb), all)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := OpenEngine(testBundle(tb, "name: test", "name: other"), other)
	if err != nil {
		tb.Fatal(err)
	}
	all.calls, other.calls = nil, nil
	c, err := New([]Source{{Engine: a}, {Engine: b, Foreign: true}}, DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestOtherLanguagesAreReadByTheSourceForThem(t *testing.T) {
	for name, tc := range map[string]struct {
		text      *signal.Text
		domain    string
		jailbreak string
		runs      bool
	}{
		"English": {user(english), "test", "benign", false},
		"German":  {user(german), "other", "jailbreak", true},
		"English with German before": {&signal.Text{LastUser: english, Segments: []signal.Segment{
			{Role: "user", Text: german}, {Role: "user", Text: english},
		}}, "test", "jailbreak", true},
		"nothing that can be told": {user("12 34"), "test", "benign", false},
	} {
		all, other := newFake(), newFake()
		c := openTwo(t, all, other)
		other.hook = abroad
		for range 2 { // read, then remembered
			set := extract(t, c, tc.text, neural)
			if v := &set.Values[signal.Domain]; v.State != signal.Known || v.Source != tc.domain {
				t.Errorf("%s: domain is from %q (%s), want %q", name, v.Source, v.Reason, tc.domain)
			}
			v := &set.Values[signal.Jailbreak]
			if v.State != signal.Known || v.Label != tc.jailbreak || v.Source != "test" || len(v.Verdicts) != 1 || v.Verdicts[0].Score != v.Score {
				t.Errorf("%s: jailbreak is %+v, want %s", name, v, tc.jailbreak)
			}
			if v := &set.Values[signal.Embedding]; v.State != signal.Known || v.Source != "test" {
				t.Errorf("%s: embedding is %+v", name, v)
			}
		}
		if (len(other.calls) > 0) != tc.runs {
			t.Errorf("%s: %d runs of the other source", name, len(other.calls))
		}
	}
}

func TestTheFaultOfTheOtherSourceLeavesItsTextsUnknown(t *testing.T) {
	all, other := newFake(), newFake()
	c := openTwo(t, all, other)
	other.hook = func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) { return nil, overload{} }
	set := extract(t, c, user(german), neural)
	if v := &set.Values[signal.Jailbreak]; v.State != signal.Unknown || v.Reason != signal.ReasonOverload {
		t.Errorf("jailbreak is %+v, want unknown: half of it was not read", v)
	}
	if v := extract(t, c, user(english), neural).Values[signal.Jailbreak]; v.State != signal.Known {
		t.Errorf("jailbreak of an English text is %+v", v)
	}
}

func TestASourceForOtherLanguagesStandsBesideOneForAll(t *testing.T) {
	e, err := OpenEngine(testBundle(t), newFake())
	if err != nil {
		t.Fatal(err)
	}
	gone := Missing("gone", signal.MaskOf(signal.Domain, signal.Jailbreak))
	c, err := New([]Source{{Engine: e}, {Engine: gone, Foreign: true}}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if v := extract(t, c, user(german), neural).Values[signal.Domain]; v.State != signal.Known || v.Source != "test" {
		t.Errorf("without the model for it domain is %+v", v)
	}
	if d := c.Degraded(); len(d) != 1 {
		t.Errorf("degraded: %v", d)
	}
	for name, sources := range map[string][]Source{
		"alone":           {{Engine: gone, Foreign: true}},
		"two of them":     {{Engine: e}, {Engine: gone, Foreign: true}, {Engine: gone, Foreign: true}},
		"with embeddings": {{Engine: e}, {Engine: e, Foreign: true, Signals: signal.MaskOf(signal.Embedding)}},
	} {
		if _, err := New(sources, DefaultOptions()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
