package eval

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReadNamesTheLineThatIsNotAnExample(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"broken JSON":   {"{\"text\":\"a\",\"label\":\"b\"}\n{", "line 2"},
		"missing label": {`{"text":"a"}`, `"text" and "label"`},
		"empty file":    {"\n\n", "holds none"},
		"wrong type":    {`{"text":7,"label":"b"}`, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.in), Domain, nil, 0)
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrFormat with %q", err, c.want)
			}
		})
	}
	got, err := Read(strings.NewReader(strings.Repeat(`{"text":"a","label":"b","src":"x"}`+"\n", 5)), Domain, nil, 3)
	if err != nil || len(got) != 3 {
		t.Errorf("limit 3 read %d examples, %v", len(got), err)
	}
}

func TestAUCCountsTiesAsHalf(t *testing.T) {
	for _, c := range []struct {
		pos, neg []float64
		want     float64
	}{
		{[]float64{.9, .8}, []float64{.1, .2}, 1},
		{[]float64{.1}, []float64{.9}, 0},
		{[]float64{.5, .5}, []float64{.5}, .5},
		{[]float64{.9, .4}, []float64{.5, .4}, (1 + 1 + 0 + .5) / 4},
	} {
		if got := AUC(c.pos, c.neg); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("AUC(%v, %v) = %v, want %v", c.pos, c.neg, got, c.want)
		}
	}
}

// labelled makes examples of texts and labels in turn.
func labelled(pairs ...string) []Example {
	out := make([]Example, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, Example{Text: pairs[i], Label: pairs[i+1]})
	}
	return out
}

// scripted answers with the score that the text spells out.
func scripted(scores map[string]float64) Classifier {
	return func(_ context.Context, ex *Example) Answer {
		text := ex.Text
		s, ok := scores[text]
		return Answer{Known: ok, Positive: s, Took: time.Millisecond}
	}
}

func TestJailbreakReportCountsUnknownAsMissed(t *testing.T) {
	examples := labelled("a", "jailbreak", "b", "jailbreak", "c", "benign", "d", "benign", "lost", "jailbreak")
	r, err := Run(t.Context(), Jailbreak, examples, .5, nil, scripted(map[string]float64{"a": .9, "b": .4, "c": .2, "d": .6}), nil)
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	near("accuracy", *r.Accuracy, 2.0/5)
	near("recall", *r.RecallAtThreshold, 1.0/3)
	near("false positives", *r.FPRAtThreshold, 1.0/2)
	near("auc", *r.AUC, 3.0/4)
	// Confidences .9 right, .6 wrong, .8 right, .6 wrong, bins of 1/15: |1-.9| + |0-1.2| + |1-.8|,
	// over 4.
	near("ece", *r.ECE, (.1+1.2+.2)/4)
	near("coverage", *r.CoverageAt90, 2.0/5)
	if r.Unknown != 1 || r.Confusion["jailbreak"][unknownLabel] != 1 {
		t.Errorf("unknown %d, confusion %v", r.Unknown, r.Confusion)
	}
}

func TestRouteReportHasNoScoreFigures(t *testing.T) {
	r, err := Run(t.Context(), Route, labelled("a", "math"), 0, nil, func(context.Context, *Example) Answer {
		return Answer{Known: true, Label: "math"}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"auc", "ece", "coverage_at_90", `"threshold"`, "exact", "overlap"} {
		if strings.Contains(string(b), absent) {
			t.Errorf("%s must be absent in %s", absent, b)
		}
	}
	if *r.Accuracy != 1 || *r.MacroF1 != 1 {
		t.Errorf("accuracy %v, macro F1 %v", *r.Accuracy, *r.MacroF1)
	}
}

func TestRunStopsWhenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := Run(ctx, Domain, labelled("a", "x", "b", "x"), 0, nil, func(context.Context, *Example) Answer {
		calls++
		cancel()
		return Answer{}
	}, nil)
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestUnknownLabelsAreRefusedWithTheirLine(t *testing.T) {
	in := `{"text":"a","label":"math"}` + "\n" + `{"text":"b","label":"maths"}`
	_, err := Read(strings.NewReader(in), Domain, []string{"law", "math"}, 0)
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `line 2`) || !strings.Contains(err.Error(), `unknown label "maths", expected one of law, math`) {
		t.Errorf("got %v", err)
	}
	for _, task := range []Task{Jailbreak, Injection, FactCheck, Complexity} {
		if _, err := Read(strings.NewReader(`{"text":"a","label":"perhaps"}`), task, task.Labels(), 0); err == nil {
			t.Errorf("%s takes any label", task)
		}
	}
}

func TestEntitiesOutsideTheTextAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no entities":          {`{"text":"a","label":"b"}`, `"text" and "entities"`},
		"behind the end":       {`{"text":"äöü","entities":[{"type":"PERSON","start":0,"end":4}]}`, "3 code points"},
		"nothing between":      {`{"text":"abc","entities":[{"type":"PERSON","start":1,"end":1}]}`, "entities[0]"},
		"without a type":       {`{"text":"abc","entities":[{"start":0,"end":1}]}`, "entities[0]"},
		"before the beginning": {`{"text":"abc","entities":[{"type":"GPE","start":-1,"end":1}]}`, "entities[0]"},
	} {
		if _, err := Read(strings.NewReader(c.in), PII, nil, 0); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrFormat with %q", name, err, c.want)
		}
	}
	got, err := Read(strings.NewReader(`{"text":"äöü","entities":[]}`), PII, nil, 0)
	if err != nil || len(got) != 1 {
		t.Errorf("a text without any: %v, %v", got, err)
	}
}

func TestEntitiesAreComparedExactlyAndByOverlap(t *testing.T) {
	at := func(name string, start, end int) Entity { return Entity{Type: name, Start: start, End: end} }
	examples := []Example{
		{Text: "a", Entities: []Entity{at("PERSON", 0, 4), at("GPE", 6, 9), at("OTHER", 10, 12)}},
		{Text: "b", Entities: []Entity{at("PERSON", 0, 4), at("PERSON", 5, 9)}},
		{Text: "lost", Entities: []Entity{at("GPE", 0, 4)}},
	}
	found := map[string][]Entity{
		"a": {at("PERSON", 0, 4), at("GPE", 7, 12), at("OTHER", 0, 1)},
		"b": {at("PERSON", 0, 9), at("ORG", 0, 2)}, // one for two: only one of them is found
	}
	r, err := Run(t.Context(), PII, examples, 0, []string{"PERSON", "GPE", "ORG"}, func(_ context.Context, ex *Example) Answer {
		text := ex.Text
		e, ok := found[text]
		return Answer{Known: ok, Entities: e}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Task: PII, N: 3, Unknown: 1,
		Exact: &Entities{
			MicroF1: 2.0 * 1 / (4 + 5), MacroF1: (2.0*1/(2+3) + 0) / 2,
			PerClass: map[string]Class{
				"PERSON": {Precision: 1.0 / 2, Recall: 1.0 / 3, F1: 2.0 / 5, Support: 3},
				"GPE":    {Support: 2},
				"ORG":    {},
			},
		},
		Overlap: &Entities{
			MicroF1: 2.0 * 3 / (4 + 5), MacroF1: (2.0*2/(2+3) + 2.0*1/(1+2)) / 2,
			PerClass: map[string]Class{
				"PERSON": {Precision: 1, Recall: 2.0 / 3, F1: 4.0 / 5, Support: 3},
				"GPE":    {Precision: 1, Recall: 1.0 / 2, F1: 2.0 / 3, Support: 2},
				"ORG":    {},
			},
		},
	}
	if d := cmp.Diff(want, r, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestComplexityWithTwoLabelsIsJudgedAtOneHalf(t *testing.T) {
	answer := func(_ context.Context, ex *Example) Answer {
		text := ex.Text
		p := map[string]float64{"a": .6, "b": .3, "c": .55}[text]
		return Answer{Known: true, Label: "medium", Score: .4, Positive: p}
	}
	r, err := Run(t.Context(), Complexity, labelled("a", "high", "b", "low", "c", "low"), .9, nil, answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *r.Threshold != .5 || *r.Accuracy != 2.0/3 || *r.AUC != 1 || *r.FPRAtThreshold != .5 {
		t.Errorf("threshold %v, accuracy %v, AUC %v, false positives %v", *r.Threshold, *r.Accuracy, *r.AUC, *r.FPRAtThreshold)
	}
	r, err = Run(t.Context(), Complexity, labelled("a", "high", "b", "low", "c", "medium"), .9, nil, answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *r.Threshold != .9 || *r.Accuracy != 1.0/3 || r.Confusion["medium"]["medium"] != 1 {
		t.Errorf("threshold %v, accuracy %v, confusion %v", *r.Threshold, *r.Accuracy, r.Confusion)
	}
}

func TestGroundingIsRankedByTheLeastSupport(t *testing.T) {
	t.Parallel()
	const data = `{"facts":"The tower is 330 m high.","question":"How high?","answer":"It is 330 m high.","label":"supported","spans":[]}
{"facts":["The tower is 330 m high.","It stands in Paris."],"answer":"It is 200 m high. It stands in Paris.","label":"unsupported","spans":[[0,17]]}
{"facts":"The tower is 330 m high.","answer":"It is blue.","label":"unsupported"}
`
	examples, err := Read(strings.NewReader(data), Grounding, Grounding.Labels(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := examples[1].Facts; len(got) != 2 || len(examples[0].Facts) != 1 {
		t.Fatalf("facts %q", got)
	}
	answers := map[string]Answer{
		"It is 330 m high.":                     {Known: true, Positive: 0.1},
		"It is 200 m high. It stands in Paris.": {Known: true, Positive: 0.9, Spans: []Span{{0, 37}}},
		"It is blue.":                           {},
	}
	r, err := Run(t.Context(), Grounding, examples, 0.5, nil, func(_ context.Context, ex *Example) Answer { return answers[ex.Answer] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *r.Accuracy != 2.0/3 || *r.AUC != 1 || r.Unknown != 1 || *r.RecallAtThreshold != 0.5 || *r.FPRAtThreshold != 0 {
		t.Errorf("accuracy %v, AUC %v, unknown %d, recall %v, false positives %v", *r.Accuracy, *r.AUC, r.Unknown, *r.RecallAtThreshold, *r.FPRAtThreshold)
	}
	if want := (&Spans{N: 2, Precision: 17.0 / 37, Recall: 1, F1: 2 * 17.0 / 37 / (1 + 17.0/37)}); !cmp.Equal(want, r.Spans, cmpopts.EquateApprox(0, 1e-9)) {
		t.Errorf("spans %+v, want %+v", r.Spans, want)
	}
}

func TestBrokenRowsOfGroundingAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"no facts":          {`{"answer":"a","label":"supported"}`, `"facts", "answer" and "label"`},
		"no answer":         {`{"facts":"f","label":"supported"}`, `"facts", "answer" and "label"`},
		"an unknown label":  {`{"facts":"f","answer":"a","label":"maybe"}`, `unknown label "maybe"`},
		"a span outside":    {`{"facts":"f","answer":"a","label":"supported","spans":[[0,2]]}`, "spans[0]"},
		"a span of one end": {`{"facts":"f","answer":"a","label":"supported","spans":[[0]]}`, "[start, end]"},
		"facts of numbers":  {`{"facts":[1],"answer":"a","label":"supported"}`, "line 1"},
	} {
		if _, err := Read(strings.NewReader(c.in), Grounding, Grounding.Labels(), 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
