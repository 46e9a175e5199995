package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/bundle"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// graph is a session that answers with a function of one row, padding included.
type graph struct {
	inputs  []string
	outputs []tensor.Spec
	squeeze bool // a batch of one loses its dimension
	row     func(output string, in map[string][]int64) (values []float32, shape []int64)

	mu   sync.Mutex
	seen []map[string][]int64 // of every row
	runs int
}

func (g *graph) Inputs() []tensor.Spec {
	specs := make([]tensor.Spec, 0, len(g.inputs))
	for _, name := range g.inputs {
		specs = append(specs, tensor.Spec{Name: name, DType: tensor.Int64, Shape: []int64{tensor.Dynamic, tensor.Dynamic}})
	}
	return specs
}
func (g *graph) Outputs() []tensor.Spec { return g.outputs }
func (*graph) Provider() string         { return "test" }
func (*graph) Close() error             { return nil }

func (g *graph) Run(_ context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	rows, width := int(in[0].Shape[0]), int(in[0].Shape[1])
	if len(in) != len(g.inputs) {
		return nil, fmt.Errorf("%d inputs, want %v", len(in), g.inputs)
	}
	g.mu.Lock()
	g.runs++
	g.mu.Unlock()
	out := make([]tensor.Tensor, len(outputs))
	for r := range rows {
		one := map[string][]int64{}
		for i := range in {
			if err := in[i].Check(); err != nil {
				return nil, err
			}
			one[in[i].Name] = slices.Clone(in[i].I64[r*width : (r+1)*width])
		}
		g.mu.Lock()
		g.seen = append(g.seen, one)
		g.mu.Unlock()
		for k, name := range outputs {
			values, shape := g.row(name, one)
			out[k].F32 = append(out[k].F32, values...)
			out[k].Name, out[k].Shape = name, append([]int64{int64(rows)}, shape...)
			if g.squeeze && rows == 1 {
				out[k].Shape = out[k].Shape[1:]
			}
		}
	}
	return out, nil
}

// oneTask is a manifest of one task.
func oneTask(inputs, task string) string {
	return `format: 1
name: one
version: "1"
license: Apache-2.0
layout: shared
graphs: [{file: model.onnx, precision: int8, sha256: %s, bytes: 1}]
tokenizer: {file: tokenizer.json, sha256: %s, bytes: %d}
inputs: {ids: input_ids, mask: attention_mask` + inputs + `}
max_tokens: 40
tasks:
  - ` + task + `
canary: {text: "math word", expect: {}}
`
}

func openOne(tb testing.TB, g *graph, inputs, task string) *Classifier {
	tb.Helper()
	// A canary must expect something of a task with labels; these tasks have none to expect.
	text := strings.Replace(oneTask(inputs, task), "expect: {}", "expect: {other: a}", 1)
	text = strings.Replace(text, "tasks:\n", "tasks:\n  - {name: complexity, kind: sequence, output: other, labels: [a, b], temperature: 1, threshold: 0.5, window: {tokens: 34, stride: 30, max: 1, combine: mean}}\n", 1)
	text = strings.Replace(text, "expect: {other: a}", "expect: {complexity: a}", 1)
	g.outputs = append(g.outputs, tensor.Spec{Name: "other", DType: tensor.Float32})
	answer := g.row
	g.row = func(output string, in map[string][]int64) ([]float32, []int64) {
		if output == "other" {
			return []float32{1, 0}, []int64{2}
		}
		return answer(output, in)
	}
	c, err := classifierOf(bundleOf(tb, text), g, DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	g.seen, g.runs = nil, 0
	return c
}

// hidden gives every token of a row the vector {its id, its position, 1, 0}.
func hidden(_ string, in map[string][]int64) ([]float32, []int64) {
	var out []float32
	for i, id := range in["input_ids"] {
		out = append(out, float32(id), float32(i), 1, 0)
	}
	return out, []int64{int64(len(in["input_ids"])), 4}
}

func unitVector(x ...float64) []float32 {
	norm := 0.0
	for _, v := range x {
		norm += v * v
	}
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v / math.Sqrt(norm))
	}
	return out
}

