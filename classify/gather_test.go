package classify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/knn"
	"signalbox/classify/lexical"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// neural are the signals of the test bundle.
const neural = 1<<signal.Domain | 1<<signal.Jailbreak | 1<<signal.Embedding

// deadlines are those of single signals.
type deadlines = [signal.NumKinds]time.Duration

// perRun is how long a run of slowly takes.
const perRun = time.Second

// slowly is a graph whose every run takes a second, unless its context ends.
func slowly(ctx context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
	timer := time.NewTimer(perRun)
	defer timer.Stop()
	select {
	case <-timer.C:
		return out, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("run stopped: %w", ctx.Err())
	}
}

// statesOf tells what became of some kinds: known, not extracted, or the reason why unknown.
func statesOf(set *signal.Set, kinds signal.Mask) map[string]string {
	out := make(map[string]string)
	for _, k := range kinds.Kinds() {
		switch v := set.Value(k); v.State {
		case signal.Known:
			out[k.String()] = "known"
		case signal.NotExtracted:
			out[k.String()] = "not extracted"
		case signal.Unknown:
			out[k.String()] = string(v.Reason)
		}
	}
	return out
}

func TestASignalThatIsLateLeavesTheOthersOfItsPass(t *testing.T) {
	// As one row each: four windows for jailbreak, the whole for domain and embedding.
	long, short := user(words(26)), user("math")
	for name, tc := range map[string]struct {
		text     *signal.Text
		timeouts deadlines
		want     map[string]string
		took     time.Duration
	}{
		"no deadline": {
			long,
			deadlines{},
			map[string]string{"domain": "known", "jailbreak": "known", "embedding": "known"},
			5 * perRun,
		},
		"between two of its windows, the rest of which is not run": {
			long,
			deadlines{signal.Jailbreak: perRun * 5 / 2},
			map[string]string{"domain": "known", "jailbreak": "timeout", "embedding": "known"},
			perRun * 7 / 2,
		},
		"behind its last window, though the pass goes on": {
			long,
			deadlines{signal.Jailbreak: perRun * 9 / 2},
			map[string]string{"domain": "known", "jailbreak": "known", "embedding": "known"},
			5 * perRun,
		},
		"of a topic signal, which is read first then": {
			long,
			deadlines{signal.Domain: perRun * 3 / 2},
			map[string]string{"domain": "known", "jailbreak": "known", "embedding": "known"},
			5 * perRun,
		},
		"of two, the earlier one first": {
			long,
			deadlines{signal.Domain: perRun * 3 / 2, signal.Jailbreak: perRun * 11 / 2},
			map[string]string{"domain": "known", "jailbreak": "known", "embedding": "known"},
			5 * perRun,
		},
		"within a run that others share": {
			short,
			deadlines{signal.Jailbreak: perRun / 2},
			map[string]string{"domain": "known", "jailbreak": "timeout", "embedding": "known"},
			perRun,
		},
		"of all": {
			short,
			deadlines{signal.Jailbreak: perRun / 2, signal.Domain: perRun / 4, signal.Embedding: perRun / 4},
			map[string]string{"domain": "timeout", "jailbreak": "timeout", "embedding": "timeout"},
			perRun / 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.hook = slowly
				o := DefaultOptions()
				o.MaxBatch, o.Timeouts = 1, tc.timeouts
				c := open(t, f, o)
				start := time.Now()
				set := extract(t, c, tc.text, neural)
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				if d := cmp.Diff(tc.want, statesOf(set, neural)); d != "" {
					t.Errorf("signals (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestAValueBehindItsDeadlineIsLateAlsoWhenTheTimerIs(t *testing.T) {
	for name, tc := range map[string]struct {
		timeouts deadlines
		after    time.Duration
		kind     signal.Kind
		want     string
	}{
		"in time":                             {deadlines{signal.Domain: time.Second}, time.Second / 2, signal.Domain, "known"},
		"late":                                {deadlines{signal.Domain: time.Second}, time.Second * 3 / 2, signal.Domain, "timeout"},
		"without a deadline of its own":       {deadlines{signal.Domain: time.Second}, time.Second * 3 / 2, signal.Jailbreak, "known"},
		"late for what it is made of":         {deadlines{signal.Embedding: time.Second}, time.Second * 3 / 2, signal.Intent, "timeout"},
		"late, with a longer time for intent": {deadlines{signal.Embedding: time.Second, signal.Intent: time.Minute}, time.Second * 3 / 2, signal.Intent, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var set signal.Set
				need := signal.MaskOf(signal.Domain, signal.Jailbreak, signal.Embedding, signal.Intent)
				g := newGather(&Classifier{}, nil, need, &set, nil, nil)
				g.watch(&tc.timeouts)
				g.close() // the timers never get their turn
				<-time.After(tc.after)
				g.put(tc.kind, signal.Value{State: signal.Known})
				if got := statesOf(&set, signal.MaskOf(tc.kind))[tc.kind.String()]; got != tc.want {
					t.Errorf("it is %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestADeadlineBeginsAnewWithEveryExtract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.hook = slowly
		o := DefaultOptions()
		o.Timeouts = deadlines{signal.Domain: perRun * 3 / 2}
		c := open(t, f, o)
		for range 3 {
			if v := *extract(t, c, user("math"), neural).Value(signal.Domain); v.State != signal.Known {
				t.Fatalf("domain is %+v, want known", v)
			}
		}
	})
}

func TestTheDeadlineOfOneBundleLeavesTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newFake(), newFake()
		c := twoBundles(t, first, second)
		c.opts.Timeouts = deadlines{signal.Domain: perRun / 2}
		first.hook, second.hook = slowly, slowly
		start := time.Now()
		got := statesOf(extract(t, c, user("math"), neural), neural)
		want := map[string]string{"domain": "timeout", "jailbreak": "known", "embedding": "known"}
		if d := cmp.Diff(want, got); d != "" || time.Since(start) != perRun {
			t.Errorf("signals after %v (-want +got):\n%s", time.Since(start), d)
		}
	})
}

// taught is a Classifier with a private intent, over f.
func taught(t *testing.T, f *fake, o Options) *Classifier {
	t.Helper()
	e, err := OpenEngine(testBundle(t), f)
	if err != nil {
		t.Fatal(err)
	}
	intents := []knn.Intent{{Name: "sums", Examples: []string{"math word", "math attack", "word math"}, Threshold: 0.5}}
	if o.Intents, err = knn.New(t.Context(), intents, knn.DefaultOptions(), e.Embed); err != nil {
		t.Fatal(err)
	}
	c, err := New([]Source{{Engine: e}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A turn costs its own text also where nothing but its intent is asked for.
func TestTurnsAreRememberedForTheirIntentAlone(t *testing.T) {
	t.Parallel()
	f, runs := newFake(), 0
	c := taught(t, f, DefaultOptions())
	f.hook = func(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
		runs++
		return out, nil
	}
	turns := []string{"math word", "word math w1", "w2 math", "w3 w4 word"}
	for i, turn := range turns {
		text := &signal.Text{LastUser: turn, Before: turns[:i]}
		runs = 0
		var set signal.Set
		c.Extract(t.Context(), text, signal.MaskOf(signal.Intent), &set)
		if v := set.Value(signal.Intent); v.State != signal.Known || runs != 1 {
			t.Errorf("turn %d: %v after %d runs, want 1", i+1, v.State, runs)
		}
	}
}

func TestTheDeadlineOfEmbeddingHoldsForIntent(t *testing.T) {
	intent := signal.MaskOf(signal.Intent, signal.Embedding)
	for name, tc := range map[string]struct {
		timeouts deadlines
		need     signal.Mask
		want     map[string]string
		took     time.Duration
	}{
		"no deadline":                      {deadlines{}, signal.MaskOf(signal.Intent), map[string]string{"intent": "known", "embedding": "known"}, perRun},
		"of embedding":                     {deadlines{signal.Embedding: perRun / 2}, intent, map[string]string{"intent": "timeout", "embedding": "timeout"}, perRun / 2},
		"of intent alone":                  {deadlines{signal.Intent: perRun / 2}, intent, map[string]string{"intent": "timeout", "embedding": "known"}, perRun},
		"of intent, embedding unasked":     {deadlines{signal.Intent: perRun / 2}, signal.MaskOf(signal.Intent), map[string]string{"intent": "timeout", "embedding": "not extracted"}, perRun / 2},
		"of intent, met":                   {deadlines{signal.Intent: 2 * perRun}, intent, map[string]string{"intent": "known", "embedding": "known"}, perRun},
		"of another signal, not asked for": {deadlines{signal.Domain: perRun / 2}, intent, map[string]string{"intent": "known", "embedding": "known"}, perRun},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			o := DefaultOptions()
			o.Timeouts = tc.timeouts
			c := taught(t, f, o)
			f.hook = slowly
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := statesOf(extract(t, c, user("math"), tc.need), intent)
				if d := cmp.Diff(tc.want, got); d != "" || time.Since(start) != tc.took {
					t.Errorf("after %v, want %v (-want +got):\n%s", time.Since(start), tc.took, d)
				}
			})
		})
	}
}

func TestADeadlineInTheReadingOfALongTextLeavesTheOthers(t *testing.T) {
	late := soon
	if testkit.Race {
		late *= 10
	}
	const size = 16 << 20
	text := user(strings.Repeat("suo\u1d09\u0287\u0254n\u0279\u0287su\u1d09 ", size/20))
	text.LastUser = "math"
	for _, kind := range []signal.Kind{signal.Keyword, signal.Jailbreak, signal.PII} {
		t.Run(kind.String(), func(t *testing.T) {
			o := DefaultOptions()
			o.Patterns = kind == signal.PII
			o.Timeout, o.Timeouts[kind] = time.Minute, time.Millisecond
			o.Keywords = []lexical.Options{{Name: "pattern", Regex: `tit+an\s+[a-z]{3,9}[0-9]`}}
			c := open(t, newFake(), o)
			var set *signal.Set
			if took := testkit.ProcessTime(t, func() { set = extract(t, c, text, signal.MaskOf(kind, signal.Domain)) }); took > late {
				t.Errorf("%v of the processor after the deadline", took)
			}
			want := map[string]string{kind.String(): "timeout", "domain": "known"}
			if d := cmp.Diff(want, statesOf(set, signal.MaskOf(kind, signal.Domain))); d != "" {
				t.Errorf("signals (-want +got):\n%s", d)
			}
		})
	}
}

func TestDeadlinesThatCannotHoldAreRefused(t *testing.T) {
	for name, timeouts := range map[string]deadlines{
		"of what takes no time":  {signal.Language: time.Second},
		"of what is not there":   {signal.Cache: time.Second},
		"in the past":            {signal.Domain: -time.Second},
		"later than that of all": {signal.Domain: DefaultOptions().Timeout + 1},
	} {
		o := DefaultOptions()
		o.Timeouts = timeouts
		if err := o.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	o := DefaultOptions()
	o.Timeouts = deadlines{signal.Domain: o.Timeout}
	if err := o.Validate(); err != nil {
		t.Errorf("as late as that of all: %v", err)
	}
}

func TestAPassThatDoesNotMatterAnyMoreIsCancelled(t *testing.T) {
	for _, slow := range []int{0, 1} { // the one that runs on the caller's goroutine, and the other
		t.Run(fmt.Sprintf("bundle %d", slow), func(t *testing.T) {
			sessions := []*fake{newFake(), newFake()}
			c := twoBundles(t, sessions[0], sessions[1])
			gate := make(chan struct{}) // stays closed until the decision is there
			stopped := make(chan error, 1)
			begun := make(chan struct{})
			sessions[1-slow].hook = func(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
				<-begun // or the other would not be begun at all
				return out, nil
			}
			sessions[slow].hook = func(ctx context.Context, _ int, _ []tensor.Tensor) ([]tensor.Tensor, error) {
				close(begun)
				select {
				case <-ctx.Done():
					stopped <- ctx.Err()
					return nil, fmt.Errorf("run stopped: %w", ctx.Err())
				case <-gate:
					return nil, &outputError{"the gate was opened"}
				}
			}
			of := []signal.Mask{signal.MaskOf(signal.Domain), signal.MaskOf(signal.Jailbreak, signal.Embedding)}
			var set signal.Set
			asked := 0
			c.ExtractWhile(t.Context(), user("math"), neural, &set, func() signal.Mask {
				asked++
				if got := set.Have(); got != of[1-slow] {
					t.Errorf("asked when %v are there, want %v", got.Kinds(), of[1-slow].Kinds())
				}
				return 0
			})
			if err := <-stopped; err == nil || asked != 1 {
				t.Errorf("asked %d times, the run ended with %v", asked, err)
			}
			if got := set.Have(); got != of[1-slow] {
				t.Errorf("%v are there, want %v", got.Kinds(), of[1-slow].Kinds())
			}
			close(gate)
		})
	}
}

func TestWhatDoesNotMatterIsNotBegun(t *testing.T) {
	t.Run("the rows of other tasks of the pass", func(t *testing.T) {
		f := newFake()
		o := DefaultOptions()
		o.MaxBatch = 4
		c := open(t, f, o)
		var set signal.Set
		c.ExtractWhile(t.Context(), user(words(26)), neural, &set, func() signal.Mask { return 0 })
		want := map[string]string{"domain": "not extracted", "jailbreak": "known", "embedding": "not extracted"}
		if d := cmp.Diff(want, statesOf(&set, neural)); d != "" || len(f.calls) != 1 {
			t.Errorf("signals after %d runs (-want +got):\n%s", len(f.calls), d)
		}
	})
	t.Run("a pass that patterns make needless", func(t *testing.T) {
		f := newFake()
		o := DefaultOptions()
		o.Patterns = true
		c := open(t, f, o)
		var set signal.Set
		c.ExtractWhile(t.Context(), user("math ann@example.com"), neural|1<<signal.PII, &set, func() signal.Mask { return 0 })
		if have := set.Have(); have != signal.MaskOf(signal.PII) || len(f.calls) != 0 {
			t.Errorf("%v are there after %d runs", have.Kinds(), len(f.calls))
		}
	})
	t.Run("a pass that a missing model makes needless", func(t *testing.T) {
		f := newFake()
		c := open(t, f, DefaultOptions())
		var set signal.Set
		c.ExtractAllWhile(t.Context(), user("math"), neural|1<<signal.Complexity, &set, func() signal.Mask { return 0 })
		want := map[string]string{"complexity": "no_model", "domain": "not extracted"}
		if d := cmp.Diff(want, statesOf(&set, signal.MaskOf(signal.Complexity, signal.Domain))); d != "" || len(f.calls) != 0 {
			t.Errorf("signals after %d runs (-want +got):\n%s", len(f.calls), d)
		}
	})
	t.Run("a deadline that settles it ends the run for the rest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.hook = slowly
			o := DefaultOptions()
			o.Timeouts = deadlines{signal.Jailbreak: perRun / 4}
			c := open(t, f, o)
			var set signal.Set
			start := time.Now()
			c.ExtractWhile(t.Context(), user("math"), neural, &set, func() signal.Mask { return 0 })
			want := map[string]string{"domain": "not extracted", "jailbreak": "timeout", "embedding": "not extracted"}
			if d := cmp.Diff(want, statesOf(&set, neural)); d != "" || time.Since(start) != perRun/4 {
				t.Errorf("signals after %v (-want +got):\n%s", time.Since(start), d)
			}
		})
	})
}

