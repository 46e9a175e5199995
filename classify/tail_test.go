package classify

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox/classify/bundle"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// tapping is a fake whose graph shows a tap: of each row the number of its tokens.
type tapping struct{ *fake }

const tapValue = "inner/7"

func (s tapping) Outputs() []tensor.Spec {
	shape := []int64{tensor.Dynamic, 1}
	return append(s.fake.Outputs(), tensor.Spec{Name: tapValue, DType: tensor.Float32, Shape: shape})
}

func (s tapping) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	out, err := s.fake.Run(ctx, in, outputs)
	for k := range out {
		if out[k].Name == tapValue {
			rows := in[1].Shape[0]
			out[k].Shape, out[k].F32 = []int64{rows, 1}, make([]float32, rows)
			for i, m := range in[1].I64 {
				out[k].F32[int64(i)/in[1].Shape[1]] += float32(m)
			}
		}
	}
	return out, err
}

// tailFake says yes of rows with more than mark tokens.
type tailFake struct {
	mark  float32
	fails error
	runs  int
}

func (*tailFake) Inputs() []tensor.Spec {
	return []tensor.Spec{{Name: "length", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 1}}}
}
func (*tailFake) Outputs() []tensor.Spec { return nil }
func (*tailFake) Provider() string       { return "test" }
func (*tailFake) Close() error           { return nil }

func (s *tailFake) Run(_ context.Context, in []tensor.Tensor, _ []string) ([]tensor.Tensor, error) {
	if s.runs++; s.fails != nil {
		return nil, s.fails
	}
	out := tensor.Tensor{Name: bundle.AdapterOutput, Shape: []int64{in[0].Shape[0], 1}}
	for _, n := range in[0].F32 {
		out.F32 = append(out.F32, n-s.mark)
	}
	return []tensor.Tensor{out}, nil
}

func tappedBundle(t *testing.T) *bundle.Bundle {
	t.Helper()
	return testBundle(t, "bytes: 1}]", "bytes: 1, taps: [{name: length, value: "+tapValue+", shape: [-1, 1]}]}]")
}

func adapterOf(b *bundle.Bundle, taps ...string) *bundle.Adapter {
	return &bundle.Adapter{
		Taps: taps,
		AdapterInfo: bundle.AdapterInfo{
			Base: bundle.AdapterBase{Name: "test", Version: "1", SHA256: b.Manifest.Graphs[0].SHA256}, Mode: "binary",
			Labels: []string{"short", "long"}, Scale: []float64{1}, Shift: []float64{0}, Thresholds: []float64{0, 0.5},
			Tokens: 34,
		},
	}
}

