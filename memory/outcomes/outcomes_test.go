package outcomes_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/memory/outcomes"
)

const dims = 64

// around returns a vector near a direction, of which there are as many as dims.
func around(r *rand.Rand, direction int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = 0.05 * float32(r.NormFloat64())
	}
	v[direction]++
	return v
}

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func open(tb testing.TB, o outcomes.Options) *outcomes.Store {
	tb.Helper()
	o.Limit, o.Tenants, o.Waiting = max(o.Limit, 1), max(o.Tenants, 1), max(o.Waiting, 1)
	s, lost, err := outcomes.Open(o)
	if err != nil || lost != 0 {
		tb.Fatal(err, lost)
	}
	return s
}

func add(tb testing.TB, s *outcomes.Store, o outcomes.Outcome, v []float32) {
	tb.Helper()
	if o.Weight = 1; o.Tenant == "" {
		o.Tenant = "a"
	}
	if err := s.Add(o, v); err != nil {
		tb.Fatal(err)
	}
}

// predicted are the predictions for models whose prior is one half.
func predicted(s *outcomes.Store, tenant string, v []float32, models ...string) []outcomes.Prediction {
	ps := make([]outcomes.Prediction, len(models))
	for i, m := range models {
		ps[i] = outcomes.Prediction{Model: m, Prior: 0.5}
	}
	if !s.Predict(tenant, v, ps) {
		return nil
	}
	return ps
}

func TestAModelIsPreferredWhereItsAnswersToNearRequestsWereBetter(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 1000})
	for i := range 400 { // good at one of two subjects each
		model, subject := i%2, i/2%2
		score := 0.2
		if model == subject {
			score = 0.9
		}
		add(t, s, outcomes.Outcome{
			ID: fmt.Sprint(i), Model: fmt.Sprint("m", model), Prior: 0.5, Score: score, Tokens: 100 + 900*subject,
		}, around(r, subject))
	}
	for subject := range 2 {
		ps := predicted(s, "a", around(r, subject), "m0", "m1")
		if good, bad := ps[subject], ps[1-subject]; good.Mean < bad.Mean+0.3 || good.Near < 10 || good.Deviation > 0.2 ||
			good.Sure < bad.Sure+0.2 {
			t.Errorf("subject %d: %+v", subject, ps)
		}
		if want := float64(100 + 900*subject); math.Abs(ps[0].Tokens-want) > 100 {
			t.Errorf("subject %d: %v tokens, want about %v", subject, ps[0].Tokens, want)
		}
	}
	far := predicted(s, "a", around(r, 7), "m0", "m1")
	if d := far[0].Mean - far[1].Mean; math.Abs(d) > 0.1 || far[0].Near > 1 {
		t.Errorf("of what was not seen: %+v", far)
	}
}

func TestAFewOutcomesChangeLittleAndNoneNothing(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 100})
	v := around(r, 0)
	if ps := predicted(s, "a", v, "m"); ps != nil {
		t.Errorf("without outcomes: %+v", ps)
	}
	add(t, s, outcomes.Outcome{ID: "1", Model: "m", Prior: 0.5, Score: 0}, v)
	if ps := predicted(s, "a", v, "m", "other"); ps[0].Mean > 0.5 || ps[0].Mean < 0.25 || ps[1].Mean < ps[0].Mean {
		t.Errorf("after one: %+v", ps)
	}
}

func TestAModelThatFallsShortLosesItsLeadAlthoughNoOtherIsAsked(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 100})
	ps := []outcomes.Prediction{{Model: "praised", Prior: 0.8}, {Model: "other", Prior: 0.6}}
	for i := range 60 {
		add(t, s, outcomes.Outcome{ID: fmt.Sprint(i), Model: "praised", Prior: 0.8, Score: 0.1}, around(r, i%dims))
	}
	if s.Predict("a", around(r, 0), ps); ps[0].Mean >= ps[1].Mean {
		t.Errorf("%+v", ps)
	}
}

func TestWhatIsExpectedEverywhereIsTheSameOfARequestThatIsHardForEveryModel(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 1000})
	for i := range 400 { // of two subjects, one hard for both models
		subject := i / 2 % 2
		add(t, s, outcomes.Outcome{
			ID: fmt.Sprint(i), Model: fmt.Sprint("m", i%2), Prior: 0.5, Score: 0.8 - 0.6*float64(subject),
		}, around(r, subject))
	}
	easy := predicted(s, "a", around(r, 0), "m0", "m1", "new")
	hard := predicted(s, "a", around(r, 1), "m0", "m1", "new")
	for i := range easy {
		if hard[i].Everywhere != easy[i].Everywhere || math.Abs(hard[i].Everywhere-0.5) > 0.1 {
			t.Errorf("everywhere %.3f and %.3f", easy[i].Everywhere, hard[i].Everywhere)
		}
		if hard[i].Mean > easy[i].Mean-0.3 {
			t.Errorf("here %.3f and %.3f", easy[i].Mean, hard[i].Mean)
		}
	}
}