func TestIntentKeepsTheEmbeddingThatItIsMadeOf(t *testing.T) {
	f := newFake()
	o := DefaultOptions()
	o.Patterns = true
	c := taught(t, f, o)
	var set signal.Set
	need := signal.MaskOf(signal.PII, signal.Intent, signal.Domain)
	c.ExtractWhile(t.Context(), user("math"), need, &set, func() signal.Mask { return signal.MaskOf(signal.Intent) })
	want := map[string]string{"pii": "known", "intent": "known", "embedding": "known", "domain": "not extracted"}
	if d := cmp.Diff(want, statesOf(&set, need|1<<signal.Embedding)); d != "" {
		t.Errorf("signals (-want +got):\n%s", d)
	}
}

func TestOneAnswerAtTheEndIsNotAskedFor(t *testing.T) {
	c := open(t, newFake(), DefaultOptions())
	var set signal.Set
	c.ExtractWhile(t.Context(), user("math"), neural, &set, func() signal.Mask {
		t.Error("asked, though nothing was left to do")
		return 0
	})
	if have := set.Have(); have != neural {
		t.Errorf("%v are there", have.Kinds())
	}
}

func TestAPanicOfTheCallerCostsNothingButTheSaving(t *testing.T) {
	c := twoBundles(t, newFake(), newFake())
	var set signal.Set
	c.ExtractWhile(t.Context(), user("math"), neural, &set, func() signal.Mask { panic("a fault of the caller") })
	want := map[string]string{"domain": "known", "jailbreak": "known", "embedding": "known"}
	if d := cmp.Diff(want, statesOf(&set, neural)); d != "" {
		t.Errorf("signals (-want +got):\n%s", d)
	}
}

