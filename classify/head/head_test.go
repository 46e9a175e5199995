package head

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// made makes rows of two words of a class among words of none, with a vector that tells it some of
// the time.
func made(n int, labels []string, seed uint64) []Row {
	random := rand.New(rand.NewPCG(seed, 2))
	rows := make([]Row, n)
	for i := range rows {
		at := i % len(labels)
		text := fmt.Sprintf("w%d v%d ", random.IntN(50), random.IntN(50))
		if random.Float64() < 0.8 {
			text += fmt.Sprintf("%sword%d", labels[at], random.IntN(6))
		}
		v := make([]float32, 8)
		for j := range v {
			v[j] = float32(random.NormFloat64()) * 0.4
		}
		v[at%8] += 1
		rows[i] = Row{Text: text, Labels: []string{labels[at]}, Vector: v}
	}
	return rows
}

func train(t *testing.T, rows []Row, o Options) (*Head, *Trial) {
	t.Helper()
	h, trial, err := Train(t.Context(), rows, o)
	if err != nil {
		t.Fatal(err)
	}
	return h, trial
}

func right(t *testing.T, h *Head, rows []Row) float64 {
	t.Helper()
	n := 0.0
	for i := range rows {
		r, err := h.Predict(rows[i].Text, rows[i].Vector)
		if err != nil {
			t.Fatal(err)
		}
		if r.Probs[slices.Index(h.info.Labels, rows[i].Labels[0])] == slices.Max(r.Probs) {
			n++
		}
	}
	return n / float64(len(rows))
}

func TestClassesAreToldOnRowsThatNobodySaw(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Labels = []string{"a", "b", "c"}
	h, trial := train(t, made(600, o.Labels, 1), o)
	got := right(t, h, made(600, o.Labels, 99))
	if got < 0.93 {
		t.Errorf("accuracy %.3f on new rows, want at least 0.93", got)
	}
	if d := math.Abs(got - h.Info().Report.Accuracy); d > 0.04 {
		t.Errorf("the report says %.3f, new rows %.3f", h.Info().Report.Accuracy, got)
	}
	if e := h.Info().Report.ECE; e > 0.05 {
		t.Errorf("calibration error %.3f", e)
	}
	if len(trial.Told) != 600 || slices.Max(trial.Folds) != h.info.Report.Folds-1 {
		t.Errorf("the trial tells of %d rows in %d folds", len(trial.Told), slices.Max(trial.Folds)+1)
	}
}

func TestBalancedWeightsFindRareLabels(t *testing.T) {
	t.Parallel()
	labels := []string{"a", "b", "rare"}
	rows := made(1200, labels, 5)
	n := 0
	rows = slices.DeleteFunc(rows, func(r Row) bool { // 16 are left
		if r.Labels[0] == "rare" {
			n++
		}
		return r.Labels[0] == "rare" && n%25 != 0
	})
	fresh := slices.DeleteFunc(made(2000, labels, 6), func(r Row) bool { return r.Labels[0] != "rare" })
	recall := map[bool]float64{}
	for _, balanced := range []bool{false, true} {
		o := DefaultOptions()
		o.Labels, o.Balanced = labels, balanced
		h, _ := train(t, rows, o)
		recall[balanced] = right(t, h, fresh)
	}
	if recall[true] < recall[false]+0.02 {
		t.Errorf("recall of the rare label %.3f with balanced weights, %.3f without", recall[true], recall[false])
	}
}

