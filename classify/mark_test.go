package classify

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

const judgeTask = "{name: grounding, kind: token, output: g, labels: [supported, unsupported], positive: unsupported, template: separated, " +
	"temperature: 1, threshold: 0.5, window: {tokens: 33, stride: 30, max: 0, combine: mean}}"

// judge says of every token of the second text that it is supported if the first text has it too.
// In both texts a separator stands behind.
func judge(_ string, in map[string][]int64) ([]float32, []int64) {
	ids, types := in["input_ids"], in["token_type_ids"]
	evidence := map[int64]bool{}
	var out []float32
	for i, id := range ids {
		if types[i] == 0 {
			evidence[id] = true
		}
		if evidence[id] {
			out = append(out, 2, 0)
			continue
		}
		out = append(out, 0, 2)
	}
	return out, []int64{int64(len(ids)), 2}
}

func openJudge(tb testing.TB, task string) (*Classifier, *graph) {
	tb.Helper()
	g := &graph{
		inputs: []string{"input_ids", "attention_mask", "token_type_ids"}, row: judge,
		outputs: []tensor.Spec{{Name: "g", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, tensor.Dynamic, 2}}},
	}
	return openOne(tb, g, ", types: token_type_ids", task), g
}

// longestRow is in tokens without padding.
func longestRow(g *graph) int {
	longest := 0
	for _, r := range g.seen {
		n := 0
		for _, m := range r["attention_mask"] {
			n += int(m)
		}
		longest = max(longest, n)
	}
	return longest
}

func TestWhatNoEvidenceSupportsIsMarked(t *testing.T) {
	many := strings.Fields(words(120))
	score := soft(1, 0, 2)[1]
	mark := func(answer string, parts ...string) []Mark {
		var out []Mark
		from := 0
		for _, p := range parts {
			start := from + strings.Index(answer[from:], p)
			from = start + len(p)
			out = append(out, Mark{start, from, score})
		}
		return out
	}
	long := strings.Join(append(append(many[:30:30], "attack", "w150"), many[100:110]...), " ")
	for name, tc := range map[string]struct {
		evidence         []string
		question, answer string
		want             []Mark
		rows             int
	}{
		"nothing is wrong":                   {[]string{"math word"}, "", "word math", nil, 1},
		"one word":                           {[]string{"math word"}, "", "math attack word", mark("math attack word", "attack"), 1},
		"the end":                            {[]string{"math word"}, "", " math  attack w9 ", mark(" math  attack w9 ", "attack w9"), 1},
		"two places":                         {[]string{"math"}, "", "attack math w1", mark("attack math w1", "attack", "w1"), 1},
		"several passages":                   {[]string{"math", "word"}, "", "math word w3", mark("math word w3", "w3"), 1},
		"the question supports what it says": {[]string{"math"}, "word", "math word w3", mark("math word w3", "w3"), 1},
		"evidence of many windows":           {[]string{strings.Join(many, " ")}, "", "w3 w60 attack w119", mark("w3 w60 attack w119", "attack"), 6},
		"evidence of many windows with a question": {[]string{strings.Join(many, " ")}, "word", "w3 w60 attack w119", mark("w3 w60 attack w119", "attack"), 6},
		"a question longer than a row":             {[]string{"math"}, words(100), "math w150", mark("math w150", "w150"), 1},
		"an answer longer than a row":              {[]string{words(120)}, "", long, mark(long, "attack w150"), 40},
	} {
		t.Run(name, func(t *testing.T) {
			c, g := openJudge(t, judgeTask)
			got, err := c.MarkTokens(t.Context(), "grounding", tc.evidence, tc.question, tc.answer)
			if err != nil {
				t.Fatal(err)
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })
			if d := cmp.Diff(tc.want, got, near); d != "" {
				t.Errorf("marks (-want +got):\n%s", d)
			}
			if len(g.seen) != tc.rows {
				t.Errorf("%d rows, want %d", len(g.seen), tc.rows)
			}
			if n := longestRow(g); n > 33 {
				t.Errorf("a row of %d tokens, at most 33 fit", n)
			}
		})
	}
}