func TestTenantsLearnNothingOfEachOther(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 10, Tenants: 2, Waiting: 4})
	v := around(r, 0)
	add(t, s, outcomes.Outcome{Tenant: "a", ID: "1", Model: "m"}, v)
	s.Decided(outcomes.Outcome{Tenant: "a", ID: "2", Model: "m"}, v)
	if predicted(s, "b", v, "m") != nil {
		t.Error("a tenant without outcomes has predictions")
	}
	for _, id := range []string{"1", "2"} {
		if _, err := s.Judge("b", id, 1, 1, "", "feedback"); !errors.Is(err, outcomes.ErrUnknown) {
			t.Errorf("another tenant's %s: %v", id, err)
		}
	}
	var out bytes.Buffer
	if err := s.Export(&out, "b"); err != nil || out.Len() > 0 {
		t.Errorf("export: %v %s", err, out.String())
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 50, Tenants: 2, Waiting: 3})
	for _, tenant := range []string{"a", "b", "c"} {
		for i := range 120 {
			add(
				t,
				s,
				outcomes.Outcome{Tenant: tenant, ID: fmt.Sprint(i), Model: "m", Score: float64(i % 2)},
				around(r, 0),
			)
		}
	}
	if got := []int{s.Len("a"), s.Len("b"), s.Len("c")}; !cmp.Equal(got, []int{0, 50, 50}) {
		t.Errorf("outcomes by tenant: %v", got)
	}
	for i := range 5 {
		s.Decided(outcomes.Outcome{Tenant: "c", ID: fmt.Sprint("d", i), Model: "m"}, around(r, 0))
	}
	for i := range 5 {
		_, err := s.Judge("c", fmt.Sprint("d", i), 1, 1, "", "feedback")
		if known := err == nil; known != (i >= 2) {
			t.Errorf("decision %d: %v", i, err)
		}
	}
	if n := s.Len("c"); n != 50 {
		t.Errorf("%d outcomes", n)
	}
}

func TestTheLengthOfAnAnswerIsKnownWhicheverComesFirst(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 50, Waiting: 9})
	v := around(r, 0)
	for i, id := range []string{"x", "y"} {
		s.Decided(outcomes.Outcome{Tenant: "a", ID: id, Model: id, Prior: 0.5}, v)
		if i == 0 {
			s.Answered("a", id, 300)
		}
		if _, err := s.Judge("a", id, 1, 1, "", "feedback"); err != nil {
			t.Fatal(err)
		}
		s.Answered("a", id, 300)
		s.Answered("b", id, 900)
	}
	for _, p := range predicted(s, "a", v, "x", "y") {
		if p.Tokens != 300 || p.Outcomes != 1 {
			t.Errorf("%+v", p)
		}
	}
}

func TestALaterJudgementReplacesOneThatWeighsLess(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 50})
	s.Decided(outcomes.Outcome{Tenant: "a", ID: "x", Model: "m", Prior: 0.5}, around(r, 0))
	for _, step := range []struct {
		score, weight float64
		source, want  string
	}{{0, 0.3, "length", "length"}, {1, 1, "feedback", "feedback"}, {0, 0.3, "length", "feedback"}, {0.5, 1, "feedback", "feedback"}} {
		got, err := s.Judge("a", "x", step.score, step.weight, "", step.source)
		if err != nil || got.Source != step.want {
			t.Errorf("after %+v: %+v, %v", step, got, err)
		}
	}
	if n := s.Len("a"); n != 1 {
		t.Errorf("%d outcomes of one request", n)
	}
}

func TestOutcomesAndWaitingDecisionsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	o := outcomes.Options{Path: path, Limit: 500, Tenants: 3, Waiting: 5}
	r, s := source(), open(t, o)
	for i := range 300 {
		add(
			t,
			s,
			outcomes.Outcome{
				ID:     fmt.Sprint(i),
				Model:  fmt.Sprint("m", i%3),
				Prior:  0.5,
				Score:  float64(i % 3 / 2),
				Tokens: 9,
				Label:  "l",
			},
			around(r, i%5),
		)
	}
	s.Decided(outcomes.Outcome{Tenant: "a", ID: "waits", Model: "m1", Prior: 0.5}, around(r, 0))
	v := around(r, 0)
	want := predicted(s, "a", v, "m0", "m1", "m2")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	if diff := cmp.Diff(want, predicted(s, "a", v, "m0", "m1", "m2"), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("predictions after a restart (-want +got):\n%s", diff)
	}
	if _, err := s.Judge("a", "waits", 1, 1, "", "feedback"); err != nil {
		t.Errorf("a decision that waited: %v", err)
	}
	// A process that is killed while it writes leaves half a line. A long one hides none behind it.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Repeat("x", 2<<20) + "\n" + string(whole) + `{"tenant":"a","id":"torn","mod`
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	again, lost, err := outcomes.Open(o)
	if err != nil || lost != 2 || again.Len("a") != 301 {
		t.Errorf("after two lines that cannot be read: %v, %d lost, %d outcomes", err, lost, again.Len("a"))
	}
}

