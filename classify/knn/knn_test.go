package knn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"signalbox/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDims = 96

// vectorOf stands in for a model: texts with words in common have vectors near each other. Short
// words say little.
func vectorOf(text string) []float32 {
	v := make([]float32, testDims)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		word = strings.Trim(word, ".,?!")
		seed := uint64(len(word))
		for _, r := range word {
			seed = seed*31 + uint64(r)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range v {
			v[i] += float32(r.NormFloat64()) * float32(min(len(word), 8))
		}
	}
	v[0]++ // texts without a word have a direction too
	return v
}

// model is an Embedder that remembers what it was asked.
type model struct {
	mu    sync.Mutex
	asked []string
	fail  error
}

func (m *model) embed(_ context.Context, texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	m.asked = append(m.asked, texts...)
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = vectorOf(t)
	}
	return out, nil
}

func hr() Intent {
	return Intent{Name: "hr_bot", Examples: []string{
		"How do I file a travel reimbursement?",
		"How many vacation days do I have left?",
		"Where do I hand in a sick note?",
		"Who approves my parental leave?",
		"When is the salary paid?",
	}}
}

func it() Intent {
	return Intent{Name: "it_help", Examples: []string{
		"My laptop does not start any more",
		"I forgot my password for the intranet",
		"The printer on the third floor is jammed",
	}}
}

func build(tb testing.TB, intents ...Intent) *Index {
	tb.Helper()
	x, err := New(tb.Context(), intents, DefaultOptions(), new(model).embed)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func ask(tb testing.TB, x *Index, text string) Result {
	tb.Helper()
	return lookup(tb, x, text, vectorOf(text))
}

func TestLookup(t *testing.T) {
	x := build(t, hr(), it())
	tests := map[string]struct {
		text, want string
	}{
		"an example is its intent":                  {"When is the salary paid?", "hr_bot"},
		"case and punctuation do not matter":        {"WHEN IS THE SALARY PAID", "hr_bot"},
		"a sentence like an example is its intent":  {"How do I file my travel reimbursement form?", "hr_bot"},
		"a typing error is forgiven":                {"How many vacatoin days do I have left?", "hr_bot"},
		"the other intent is recognised as well":    {"I forgot the password of my laptop", "it_help"},
		"an everyday question has no intent":        {"What is the tallest building in Chicago?", ""},
		"a background sentence has no intent":       {"Play something quiet with a piano.", ""},
		"a text of other letters has no intent":     {"Wo ist der nächste Bahnhof, bitte?", ""},
		"an empty text has no intent":               {"", ""},
		"white space has no intent":                 {" \n\t ", ""},
		"bytes that are no UTF-8 do no harm":        {"\xff\xfe\xc3", ""},
		"a long text of something else has none":    {strings.Repeat("The train leaves the station in the rain. ", 5000), ""},
		"the start of a long text counts for grams": {"When is the salary paid? " + strings.Repeat("x", 10), "hr_bot"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ask(t, x, tc.text)
			if got.Intent != tc.want {
				t.Errorf("%q: %+v, want intent %q", clip(tc.text), got, tc.want)
			}
			if len(got.Scores) != 2 || !(got.Score >= 0 && got.Score <= 1) {
				t.Errorf("%q: %+v, want two scores, in [0,1]", clip(tc.text), got)
			}
			if got.Best != "" && got.Score != float64(got.Scores[slices.Index(x.Names(), got.Best)]) {
				t.Errorf("%q: %+v, the score is not that of the best intent", clip(tc.text), got)
			}
		})
	}
}

func TestAnExampleScoresHigherThanAnotherWording(t *testing.T) {
	x := build(t, hr())
	same, near := ask(t, x, "When is the salary paid?"), ask(t, x, "On which day is the salary transferred?")
	if same.Score <= near.Score || near.Score <= 0 {
		t.Errorf("scores %v and %v, want the first higher and both above 0", same.Score, near.Score)
	}
}

func TestOneExampleIsEnough(t *testing.T) {
	x := build(t, Intent{Name: "titan", Examples: []string{"Who is in charge of Project Titan?"}})
	if got := ask(t, x, "Who is in charge of the Project Titan budget?"); got.Intent != "titan" {
		t.Errorf("%+v, want titan", got)
	}
	if got := ask(t, x, "Who painted this ceiling?"); got.Intent != "" {
		t.Errorf("%+v, want none", got)
	}
}

func TestNoIntentsRecogniseNothing(t *testing.T) {
	if got := ask(t, build(t), "anything"); got.Intent != "" || got.Best != "" || len(got.Scores) != 0 {
		t.Errorf("%+v, want nothing", got)
	}
}

