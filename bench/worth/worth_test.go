package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/proxy/decide"
)

func TestMain(m *testing.M) { testkit.VerifyNoLeaks(m) }

func about(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

func TestAUCCountsPairsAndHalvesTies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		js   []judged
		want float64
	}{
		"all right":         {[]judged{{0.9, 1}, {0.8, 1}, {0.2, 0}}, 1},
		"all wrong":         {[]judged{{0.1, 1}, {0.8, 0}}, 0},
		"one pair of three": {[]judged{{0.5, 1}, {0.6, 0}, {0.4, 0}, {0.7, 0}}, 1. / 3},
		"ties":              {[]judged{{0.5, 1}, {0.5, 0}, {0.5, 0}, {0.4, 0}}, 2. / 3},
		"a half is good":    {[]judged{{0.9, 0.5}, {0.1, 0.4}}, 1},
	} {
		if got := auc(c.js); !about(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := auc([]judged{{0.5, 1}}); !math.IsNaN(got) {
		t.Errorf("of good answers alone: %v", got)
	}
}

func TestECEIsTheMeanDistanceOfBins(t *testing.T) {
	t.Parallel()
	js := []judged{{0.95, 1}, {0.95, 1}, {0.95, 0}, {0.95, 1}, {0.15, 0}} // 0.75 beside 0.95, and 0 beside 0.15
	if got, want := ece(js), (4*0.2+0.15)/5; !about(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := ece([]judged{{1, 1}, {0, 0}}); got != 0 {
		t.Errorf("of what is certain and right: %v", got)
	}
}

// four are prompts of which the large model gains on the first two as predicted, and none on the
// others.
func four() []choice {
	good, bad := result{score: 1, tokens: 10}, result{score: 0, tokens: 10}
	dear := result{score: 1, tokens: 100}
	return []choice{
		{gain: 0.9, small: bad, large: dear, part: 0},
		{gain: 0.8, small: bad, large: dear, part: 1},
		{gain: 0.1, small: good, large: dear, part: 2},
		{gain: 0.0, small: good, large: dear, part: 3},
	}
}

func TestCurvesOfAPairAreThoseOfItsArithmetic(t *testing.T) {
	t.Parallel()
	cs := four()
	q, tokens := curve(cs)
	for k, want := range []point{{0.5, 10}, {0.75, 32.5}, {1, 55}, {1, 77.5}, {1, 100}} {
		if !about(q[k], want.quality) || !about(tokens[k], want.cost) {
			t.Errorf("%d to the large one: %v for %v tokens, want %v", k, q[k], tokens[k], want)
		}
	}
	if got, want := apgr(cs), (0+0.5+1+1+1)/5; !about(got, want) {
		t.Errorf("APGR %v, want %v", got, want)
	}
	for i := range cs {
		cs[i].gain = -cs[i].gain
	}
	if got, want := apgr(cs), (0+0+0+0.5+1.)/5; !about(got, want) {
		t.Errorf("APGR of the worst order %v, want %v", got, want)
	}
	cs = four()
	for part, want := range map[float64]float64{0.5: 0, 0.75: 0.25, 0.95: 0.5, 1: 0.5} {
		if got := shareFor(cs, part); !about(got, want) {
			t.Errorf("share for %v of the quality: %v, want %v", part, got, want)
		}
	}
	if got := randomShare(cs, 0.75); !about(got, 0.5) {
		t.Errorf("a random mix sends %v for 0.75", got)
	}
}

func TestAPredictionWithoutContentIsARandomMix(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var cs []choice
	for i := range 4000 {
		bit := func(p float64) float64 {
			if r.Float64() < p {
				return 1
			}
			return 0
		}
		cs = append(cs, choice{
			gain: r.Float64(), small: result{score: bit(0.5)}, large: result{score: bit(0.8)}, part: i % folds,
		})
	}
	if got := bootstrap(cs, 100, apgr); got.lo > 0.5 || got.hi < 0.5 {
		t.Errorf("APGR %v does not hold a half", got)
	}
}

func TestHonestThresholdsComeFromOtherParts(t *testing.T) {
	t.Parallel()
	// in part 0 the large model gains where nothing is predicted, elsewhere where it is
	var cs []choice
	for part := range folds {
		for i := range 100 {
			c := choice{gain: float64(i) / 100, small: result{score: 1, tokens: 1}, large: result{score: 1, tokens: 9}, part: part}
			if i >= 50 && part > 0 || i < 50 && part == 0 {
				c.small.score = 0
			}
			cs = append(cs, c)
		}
	}
	lost, share, tokens := honest(cs, 0)
	// parts 1 to 4 learn their threshold with part 0 among the others, which needs all
	if want := 0.1; !about(lost, want) { // part 0, by the others' threshold, loses its 50 of 500
		t.Errorf("lost %v, want %v", lost, want)
	}
	if want := (0.5 + 4) / 5; !about(share, want) || tokens >= 1 {
		t.Errorf("share %v, want %v; tokens %v", share, want, tokens)
	}
}

func TestThresholdsLoseNoMoreThanIsAllowed(t *testing.T) {
	t.Parallel()
	cs := four()
	for allowed, want := range map[float64]float64{0: 0.8, 0.25: 0.9, 0.5: math.Inf(1)} {
		if got := threshold(cs, allowed); got != want {
			t.Errorf("allowed %v: threshold %v, want %v", allowed, got, want)
		}
	}
}

// The interval holds the mean of the population in about 95 of 100 samples.
func TestIntervalsHoldWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	held := 0
	const samples = 300
	for range samples {
		xs := make([]float64, 60)
		for i := range xs {
			xs[i] = r.NormFloat64()
		}
		if i := bootstrap(xs, 200, average); i.lo <= 0 && 0 <= i.hi {
			held++
		}
	}
	if share := float64(held) / samples; share < 0.88 || share > 0.98 {
		t.Errorf("%.2f of the intervals hold the mean", share)
	}
}

func TestMixesAreTheCheapestLine(t *testing.T) {
	t.Parallel()
	ps := []point{{0.5, 10}, {0.6, 60}, {0.9, 90}}
	for quality, want := range map[float64]float64{0.5: 10, 0.7: 50, 0.9: 90} { // 0.6 lies above the line
		if got := mixed(ps, quality); !about(got, want) {
			t.Errorf("quality %v costs %v, want %v", quality, got, want)
		}
	}
	if got := mixed(ps, 0.95); !math.IsInf(got, 1) {
		t.Errorf("what no model reaches costs %v", got)
	}
	if got := cheapest(ps, 0.55); got != 60 {
		t.Errorf("alone it costs %v", got)
	}
}

func TestTheCheapestWithinAMarginIsChosen(t *testing.T) {
	t.Parallel()
	fs := []figure{{"best", 0.9, 50}, {"near", 0.88, 10}, {"same", 0.87, 10}, {"bad", 0.2, 1}}
	for margin, want := range map[float64]string{0: "best", 0.02: "near", 0.1: "near", 1: "bad"} {
		if got := withinMargin(fs, margin); got != want {
			t.Errorf("margin %v: %s, want %s", margin, got, want)
		}
	}
}

// subjects are prompts of two subjects, at each of which one of two models is good; the other one
// answers long.
func subjects(n int) []*prompt {
	out := make([]*prompt, n)
	for i := range out {
		good, subject := i%2, i%2
		p := &prompt{
			id: fmt.Sprint("p", i), src: "made", task: fmt.Sprint("subject", subject),
			text: fmt.Sprintf("question %d about subject %d", i, subject), out: map[string]result{},
		}
		for m := range 2 {
			r := result{score: 0.1, tokens: 70, reasoning: 30}
			if m == good {
				r = result{score: 0.9, tokens: 20}
			}
			p.out[fmt.Sprint("m", m)] = r
		}
		out[i] = p
	}
	return out
}

// reads is a reader whose embeddings tell the subject. All is of some complexity.
func reads() *reader {
	return newReader(func(_ context.Context, text string, _ signal.Mask) *signal.Set {
		v := make([]float32, 64)
		v[len(v)/2]++ // something that all have in common
		v[strings.Count(text, "subject 1")]++
		set := &signal.Set{}
		set.Put(signal.Embedding, signal.Value{State: signal.Known, Vector: v})
		set.Put(signal.Complexity, signal.Value{State: signal.Known, Label: "high", Score: 0.9})
		return set
	})
}

func TestTheProductServesTheRecordedAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	ps := subjects(200)
	s := setup{arms: arms("m0", "m1"), prices: prices{"m1": 3}}
	got, err := replay(t.Context(), reads(), s, ps, (&set{prompts: ps}).foldOf, byQuality, byCost(0.05))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(ps) {
		t.Fatalf("%d prompts of %d", len(got), len(ps))
	}
	for i := range got {
		a := &got[i]
		for route, x := range a.served {
			if x.tokens != a.out[x.arm.of].tokens || x.id == "" || len(x.expect) != 2 {
				t.Fatalf("%s, %s: %+v", a.id, route, x)
			}
		}
		if a.got(byQuality).score != 0.9 {
			t.Errorf("%s went to %s, which is bad at it", a.id, a.served[byQuality].arm.of)
		}
	}
	// a model whose answers are dear has a dear expectation
	for _, f := range got[0].served[byQuality].expect {
		if f.cost <= 0 || f.cost > 1 {
			t.Errorf("expected cost of %s: %v", f.model, f.cost)
		}
	}
}