func TestAThresholdKeepsTheShareOfFalsePositives(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Mode, o.Labels, o.FalsePositives = Binary, []string{"fine", "toxic"}, 0.05
	h, _ := train(t, made(manyRows, o.Labels, 3), o)
	wrong, clean, found, bad := 0.0, 0.0, 0.0, 0.0
	fresh := made(4000, o.Labels, 77)
	for i := range fresh {
		r, err := h.Predict(fresh[i].Text, fresh[i].Vector)
		if err != nil {
			t.Fatal(err)
		}
		told := r.Label == "toxic"
		if (float64(r.Probs[1]) >= h.info.Thresholds[1]) != told {
			t.Fatalf("label %q at a probability of %v, threshold %v", r.Label, r.Probs[1],
				h.info.Thresholds[1])
		}
		if fresh[i].Labels[0] == "fine" {
			clean++
			if told {
				wrong++
			}
		} else {
			bad++
			if told {
				found++
			}
		}
	}
	if share := wrong / clean; share < 0.02 || share > 0.08 {
		t.Errorf("%.3f of new texts are false positives, want about 0.05", share)
	}
	if share := found / bad; share < 0.8 {
		t.Errorf("recall %.3f, want at least 0.8", share)
	}
	if r := h.info.Report.Labels[1]; r.FalsePositives > 0.05 || h.info.Report.AUC < 0.95 {
		t.Errorf("report: %+v, AUC %v", r, h.info.Report.AUC)
	}
}

// A training on all rows begins at the mean of the folds' weights: nearer to the end than at 0, and
// the end is the same.
func TestTheTrainingBeginsWhereTheFoldsEnded(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Labels, o.Strengths = []string{"a", "b", "c"}, []float64{1, 10}
	trainer, err := newTrainer(made(manyRows, o.Labels, 8), o)
	if err != nil {
		t.Fatal(err)
	}
	_, best, err := trainer.validate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vocab, p := trainer.problem(all(manyRows))
	p.decay = 1 / (o.Strengths[best] * manyRows)
	value := func(w []float32) float64 {
		return p.slope(w, make([]float32, len(w)), []*part{p.part()})
	}
	cold, warm := make([]float32, p.size()), trainer.start(&vocab, p.size())
	first, begun := value(cold), value(warm)
	for _, w := range [][]float32{cold, warm} {
		if err := p.solve(t.Context(), w, maxSteps); err != nil {
			t.Fatal(err)
		}
	}
	end, other := value(cold), value(warm)
	if math.Abs(end-other) > 0.005*end || begun-end > (first-end)/4 {
		t.Errorf("from 0: %.5f to %.5f; from the folds: %.5f to %.5f", first, end, begun, other)
	}
}

func TestTagsHoldTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	o := DefaultOptions()
	o.Mode, o.Labels, o.FalsePositives = Tags, []string{"rude", "legal"}, 0.05
	var rows []Row
	for range 600 {
		v, text := make([]float32, 2), fmt.Sprintf("w%d", random.IntN(40))
		var labels []string
		for j, l := range o.Labels {
			v[j] = float32(random.NormFloat64()) * 0.2
			if random.Float64() < 0.3 {
				labels, text, v[j] = append(labels, l), text+" "+l+"ish", v[j]+1
			}
		}
		rows = append(rows, Row{Text: text, Labels: labels, Vector: v})
	}
	h, _ := train(t, rows, o)
	for _, c := range []struct {
		text   string
		vector []float32
		want   []string
	}{
		{"w1 rudeish legalish", []float32{1, 1}, o.Labels},
		{"w2 legalish", []float32{0, 1}, []string{"legal"}},
		{"w3", []float32{0, 0}, nil},
	} {
		r, err := h.Predict(c.text, c.vector)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, p := range r.Probs {
			if float64(p) >= h.info.Thresholds[i] {
				got = append(got, o.Labels[i])
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		if (r.Label == "") != (c.want == nil) {
			t.Errorf("%q: label %q", c.text, r.Label)
		}
	}
}

func TestTheGradientIsThatOfTheObjective(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Classes, Tags} {
		o := DefaultOptions()
		o.Mode, o.Labels, o.Workers = mode, []string{"a", "b", "c"}, 3
		tr, err := newTrainer(made(700, o.Labels, 4), o)
		if err != nil {
			t.Fatal(err)
		}
		_, p := tr.problem(all(700))
		p.decay = 0.01
		random := rand.New(rand.NewPCG(8, 8))
		w, grad := make([]float32, p.size()), make([]float32, p.size())
		for i := range w {
			w[i] = float32(random.NormFloat64())
		}
		parts := []*part{p.part(), p.part(), p.part()}
		p.slope(w, grad, parts)
		other := make([]float32, len(grad))
		for range 40 {
			i := random.IntN(len(w))
			const step = 0.05
			old := w[i]
			w[i] = old + step
			up := p.slope(w, other, parts)
			w[i] = old - step
			down := p.slope(w, other, parts)
			w[i] = old
			if want := (up - down) / (2 * step); math.Abs(want-float64(grad[i])) > 2e-4 {
				t.Errorf("%s: derivative %d is %v, want %v", mode, i, grad[i], want)
			}
		}
	}
}