func TestEmbeddingsArePooledCutAndNormalised(t *testing.T) {
	window := "window: {tokens: 34, stride: 30, max: 4, combine: mean}}"
	three := []int64{tensor.Dynamic, tensor.Dynamic, 4}
	first, last, mean := float64(clsID), float64(sepID), float64(clsID+mathID+wordID+sepID)/4
	tests := map[string]struct {
		task    string
		shape   []int64
		squeeze bool
		row     func(string, map[string][]int64) ([]float32, []int64)
		want    []float32
	}{
		"mean of the tokens, special ones included": {
			"output: h, dims: 4, pooling: mean, ", three,
			false, hidden, unitVector(mean, 1.5, 1, 0),
		},
		"the first token": {
			"output: h, dims: 4, pooling: cls, ", three, false, hidden,
			unitVector(first, 0, 1, 0),
		},
		"the last token": {
			"output: h, dims: 4, pooling: last_token, ", three, false,
			hidden, unitVector(last, 3, 1, 0),
		},
		"cut to its first numbers": {
			"output: h, dims: 2, width: 4, pooling: mean, ", three, false,
			hidden, unitVector(mean, 1.5),
		},
		"squeezed, before pooling": {
			"output: h, dims: 4, pooling: mean, ", three, true, hidden,
			unitVector(mean, 1.5, 1, 0),
		},
		"pooled by the graph": {"output: h, dims: 3, ", []int64{tensor.Dynamic, 3}, false, func(string, map[string][]int64) ([]float32, []int64) {
			return []float32{3, 0, 4}, []int64{3}
		}, unitVector(3, 0, 4)},
		"pooled by the graph, cut and squeezed": {"output: h, dims: 2, width: 3, ", nil, true, func(string, map[string][]int64) ([]float32, []int64) {
			return []float32{3, 4, 9}, []int64{3}
		}, unitVector(3, 4)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := &graph{
				inputs: []string{"input_ids", "attention_mask"}, squeeze: tc.squeeze, row: tc.row,
				outputs: []tensor.Spec{{Name: "h", DType: tensor.Float32, Shape: tc.shape}},
			}
			c := openOne(t, g, "", "{name: embedding, kind: embedding, "+tc.task+window)
			v := *extract(t, c, user("math word"), signal.MaskOf(signal.Embedding)).Value(signal.Embedding)
			if d := cmp.Diff(tc.want, v.Vector, approximately); d != "" {
				t.Errorf("vector (-want +got), state %d %s:\n%s", v.State, v.Reason, d)
			}
		})
	}
}

func TestPaddingIsNotPooled(t *testing.T) {
	g := &graph{
		inputs: []string{"input_ids", "attention_mask"}, row: hidden,
		outputs: []tensor.Spec{{Name: "h", DType: tensor.Float32}},
	}
	c := openOne(t, g, "", "{name: embedding, kind: embedding, output: h, dims: 4, pooling: last_token, window: {tokens: 34, stride: 30, max: 4, combine: mean}}")
	e := c.sources[0].Engine
	got, err := e.Embed(t.Context(), []string{"math", "math word law"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]float32{unitVector(sepID, 2, 1, 0), unitVector(sepID, 4, 1, 0)}, got,
		approximately); d != "" {
		t.Errorf("vectors (-want +got):\n%s", d)
	}
}

