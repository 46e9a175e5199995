package classify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/signal"
)

// oracle is a model elsewhere: what a text has "attack" in is unsafe, "broken" in fails, and any
// other is safe.
type oracle struct {
	mu    sync.Mutex
	asked []string
}

func (o *oracle) Judge(_ context.Context, x signal.Exchange) (signal.Judgement, error) {
	o.mu.Lock()
	o.asked = append(o.asked, x.Judged())
	o.mu.Unlock()
	p := float32(0.1)
	switch {
	case strings.Contains(x.Judged(), "broken"):
		return signal.Judgement{}, errors.New("a fault")
	case strings.Contains(x.Judged(), "attack"):
		p = 0.9
	}
	return signal.Judgement{
		Labels: []string{"unsafe", "safe"}, Probs: []float32{p, 1 - p}, Cut: strings.Contains(x.Judged(), "long"),
	}, nil
}

// as are signals that come from a classifier in one way.
func as(g Given, kinds ...signal.Kind) map[signal.Kind]Given {
	out := make(map[signal.Kind]Given)
	for _, k := range kinds {
		out[k] = g
	}
	return out
}

func openGiven(t *testing.T, f *fake, j Judge, given map[signal.Kind]Given) *Classifier {
	t.Helper()
	o := DefaultOptions()
	o.Own, o.Given, o.Windows = []Own{{Name: "guard", Judge: j}}, given, 3
	e, err := OpenEngine(testBundle(t), f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New([]Source{{Engine: e, Signals: signal.MaskOf(signal.Embedding)}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAttacksAreAskedAboutTextByText(t *testing.T) {
	positive := Given{Positive: "unsafe", Threshold: 0.5}
	given := as(positive, signal.Jailbreak, signal.Injection)
	for name, tc := range map[string]struct {
		texts            []signal.Segment
		asked            []string
		jailbreak, seen  float64
		partial, unknown bool
	}{
		"nothing to read": {nil, nil, 0, 0, false, false},
		"an attack of the user, and data": {
			[]signal.Segment{
				{Role: "system", Origin: signal.OriginInstructions, Text: "attack"},
				{Role: "user", Origin: signal.OriginUser, Text: "word"},
				{Role: "user", Origin: signal.OriginUser, Text: "an attack"},
				{Role: "tool", Origin: signal.OriginData, Text: "data"},
			}, []string{"an attack", "data", "word"}, 0.9, 0.1, false, false,
		},
		"the newest only": {
			[]signal.Segment{
				{Role: "user", Origin: signal.OriginUser, Text: "attack"},
				{Role: "user", Origin: signal.OriginUser, Text: "a"},
				{Role: "user", Origin: signal.OriginUser, Text: "b"},
				{Role: "user", Origin: signal.OriginUser, Text: "c"},
			}, []string{"a", "b", "c"}, 0.1, 0, false, false,
		},
		"one of two fails": {
			[]signal.Segment{
				{Role: "user", Origin: signal.OriginUser, Text: "broken"},
				{Role: "user", Origin: signal.OriginUser, Text: "word"},
			}, []string{"broken", "word"}, 0.1, 0, true, false,
		},
		"white space": {
			[]signal.Segment{
				{Role: "user", Origin: signal.OriginUser, Text: " \n"},
				{Role: "user", Origin: signal.OriginUser, Text: "word"},
			}, []string{"word"}, 0.1, 0, false, false,
		},
		"one of which the middle was not read": {
			[]signal.Segment{{Role: "user", Origin: signal.OriginUser, Text: "long"}},
			[]string{"long"},
			0.1, 0, true, false,
		},
		"one in disguise": {
			[]signal.Segment{{Role: "user", Origin: signal.OriginUser, Text: "att\u200back"}},
			[]string{"attack", "att\u200back"},
			0.9, 0, false, false,
		},
		"all fail": {
			[]signal.Segment{{Role: "user", Origin: signal.OriginUser, Text: "broken"}},
			[]string{"broken"},
			0, 0, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := new(oracle)
			c := openGiven(t, newFake(), j, given)
			text := &signal.Text{LastUser: "word", Segments: tc.texts}
			set := extract(t, c, text, signal.MaskOf(signal.Jailbreak))
			slices.Sort(j.asked)
			v := set.Value(signal.Jailbreak)
			users := slices.DeleteFunc(slices.Clone(tc.asked), func(s string) bool { return s == "data" })
			if diff := cmp.Diff(users, j.asked); diff != "" && (len(users) > 0 || len(j.asked) > 0) {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if (v.State == signal.Unknown) != tc.unknown || v.Partial != tc.partial {
				t.Errorf("%+v", v)
			}
			holds := v.Label == "jailbreak"
			if !tc.unknown && (float32(v.Score) != float32(tc.jailbreak) || holds != (v.Score >= 0.5)) {
				t.Errorf("%+v, want %v", v, tc.jailbreak)
			}
			if read := v.Read; read > len(users) || read == 0 && len(users) > 0 && !tc.unknown {
				t.Errorf("%d texts read", read)
			}
			j.asked = nil
			v = extract(t, c, text, signal.MaskOf(signal.Injection)).Value(signal.Injection)
			if !tc.unknown && float32(v.Score) != float32(tc.seen) {
				t.Errorf("injection: %+v, asked %q", v, j.asked)
			}
		})
	}
}

// known is a model elsewhere that always says the same.
type known struct{ signal.Judgement }

func (k known) Judge(context.Context, signal.Exchange) (signal.Judgement, error) {
	return k.Judgement, nil
}

func TestAGivenSignalReportsWhatOneHereWould(t *testing.T) {
	topic := signal.Judgement{
		Label: "law", Labels: []string{"law", "other", "math"}, Probs: []float32{0.5, 0.3, 0.2},
	}
	binary := signal.Judgement{Labels: []string{"fact", "chat"}, Probs: []float32{0.7, 0.3}}
	for name, tc := range map[string]struct {
		kind signal.Kind
		g    Given
		says signal.Judgement
		want signal.Value
	}{
		"the order of the labels is that of the configuration": {
			signal.Domain,
			Given{Labels: []string{"math", "law"}},
			topic,
			signal.Value{Label: "law", Score: 0.5, Labels: []string{"math", "law"}, Probs: []float32{0.2, 0.5}},
		},
		"a fact": {
			signal.FactCheck,
			Given{Positive: "fact", Threshold: 0.6},
			binary,
			signal.Value{Label: "needs", Score: 0.7, Labels: []string{"no", "needs"}, Probs: []float32{0.3, 0.7}},
		},
		"a fact below the threshold": {
			signal.FactCheck,
			Given{Positive: "fact", Threshold: 0.8},
			binary,
			signal.Value{Label: "no", Score: 0.3, Labels: []string{"no", "needs"}, Probs: []float32{0.3, 0.7}},
		},
		"no such label": {
			signal.FactCheck,
			Given{Positive: "Fact", Threshold: 0.5},
			binary,
			signal.Value{State: signal.Unknown, Reason: signal.ReasonInvalid},
		},
		"other labels than configured": {
			signal.Complexity,
			Given{Labels: []string{"low", "high"}},
			topic,
			signal.Value{State: signal.Unknown, Reason: signal.ReasonInvalid},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := openGiven(t, newFake(), known{tc.says}, as(tc.g, tc.kind))
			if !c.Signals().Has(tc.kind) {
				t.Error("it is not among the signals")
			}
			if tc.want.State == 0 {
				tc.want.State = signal.Known
			}
			tc.want.Source, tc.want.Provider = "guard", "remote"
			got := extract(t, c, user("math"), signal.MaskOf(tc.kind)).Value(tc.kind)
			if diff := cmp.Diff(tc.want, *got, approximately); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			empty := extract(t, c, user(" "), signal.MaskOf(tc.kind)).Value(tc.kind)
			if empty.State != signal.Unknown || empty.Reason != signal.ReasonNoText {
				t.Errorf("of nothing: %+v", empty)
			}
		})
	}
}

// Results of tools behind the message of a user take no place from it, and an origin of which
// nothing was read is unknown. What one origin shows counts when another could not be read.
func TestTheMessageOfTheUserIsAskedAboutBeforeNewerData(t *testing.T) {
	j := new(oracle)
	o := DefaultOptions()
	o.Own, o.Windows = []Own{{Name: "guard", Judge: j}}, 2
	o.Given = as(Given{Positive: "unsafe", Threshold: 0.5}, signal.Jailbreak)
	o.Read = map[signal.Kind]signal.Origins{ //nolint:exhaustive // one kind is looked at
		signal.Jailbreak: signal.OriginsOf(signal.OriginData, signal.OriginModel),
	}
	c, err := New(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	segment := func(of signal.Origin, text string) signal.Segment { return signal.Segment{Origin: of, Text: text} }
	text := &signal.Text{LastUser: "attack", Segments: []signal.Segment{
		segment(signal.OriginModel, "m"), segment(signal.OriginUser, "attack"),
		segment(signal.OriginData, "a"), segment(signal.OriginData, "b"), segment(signal.OriginData, "c"),
	}}
	v := extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	slices.Sort(j.asked)
	if diff := cmp.Diff([]string{"attack", "c"}, j.asked); diff != "" || v.Label != "jailbreak" || v.Partial {
		t.Errorf("%+v\n%s", v, diff)
	}
	want := []signal.Verdict{
		{Origin: signal.OriginUser, Score: 0.9, Windows: 1, Read: 1, Segment: 1, End: 6},
		{Origin: signal.OriginModel, Windows: 1, Partial: true},
		{Origin: signal.OriginData, Score: 0.1, Windows: 3, Read: 1, Segment: 4, End: 1},
	}
	if diff := cmp.Diff(want, v.Verdicts, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	text.Segments[1].Text, text.Segments[4].Text = "broken", "attack"
	v = extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if v.State != signal.Known || !v.Partial || v.Reason != signal.ReasonNone || v.Verdicts[2].Score < 0.8 {
		t.Errorf("%+v", v)
	}
	var set signal.Set
	j.asked = nil
	if c.ExtractAll(t.Context(), text, signal.MaskOf(signal.Jailbreak), &set); len(j.asked) != 5 ||
		set.Value(signal.Jailbreak).Reason != signal.ReasonInternal {
		t.Errorf("asked about %q of everything: %+v", j.asked, set.Value(signal.Jailbreak))
	}
}

func TestTextsBeyondTheBoundMakeASignalPartial(t *testing.T) {
	j := new(oracle)
	c := openGiven(t, newFake(), j, as(Given{Positive: "unsafe", Threshold: 0.5}, signal.Jailbreak))
	text := &signal.Text{LastUser: "word"}
	for i := range mostTexts + 1 {
		text.Segments = append(text.Segments, signal.Segment{
			Role: "user", Origin: signal.OriginUser, Text: fmt.Sprintf("word %d", i),
		})
	}
	var set signal.Set
	c.ExtractAll(t.Context(), text, signal.MaskOf(signal.Jailbreak), &set)
	v := set.Value(signal.Jailbreak)
	if len(j.asked) != mostTexts || !v.Partial || v.Reason != signal.ReasonOverload || v.Read != mostTexts {
		t.Errorf("asked about %d texts: %+v", len(j.asked), v)
	}
}

func TestAGivenTopicIsNotAskedAboutThePast(t *testing.T) {
	j := &oracle{}
	c := openGiven(t, newFake(), j, as(Given{Labels: []string{"safe", "unsafe"}}, signal.Domain))
	text := user("math again")
	text.Before = []string{"word", "other"}
	if v := extract(t, c, text, signal.MaskOf(signal.Domain)).Value(signal.Domain); v.Label != "safe" {
		t.Errorf("%+v", v)
	}
	if diff := cmp.Diff([]string{"math again"}, j.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	var set signal.Set
	x := signal.Exchange{Prompt: "p", Answer: "math attack"}
	if c.Moderate(t.Context(), signal.Domain, 0, x, &set); set.Value(signal.Domain).Label != "unsafe" {
		t.Errorf("of an answer: %+v", set.Value(signal.Domain))
	}
}

func TestWhatCannotBeGiven(t *testing.T) {
	own := []Own{{Name: "guard", Judge: new(oracle)}, {Name: "none"}}
	yes := Given{Positive: "unsafe", Threshold: 0.5}
	for name, given := range map[string]map[signal.Kind]Given{
		"a vector":          as(yes, signal.Embedding),
		"no such":           as(Given{Own: 2, Positive: "x"}, signal.Jailbreak),
		"no model":          as(Given{Own: 1, Positive: "x"}, signal.Jailbreak),
		"nothing to go by":  as(Given{}, signal.Jailbreak),
		"given by a bundle": as(yes, signal.Jailbreak),
	} {
		o := DefaultOptions()
		o.Own, o.Given = own, given
		if _, err := classifierOf(testBundle(t), newFake(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
