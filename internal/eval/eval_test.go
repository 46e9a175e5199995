package eval

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestReadNamesTheLineThatIsNotAnExample(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"broken JSON":   {"{\"text\":\"a\",\"label\":\"b\"}\n{", "line 2"},
		"missing label": {`{"text":"a"}`, `"text" and "label"`},
		"empty file":    {"\n\n", "holds none"},
		"wrong type":    {`{"text":7,"label":"b"}`, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.in), 0)
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrFormat with %q", err, c.want)
			}
		})
	}
	got, err := Read(strings.NewReader(strings.Repeat(`{"text":"a","label":"b","src":"x"}`+"\n", 5)), 3)
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

// scripted answers with the score that the text spells out.
func scripted(scores map[string]float64) Classifier {
	return func(_ context.Context, text string) Answer {
		s, ok := scores[text]
		return Answer{Known: ok, Score: s, Took: time.Millisecond}
	}
}

func TestJailbreakReportCountsUnknownAsMissed(t *testing.T) {
	examples := []Example{{"a", "jailbreak"}, {"b", "jailbreak"}, {"c", "benign"}, {"d", "benign"}, {"lost", "jailbreak"}}
	r, err := Run(t.Context(), Jailbreak, examples, .5, scripted(map[string]float64{"a": .9, "b": .4, "c": .2, "d": .6}), nil)
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	near("accuracy", r.Accuracy, 2.0/5)
	near("recall", *r.RecallAtThreshold, 1.0/3)
	near("false positives", *r.FPRAtThreshold, 1.0/2)
	near("auc", *r.AUC, 3.0/4)
	// Confidences .9 right, .6 wrong, .8 right, .6 wrong, bins of 1/15: |1-.9| + |0-1.2| + |1-.8|, over 4.
	near("ece", *r.ECE, (.1+1.2+.2)/4)
	near("coverage", *r.CoverageAt90, 2.0/5)
	if r.Unknown != 1 || r.Confusion["jailbreak"][unknownLabel] != 1 {
		t.Errorf("unknown %d, confusion %v", r.Unknown, r.Confusion)
	}
}

func TestRouteReportHasNoScoreFigures(t *testing.T) {
	r, err := Run(t.Context(), Route, []Example{{"a", "math"}}, 0, func(context.Context, string) Answer {
		return Answer{Known: true, Label: "math"}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"auc", "ece", "coverage_at_90", `"threshold"`} {
		if strings.Contains(string(b), absent) {
			t.Errorf("%s must be absent in %s", absent, b)
		}
	}
	if r.Accuracy != 1 || r.MacroF1 != 1 {
		t.Errorf("accuracy %v, macro F1 %v", r.Accuracy, r.MacroF1)
	}
}

func TestRunStopsWhenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := Run(ctx, Domain, []Example{{"a", "x"}, {"b", "x"}}, 0, func(context.Context, string) Answer {
		calls++
		cancel()
		return Answer{}
	}, nil)
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