func TestRowsHaveTheInputsThatTheGraphAsksFor(t *testing.T) {
	g := &graph{
		inputs: []string{"input_ids", "attention_mask", "token_type_ids", "position_ids"}, row: hidden,
		outputs: []tensor.Spec{{Name: "h", DType: tensor.Float32}},
	}
	c := openOne(t, g, ", types: token_type_ids, positions: position_ids",
		"{name: embedding, kind: embedding, output: h, dims: 4, pooling: last_token, prefix: \"word \", append_id: 5, window: {tokens: 34, stride: 30, max: 4, combine: mean}}")
	extract(t, c, user("math"), signal.MaskOf(signal.Embedding))
	want := []map[string][]int64{{
		"input_ids": {clsID, wordID, mathID, attackID, sepID}, "attention_mask": {1, 1, 1, 1, 1},
		"token_type_ids": {0, 0, 0, 0, 0}, "position_ids": {0, 1, 2, 3, 4},
	}}
	if d := cmp.Diff(want, g.seen); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// nli counts the tokens of each text: entailment if there are as many, else contradiction.
func nli(_ string, in map[string][]int64) ([]float32, []int64) {
	var n [2]int
	for i, kind := range in["token_type_ids"] {
		if in["attention_mask"][i] == 1 {
			n[kind]++
		}
	}
	// The first text has two special tokens around it, the second one behind it.
	if n[0]-2 == n[1]-1 {
		return []float32{2, 0, 0}, []int64{3}
	}
	return []float32{0, 0, 2}, []int64{3}
}

const nliTask = "{name: nli, kind: pair, output: n, labels: [entailment, neutral, contradiction], temperature: 1, threshold: 0.5, window: {tokens: 34, stride: 30, max: 1, combine: mean}}"

func TestPairsShareRows(t *testing.T) {
	g := &graph{
		inputs: []string{"input_ids", "attention_mask", "token_type_ids"}, row: nli,
		outputs: []tensor.Spec{{Name: "n", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 3}}},
	}
	c := openOne(t, g, ", types: token_type_ids", nliTask)
	got, err := c.ClassifyPairs(t.Context(), "nli", []Pair{{"math word", "word math"}, {"math", "word math"}, {words(50), words(60)}})
	if err != nil {
		t.Fatal(err)
	}
	same, other := f32(soft(1, 2, 0, 0)), f32(soft(1, 0, 0, 2))
	if d := cmp.Diff([][]float32{same, other, other}, got, approximately); d != "" {
		t.Errorf("probabilities (-want +got):\n%s", d)
	}
	longest := 0
	for _, r := range g.seen {
		longest = max(longest, len(r["input_ids"]))
	}
	if longest != 34 {
		t.Errorf("the longest row has %d tokens, want 34", longest)
	}
	if d := cmp.Diff([]string{"entailment", "neutral", "contradiction"}, c.PairLabels("nli")); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if _, err := c.ClassifyPairs(t.Context(), "other", nil); !errors.Is(err, ErrNoTask) {
		t.Errorf("an unknown task: %v, want ErrNoTask", err)
	}
	g.row = func(string, map[string][]int64) ([]float32, []int64) {
		return []float32{1, float32(math.NaN()), 0}, []int64{3}
	}
	var why Reasoned
	if _, err := c.ClassifyPairs(t.Context(), "nli", []Pair{{"math", "math"}}); !errors.As(err, &why) || why.Reason() != signal.ReasonInvalid {
		t.Errorf("not a number: %v, want an invalid output", err)
	}
}

func TestFitKeepsTheClaim(t *testing.T) {
	long := make([]int32, 1000)
	for _, tc := range []struct{ first, second, room, wantFirst, wantSecond int }{
		{5, 5, 10, 5, 5},
		{1000, 3, 40, 37, 3},
		{1000, 25, 40, 15, 25},
		{1000, 30, 40, 10, 30},
		{1000, 31, 40, 10, 30}, // a claim that leaves no room for evidence
		{3, 1000, 40, 3, 37},
		{0, 1000, 40, 0, 40},
		{1000, 0, 40, 40, 0},
		{8, 8, 0, 1, 1},
	} {
		a, b := fit(long[:tc.first], long[:tc.second], tc.room)
		if len(a) != tc.wantFirst || len(b) != tc.wantSecond {
			t.Errorf("%d and %d in %d: %d and %d, want %d and %d", tc.first, tc.second, tc.room, len(a), len(b), tc.wantFirst, tc.wantSecond)
		}
	}
}

func TestSqueezedLabelsAreRead(t *testing.T) {
	g := &graph{
		inputs: []string{"input_ids", "attention_mask"}, squeeze: true,
		outputs: []tensor.Spec{{Name: "f", DType: tensor.Float32}},
		row:     func(string, map[string][]int64) ([]float32, []int64) { return []float32{0, 3}, []int64{2} },
	}
	c := openOne(t, g, "", "{name: factcheck, kind: sequence, output: f, labels: [\"no\", needs], positive: needs, temperature: 1, threshold: 0.5, window: {tokens: 34, stride: 30, max: 1, combine: mean}}")
	v := *extract(t, c, user("math"), signal.MaskOf(signal.FactCheck)).Value(signal.FactCheck)
	if v.State != signal.Known || v.Label != "needs" {
		t.Errorf("factcheck is %+v, want needs", v)
	}
}

// fails is a session that cannot run.
type fails struct {
	*fake
	err error
	say func()
}

func (f *fails) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	if f.err == nil && f.say == nil {
		return f.fake.Run(ctx, in, outputs)
	}
	if f.say != nil {
		f.say()
	}
	return nil, f.err
}