func TestWhatIsLeftOutIsNotLearntFrom(t *testing.T) {
	t.Parallel()
	ps := subjects(200)
	s := &set{prompts: ps}
	if got := s.benchmarks(); len(got) != 2 {
		t.Fatalf("benchmarks: %v", got)
	}
	got, err := replay(t.Context(), reads(), setup{arms: arms("m0", "m1")}, ps, s.benchmark, byQuality)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if a := &got[i]; a.got(byQuality).score == 0.9 {
			t.Fatalf("%s: the better model of a subject that was left out was known", a.id)
		}
	}
}

func TestFeedbackOverHTTPTurnsWrongSkillsRound(t *testing.T) {
	t.Parallel()
	s := &set{name: "made"}
	for i := range 300 {
		p := &prompt{id: fmt.Sprint("p", i), src: "made", task: "t", text: fmt.Sprint("question ", i), out: map[string]result{}}
		for m, q := range []float64{0.9, 0.6, 0.4, 0.1} {
			p.out[fmt.Sprint("m", m)] = result{score: q, tokens: 10}
		}
		s.prompts = append(s.prompts, p)
	}
	l := lessonOf(s)
	if l == nil || l.wrong["m0"] >= l.wrong["m3"] {
		t.Fatal("the lesson does not turn the skills of four models round")
	}
	r := &report{out: io.Discard, read: reads(), draws: 1, resamples: 1}
	c, err := r.course(t.Context(), l, rater{explore: decide.ExploreOptions{Share: 0.5, MaxQualityLoss: 1}}, l.wrong, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !about(c.after[0], 0.1) || c.after[3] < 0.6 || c.meanwhile <= 0 {
		t.Errorf("%+v", c)
	}
	c, err = r.course(t.Context(), l, rater{random: true}, l.right, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !about(c.after[0], 0.9) || !about(c.after[3], 0.9) || c.meanwhile > -0.3 {
		t.Errorf("at random: %+v", c)
	}
}

func TestTheEffortIsChosenThatIsWorthIt(t *testing.T) {
	t.Parallel()
	ps := subjects(200)
	for _, p := range ps { // of subject 1 only the longer answer is good
		p.out["m1"] = result{score: 0.8, tokens: 70}
	}
	s := &set{prompts: ps}
	efforts := setup{arms: []arm{{"one", "none", "m0"}, {"one", "high", "m1"}}, known: 60}
	got, err := replay(t.Context(), reads(), efforts, ps, s.foldOf, byEffort)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		a := &got[i]
		if x := a.served[byEffort]; a.got(byEffort).score < 0.8 || x.tokens != 20 && a.out["m0"].score == 0.9 {
			t.Fatalf("%s was answered at effort %s with %v tokens", a.id, x.arm.effort, x.tokens)
		}
	}
	var b bytes.Buffer
	r := &report{out: &b, read: reads(), resamples: 10, efforts: []pair{{"m0", "m1"}}, losses: []float64{0.005}}
	if err := r.effort(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"m0 and m1 as efforts of one model: 0.500 with 45 tokens, 0.800 with 70; the oracle 0.850 with 45",
		"| same benchmarks, 60 a task | 0.5 | 0.850", "| unseen benchmark, all |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestTheReportHasAllPartsOfASet(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := &report{out: &b, read: reads(), draws: 1, resamples: 10, pairs: []pair{{"m1", "m0"}}}
	ps := subjects(200)
	for _, p := range ps[:20] {
		p.out["m0"] = result{score: 0.95, tokens: 30} // the better one on the whole
	}
	if err := r.run(t.Context(), []*set{{name: "made", prompts: ps}, {name: "few", prompts: ps[:9]}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## made", "200 prompts, 2 models", "| same benchmarks |", "| unseen benchmark |", "best single, m0",
		"served by quality, same benchmarks", "Cost of 95 / 99 / 100 %", "m1 -> m0", "9 prompts: too few",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestFilesAreReadInTheirFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		b := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			_, _ = w.Write(b)
			_ = w.Close()
			b = z.Bytes()
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := `{"id":"1","src":"a/b-c","task":"t","text":"q","out":{"m":[true,12,5],"n":[0.5,null]}}`
	write("a/rows.jsonl.gz", good+"\n\n{\"text\":\"no outcomes\"}\n")
	write("b.jsonl", good)
	write("c/other.jsonl", `{"text":"x","label":"y"}`)
	write("c/rows.txt", "no")
	sets, err := load(dir, io.Discard)
	if err != nil || len(sets) != 2 || sets[0].name != "a" || sets[1].name != "b.jsonl" {
		t.Fatalf("%v, %v", sets, err)
	}
	p := sets[0].prompts[0]
	if m := p.out["m"]; m != (result{1, 12, 5}) || p.out["n"] != (result{0.5, 0, 0}) || sets[0].benchmark(p) != "t" {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{`{"m":[2,1]}`, `{"m":[]}`, `{"m":["x",1]}`, `{"m":[1,-1]}`, `{"m":[1,1,-1]}`} {
		write("a/rows.jsonl.gz", good+"\n"+`{"id":"2","text":"q","out":`+bad+"}")
		if _, err := load(dir, io.Discard); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestEmbeddingsAreKeptBetweenRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "v.bin")
	a := reads()
	v, _ := a.vector(t.Context(), "about subject 1")
	if err := a.save(path); err != nil {
		t.Fatal(err)
	}
	b := &reader{known: map[uint64][]float32{}, extract: func(context.Context, string, signal.Mask) *signal.Set {
		t.Error("it was computed again")
		return &signal.Set{}
	}}
	if err := b.load(path); err != nil {
		t.Fatal(err)
	}
	w, why := b.vector(t.Context(), "about subject 1")
	if len(w) != len(v) || w[1] != v[1] {
		t.Errorf("%v (%s), want %v", w, why, v)
	}
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"--data", t.TempDir()},
		{"--data", "x", "--limit", "-1"},
		{"--data", "x", "--pairs", "a"},
		{"--data", "x", "--prices", "a=0"},
		{"--data", "x", "--prices", "a"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
