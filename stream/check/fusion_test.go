package check_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"signalbox/stream/check"
)

// byEntailment follows the judge's entailment, and lowers it if words are missing.
const byEntailment = `{"format": 1, "features": ["entail_max", "words_missing"], "base": 0.5,
	"trees": [
		{"feature": [0, -1, -1], "threshold": [0.4, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0], "value": [0, -2, 2]},
		{"feature": [1, 0, -1, -1, -1], "threshold": [1, 0.8, 0, 0, 0], "left": [1, 2, 0, 0, 0], "right": [4, 3, 0, 0, 0], "value": [0, 0, 0.25, 1, -1]}],
	"calibration": {"slope": 2, "offset": -0.5}, "thresholds": {"supported": 0.6, "contradicted": 0.7, "unsupported": 0.3}}`

// byLength is byEntailment with more trees and a flatter calibration for long evidence.
var byLength = strings.TrimSuffix(byEntailment, "}") + `,
	"long": {"base": 0.25, "trees": [{"feature": [1, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0], "value": [0, 1, -3]}],
		"calibration": {"slope": 0.5, "offset": 0.125}}}`

func fusion(tb testing.TB, data string) *check.Fusion {
	tb.Helper()
	f, err := check.ReadFusion(strings.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// at returns a list of features with some set.
func at(tb testing.TB, set map[string]float64) []float64 {
	tb.Helper()
	x := make([]float64, len(check.FeatureNames()))
	for i, name := range check.FeatureNames() {
		if v, ok := set[name]; ok {
			x[i] = v
			delete(set, name)
		}
	}
	if len(set) > 0 {
		tb.Fatalf("no features %v", set)
	}
	return x
}

func TestSupportIsTheCalibratedSumOfTheTrees(t *testing.T) {
	t.Parallel()
	f := fusion(t, byEntailment)
	for _, tt := range []struct {
		entail, missing, sum float64
	}{
		{0.4, 0, 0.5 - 2 + 0.25}, {0.41, 0, 0.5 + 2 + 0.25}, {0.9, 1, 0.5 + 2 + 1}, {0.9, 2, 0.5 + 2 - 1}, {0, 5, 0.5 - 2 - 1},
	} {
		want := 1 / (1 + math.Exp(-(2*tt.sum - 0.5)))
		if got := f.Support(at(t, map[string]float64{"entail_max": tt.entail, "words_missing": tt.missing}), false); math.Abs(got-want) > 1e-12 {
			t.Errorf("entailment %v, %v missing: %v, want %v", tt.entail, tt.missing, got, want)
		}
	}
}

func TestLongEvidenceHasTreesAndACurveOfItsOwn(t *testing.T) {
	t.Parallel()
	f, without := fusion(t, byLength), fusion(t, byEntailment)
	for missing, more := range map[float64]float64{0: 1, 2: -3} {
		x := at(t, map[string]float64{"entail_max": 0.9, "words_missing": missing})
		if got, want := f.Support(x, false), without.Support(x, false); got != want {
			t.Errorf("short, %v missing: %v, want %v", missing, got, want)
		}
		if got, want := without.Support(x, true), without.Support(x, false); got != want {
			t.Errorf("no trees of its own, %v missing: %v, want %v", missing, got, want)
		}
		sum := 0.5 + 2 + map[float64]float64{0: 1, 2: -1}[missing] + 0.25 + more
		if got, want := f.Support(x, true), 1/(1+math.Exp(-(0.5*sum+0.125))); math.Abs(got-want) > 1e-12 {
			t.Errorf("long, %v missing: %v, want %v", missing, got, want)
		}
	}
	for _, change := range [][2]string{{`"slope": 0.5`, `"slope": 0`}, {`"feature": [1, -1, -1]`, `"feature": [2, -1, -1]`}, {`"base": 0.25`, `"base": 1e999`}} {
		data := strings.Replace(byLength, change[0], change[1], 1)
		if _, err := check.ReadFusion(strings.NewReader(data)); data == byLength || !errors.Is(err, check.ErrFusion) {
			t.Errorf("%s: %v, want ErrFusion", change[1], err)
		}
	}
}

func TestReadFusionRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, new string }{
		{"another format", `"format": 1`, `"format": 2`},
		{"an unknown key", `"base"`, `"bias": 1, "base"`},
		{"a key twice", `"base"`, `"format": 1, "base"`},
		{"an unknown feature", "words_missing", "words_lost"},
		{"a feature twice", "words_missing", "entail_max"},
		{"a feature out of range", `"feature": [0,`, `"feature": [2,`},
		{"a negative feature that is no leaf", `"feature": [0,`, `"feature": [-2,`},
		{"a child out of range", `"right": [2,`, `"right": [3,`},
		{"a negative child", `"right": [2,`, `"right": [-1,`},
		{"a node that is its own child", `"left": [1, 2,`, `"left": [1, 1,`},
		{"a cycle", `"left": [1, 2,`, `"left": [1, 0,`},
		{"two parents", `"right": [2,`, `"right": [1,`},
		{
			"two parents and none without", `{"feature": [0, -1, -1], "threshold": [0.4, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0], "value": [0, -2, 2]}`,
			`{"feature": [0, 0, -1, -1], "threshold": [0, 0, 0, 0], "left": [1, 2, 0, 0], "right": [2, 3, 0, 0], "value": [0, 0, 0, 0]}`,
		},
		{"arrays of different lengths", `"threshold": [0.4, 0, 0]`, `"threshold": [0.4, 0]`},
		{"a node without a parent", `{"feature": [0, -1, -1]`, `{"feature": [-1, -1, -1]`},
		{"a number that is none", "0.25", "NaN"},
		{"a number beyond all bounds", "0.25", "1e999"},
		{"a slope of 0", `"slope": 2`, `"slope": 0`},
		{"a threshold above 1", `"supported": 0.6`, `"supported": 1.1`},
		{"thresholds the wrong way round", `"unsupported": 0.3`, `"unsupported": 0.7`},
		{"a threshold for more than is unsupported", `"unsupported": 0.3`, `"unsupported": 0.3, "alone": 0.4`},
		{"text after the end", `0.3}}`, `0.3}} {}`},
		{"an end too early", `0.3}}`, `0.3}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := strings.Replace(byEntailment, tt.old, tt.new, 1)
			if data == byEntailment {
				t.Fatalf("%q does not occur", tt.old)
			}
			if f, err := check.ReadFusion(strings.NewReader(data)); !errors.Is(err, check.ErrFusion) {
				t.Errorf("%+v, %v, want ErrFusion", f, err)
			}
		})
	}
}

func FuzzReadFusion(f *testing.F) {
	f.Add(byEntailment)
	f.Add(byLength)
	f.Add(`{"format":1,"features":[],"base":0,"trees":[{"feature":[-1],"threshold":[0],"left":[0],"right":[0],"value":[1]}],"calibration":{"slope":1,"offset":0},"thresholds":{}}`)
	f.Add(`{"format":1,"trees":[{"feature":[0,0],"threshold":[0,0],"left":[1,0],"right":[1,0],"value":[0,0]}]}`)
	x := make([]float64, len(check.FeatureNames()))
	f.Fuzz(func(t *testing.T, data string) {
		fusion, err := check.ReadFusion(strings.NewReader(data))
		if err != nil {
			return
		}
		for _, v := range []float64{0, 1, -1e300, 1e300} {
			for i := range x {
				x[i] = v
			}
			for _, long := range []bool{false, true} {
				if s := fusion.Support(x, long); !(s >= 0 && s <= 1) {
					t.Errorf("support %v is not in [0, 1]", s)
				}
			}
		}
	})
}

func TestFusionDecidesByItsThresholds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		says   check.Inference
		claim  string
		want   check.Verdict
		fusion string
	}{
		{"much support", entails, "The Louvre is in Paris.", check.Supported, byEntailment},
		{"little support, contradiction", contradicts, "The Louvre is in Paris.", check.Contradicted, byEntailment},
		{"little support, a name", isNeutral, "The Louvre is in Paris.", check.Unsupported, byEntailment},
		{
			"between the thresholds nobody can tell",
			check.Inference{Entailment: 0.7, Neutral: 0.2, Contradiction: 0.1},
			"The Louvre is in Paris.", check.Unchecked,
			strings.Replace(byEntailment, `"supported": 0.6`, `"supported": 0.999`, 1),
		},
		{"a wrong number wins over support", entails, "The Eiffel Tower is 350 m tall.", check.Contradicted, byEntailment},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := checker(t, check.Options{Judge: always(tt.says), Fusion: fusion(t, tt.fusion)})
			if got := c.Check(t.Context(), facts(t, towers...), "", []check.Claim{{Text: tt.claim}})[0]; got.Verdict != tt.want {
				t.Errorf("%+v, want %v", got, tt.want)
			}
		})
	}
}

func TestSupportDoesNotAllocate(t *testing.T) {
	f, x := fusion(t, byLength), at(t, nil)
	if n := testing.AllocsPerRun(100, func() { f.Support(x, true) }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// TestTheLengthOfTheSourceDecidesWhichTreesWeigh checks that the source of the best premise, and no
// other, decides which trees apply.
func TestTheLengthOfTheSourceDecidesWhichTreesWeigh(t *testing.T) {
	t.Parallel()
	f := fusion(t, byLength)
	c := checker(t, check.Options{Judge: always(entails), Fusion: f})
	filler := strings.Repeat("The ferry to the island leaves from the eastern pier every day. ", 20)
	for claim, long := range map[string]bool{"The Louvre stands in Paris near the river.": true, "The Prado stands in Madrid near the park.": false} {
		e := facts(t, filler+"The Louvre stands in Paris beside the river.", "The Prado stands in Madrid beside the park.")
		list, err := c.Examine(t.Context(), e, "", claim)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d claims, %v", len(list), err)
		}
		got, want := list[0].Result.Score, f.Support(list[0].Features, long)
		if math.Abs(got-want) > 1e-12 || math.Abs(want-f.Support(list[0].Features, !long)) < 1e-3 {
			t.Errorf("%q: score %v, want %v, with the other trees %v", claim, got, want, f.Support(list[0].Features, !long))
		}
	}
}