// However the passes interleave, what still mattered when it came in is what Extract gives, and the
// rest is absent.
func TestCancellingLeavesNoSignalInBetween(t *testing.T) {
	first, second := newFake(), newFake()
	c := twoBundles(t, first, second)
	c.opts.MaxBatch, c.opts.Patterns = 2, true
	text := user(words(26) + " attack ann@example.com")
	need := neural | signal.MaskOf(signal.PII, signal.Keyword)
	whole := extract(t, c, text, need)
	const seeds = 300
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex // for -race to see nothing but what the code guarantees, random is not shared
		yield := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(3) == 0
		}
		hook := func(ctx context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
			if yield() {
				<-time.After(time.Duration(seed%50) * time.Microsecond)
			}
			return out, ctx.Err()
		}
		first.hook, second.hook = hook, hook
		keep := need
		var set signal.Set
		c.ExtractWhile(t.Context(), text, need, &set, func() signal.Mask {
			mu.Lock()
			defer mu.Unlock()
			keep &= signal.Mask(random.Uint32())
			return keep
		})
		for _, k := range need.Kinds() {
			switch v := set.Value(k); {
			case v.State == signal.NotExtracted && keep.Has(k):
				t.Fatalf("seed %d: %v is absent, though it mattered to the end", seed, k)
			case v.State == signal.NotExtracted:
			default:
				if d := cmp.Diff(*whole.Value(k), *v, approximately); d != "" {
					t.Fatalf("seed %d: %v (-Extract +ExtractWhile):\n%s", seed, k, d)
				}
			}
		}
	}
}

func TestAFollowUpWithoutASubjectHasThatOfTheTurnBefore(t *testing.T) {
	labels := []string{"law", "math", "other"}
	for name, tc := range map[string]struct {
		kind   signal.Kind
		weight float64
		own    []float32
		want   string
	}{
		"it follows":              {signal.Domain, .6, []float32{.02, .03, .95}, "math"},
		"it follows, its own":     {signal.Domain, .6, []float32{.98, .01, .01}, "law"},
		"it does not":             {signal.Domain, .4, []float32{.02, .03, .95}, "other"},
		"no subject of this kind": {signal.Complexity, .6, []float32{.005, .005, .99}, "other"},
	} {
		h := &history{before: &subject{}, weight: tc.weight}
		h.before.probs[tc.kind] = []float32{.2, .6, .2}
		v := h.take(tc.kind, signal.Value{State: signal.Known, Labels: labels, Probs: tc.own})
		if v.Label != tc.want {
			t.Errorf("%s: %q, want %q (%v)", name, v.Label, tc.want, v.Probs)
		}
	}
}