func TestAJudgementIsInTheFileBeforeItIsConfirmed(t *testing.T) {
	t.Parallel()
	o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 5, Tenants: 1, Waiting: 5}
	r, s := source(), open(t, o)
	for i := range 3 {
		id := fmt.Sprint(i)
		s.Decided(outcomes.Outcome{Tenant: "a", ID: id, Model: "m", Prior: 0.5}, around(r, 0))
		if _, err := s.Judge("a", id, 1, 1, "", "feedback"); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(o.Path) // as a process finds it that is started after this one was killed
		if n := strings.Count(string(b), "\n"); err != nil || n != i+1 {
			t.Errorf("after %d judgements: %d lines, %v", i+1, n, err)
		}
	}
}

func TestWhatWaitsLongestGoesFirstAlsoAfterATenantIsForgotten(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 9, Tenants: 9, Waiting: 4})
	decide := func(tenant, id string) {
		s.Decided(outcomes.Outcome{Tenant: tenant, ID: id, Model: "m", Prior: 0.5}, around(r, 0))
	}
	decide("a", "0")
	decide("a", "1")
	decide("b", "2")
	decide("a", "3")
	decide("a", "4") // in the place of 0
	if err := s.Forget("b"); err != nil {
		t.Fatal(err)
	}
	decide("a", "5")
	decide("a", "6") // in the place of 1
	for id, want := range map[string]bool{"0": false, "1": false, "3": true, "4": true, "5": true, "6": true} {
		if _, err := s.Judge("a", id, 1, 1, "", "feedback"); (err == nil) != want {
			t.Errorf("request %s: %v, waiting should be %v", id, err, want)
		}
	}
}