func TestUnreadEvidenceSupportsNothing(t *testing.T) {
	c, g := openJudge(t, strings.Replace(judgeTask, "max: 0", "max: 2", 1))
	got, err := c.MarkTokens(t.Context(), "grounding", []string{words(120)}, "", "w3 w60 w119")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Start != 3 || got[0].End != 6 || len(g.seen) != 2 {
		t.Errorf("%v from %d rows, want w60 marked after the first and the last window", got, len(g.seen))
	}
}

func TestAnAnswerWithoutEvidenceIsNoSupportedOne(t *testing.T) {
	c, g := openJudge(t, judgeTask)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx      context.Context
		task     string
		evidence []string
		answer   string
		want     error
	}{
		"no evidence":    {t.Context(), "grounding", nil, "math", ErrNoEvidence},
		"blank evidence": {t.Context(), "grounding", []string{" ", "\n"}, "math", ErrNoEvidence},
		"no such task":   {t.Context(), "other", []string{"math"}, "math", ErrNoTask},
		"too late":       {ctx, "grounding", []string{"math"}, "math", context.Canceled},
	} {
		if got, err := c.MarkTokens(tc.ctx, tc.task, tc.evidence, "", tc.answer); got != nil || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
	if got, err := c.MarkTokens(t.Context(), "grounding", []string{"math"}, "", " \n"); got != nil || err != nil {
		t.Errorf("a blank answer: %v, %v", got, err)
	}
	if len(g.seen) != 0 {
		t.Errorf("%d rows were read", len(g.seen))
	}
	g.row = func(_ string, in map[string][]int64) ([]float32, []int64) {
		n := len(in["input_ids"])
		out := make([]float32, 2*n)
		out[n] = float32(math.NaN())
		return out, []int64{int64(n), 2}
	}
	var why Reasoned
	if _, err := c.MarkTokens(t.Context(), "grounding", []string{"math"}, "", "math"); !errors.As(err, &why) || why.Reason() != signal.ReasonInvalid {
		t.Errorf("not a number: %v, want an invalid output", err)
	}
}

func TestTasksSayWhatTheyJudge(t *testing.T) {
	c, _ := openJudge(t, judgeTask)
	if c.PairLabels("grounding") != nil {
		t.Error("grounding judges tokens, not pairs")
	}
	if c.Signals().Has(signal.PII) || len(c.Degraded()) != 0 {
		t.Errorf("signals %v, degraded %v", c.Signals().Kinds(), c.Degraded())
	}
}

func TestTheInstructionIsThatOfTheModels(t *testing.T) {
	before, body, after := passageTexts([]string{"A.", "B."}, "Why?")
	want := "Briefly answer the following question:\nWhy?\nBear in mind that your response should be strictly based on the following " +
		"2 passages:\npassage 1: A.\npassage 2: B.\nIn case the passages do not contain the necessary information to answer the " +
		"question, please reply with: \"Unable to answer based on given passages.\"\noutput:"
	if got := before + body + after; got != want {
		t.Errorf("with a question: %q", got)
	}
	before, body, after = passageTexts([]string{"A."}, " ")
	if got := before + body + after; got != "Summarize the following text:\npassage 1: A.\noutput:" || body != "passage 1: A." {
		t.Errorf("without one: %q around %q", got, body)
	}
}

func TestPassagesKeepTheInstructionAroundEveryWindow(t *testing.T) {
	c, g := openJudge(t, strings.Replace(judgeTask, "template: separated", "template: passages", 1))
	got, err := c.MarkTokens(t.Context(), "grounding", []string{words(60)}, "", "w3 attack w59")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Start != 3 || got[0].End != 9 {
		t.Errorf("%v, want attack marked", got)
	}
	// "Summarize the following text :" is five unknown words, and "output :" two, of which a
	// quarter of 30 tokens remain.
	for i, r := range g.seen {
		ids := r["input_ids"]
		for k := 1; k <= 5; k++ {
			if ids[k] != unkID {
				t.Errorf("row %d begins with %v", i, ids[:8])
				break
			}
		}
	}
	if len(g.seen) < 3 {
		t.Errorf("%d rows", len(g.seen))
	}
}
