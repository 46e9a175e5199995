package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/bench/lab"
	"signalbox/internal/signal"
)

func TestTheSplitIsThatOfTheTraining(t *testing.T) {
	t.Parallel()
	// The expected values are those of key and bucket in training/signalbox_training/data.py.
	tests := []struct {
		text, key string
		of14, of8 uint64
	}{
		{"What is 2+2?", "what is 2 2", 13, 5},
		{"  Ünïcode — naïve_test № 7 ½ ", "ünïcode naïve test 7 ½", 6, 2},
		{"", "", 0, 4},
		{"日本語の質問です。", "日本語の質問です", 3, 3},
	}
	for _, tt := range tests {
		if got := key(tt.text); got != tt.key {
			t.Errorf("key of %q is %q, want %q", tt.text, got, tt.key)
		}
		if a, b := bucket(tt.text, heldOutOneIn), bucket(tt.text, optionsOneIn); a != tt.of14 || b != tt.of8 {
			t.Errorf("buckets of %q are %d and %d, want %d and %d", tt.text, a, b, tt.of14, tt.of8)
		}
	}
}

// made is a folder of invented data in the layout of the data sets: mathematics that only the
// specialist solves, law that only the large model does.
type made struct {
	dir    string
	held   []string // ids of questions that were kept out of the training
	others int
}

func makeData(t *testing.T) made {
	t.Helper()
	m := made{dir: t.TempDir()}
	var pro, matrix, old, pairs, dev, efforts []any
	for i := range 600 {
		category, solver := "math", "mathstral-7B"
		if i%2 == 1 {
			category, solver = "law", "Meta-Llama-3_1-70B-Instruct"
		}
		text, id := fmt.Sprintf("%s question number %d", category, i), fmt.Sprint(i)
		correct := map[string]int{}
		for _, name := range append(slices.Clone(sevens), "Meta-Llama-3_1-70B-Instruct") {
			correct[name] = 0
		}
		correct[solver] = 1
		matrix = append(matrix, map[string]any{"qid": id, "category": category, "correct": correct})
		switch {
		case i%5 == 0: // only in the matrix, as questions of the development set are
			dev = append(dev, map[string]any{"text": "dev " + text, "label": category})
			continue
		case heldOut(text) && !withOptions(text):
			m.held = append(m.held, id)
		default:
			m.others++
		}
		pro = append(pro, map[string]any{"text": text, "label": category, "qid": i})
	}
	for i := range 200 {
		text := fmt.Sprintf("law mmlu %d", i)
		if i%2 == 0 {
			old = append(old, map[string]any{"text": text, "label": "law"})
		}
		pairs = append(pairs, map[string]any{"text": text + "\nA. yes\nB. no\nAnswer:", "category": "law", "mixtral_ok": false, "gpt4_ok": true})
		label, word := "low", "law"
		if i%4 == 0 {
			label, word = "high", "prove"
		}
		efforts = append(efforts, map[string]any{"text": fmt.Sprintf("%s %d", word, i), "label": label})
	}
	for name, rows := range map[string][]any{
		"router_mmlu_pro/matrix.jsonl.gz": matrix, "mmlu_pro/train.jsonl.gz": pro, "mmlu/train.jsonl.gz": old,
		"router_routellm/train.jsonl.gz": pairs, "dev/domain_mmlu_pro.jsonl": dev, "dev/complexity.jsonl": efforts,
	} {
		write(t, filepath.Join(m.dir, name), rows)
	}
	return m
}