func TestTheFileOfAnotherProcessIsOnlyRead(t *testing.T) {
	t.Parallel()
	o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 5, Tenants: 1, Waiting: 5}
	r, s := source(), open(t, o)
	add(t, s, outcomes.Outcome{ID: "1", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
	before, err := os.Stat(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	reading := o
	reading.ReadOnly = true
	reader := open(t, reading)
	if reader.Len("a") != 1 {
		t.Errorf("%d outcomes were read", reader.Len("a"))
	}
	add(t, reader, outcomes.Outcome{ID: "2", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
	if err := errors.Join(reader.Forget("a"), reader.Close()); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(o.Path)
	if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
		t.Errorf("the file is another: %v, %v, %v", before, after, err)
	}
	reading.Path = filepath.Join(t.TempDir(), "none.jsonl")
	open(t, reading)
	if _, err := os.Stat(reading.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

// Where there are no locks each makes the file anew with all that it knows, and would take it from
// the other with every outcome.
func TestTwoProcessesWithOneFileTakeItFromEachOtherNowAndThen(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o := outcomes.Options{
		Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 50, Tenants: 1, Waiting: 5,
		Now: func() time.Time { return now },
	}
	if err := os.Mkdir(o.Path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	r, a, b := source(), open(t, o), open(t, o)
	changes := 0
	before, err := os.Stat(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if i == 10 {
			now = now.Add(time.Hour)
		}
		for _, s := range []*outcomes.Store{a, b} {
			add(t, s, outcomes.Outcome{ID: strconv.Itoa(i), Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
			after, err := os.Stat(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			if !os.SameFile(before, after) {
				changes++
			}
			before = after
		}
	}
	if changes < 2 || changes > 4 {
		t.Errorf("the file was replaced %d times", changes)
	}
	if err := a.Close(); err != nil || open(t, o).Len("a") != 20 {
		t.Errorf("after the end %d outcomes, %v", open(t, o).Len("a"), err)
	}
}

func TestAFileThatWasReplacedIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".1") },
		"opened by another process": func(path string) error {
			s, _, err := outcomes.Open(outcomes.Options{Path: path, Limit: 5, Tenants: 1, Waiting: 5})
			if err == nil {
				err = s.Close()
			}
			return err
		},
	} {
		o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 5, Tenants: 1, Waiting: 5}
		r, s := source(), open(t, o)
		add(t, s, outcomes.Outcome{ID: "1", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
		if err := replace(o.Path); err != nil {
			t.Fatal(err)
		}
		add(t, s, outcomes.Outcome{ID: "2", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
		if n := open(t, o).Len("a"); n != 2 { // as after a kill
			t.Errorf("%s: %d outcomes are in the file", name, n)
		}
	}
}

func TestTheFileDoesNotGrowForever(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	r, s := source(), open(t, outcomes.Options{Path: path, Limit: 10})
	for i := range 3000 {
		add(t, s, outcomes.Outcome{ID: fmt.Sprint(i), Model: "m", Prior: 0.5}, around(r, 0))
	}
	b, err := os.ReadFile(path)
	if n := strings.Count(string(b), "\n"); err != nil || n > 1100 {
		t.Errorf("%d lines, %v", n, err)
	}
}

func TestForgetLeavesNothingOfATenant(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	r, s := source(), open(t, outcomes.Options{Path: path, Limit: 10, Tenants: 2, Waiting: 2})
	add(t, s, outcomes.Outcome{Tenant: "gone", ID: "1", Model: "m"}, around(r, 0))
	add(t, s, outcomes.Outcome{Tenant: "stays", ID: "1", Model: "m"}, around(r, 0))
	s.Decided(outcomes.Outcome{Tenant: "gone", ID: "2", Model: "m"}, around(r, 0))
	if err := s.Forget("gone"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), "gone") || s.Len("gone") != 0 || s.Len("stays") != 1 {
		t.Errorf("%v, file:\n%s", err, b)
	}
	if _, err := s.Judge("gone", "2", 1, 1, "", "feedback"); !errors.Is(err, outcomes.ErrUnknown) {
		t.Error(err)
	}
}

func TestAStoreIsUsedByManyAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, outcomes.Options{Limit: 100, Tenants: 2, Waiting: 10})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := source()
			for i := range 200 {
				id := fmt.Sprint(g, i)
				s.Decided(outcomes.Outcome{Tenant: "a", ID: id, Model: "m", Prior: 0.5}, around(r, 0))
				if _, err := s.Judge(
					"a",
					id,
					1,
					1,
					"",
					"feedback",
				); err != nil &&
					!errors.Is(err, outcomes.ErrUnknown) {
					t.Error(err)
				}
				predicted(s, "a", around(r, 0), "m")
			}
		})
	}
	wg.Wait()
	if s.Len("a") != 100 {
		t.Errorf("%d outcomes", s.Len("a"))
	}
}

// Requests whose outcomes are held out, and twenty models of which no one knows more of any subject
// than of another: of so many the one of the greatest Mean is estimated too high, and is worse than
// the one that is the best everywhere.
func TestOfManyModelsTheOneThatIsSureIsNoWorseThanTheBest(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 1 << 14})
	const models, best = 20, 0.6
	quality := func(m int) float64 { return best - 0.04*min(float64(m), 1) - 0.002*float64(m) }
	priors := make([]outcomes.Prediction, models)
	for m := range priors {
		priors[m] = outcomes.Prediction{Model: fmt.Sprint("m", m), Prior: quality(m)}
	}
	for i := range 500 {
		v := around(r, r.IntN(dims/2))
		for m, p := range priors {
			score := 0.0
			if r.Float64() < quality(m) {
				score = 1
			}
			add(t, s, outcomes.Outcome{ID: fmt.Sprint(i, m), Model: p.Model, Prior: p.Prior, Score: score}, v)
		}
	}
	var bySure, byMean float64 // lost against the best model
	const n = 500
	for range n {
		ps := slices.Clone(priors)
		s.Predict("a", around(r, r.IntN(dims/2)), ps)
		sure, mean := 0, 0
		for m := range ps {
			if ps[m].Sure > ps[sure].Sure {
				sure = m
			}
			if ps[m].Mean > ps[mean].Mean {
				mean = m
			}
		}
		bySure += (best - quality(sure)) / n
		byMean += (best - quality(mean)) / n
	}
	if bySure > 0.005 || byMean < 0.01 {
		t.Errorf("%.4f lost by what is sure, %.4f by the mean", bySure, byMean)
	}
}

// BenchmarkPredict is what a decision costs beside the pass: 10,000 outcomes, four candidates, and
// vectors of the length of the embedded model's.
func BenchmarkPredict(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, s := source(), open(b, outcomes.Options{Limit: n})
			vector := func() []float32 {
				v := make([]float32, 384)
				for i := range v {
					v[i] = float32(r.NormFloat64())
				}
				v[r.IntN(20)] += 15
				return v
			}
			for i := range n {
				add(
					b,
					s,
					outcomes.Outcome{ID: fmt.Sprint(i), Model: fmt.Sprint("m", i%4), Prior: 0.5, Score: r.Float64()},
					vector(),
				)
			}
			v := vector()
			ps := []outcomes.Prediction{{Model: "m0"}, {Model: "m1"}, {Model: "m2"}, {Model: "m3"}}
			b.ReportAllocs()
			for b.Loop() {
				s.Predict("a", v, ps)
			}
		})
	}
}