func TestThresholdByHand(t *testing.T) {
	text := "How do I hand in a travel form?"
	in := hr()
	score := ask(t, build(t, in), text).Score
	for _, tc := range []struct {
		threshold float64
		want      string
	}{{score - 0.01, "hr_bot"}, {score + 0.01, ""}} {
		in.Threshold = Threshold(tc.threshold)
		x := build(t, in)
		if got := ask(t, x, text); got.Intent != tc.want || got.Best != "hr_bot" {
			t.Errorf("threshold %v: %+v, want %q and best hr_bot", tc.threshold, got, tc.want)
		}
		if got := x.Intents()[0]; got.Auto || got.Threshold != float64(in.Threshold) {
			t.Errorf("%+v, want the threshold as given", got)
		}
	}
}

func TestMarginLeavesTiesUndecided(t *testing.T) {
	a := Intent{Name: "a", Examples: []string{"open the northern gate"}, Threshold: 0.1}
	b := Intent{Name: "b", Examples: []string{"open the southern gate"}, Threshold: 0.1}
	text := "open the gate"
	opts := DefaultOptions()
	for _, tc := range []struct {
		margin float64
		some   bool
	}{{0, true}, {0.9, false}} {
		opts.Margin = tc.margin
		x, err := New(t.Context(), []Intent{a, b}, opts, new(model).embed)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, x, text); (got.Intent != "") != tc.some || got.Best == "" {
			t.Errorf("margin %v: %+v, want an intent: %v", tc.margin, got, tc.some)
		}
	}
}

func TestANearerNegativeRulesTheIntentOut(t *testing.T) {
	in := hr()
	text := "How many vacation days does a teacher have?"
	in.Threshold = 0.2
	if got := ask(t, build(t, in), text); got.Intent != "hr_bot" {
		t.Fatalf("%+v, want hr_bot without negatives", got)
	}
	in.Negatives = []string{"How many vacation days does a teacher get?"}
	x := build(t, in)
	if got := ask(t, x, text); got.Intent != "" {
		t.Errorf("%+v, want none", got)
	}
	if got := ask(t, x, "How many vacation days do I have left?"); got.Intent != "hr_bot" {
		t.Errorf("%+v, want hr_bot", got)
	}
}