func TestTailsGoOnFromOneRunAndFailAlone(t *testing.T) {
	b := tappedBundle(t)
	f := newFake()
	e, err := OpenEngine(b, tapping{f})
	if err != nil {
		t.Fatal(err)
	}
	tails := []*tailFake{{mark: 4.5}, {mark: 0}, {mark: 0}}
	for k, s := range tails {
		if e, err = e.WithTail("t", signal.Own+signal.Kind(k), adapterOf(b, "length"), s); err != nil {
			t.Fatal(err)
		}
	}
	tails[1].fails = errors.New("boom")
	opts := DefaultOptions()
	opts.Own = []Own{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	c, err := New([]Source{{Engine: e}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tails {
		tails[i].runs = 0
	}
	f.calls = nil
	need := signal.MaskOf(signal.Domain) | signal.MaskOf(signal.Own) | signal.MaskOf(signal.Own+1) | signal.MaskOf(signal.Own+2)
	text := singleText("math word w1")
	set := extract(t, c, &text, need)
	if len(f.calls) != 1 || tails[0].runs != 1 || tails[2].runs != 1 {
		t.Errorf("%d runs of the base, %d and %d of tails, want one each", len(f.calls), tails[0].runs, tails[2].runs)
	}
	for k, want := range map[signal.Kind]string{ //nolint:exhaustive // those that were asked for
		signal.Domain: "math", signal.Own: "long", signal.Own + 2: "long",
	} {
		if v := set.Value(k); v.State != signal.Known || v.Label != want {
			t.Errorf("kind %d: %v %q (%s), want %q", k, v.State, v.Label, v.Reason, want)
		}
	}
	if v := set.Value(signal.Own + 1); v.State != signal.Unknown || v.Reason != signal.ReasonInternal {
		t.Errorf("the adapter that fails: %v (%s)", v.State, v.Reason)
	}
	text = singleText("word")
	if set := extract(t, c, &text, signal.MaskOf(signal.Own)); set.Value(signal.Own).Label != "short" {
		t.Errorf("one word of three tokens: %+v", set.Value(signal.Own))
	}
}

// meeting is a tail that tells how many run at once, and waits a while for others to come.
type meeting struct {
	*tailFake

	now, most *atomic.Int32
	all       chan struct{} // is closed when so many as are wanted run
	want      int32
}

func (s meeting) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	if n > s.most.Load() {
		s.most.Store(n)
	}
	if s.want > 0 {
		if n == s.want {
			close(s.all)
		}
		select {
		case <-s.all:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.tailFake.Run(ctx, in, outputs)
}

// Tails of a few tokens run one after the other, those of many beside each other.
func TestTailsOfLongRunsRunBesideEachOther(t *testing.T) {
	b := tappedBundle(t)
	for _, c := range []struct{ tokens, beside int64 }{{16, 1}, {besideTokens - 1, 1}, {besideTokens, 3}} {
		var now, most atomic.Int32
		e, err := OpenEngine(b, tapping{newFake()})
		if err != nil {
			t.Fatal(err)
		}
		for k := range signal.Kind(3) {
			if e, err = e.WithTail("t", signal.Own+k, adapterOf(b, "length"), meeting{&tailFake{}, &now, &most, nil, 0}); err != nil {
				t.Fatal(err)
			}
		}
		p := &pass{e: e, shape: [2]int64{1, c.tokens}, rows: []row{{first: -1}}}
		all := make(chan struct{})
		for i := range e.tasks {
			if tail := e.tasks[i].tail; tail != nil {
				s := meeting{&tailFake{}, &now, &most, all, 0}
				if c.beside > 1 {
					s.want = int32(c.beside)
				}
				tail.session = s
				p.tails, p.plans = append(p.tails, i), append(p.plans, taskPlan{task: i})
			}
		}
		most.Store(0)
		taps := []tensor.Tensor{{Name: tapValue, Shape: []int64{1, 1}, F32: []float32{float32(c.tokens)}}}
		if err := p.runTails(t.Context(), []int32{0}, p.tails, taps); err != nil {
			t.Errorf("%d tokens: %v", c.tokens, err)
		}
		if n := most.Load(); int64(n) != c.beside {
			t.Errorf("%d tokens: %d at once, want %d", c.tokens, n, c.beside)
		}
	}
}

func TestATailThatDoesNotFitIsRefused(t *testing.T) {
	b := tappedBundle(t)
	e, err := OpenEngine(b, tapping{newFake()})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := OpenEngine(b, newFake())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		engine *Engine
		change func(*bundle.Adapter)
		tail   *tailFake
		says   string
	}{
		"another base":    {e, func(a *bundle.Adapter) { a.Base.SHA256 = "0" }, &tailFake{}, "trained on another model"},
		"an unknown tap":  {e, func(a *bundle.Adapter) { a.Taps[0] = "keys" }, &tailFake{}, "is no tap"},
		"not shown":       {plain, func(*bundle.Adapter) {}, &tailFake{}, "is not given by the graph"},
		"long rows":       {e, func(a *bundle.Adapter) { a.Tokens = 99 }, &tailFake{}, "rows of 99 tokens"},
		"bad thresholds":  {e, func(a *bundle.Adapter) { a.Thresholds = nil }, &tailFake{}, "thresholds"},
		"no answer":       {e, func(*bundle.Adapter) {}, &tailFake{fails: errors.New("boom")}, "canary"},
		"a wrong width":   {e, func(a *bundle.Adapter) { a.Mode, a.Scale, a.Shift = "tags", []float64{1, 1}, []float64{0, 0} }, &tailFake{}, "canary"},
		"without session": {Missing("test", 0), func(*bundle.Adapter) {}, &tailFake{}, "no session"},
	} {
		a := adapterOf(b, "length")
		c.change(a)
		if _, err := c.engine.WithTail("t", signal.Own, a, c.tail); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// stackFake says of each row, for all of its tails, what they would say alone.
type stackFake struct {
	tailFake

	tails  []*tailFake
	widest int64
	gone   bool // an axis
	off    float32
}

func (s *stackFake) Run(_ context.Context, in []tensor.Tensor, _ []string) ([]tensor.Tensor, error) {
	if s.runs++; s.fails != nil {
		return nil, s.fails
	}
	rows := in[0].Shape[0]
	out := tensor.Tensor{
		Name: bundle.AdapterOutput, Shape: []int64{rows, int64(len(s.tails)), s.widest},
		F32: make([]float32, rows*int64(len(s.tails))*s.widest),
	}
	for r, n := range in[0].F32 {
		for k, t := range s.tails {
			out.F32[(r*len(s.tails)+k)*int(s.widest)] = n - t.mark + s.off
		}
	}
	if s.gone {
		out.Shape = []int64{rows, int64(len(s.tails)) * s.widest}
	}
	return []tensor.Tensor{out}, nil
}

func TestTailsOfAStackRunAsOneGraphWhereMostAreAsked(t *testing.T) {
	b := tappedBundle(t)
	e, err := OpenEngine(b, tapping{newFake()})
	if err != nil {
		t.Fatal(err)
	}
	tails := []*tailFake{{mark: 4.5}, {mark: 0}, {mark: 100}, {mark: 2}}
	opts, kinds := DefaultOptions(), make([]signal.Kind, len(tails))
	for k, s := range tails {
		kinds[k] = signal.Own + signal.Kind(k)
		opts.Own = append(opts.Own, Own{Name: string(rune('a' + k))})
		if e, err = e.WithTail("t", kinds[k], adapterOf(b, "length"), s); err != nil {
			t.Fatal(err)
		}
	}
	for name, broken := range map[string]*stackFake{
		"fails": {tailFake: tailFake{fails: errors.New("boom")}}, "narrow": {tails: tails}, "flat": {tails: tails, widest: 1, gone: true},
	} {
		if _, err := e.WithStack(broken, kinds); err == nil || !strings.Contains(err.Error(), "canary") {
			t.Errorf("a stack that %s: %v, want the canary's error", name, err)
		}
	}
	if _, err := e.WithStack(&stackFake{tails: tails, widest: 1, off: -50}, kinds); err == nil || !strings.Contains(err.Error(), "otherwise") {
		t.Errorf("a stack that says something else than its adapters: %v", err)
	}
	if _, err := e.WithStack(&stackFake{}, []signal.Kind{signal.Domain}); err == nil {
		t.Error("a kind of the bundle was stacked")
	}
	s := &stackFake{tails: tails, widest: 3}
	if e, err = e.WithStack(s, kinds); err != nil {
		t.Fatal(err)
	}
	c, err := New([]Source{{Engine: e}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"long", "long", "short", "long"} // of five tokens
	ask := func(text string, fails error, n, stackRuns, tailRuns int) {
		t.Helper()
		s.runs, s.fails = 0, fails
		for _, tail := range tails {
			tail.runs = 0
		}
		var need signal.Mask
		for _, k := range kinds[:n] {
			need |= signal.MaskOf(k)
		}
		x := singleText(text)
		set, alone := extract(t, c, &x, need), 0
		for k, kind := range kinds[:n] {
			if v := set.Value(kind); v.State != signal.Known || v.Label != want[k] {
				t.Errorf("%d tails, tail %d: %v %q (%s), want %q", n, k, v.State, v.Label, v.Reason, want[k])
			}
		}
		for _, tail := range tails {
			alone += tail.runs
		}
		if s.runs != stackRuns || alone != tailRuns {
			t.Errorf("%d tails: %d runs of the stack and %d of tails, want %d and %d", n, s.runs, alone, stackRuns, tailRuns)
		}
	}
	ask("math word w1", nil, 4, 1, 0)
	ask("math word w2", nil, 2, 1, 0)
	ask("math word w3", nil, 1, 0, 1)
	ask("math word w4", errors.New("boom"), 3, 1, 3)
	s.runs, s.fails = 0, refused{}
	for _, tail := range tails {
		tail.runs = 0
	}
	busy := singleText("math word w5")
	set := extract(t, c, &busy, signal.MaskOf(kinds[0])|signal.MaskOf(kinds[1]))
	if v := set.Value(kinds[0]); v.Reason != signal.ReasonOverload || s.runs != 1 || tails[0].runs+tails[1].runs != 0 {
		t.Errorf("a stack that is refused: %s, %d and %d runs; nothing is tried again", v.Reason, s.runs, tails[0].runs+tails[1].runs)
	}
}

// refused is a session that has no room.
type refused struct{}

func (refused) Error() string         { return "no room" }
func (refused) Reason() signal.Reason { return signal.ReasonOverload }

func TestAStackIsWorthItsCost(t *testing.T) {
	for _, c := range []struct {
		tails, asked int
		want         bool
	}{{2, 1, false}, {2, 2, true}, {3, 2, true}, {6, 2, false}, {8, 2, false}, {8, 3, true}} {
		if got := (&stack{tails: c.tails}).worth(c.asked); got != c.want {
			t.Errorf("%d of %d: %v", c.asked, c.tails, got)
		}
	}
}
