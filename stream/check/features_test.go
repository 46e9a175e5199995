package check_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// seen returns the features of a claim by name, with the premises and findings of the evidence.
func seen(tb testing.TB, e *evidence.Evidence, claim check.Claim, inf ...check.Inference) map[string]float64 {
	tb.Helper()
	_, findings := e.Numbers().Check([]numeric.Finding{}, claim.Text, claim.Context)
	x := check.Features(nil, claim, e.For(nil, claim.Text, findings, 4), findings, inf)
	names := check.FeatureNames()
	if len(x) != len(names) {
		tb.Fatalf("%d features, %d names", len(x), len(names))
	}
	m := map[string]float64{}
	for i, name := range names {
		m[name] = x[i]
	}
	return m
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	const harbour = "Anna Berg opened the new harbour of Lund in 1962. Most ships still arrive early in the morning. It never closed."
	for _, tt := range []struct {
		name, fact, claim string
		want              map[string]float64
	}{
		{"a copy has nothing missing", harbour, "Anna Berg opened the new harbour of Lund in 1962.", map[string]float64{
			"words_missing": 0, "names_missing": 0, "sentence_share": 1, "bigram_share": 1, "run_share": 1, "order_inverted": 0, "numbers_same": 1,
			"negation_more": 0, "replaced_words": 0, "inserted_words": 0, "claim_words": 10, "premise_count": 1,
		}},
		{"a name in the place of another", harbour, "Anna Berg opened the new harbour of Malmö in 1962.", map[string]float64{
			"words_missing": 1, "names_missing": 1, "names_share": 0.5, "replaced_words": 1, "sentence_share": 5.0 / 6,
		}},
		{"a part of a sentence", harbour, "the new harbour of Lund", map[string]float64{"dropped_words": 0, "inserted_words": 0, "replaced_words": 0, "opposites": 0}},
		{"words left out", harbour, "Anna Berg opened the harbour of Lund in 1962.", map[string]float64{"dropped_words": 1, "inserted_words": 0}},
		{"long words and names weigh more", harbour, "Anna Berg opened the old harbour of Malmö.", map[string]float64{
			"missing_weight": (3 + 1.5*6) / (4 + 1.5*4 + 6 + 3 + 7 + 1.5*6), "replaced_words": 2, "replaced_names": 1,
		}},
		{"a negation is no missing word", "The tower is open.", "The tower is never open.", map[string]float64{"words_missing": 0, "negation_more": 1}},
		{"a word replaced by its opposite that stands elsewhere", "The cold tank feeds the hot tank by day.", "The cold tank feeds the cold tank by day.", map[string]float64{
			"opposites": 1, "replaced_words": 1, "words_missing": 0,
		}},
		{"words put in", harbour, "Anna Berg proudly opened the new harbour.", map[string]float64{"inserted_words": 1, "replaced_words": 0, "words_missing": 1}},
		{"another order", harbour, "Berg Anna opened harbour new", map[string]float64{"order_inverted": 0.2, "bigram_share": 0}},
		{"a negation put in", harbour, "Anna Berg has not opened the harbour of Lund.", map[string]float64{"negation_more": 1, "negation_less": 0}},
		{"a negation left out", harbour, "It closed.", map[string]float64{"negation_more": 0, "negation_less": 1}},
		{"the opposite word", harbour, "Most ships still arrive late in the morning.", map[string]float64{"opposites": 1, "amount_differs": 0, "replaced_words": 1}},
		{"another quantity", harbour, "All ships still arrive early in the morning.", map[string]float64{"amount_differs": 1, "opposites": 0}},
		{"a quantity left out", harbour, "Ships still arrive early in the morning.", map[string]float64{"amount_differs": 0.5}},
		{"another number", harbour, "Anna Berg opened the new harbour of Lund in 1971.", map[string]float64{"numbers_contradicted": 1, "numbers_same": 0, "words_missing": 0}},
		{"a number of nowhere", harbour, "Gerda bought 77 apples.", map[string]float64{"numbers_absent": 1}},
		{"a rounded number", "The tower is 329.6 m tall.", "The tower is 330 m tall.", map[string]float64{"numbers_worked_out": 1, "numbers_same": 0}},
		{"nothing in common", harbour, "Bananas ripen", map[string]float64{"premise_count": 0, "premise_score": 0, "missing_share": 1, "missing_weight": 1, "sentence_share": 0}},
		{"no words at all", harbour, "!", map[string]float64{"claim_words": 0, "missing_share": 0, "sentence_share": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := seen(t, facts(t, tt.fact), check.Claim{Text: tt.claim})
			for name, want := range tt.want {
				if x, ok := got[name]; !ok || math.Abs(x-want) > 1e-9 {
					t.Errorf("%s: %v, want %v", name, x, want)
				}
			}
		})
	}
}

