package classify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	return signal.Judgement{Labels: []string{"unsafe", "safe"}, Probs: []float32{p, 1 - p}}, nil
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
			if !tc.unknown && (float32(v.Score) != float32(tc.jailbreak) || (v.Label == "jailbreak") != (v.Score >= 0.5)) {
				t.Errorf("%+v, want %v", v, tc.jailbreak)
			}
			if read := v.Read; read != len(users) && !tc.partial && !tc.unknown {
				t.Errorf("%d texts read", read)
			}
			j.asked = nil
			if v := extract(t, c, text, signal.MaskOf(signal.Injection)).Value(signal.Injection); !tc.unknown && float32(v.Score) != float32(tc.seen) {
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
