package condition

import (
	"math"
	"testing"

	"signalbox/internal/signal"
)

// A value that is known of a part of the request only proves what it found, and nothing else.
func TestAPartialValueProvesOnlyWhatItFound(t *testing.T) {
	t.Parallel()
	var set signal.Set
	set.Put(signal.Jailbreak, signal.Value{
		State: signal.Known, Partial: true, Label: "benign", Score: 0.6,
		Labels: []string{"benign", "jailbreak"}, Probs: []float32{0.4, 0.6},
	})
	set.Put(signal.PII, signal.Value{
		State: signal.Known, Partial: true, Labels: []string{"PERSON"}, Probs: []float32{0.9},
	})
	set.Put(signal.Keyword, signal.Value{State: signal.Known, Partial: true, Labels: []string{"titan"}})
	set.Put(signal.Domain, signal.Value{State: signal.Known, Partial: true, Label: "math"})
	score := func(r Range) Node {
		l, ok := Score(signal.Jailbreak, "jailbreak", r)
		if !ok {
			t.Fatal("an empty range")
		}
		return l
	}
	for name, c := range map[string]struct {
		n    Node
		want Truth
	}{
		"a score that is reached":             {score(AtLeast(0.5)), True},
		"a score that may be reached":         {score(AtLeast(0.9)), Unknown},
		"a bound that may be left":            {score(AtMost(0.8)), Unknown},
		"a bound that was left":               {score(AtMost(0.5)), False},
		"a range that may be left":            {score(Range{Lo: 0.5, Hi: 0.7}), Unknown},
		"a range up to all":                   {score(Range{Lo: 0.5, Hi: 1}), True},
		"personal data that was found":        {Entities(0.5), True},
		"personal data of another type":       {Entities(0.5, "US_SSN"), Unknown},
		"personal data with too low a score":  {Entities(0.95, "PERSON"), Unknown},
		"no personal data":                    {&Not{Entities(0.5)}, False},
		"no personal data of another type":    {&Not{Entities(0.5, "US_SSN")}, Unknown},
		"a keyword that matched":              {Keywords(Names{list: []string{"titan"}}), True},
		"another keyword":                     {Keywords(Names{list: []string{"atlas"}}), Unknown},
		"any keyword but one that matched":    {Keywords(Names{list: []string{"titan"}, except: true}), False},
		"any keyword but one that may match":  {Keywords(Names{list: []string{"atlas"}, except: true}), Unknown},
		"a label, which the rest may be, too": {Label(signal.Domain, Names{list: []string{"math"}}), Unknown},
	} {
		if got := c.n.Eval(&set); got != Exactly(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if Known(&set) != 0 {
		t.Errorf("%v are taken for known", Known(&set).Kinds())
	}
	m := NewSimplifier(nil).Matcher(Entities(0.5, "US_SSN"), 0)
	if got := m.Failed(&set); got != signal.MaskOf(signal.PII) {
		t.Errorf("failed are %v", got.Kinds())
	}
}

// A test of some origins asks whether those were read, and not whether all were.
func TestAPartialVerdictIsAboutItsOrigin(t *testing.T) {
	t.Parallel()
	user, data := signal.OriginsOf(signal.OriginUser), signal.OriginsOf(signal.OriginData)
	var set signal.Set
	v := signal.Value{
		State: signal.Known, Partial: true, Score: 0.2,
		Verdicts: []signal.Verdict{
			{Origin: signal.OriginUser, Score: 0.9}, {
				Origin: signal.OriginData, Score: 0.2,
				Partial: true,
			},
		},
	}
	set.Put(signal.Injection, v)
	for name, c := range map[string]struct {
		origins signal.Origins
		in      Range
		want    Truth
	}{
		"an origin that was read":              {user, AtLeast(0.5), True},
		"an origin that was read, not reached": {user, AtLeast(0.95), False},
		"a part that may hold more":            {data, AtLeast(0.5), Unknown},
		"a part that holds enough":             {data, AtLeast(0.1), True},
		"both, where one holds enough":         {user | data, AtLeast(0.5), True},
		"an origin without text": {
			signal.OriginsOf(signal.OriginModel),
			AtLeast(0.1), False,
		},
	} {
		l, _ := ScoreOf(signal.Injection, c.origins, c.in)
		if got := l.Eval(&set); got != Exactly(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	v.Verdicts[0].Score = math.NaN()
	if l, _ := ScoreOf(signal.Injection, data, AtLeast(0.1)); l.Eval(&set) != Exactly(Unknown) {
		t.Error("a score that is no number is taken for one")
	}
}