func write(t *testing.T, path string, rows []any) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	enc := json.NewEncoder(z)
	if !strings.HasSuffix(path, ".gz") {
		enc = json.NewEncoder(&b)
	}
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasSuffix(path, ".gz") {
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fake is a classifier that finds a domain by its name, and counts its passes.
func fake(passes *int) *classifier {
	return &classifier{signals: asked(), found: map[string]*signal.Set{}, extract: func(_ context.Context, text string, _ signal.Mask) *signal.Set {
		*passes++
		set := &signal.Set{}
		domain := signal.Value{State: signal.Known, Label: "math", Score: 1, Labels: []string{"math", "law"}, Probs: []float32{1, 0}}
		if strings.Contains(text, "law") {
			domain.Label, domain.Probs = "law", []float32{0, 1}
		}
		level := signal.Value{State: signal.Known, Label: "low", Score: 1, Labels: []string{"low", "high"}, Probs: []float32{1, 0}}
		if strings.Contains(text, "prove") {
			level.Label, level.Probs = "high", []float32{0, 1}
		}
		set.Put(signal.Domain, domain)
		set.Put(signal.Complexity, level)
		return set
	}}
}

func TestNothingIsEvaluatedThatSkillsOrClassifierLearnedFrom(t *testing.T) {
	t.Parallel()
	m := makeData(t)
	d, err := readData(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, q := range d.held {
		held = append(held, q.ID.String())
	}
	if diff := cmp.Diff(m.held, held); diff != "" || len(held) == 0 {
		t.Errorf("held out (-want +got):\n%s", diff)
	}
	if len(d.trained) != m.others {
		t.Errorf("%d questions were trained on, want %d", len(d.trained), m.others)
	}
	for _, p := range d.pairs {
		question, _, _ := strings.Cut(p.Text, "\nA. ")
		var n int
		if _, err := fmt.Sscanf(question, "law mmlu %d", &n); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 && !heldOut(question) {
			t.Errorf("%q was trained on and is evaluated", question)
		}
	}
	// The outcomes of evaluated questions are turned around: were skills counted from them, they
	// would change.
	before, err := d.exact(sevens, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.matrix {
		if slices.Contains(held, d.matrix[i].ID) {
			for name, ok := range d.matrix[i].Correct {
				d.matrix[i].Correct[name] = 1 - ok
			}
		}
	}
	after, err := d.exact(sevens, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.pool, after.pool, cmp.AllowUnexported(contender{})); diff != "" {
		t.Errorf("skills depend on what is evaluated:\n%s", diff)
	}
}

func TestTheProductDecides(t *testing.T) {
	t.Parallel()
	d, err := readData(makeData(t).dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.experiments(24)
	if err != nil {
		t.Fatal(err)
	}
	var passes int
	c := fake(&passes)
	var out bytes.Buffer
	r := reporter{w: &out, resamples: 20}
	for i := range all {
		if err := all[i].decide(t.Context(), c, io.Discard); err != nil {
			t.Fatal(err)
		}
		r.experiment(&all[i])
	}
	if want := len(c.found); passes != want {
		t.Errorf("%d passes for %d texts", passes, want)
	}
	quality := func(e *experiment, name string) float64 {
		for i, f := range e.evaluate(5) {
			if e.policies[i].name == name {
				return f.quality.at
			}
		}
		t.Fatalf("%s has no policy %q", e.title, name)
		return 0
	}
	mixed := &all[2] // the specialist solves mathematics, the large model law
	for name, want := range map[string]float64{
		"signalbox, by quality": 1, "best of the true domain": 1, "always small (Meta-Llama-3_1-8B-Instruct)": 0, "signalbox, by cost, margin 0.05": 1,
	} {
		if got := quality(mixed, name); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v right, want %v", name, got, want)
		}
	}
	if got := out.String(); !strings.Contains(got, "| signalbox, by quality | 100.0 (100.0 to 100.0) |") {
		t.Errorf("the report does not show it:\n%s", got)
	}
	mix, err := decideEfforts(t.Context(), c, d.efforts, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(effortMix{"low": {"low": 150}, "high": {"high": 50}}, mix); diff != "" {
		t.Errorf("efforts (-want +got):\n%s", diff)
	}
	r.efforts(mix)
	if !strings.Contains(out.String(), "| low | 150 | 0.0 (0.0 to 2.5) | 100.0 (97.5 to 100.0) |") || r.err != nil {
		t.Errorf("%v in\n%s", r.err, out.String())
	}
}

func TestFiguresOfPolicies(t *testing.T) {
	t.Parallel()
	e := &experiment{
		pool: []contender{{name: "s", price: prices["Meta-Llama-3_1-8B-Instruct"]}, {name: "l", price: prices["Meta-Llama-3_1-70B-Instruct"]}},
		questions: []question{
			{"", "a", []float64{1, 1}}, {"", "a", []float64{0, 1}}, {"", "b", []float64{1, 0}}, {"", "b", []float64{0, 1}},
		},
		policies: []policy{
			{"small", []int{0, 0, 0, 0}},
			{"large", []int{1, 1, 1, 1}},
			{singleBest, []int{1, 1, 1, 1}},
			{"random", slices.Repeat([]int{hedge}, 4)},
			{"clever", []int{0, 1, 0, 1}},
		},
	}
	cheap, dear := 256*0.2/1e3, 256*0.9/1e3
	got := e.evaluate(1)
	for i, want := range []struct{ quality, gain, blind, cost float64 }{
		{0.5, -0.25, 0, cheap}, {0.75, 0, 0, dear}, {0.75, 0, 0, dear}, {0.625, -0.125, 0, (cheap + dear) / 2}, {1, 0.25, 0.375, (cheap + dear) / 2},
	} {
		f := got[i]
		if diff := cmp.Diff([]float64{want.quality, want.gain, want.blind, want.cost}, []float64{f.quality.at, f.gain.at, f.blind.at, f.cost}, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.policies[i].name, diff)
		}
	}
	if diff := cmp.Diff([]float64{0.5, 0.5}, got[4].share); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if a, b := e.evaluate(50), e.evaluate(50); !cmp.Equal(a, b, cmp.AllowUnexported(figures{}, interval{})) {
		t.Error("two evaluations differ")
	}
}

func TestIntervals(t *testing.T) {
	t.Parallel()
	w := wilson(8, 10) // 0.4902 and 0.9433, the textbook example of Wilson's interval
	if math.Abs(w.low-0.4902) > 1e-4 || math.Abs(w.high-0.9433) > 1e-4 {
		t.Errorf("8 of 10: %+v", w)
	}
	if got := quantile([]float64{0, 1, 2, 3}, 0.5); got != 1.5 {
		t.Errorf("the median is %v", got)
	}
	if got := quantile([]float64{7}, 0.9); got != 7 {
		t.Errorf("the quantile of one value is %v", got)
	}
}

func TestSavedTokensFollowTheMix(t *testing.T) {
	t.Parallel()
	m := effortMix{"low": {"low": 3, "high": 1}, "high": {"high": 4}}
	model := &tokenModel{share: map[string]float64{"low": 0.2, "high": 1}}
	for low, want := range map[float64]float64{0: 0, 1: 0.6, 0.5: 0.3} {
		if got := m.saved(model, low); math.Abs(got-want) > 1e-9 {
			t.Errorf("with %v easy prompts %v is saved, want %v", low, got, want)
		}
	}
}

func TestWithoutDataTheCommandSaysSo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no folder named", nil, "--data is required"},
		{"an empty folder", []string{"--data", t.TempDir()}, "which are not part of the repository"},
		{"a limit that cannot be", []string{"--data", ".", "--limit", "-1"}, "--limit must not be negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), tt.args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSpreadTakesRowsFromEverywhere(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]int{0, 3, 6}, lab.Spread([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 3)); diff != "" {
		t.Error(diff)
	}
	if got := lab.Spread([]int{1, 2}, 0); len(got) != 2 {
		t.Errorf("without a limit %v", got)
	}
}