// twoBundles has domain from one bundle and the rest from another.
func twoBundles(tb testing.TB, first, second Session) *Classifier {
	tb.Helper()
	a, err := OpenEngine(testBundle(tb), first)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := OpenEngine(testBundle(tb, "name: test", "name: other"), second)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := New([]Source{
		{Engine: a, Signals: signal.MaskOf(signal.Domain)},
		{Engine: b, Signals: signal.MaskOf(signal.Jailbreak, signal.Embedding)},
	}, DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestBundlesRunBesideEachOther(t *testing.T) {
	met := make(chan struct{})
	meet := func(_ context.Context, n int, out []tensor.Tensor) ([]tensor.Tensor, error) {
		if n == 1 { // the canary
			return out, nil
		}
		select { // neither goes on without the other
		case met <- struct{}{}:
		case <-met:
		}
		return out, nil
	}
	first, second := newFake(), newFake()
	first.hook, second.hook = meet, meet
	c := twoBundles(t, first, second)
	set := extract(t, c, user("math"), all)
	for _, want := range []struct {
		kind   signal.Kind
		source string
	}{{signal.Domain, "test"}, {signal.Jailbreak, "other"}, {signal.Embedding, "other"}} {
		if v := set.Value(want.kind); v.State != signal.Known || v.Source != want.source {
			t.Errorf("%s is state %d from %q, want known from %q", want.kind, v.State, v.Source, want.source)
		}
	}
	if d := cmp.Diff([]string{"d"}, first.calls[1].outputs); d != "" {
		t.Errorf("outputs of the first bundle (-want +got):\n%s", d)
	}
}

func TestTheFaultOfOneBundleLeavesTheOther(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		say  func()
		want signal.Reason
	}{
		"an error":     {err: errors.New("boom"), want: signal.ReasonInternal},
		"an overload":  {err: overload{}, want: signal.ReasonOverload},
		"a panic":      {say: func() { panic("index out of range") }, want: signal.ReasonInternal},
		"a timeout":    {err: context.DeadlineExceeded, want: signal.ReasonTimeout},
		"not a number": {err: &outputError{"NaN"}, want: signal.ReasonInvalid},
	} {
		for _, broken := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s in bundle %d", name, broken), func(t *testing.T) {
				sessions := []*fails{{fake: newFake()}, {fake: newFake()}}
				c := twoBundles(t, sessions[0], sessions[1])
				sessions[broken].err, sessions[broken].say = tc.err, tc.say
				set := extract(t, c, user("math"), all)
				for _, k := range []signal.Kind{signal.Domain, signal.Jailbreak, signal.Embedding} {
					v := set.Value(k)
					if bad := (k == signal.Domain) == (broken == 0); bad && (v.State != signal.Unknown || v.Reason != tc.want || v.Label != "") || !bad && v.State != signal.Known {
						t.Errorf("%s is state %d, reason %q, label %q", k, v.State, v.Reason, v.Label)
					}
				}
			})
		}
	}
}