func TestLookupWantsTheModelsVector(t *testing.T) {
	x := build(t, hr())
	for _, v := range [][]float32{nil, make([]float32, testDims-1)} {
		if got, err := x.Lookup("text", v); !errors.Is(err, ErrDims) {
			t.Errorf("%d numbers: %+v, error %v, want ErrDims", len(v), got, err)
		}
	}
	if got, err := x.Lookup("nothing here", make([]float32, testDims)); err != nil || got.Intent != "" {
		t.Errorf("a vector of zeros: %+v, error %v, want no intent", got, err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	many := make([]string, MaxExamples+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	tests := map[string]struct {
		intents []Intent
		want    []string
	}{
		"no name": {[]Intent{{Examples: []string{"x"}}}, []string{"intents[0].name: missing"}},
		"a name twice": {
			[]Intent{{Name: "a", Examples: []string{"x"}}, {Name: "a", Examples: []string{"y"}}},
			[]string{`intents[1].name: "a" is the name of intents[0] already`},
		},
		"no examples": {[]Intent{{Name: "a"}}, []string{"intents[0].examples: missing"}},
		"an empty example": {
			[]Intent{{Name: "a", Examples: []string{"x", " \n"}}}, []string{"intents[0].examples[1]: empty"},
		},
		"an invisible example": {
			[]Intent{{Name: "a", Examples: []string{"x", "\u200b\u0301\x00"}}},
			[]string{"intents[0].examples[1]: nothing that can be seen"},
		},
		"signs alone": {
			[]Intent{{Name: "", Examples: []string{"?", "👍", "好", "7"}}},
			[]string{"intents[0].name: missing"},
		},
		"an example that is no UTF-8":    {[]Intent{{Name: "a", Examples: []string{"\xff"}}}, []string{"intents[0].examples[0]: not valid UTF-8"}},
		"an example too long":            {[]Intent{{Name: "a", Examples: []string{strings.Repeat("x", MaxExampleBytes+1)}}}, []string{"intents[0].examples[0]: 8193 bytes"}},
		"an example in two intents":      {[]Intent{{Name: "a", Examples: []string{"Hello  There"}}, {Name: "b", Examples: []string{"y", "hello there"}}}, []string{`intents[1].examples[1]: "hello there" is the same as intents[0].examples[0]`}},
		"an example twice in an intent":  {[]Intent{{Name: "a", Examples: []string{"x", "X"}}}, []string{"intents[0].examples[1]"}},
		"an empty negative":              {[]Intent{{Name: "a", Examples: []string{"x"}, Negatives: []string{""}}}, []string{"intents[0].negatives[0]: empty"}},
		"a negative that is an example":  {[]Intent{{Name: "a", Examples: []string{"x"}, Negatives: []string{"X"}}}, []string{"intents[0].negatives[0]"}},
		"a threshold above one":          {[]Intent{{Name: "a", Examples: []string{"x"}, Threshold: 1.5}}, []string{"intents[0].threshold: 1.5"}},
		"a threshold that is no number":  {[]Intent{{Name: "a", Examples: []string{"x"}, Threshold: Threshold(math.NaN())}}, []string{"intents[0].threshold: NaN"}},
		"more examples than are allowed": {[]Intent{{Name: "a", Examples: many}}, []string{"intents: 100001 examples"}},
		"two problems":                   {[]Intent{{}}, []string{"intents[0].name: missing", "intents[0].examples: missing"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := new(model)
			_, err := New(t.Context(), tc.intents, DefaultOptions(), m.embed)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
			if len(m.asked) > 0 {
				t.Error("the model was run for intents that are wrong")
			}
		})
	}
	opts := Options{Margin: -1}
	if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), "margin: -1") || !strings.Contains(err.Error(), "neighbours: 0") {
		t.Errorf("error %v, want both problems", err)
	}
}

func TestThresholdText(t *testing.T) {
	for text, want := range map[string]Threshold{"auto": Auto, "0.5": 0.5, "1": 1} {
		var got Threshold
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
		if back, err := got.MarshalText(); err != nil || string(back) != text {
			t.Errorf("%v: %q, %v, want %q", got, back, err, text)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.1", "NaN", "Auto", "inf"} {
		var got Threshold
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestEmbedderFaults(t *testing.T) {
	fault := errors.New("the session is gone")
	tests := map[string]struct {
		embed Embedder
		want  string
	}{
		"an error":        {func(context.Context, []string) ([][]float32, error) { return nil, fault }, "the session is gone"},
		"too few vectors": {func(context.Context, []string) ([][]float32, error) { return [][]float32{{1}}, nil }, "1 vectors for"},
		"a vector of zero": {func(_ context.Context, texts []string) ([][]float32, error) {
			return make([][]float32, len(texts)), nil
		}, "has length 0"},
		"a NaN": {func(_ context.Context, texts []string) ([][]float32, error) {
			return slices.Repeat([][]float32{{float32(math.NaN())}}, len(texts)), nil
		}, "want length 1 and a direction"},
		"lengths that differ": {func(_ context.Context, texts []string) ([][]float32, error) {
			out := slices.Repeat([][]float32{{1, 2}}, len(texts))
			out[len(out)-1] = []float32{1}
			return out, nil
		}, "want length 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := New(t.Context(), []Intent{hr()}, DefaultOptions(), tc.embed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(ctx, []Intent{hr()}, DefaultOptions(), new(model).embed); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a cancellation", err)
	}
}

func TestAddIsLiveAtOnce(t *testing.T) {
	x := build(t, hr(), it())
	text := "Is the canteen voucher taxed?"
	if got := ask(t, x, text); got.Intent != "" {
		t.Fatalf("%+v, want none before", got)
	}
	counts, err := x.Add(t.Context(), "hr_bot", []string{"Is my canteen voucher taxed?", "is my  canteen voucher taxed?", "When is the salary paid?"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Counts{Added: 1, Known: 2, Examples: 6}, counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	if got := ask(t, x, text); got.Intent != "hr_bot" {
		t.Errorf("%+v, want hr_bot after", got)
	}
	if d := cmp.Diff(map[string][]string{"hr_bot": {"Is my canteen voucher taxed?"}}, x.Live()); d != "" {
		t.Errorf("live examples (-want +got):\n%s", d)
	}
	if got := x.Intents(); got[0].Examples != 6 || got[0].Live != 1 || !got[0].Auto || got[1].Live != 0 {
		t.Errorf("%+v, want six examples, one of them live", got)
	}
}

func TestAddedExamplesCountLikeDeclaredOnes(t *testing.T) {
	whole, part := hr(), hr()
	part.Examples = slices.Clone(part.Examples[:2])
	x, y := build(t, part, it()), build(t, whole, it())
	for _, e := range whole.Examples[2:] {
		if _, err := x.Add(t.Context(), "hr_bot", []string{e}); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"When is salary day?", "My sick note", "The printer", "A lighthouse"} {
		if d := cmp.Diff(ask(t, y, text), ask(t, x, text)); d != "" {
			t.Errorf("%q (-declared +added):\n%s", text, d)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	negative := it()
	negative.Negatives = []string{"The printer prints money"}
	m := new(model)
	x, err := New(t.Context(), []Intent{hr(), negative}, DefaultOptions(), m.embed)
	if err != nil {
		t.Fatal(err)
	}
	before := x.Intents()
	if _, err := x.Add(t.Context(), "nobody", []string{"x"}); !errors.Is(err, ErrUnknownIntent) {
		t.Errorf("error %v, want ErrUnknownIntent", err)
	}
	tests := map[string]struct {
		texts []string
		want  ExampleError
	}{
		"an empty text":               {[]string{"fine", ""}, ExampleError{1, "empty"}},
		"an example of another":       {[]string{"when is the salary paid?"}, ExampleError{0, "an example of intent hr_bot already"}},
		"its own negative":            {[]string{"the printer prints money"}, ExampleError{0, "a negative example of the same intent"}},
		"a text that is far too long": {[]string{strings.Repeat("x", 9000)}, ExampleError{0, "9000 bytes long, want at most 8192"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := x.Add(t.Context(), "it_help", tc.texts)
			var got *ExampleError
			if !errors.As(err, &got) || *got != tc.want {
				t.Errorf("error %v, want %v", err, &tc.want)
			}
		})
	}
	m.fail = errors.New("no model")
	if _, err := x.Add(t.Context(), "it_help", []string{"a new text"}); !errors.Is(err, m.fail) {
		t.Errorf("error %v, want the model's", err)
	}
	if d := cmp.Diff(before, x.Intents()); d != "" {
		t.Errorf("a refused Add changed the index:\n%s", d)
	}
}

func TestAddBesideLookups(t *testing.T) {
	x := build(t, hr(), it())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				if got := ask(t, x, "When is the salary paid?"); got.Intent != "hr_bot" {
					t.Errorf("%+v, want hr_bot", got)
				}
			}
		})
	}
	for i := range 2 {
		group.Go(func() {
			for j := range 4 {
				// Both add the same texts: one of them finds each known.
				if _, err := x.Add(t.Context(), "it_help", []string{fmt.Sprintf("device number %d is broken", j)}); err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	if got := x.Intents()[1]; got.Examples != 7 || got.Live != 4 {
		t.Errorf("%+v, want three examples and four live ones", got)
	}
}

func TestResultsAreTheSameEveryTime(t *testing.T) {
	x, y := build(t, hr(), it()), build(t, hr(), it())
	z := build(t, it(), hr())
	for _, text := range []string{"When is salary day?", "My sick note", "The printer", "A lighthouse"} {
		a, b, c := ask(t, x, text), ask(t, y, text), ask(t, z, text)
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%q differs between two indexes:\n%s", text, d)
		}
		if a.Intent != c.Intent || math.Abs(a.Score-c.Score) > 1e-6 {
			t.Errorf("%q: %+v, and in another order of the intents %+v", text, a, c)
		}
	}
}

func TestBeyondAFullRebuildOneIntentIsLevelledAlone(t *testing.T) {
	intents := []Intent{hr(), it()}
	for i := range fullRebuild {
		intents[1].Examples = append(intents[1].Examples, fmt.Sprintf("%x %x", i*7919, i*104729))
	}
	x := build(t, intents...)
	before := x.Intents()
	if _, err := x.Add(t.Context(), "hr_bot", []string{"Is my canteen voucher taxed?"}); err != nil {
		t.Fatal(err)
	}
	after := x.Intents()
	if before[1].Threshold != after[1].Threshold && math.Abs(before[1].Threshold-after[1].Threshold) > 0.01 {
		t.Errorf("the other intent's threshold moved from %v to %v", before[1].Threshold, after[1].Threshold)
	}
	intents[0].Examples = append(intents[0].Examples, "Is my canteen voucher taxed?")
	if want := build(t, intents...).Intents()[0].Threshold; math.Abs(after[0].Threshold-want) > 1e-3 {
		t.Errorf("threshold %v, want %v as of a new index", after[0].Threshold, want)
	}
	if got := ask(t, x, "Is the canteen voucher taxed?"); got.Intent != "hr_bot" {
		t.Errorf("%+v, want hr_bot", got)
	}
}

// An example more among thousands costs no pass over all of them; once they are a sixteenth more, it
// does.
func TestAmongManyExamplesSumsAreMadeAnewWhereTheyGrew(t *testing.T) {
	intents := []Intent{hr(), it()}
	some := func(from, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%x %x", (from+i)*7919, (from+i)*104729))
		}
		return out
	}
	more := some(0, fullRebuild)
	intents[1].Examples = append(intents[1].Examples, more...)
	x := build(t, intents...)
	first := x.current.Load()
	if _, err := x.Add(t.Context(), "it_help", some(fullRebuild, 1)); err != nil {
		t.Fatal(err)
	}
	one := x.current.Load()
	if one.stats[1].levelled != first.stats[1].levelled || one.normal.examples != first.normal.examples {
		t.Error("all examples were compared anew for one")
	}
	again := build(t, intents[0], Intent{Name: "it_help", Examples: append(slices.Clone(intents[1].Examples), some(fullRebuild, 1)...), Negatives: intents[1].Negatives})
	want := again.current.Load()
	for i := range want.weights {
		if math.Abs(float64(one.weights[i]-want.weights[i])) > 1e-2 {
			t.Fatalf("weight %d is %v, of a new index %v", i, one.weights[i], want.weights[i])
		}
	}
	if math.Abs(one.stats[1].threshold-want.stats[1].threshold) > 1e-2 {
		t.Errorf("threshold %v, of a new index %v", one.stats[1].threshold, want.stats[1].threshold)
	}
	if _, err := x.Add(t.Context(), "it_help", some(fullRebuild+1, fullRebuild/growth)); err != nil {
		t.Fatal(err)
	}
	grown := x.current.Load()
	if n := len(grown.intents[1].examples); grown.stats[1].levelled != n ||
		grown.normal.examples <= first.normal.examples {
		t.Errorf("of %d examples %d were compared", n, grown.stats[1].levelled)
	}
}

func TestLookupAllocatesScoresOnly(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector makes pools forget")
	}
	x := build(t, hr(), it())
	v := vectorOf("When is the salary paid?")
	if n := testing.AllocsPerRun(200, func() { _, _ = x.Lookup("When is the salary paid?", v) }); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func TestRestoreLeavesOutWhatIsNotAccepted(t *testing.T) {
	first := hr()
	first.Negatives = []string{"not this one"}
	x := build(t, first, it())
	texts := []string{"one", " ", "two", it().Examples[0], "not this one", hr().Examples[0], "three", "two"}
	counts, refused, err := x.Restore(t.Context(), "hr_bot", texts)
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for _, r := range refused {
		at = append(at, r.Index)
	}
	if want := (Counts{Added: 3, Known: 2, Examples: len(hr().Examples) + 3}); counts != want || !slices.Equal(at, []int{1, 3, 4}) {
		t.Errorf("%+v, refused %v; want %+v without 1, 3 and 4", counts, refused, want)
	}
	if d := cmp.Diff([]string{"one", "two", "three"}, x.Live()["hr_bot"]); d != "" {
		t.Errorf("live examples (-want +got):\n%s", d)
	}
	if _, _, err := x.Restore(t.Context(), "nobody", texts); !errors.Is(err, ErrUnknownIntent) {
		t.Errorf("an intent that is not there: %v, want ErrUnknownIntent", err)
	}
}

func TestIntentsThatTakeEachOthersExamplesAtOnceComeToAnEnd(t *testing.T) {
	x := build(t, hr(), it())
	texts := make([]string, 20)
	if testkit.Race {
		texts = texts[:8]
	}
	for i := range texts {
		texts[i] = fmt.Sprint("example ", i)
	}
	var wg sync.WaitGroup
	for _, name := range x.Names() {
		wg.Go(func() {
			for _, text := range texts {
				if _, _, err := x.Restore(t.Context(), name, []string{text, text + " of " + name}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	live := 0
	for _, examples := range x.Live() {
		live += len(examples)
	}
	if live != 3*len(texts) {
		t.Errorf("%d live examples, want %d that both wanted and %d of each", live, len(texts), len(texts))
	}
}

func FuzzLookup(f *testing.F) {
	for _, s := range []string{"", "When is the salary paid?", "\xff\xfe", "a", "  ", "ﬃ İ ß", "機密です", strings.Repeat("long ", 900), "e\u0301\u200b"} {
		f.Add(s)
	}
	x := build(f, hr(), it())
	f.Fuzz(func(t *testing.T, text string) {
		got := ask(t, x, text)
		for _, s := range append(got.Scores, float32(got.Score)) {
			if !(s >= 0 && s <= 1) {
				t.Errorf("%q: %+v, want scores in [0,1]", text, got)
			}
		}
		if got.Intent != "" && got.Intent != got.Best {
			t.Errorf("%q: %+v, want the intent to be the best", text, got)
		}
	})
}
