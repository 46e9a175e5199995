package check_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// withPages is byEntailment that trusts words more beside sources of more than 150 words.
var withPages = strings.Replace(strings.Replace(byEntailment, `"words_missing"]`, `"words_missing", "page_words"]`, 1), `"unsupported": 0.3}}`, `"unsupported": 0.3},
	"pages": {"words": 150, "trees": [{"feature": [1, -1, -1], "threshold": [0, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0], "value": [0, 1, -3]}],
		"calibration": {"slope": 0.5, "offset": 0.25}, "thresholds": {"supported": 0.8, "contradicted": 0.9, "unsupported": 0.2}}}`, 1)

func TestLongSourcesAreWeighedByTheirOwnTrees(t *testing.T) {
	t.Parallel()
	plain, paged := fusion(t, byEntailment), fusion(t, withPages)
	for _, tt := range []struct {
		page, missing, sum float64
	}{{151, 0, 0.5 + 2 + 1 + 1}, {151, 1, 0.5 + 2 + 1 - 3}, {1e6, 2, 0.5 + 2 - 1 - 3}} {
		x := at(t, map[string]float64{"entail_max": 0.9, "words_missing": tt.missing, "page_words": tt.page})
		got, cuts := paged.Weigh(x)
		if want := 1 / (1 + math.Exp(-(0.5*tt.sum + 0.25))); math.Abs(got-want) > 1e-12 || cuts.Supported != 0.8 {
			t.Errorf("page of %v words, %v missing: %v with %+v, want %v", tt.page, tt.missing, got, cuts, want)
		}
	}
	for _, page := range []float64{0, 11, 150} {
		x := at(t, map[string]float64{"entail_max": 0.9, "words_missing": 2, "page_words": page})
		got, cuts := paged.Weigh(x)
		if want, same := plain.Weigh(x); got != want || cuts != same {
			t.Errorf("source of %v words: %v with %+v, want %v with %+v as without pages", page, got, cuts, want, same)
		}
	}
}

func TestWeighingBesidePagesDoesNotAllocate(t *testing.T) { //nolint:paralleltest // counts allocations
	f, x := fusion(t, withPages), at(t, map[string]float64{"page_words": 1000})
	if n := testing.AllocsPerRun(100, func() { f.Weigh(x) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestReadFusionRefusesPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, new string }{
		{"fewer words than none", `"words": 150`, `"words": -1`},
		{"an unknown key", `"words": 150`, `"words": 150, "share": 1`},
		{"a slope of 0", `"slope": 0.5`, `"slope": 0`},
		{"thresholds the wrong way round", `"unsupported": 0.2`, `"unsupported": 0.9`},
		{"a feature out of range", `"feature": [1, -1, -1]`, `"feature": [3, -1, -1]`},
	} {
		data := strings.Replace(withPages, tt.old, tt.new, 1)
		if data == withPages {
			t.Fatalf("%s: %q does not occur", tt.name, tt.old)
		}
		if f, err := check.ReadFusion(strings.NewReader(data)); !errors.Is(err, check.ErrFusion) {
			t.Errorf("%s: %+v, %v, want ErrFusion", tt.name, f, err)
		}
	}
}

func TestThePageIsTheSourceOfTheFirstPremise(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Bananas ripen on the way to the market. ", 30)
	e, err := evidence.New([]evidence.Source{{Text: "The Louvre is in Paris.", Fact: true}, {Text: long}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	place := len(check.FeatureNames()) - 1
	for claim, want := range map[string]float64{"The Louvre stands in Paris.": 5, "Bananas ripen slowly.": 240, "Nothing shared whatsoever.": 0} {
		x := check.Features(nil, check.Claim{Text: claim}, e.For(nil, claim, nil, 4), nil, nil)
		if got := x[place]; got != want {
			t.Errorf("%q: a page of %v words, want %v", claim, got, want)
		}
	}
}