func TestAMissingBundleLeavesTheOther(t *testing.T) {
	e, err := OpenEngine(testBundle(t), newFake())
	if err != nil {
		t.Fatal(err)
	}
	lost := signal.MaskOf(signal.PII, signal.Complexity)
	c, err := New([]Source{{Engine: e}, {Engine: Missing("gone", lost)}}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	set := extract(t, c, user("math"), all|lost)
	for _, k := range lost.Kinds() {
		if v := set.Value(k); v.State != signal.Unknown || v.Reason != signal.ReasonNoModel || v.Label != "" {
			t.Errorf("%s is %+v, want unknown for no_model", k, v)
		}
	}
	if v := set.Value(signal.Domain); v.State != signal.Known {
		t.Errorf("domain is %+v, want known", v)
	}
	if d := cmp.Diff([]string{"no model for pii", "no model for complexity"}, c.Degraded()); d != "" {
		t.Errorf("degraded (-want +got):\n%s", d)
	}
	if got := c.Signals(); got.Has(signal.PII) || !got.Has(signal.Domain) {
		t.Errorf("signals %v", got.Kinds())
	}
}

func TestASignalHasOneSource(t *testing.T) {
	e, err := OpenEngine(testBundle(t), newFake())
	if err != nil {
		t.Fatal(err)
	}
	for name, sources := range map[string][]Source{
		"twice the same":            {{Engine: e}, {Engine: e}},
		"one that it does not give": {{Engine: e, Signals: signal.MaskOf(signal.PII)}},
	} {
		if _, err := New(sources, DefaultOptions()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	o := DefaultOptions()
	o.Patterns = true
	if _, err := New([]Source{{Engine: Missing("m", signal.MaskOf(signal.PII))}}, o); err == nil {
		t.Error("pii from a bundle and from patterns: no error")
	}
}

func TestAnInvalidOutputOfOneTaskLeavesItsNeighbours(t *testing.T) {
	f := newFake()
	f.hook = func(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
		for i := range out {
			if out[i].Name == "j" { // as a session does that looks at all of its outputs
				return nil, &outputError{`"j" holds NaN`}
			}
		}
		return out, nil
	}
	c := open(t, f, DefaultOptions())
	set := extract(t, c, user("math"), all)
	if v := set.Value(signal.Jailbreak); v.State != signal.Unknown || v.Reason != signal.ReasonInvalid || v.Label != "" {
		t.Errorf("jailbreak is %+v, want unknown for invalid_output", v)
	}
	for _, k := range []signal.Kind{signal.Domain, signal.Embedding} {
		if v := set.Value(k); v.State != signal.Known {
			t.Errorf("%s is %+v, want known", k, v)
		}
	}
}

func TestAClaimIsReadWholeBehindALongPremise(t *testing.T) {
	g := &graph{
		inputs: []string{"input_ids", "attention_mask", "token_type_ids"}, row: nli,
		outputs: []tensor.Spec{{Name: "n", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 3}}},
	}
	c := openOne(t, g, ", types: token_type_ids", nliTask)
	claim := "math attack word math word attack math word"
	if _, err := c.ClassifyPairs(t.Context(), "nli", []Pair{{words(190), claim}, {"w1", claim}}); err != nil {
		t.Fatal(err)
	}
	want := []int64{mathID, attackID, wordID, mathID, wordID, attackID, mathID, wordID, sepID}
	for i, r := range g.seen {
		var second []int64
		padded := 0
		for k, id := range r["input_ids"] {
			switch {
			case r["attention_mask"][k] == 0:
				padded++
				if id != padID || r["token_type_ids"][k] != 0 {
					t.Errorf("row %d: token %d of the padding is %d of type %d", i, k, id, r["token_type_ids"][k])
				}
			case r["token_type_ids"][k] == 1:
				second = append(second, id)
			}
		}
		if d := cmp.Diff(want, second); d != "" {
			t.Errorf("row %d: the claim (-want +got):\n%s", i, d)
		}
	}
	if len(g.seen) != 2 {
		t.Errorf("%d rows", len(g.seen))
	}
}

func TestPairsOfOneLengthShareARun(t *testing.T) {
	g := &graph{
		inputs: []string{"input_ids", "attention_mask", "token_type_ids"}, row: nli,
		outputs: []tensor.Spec{{Name: "n", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 3}}},
	}
	c := openOne(t, g, ", types: token_type_ids", nliTask)
	pairs := make([]Pair, 6)
	for i := range pairs {
		pairs[i] = Pair{words(10), words(5 + i%2)} // 18 and 19 tokens with the special ones
	}
	if _, err := c.ClassifyPairs(t.Context(), "nli", pairs); err != nil {
		t.Fatal(err)
	}
	if len(g.seen) != 6 || g.runs != 1 {
		t.Errorf("%d rows in %d runs, want 6 in one", len(g.seen), g.runs)
	}
}

func TestATaskGivesTheSignalThatItIsNamedForIfItIsOfItsKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		task bundle.Task
		want bool
	}{
		{bundle.Task{Name: "domain", Kind: bundle.Sequence}, true},
		{bundle.Task{Name: "domain", Kind: bundle.Token}, false},
		{bundle.Task{Name: "injection", Kind: bundle.Sequence}, false},
		{bundle.Task{Name: "injection", Kind: bundle.Sequence, Positive: "attack"}, true},
		{bundle.Task{Name: "keyword", Kind: bundle.Sequence}, false},
		{bundle.Task{Name: "nli", Kind: bundle.Pair}, false},
	} {
		if got := GivesSignal(&tt.task); got != tt.want {
			t.Errorf("%s of kind %s: %v", tt.task.Name, tt.task.Kind, got)
		}
	}
}