func TestAHeadSurvivesItsFiles(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Name, o.Embedding, o.Labels = "topic", "x", []string{"a", "b", "c"}
	h, _ := train(t, made(120, o.Labels, 1), o)
	info, weights, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(info, weights)
	if err != nil {
		t.Fatal(err)
	}
	rows := made(60, o.Labels, 2)
	for i := range rows {
		want, _ := h.Predict(rows[i].Text, rows[i].Vector)
		got, err := again.Predict(rows[i].Text, rows[i].Vector)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	}
	weights[len(weights)-1] ^= 1
	if _, err := Decode(info, weights); err == nil {
		t.Error("changed weights were accepted")
	}
	if _, err := again.Predict("x", make([]float32, 3)); !errors.Is(err, ErrDims) {
		t.Errorf("a vector of another length: %v", err)
	}
}

func TestTrainRefusesRowsThatItCannotLearnFrom(t *testing.T) {
	t.Parallel()
	good := made(30, []string{"a", "b"}, 1)
	o := DefaultOptions()
	o.Labels = []string{"a", "b"}
	for name, change := range map[string]func(rows []Row, o *Options) []Row{
		"few rows":         func(rows []Row, _ *Options) []Row { return rows[:5] },
		"an unknown label": func(rows []Row, _ *Options) []Row { rows[3].Labels = []string{"z"}; return rows },
		"two labels":       func(rows []Row, _ *Options) []Row { rows[3].Labels = []string{"a", "b"}; return rows },
		"a label of one row": func(rows []Row, o *Options) []Row {
			o.Labels = []string{"a", "b", "c"}
			rows[3].Labels = []string{"c"}
			return rows
		},
		"vectors of two lengths": func(rows []Row, _ *Options) []Row {
			rows[3].Vector = rows[3].Vector[:2]
			return rows
		},
		"no share of false positives": func(rows []Row, o *Options) []Row { o.FalsePositives = 0; return rows },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			rows := change(slices.Clone(good), &o)
			if _, _, err := Train(t.Context(), rows, o); err == nil {
				t.Error("it was trained")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Train(ctx, good, o); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func TestADifferenceCountsFromTwoStandardErrorsOn(t *testing.T) {
	t.Parallel()
	marks := func(n, from, to int) []bool {
		out := make([]bool, n)
		for i := from; i < to; i++ {
			out[i] = true
		}
		return out
	}
	for _, c := range []struct {
		head, intents []bool
		want          string
	}{
		{marks(100, 0, 90), marks(100, 0, 70), "head"},
		{marks(100, 0, 70), marks(100, 0, 90), "intents"},
		{marks(100, 0, 82), marks(100, 0, 80), "either"},
	} {
		if got := Compare(c.head, c.intents); got.Better != c.want {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	o := DefaultOptions()
	o.Labels = []string{"a", "b"}
	h, _, err := Train(context.Background(), made(20, o.Labels, 1), o)
	if err != nil {
		f.Fatal(err)
	}
	info, weights, err := h.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(info, weights, "some aword1 text")
	f.Fuzz(func(t *testing.T, info, weights []byte, text string) {
		h, err := Decode(info, weights)
		if err != nil {
			return
		}
		r, err := h.Predict(text, make([]float32, h.Info().Dims))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Probs {
			if !(p >= 0 && p <= 1) {
				t.Fatalf("probability %v", p)
			}
		}
	})
}

func BenchmarkPredict(b *testing.B) {
	o := DefaultOptions()
	o.Labels = []string{"a", "b", "c"}
	rows := made(600, o.Labels, 1)
	h, _, err := Train(b.Context(), rows, o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := h.Predict(rows[i%600].Text, rows[i%600].Vector); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTrain trains on as many rows as the largest set that its time is stated for.
func BenchmarkTrain(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, classes := range []int{2, 77} {
		b.Run(fmt.Sprintf("rows=10000/classes=%d", classes), func(b *testing.B) {
			o := DefaultOptions()
			if classes == 2 {
				o.Mode = Binary
			}
			centres := make([][]float32, classes)
			for i := range centres {
				o.Labels = append(o.Labels, fmt.Sprint("class", i))
				centres[i] = make([]float32, 384)
				for j := range centres[i] {
					centres[i][j] = float32(random.NormFloat64()) / 20
				}
			}
			rows := make([]Row, 10_000)
			for i := range rows {
				at, v := i%classes, make([]float32, 384)
				for j := range v {
					v[j] = centres[at][j] + float32(random.NormFloat64())/15
				}
				text := ""
				for range 12 {
					text += fmt.Sprintf("word%d ", random.IntN(60)+at*7)
				}
				rows[i] = Row{Text: text, Labels: []string{o.Labels[at]}, Vector: v}
			}
			for b.Loop() {
				if _, _, err := Train(b.Context(), rows, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Reference values are of the one-sided interval of Clopper and Pearson: beta.ppf(0.95, k + 1, n - k).
func TestUpperShare(t *testing.T) {
	for _, c := range []struct {
		k, n int
		want float64
	}{
		{0, 15, 0.181036},
		{0, 300, 0.009936},
		{1, 30, 0.148596},
		{10, 1000, 0.016904},
		{50, 5000, 0.012641},
		{0, 0, 1},
		{3, 3, 1},
	} {
		if got := upperShare(c.k, c.n); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("%d of %d: %.6f, want %.6f", c.k, c.n, got, c.want)
		}
	}
}

// A threshold is a number that can be read, and is reached by no more than are allowed.
func TestThresholdsAreShort(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		clean := make([]float64, 20)
		for i := range clean {
			clean[i] = float64(float32(1 - max(math.Pow(random.Float64(), 8), 1e-6)*(1-random.Float64()/4)))
		}
		got, reached := threshold(clean, 0.1), 0
		for _, p := range clean {
			if p >= got {
				reached++
			}
		}
		if reached > 2 || got > 1 {
			t.Fatalf("threshold %v is reached by %d of 20, 2 are allowed", got, reached)
		}
		if got < 0.999999 && math.Abs(got*1e6-math.Round(got*1e6)) > 1e-6 {
			t.Fatalf("threshold %v has more than six places", got)
		}
	}
}

func TestAThresholdOfFewRowsIsNotBelowLikely(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows  int
		share float64
		most  float64 // probability of a clean row
		want  float64
	}{
		{40, 0.01, 0.034, 0.5},
		{299, 0.01, 0.034, 0.5},
		{300, 0.01, 0.034, 0.034001},
		{40, 0.1, 0.034, 0.034001},
		{40, 0.01, 0.75, 0.750001},
	} {
		clean := make([]float64, c.rows)
		for i := range clean {
			clean[i] = c.most
		}
		if got := threshold(clean, c.share); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%d rows, %v may be flagged: threshold %v, want %v", c.rows, c.share, got, c.want)
		}
	}
}

func TestAStepIsMadeShorterUntilItHelpsOrThereIsNone(t *testing.T) {
	t.Parallel()
	steep := func(x float64) float64 { return 1e4*x*x - x }
	v, ok := lower(steep, 0, -1, 1)
	if !ok || v >= 0 {
		t.Errorf("along a steep parabola got %g, %t", v, ok)
	}
	calls := 0
	none := func(float64) float64 { calls++; return math.NaN() }
	if _, ok := lower(none, 0, -1, 1); ok || calls > 20 {
		t.Errorf("where nothing is a number: %t after %d steps", ok, calls)
	}
}