func TestFeaturesOfTheJudge(t *testing.T) {
	t.Parallel()
	e := facts(t, towers...)
	got := seen(t, e, check.Claim{Text: "It is in Paris.", Context: "We saw the Louvre."}, isNeutral, entails)
	for name, want := range map[string]float32{
		"entail_max": entails.Entailment, "entail_best": isNeutral.Entailment, "neutral_min": entails.Neutral, "neutral_best": isNeutral.Neutral,
		"contra_max": isNeutral.Contradiction, "contra_min": entails.Contradiction, "contra_best": isNeutral.Contradiction, "points_back": 1,
	} {
		if got[name] != float64(want) {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for name, x := range seen(t, e, check.Claim{Text: "It is in Paris."}) {
		if x != 0 && (name == "neutral_min" || name == "contra_min" || name == "points_back") {
			t.Errorf("without judge and context %s is %v", name, x)
		}
	}
}

func TestAClaimThatNothingAlignsWithIsInserted(t *testing.T) {
	t.Parallel()
	x := check.Features(nil, check.Claim{Text: "Bananas ripen"}, []evidence.Premise{{Text: "The harbour opened."}}, nil, nil)
	if got := x[slices.Index(check.FeatureNames(), "inserted_words")]; got != 2 {
		t.Errorf("%v words inserted, want 2", got)
	}
}

func FuzzFeatures(f *testing.F) {
	f.Add("The Eiffel Tower is not 330 m tall.", "The Eiffel Tower is 329.6 m tall. It never moved!")
	f.Add("埃菲尔铁塔 330 m", "埃菲尔铁塔位于巴黎。")
	f.Add("a\xffb not no", "\xff")
	f.Fuzz(func(t *testing.T, claim, fact string) {
		e, err := evidence.New(t.Context(), []evidence.Source{{Text: fact}}, evidence.Options{})
		if err != nil {
			t.Skip()
		}
		for name, x := range seen(t, e, check.Claim{Text: claim, Context: fact}) {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Errorf("%s is %v", name, x)
			}
		}
	})
}

// library returns about 16 KiB of similar facts.
func library(tb testing.TB) *evidence.Evidence {
	tb.Helper()
	var list []string
	for i := range 120 {
		list = append(list, "Station "+string(rune('A'+i%26))+string(rune('a'+i/26))+" of the northern line was opened in "+
			time.Date(1850+i, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006")+" and has many platforms, cafés and a hall of glass.")
	}
	return facts(tb, list...)
}

// stations are claims about library.
var stations = []check.Claim{
	{Text: "Station Ba of the northern line was opened in 1851 and has many platforms."},
	{Text: "Station Cb was opened in 1999."},
	{Text: "Thank you for the question!"},
	{Text: "Its hall of glass is not in Berlin.", Context: "Station Aa is old."},
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector empties pools at random")
	}
	c, e := checker(t, check.Options{Judge: always(entails)}), library(t)
	if n := testing.AllocsPerRun(100, func() {
		for _, cl := range stations {
			c.Quick(e, cl)
		}
	}); n > 0 {
		t.Errorf("quick: %v allocations, want 0", n)
	}
	_, findings := e.Numbers().Check(nil, stations[0].Text, "")
	premises := e.For(nil, stations[0].Text, findings, 4)
	x := check.Features(nil, stations[0], premises, findings, []check.Inference{entails})
	if n := testing.AllocsPerRun(100, func() { x = check.Features(x[:0], stations[0], premises, findings, nil) }); n > 0 {
		t.Errorf("features: %v allocations, want 0", n)
	}
}

func BenchmarkQuick(b *testing.B) {
	c, e := checker(b, check.Options{Judge: always(entails)}), library(b)
	took := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		c.Quick(e, stations[i%len(stations)])
		if len(took) < cap(took) {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
}

func BenchmarkFeatures(b *testing.B) {
	e := library(b)
	_, findings := e.Numbers().Check(nil, stations[0].Text, "")
	premises := e.For(nil, stations[0].Text, findings, 4)
	var x []float64
	b.ReportAllocs()
	for b.Loop() {
		x = check.Features(x[:0], stations[0], premises, findings, []check.Inference{entails, isNeutral})
	}
}

// BenchmarkCheck measures a batch of four claims with a judge without cost: what a check adds to
// the model.
func BenchmarkCheck(b *testing.B) {
	c, e := checker(b, check.Options{Judge: free{}, Fusion: fusion(b, byEntailment)}), library(b)
	b.ReportAllocs()
	for b.Loop() {
		c.Check(b.Context(), e, "", stations)
	}
}
