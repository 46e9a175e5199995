package classify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"signalbox/classify/bundle"
	trained "signalbox/classify/head"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// tail is the graph of an adapter, which continues from intermediate results of the bundle's graph.
type tail struct {
	session Session
	info    *trained.Info
	width   int          // length of its output
	taps    []bundle.Tap // in the order of its inputs
	masked  bool
	stack   *stack // the stack that runs it together with others; nil if it runs alone
	at      int    // its index in the stack
}

// stack is the joint graph of several adapters (bundle.Stack).
type stack struct {
	session Session
	tails   int // number of tails in it
}

// worth reports whether running all tails of the stack costs less than running n of them one by
// one: each tail beyond the first costs about a third of a run of its own (0.055 ms alone, 0.088 ms
// for three and 0.155 ms for eight of 16 tokens, 2 vCPU of an AMD EPYC with AVX-512 VNNI).
func (s *stack) worth(n int) bool { return n > 1 && 3*n > s.tails }

// WithTail returns an engine with one more kind, computed by an adapter whose graph runs in
// session. It shares session, tokenizer and memory with e, which remains unchanged; neither engine
// owns a session. The adapter reads the last user message in rows of its own length. If that equals
// the length of the bundle's rows, it shares the row, and the bundle's graph runs once for both.
// The tails of a run with many tokens run in parallel, those of a short run one after another.
//
// Errors: bundle.ErrNoGraph for an adapter that was trained on another graph than the bundle's,
// *GraphError for one whose taps the session of e does not provide, and *CanaryError for one that
// does not answer the bundle's canary.
func (e *Engine) WithTail(name string, kind signal.Kind, a *bundle.Adapter, session Session) (*Engine, error) {
	fail := func(err error) (*Engine, error) { return nil, fmt.Errorf("adapter %q: %w", name, err) }
	switch {
	case e.session == nil:
		return fail(fmt.Errorf("bundle %q: no session", e.name))
	case e.signals.Has(kind) || kind >= signal.NumKinds:
		return fail(fmt.Errorf("bundle %q gives kind %d already, or it is none", e.name, kind))
	case len(e.tasks) >= maxTasks:
		return fail(fmt.Errorf("bundle %q has %d tasks, the most that there can be", e.name, maxTasks))
	case a.Tokens > e.manifest.MaxTokens:
		return fail(fmt.Errorf("rows of %d tokens, the bundle reads %d", a.Tokens, e.manifest.MaxTokens))
	}
	_, known, err := e.manifest.Taps(a.Base.SHA256)
	if err != nil {
		return fail(fmt.Errorf("it was trained on another model, %s %s: %w", a.Base.Name, a.Base.Version, err))
	}
	t := &tail{session: session, masked: a.Masked, width: a.Width()}
	t.info, err = trained.NewInfo(trained.Mode(a.Mode), a.Labels, a.Scale, a.Shift, a.Thresholds)
	if err != nil {
		return fail(err)
	}
	if t.taps, err = e.tapsOf(a.Taps, known, session); err != nil {
		return fail(err)
	}
	out := e.clone()
	out.signals |= signal.MaskOf(kind)
	out.tasks = append(out.tasks, task{
		Task: &bundle.Task{
			Name: name, Kind: bundle.Sequence, Output: bundle.AdapterOutput, Labels: a.Labels, Temperature: 1,
			Window: bundle.Window{Tokens: a.Tokens, Skeleton: a.Skeleton},
		},
		kind: kind, positive: -1, tail: t,
	})
	if _, err := out.tailCanary(kind); err != nil {
		return fail(err)
	}
	return out, nil
}

// clone returns an engine with its own tasks that shares everything else.
func (e *Engine) clone() *Engine {
	return &Engine{
		name: e.name, manifest: e.manifest, tokens: e.tokens, session: e.session, provider: e.provider,
		lead: e.lead, specials: e.specials, pairSpecials: e.pairSpecials, pairLead: e.pairLead,
		separator: e.separator, scanner: e.scanner, turns: e.turns, memo: e.memo,
		signals: e.signals,
		tasks:   slices.Clone(e.tasks),
	}
}

// WithStack returns an engine that runs the adapters of kinds, which WithTail has added, as one
// graph: that of bundle.Stack for them, in the order of kinds. If only a few of them are needed, or
// the graph fails, each runs alone. Otherwise the documentation of WithTail applies.
//
// Errors: a kind without an adapter, *CanaryError, and a graph whose results for the canary differ
// from those of the adapters alone.
func (e *Engine) WithStack(session Session, kinds []signal.Kind) (*Engine, error) {
	st := &stack{session: session, tails: len(kinds)}
	out, probe := e.clone(), e.clone() // tails of probe cannot run alone
	for at, kind := range kinds {
		i := slices.IndexFunc(e.tasks, func(t task) bool { return t.kind == kind && t.tail != nil })
		if i < 0 {
			return nil, fmt.Errorf("bundle %q: no adapter gives kind %d", e.name, kind)
		}
		t := *e.tasks[i].tail
		t.stack, t.at = st, at
		out.tasks[i].tail = &t
		stackOnly := t
		stackOnly.session = noSession{}
		probe.tasks[i].tail = &stackOnly
	}
	want, err := e.tailCanary(kinds...)
	if err != nil {
		return nil, err
	}
	got, err := probe.tailCanary(kinds...)
	if err != nil {
		return nil, fmt.Errorf("adapters as one graph: %w", err)
	}
	for _, k := range kinds {
		for i, p := range want.Value(k).Probs {
			if d := p - got.Value(k).Probs[i]; d > stackTolerance || d < -stackTolerance {
				return nil, fmt.Errorf("adapters as one graph: %q says otherwise than alone, %.3f where it is %.3f",
					e.taskOf(k).Name, got.Value(k).Probs[i], p)
			}
		}
	}
	return out, nil
}

// stackTolerance is the permitted difference in a probability of the canary in a stack, where sums
// are rounded differently.
const stackTolerance = 1e-3

// noSession fails every run.
type noSession struct{ Session }

func (noSession) Run(context.Context, []tensor.Tensor, []string) ([]tensor.Tensor, error) {
	return nil, &outputError{"no session"}
}

// maxTasks is the number of tasks that fit into the bit set of a row.
const maxTasks = 32

// tapsOf finds the taps of an adapter by name, and checks that the sessions agree on them.
func (e *Engine) tapsOf(names []string, known []bundle.Tap, session Session) ([]bundle.Tap, error) {
	outputs, inputs := e.session.Outputs(), session.Inputs()
	var taps []bundle.Tap
	for _, name := range names {
		at := slices.IndexFunc(known, func(t bundle.Tap) bool { return t.Name == name })
		if at < 0 {
			return nil, e.graphError(name, "is no tap of the graph that the adapter was trained on")
		}
		tap := known[at]
		given, ok := spec(outputs, tap.Value)
		if !ok {
			return nil, e.graphError(name, "is not given by the graph that runs here, which is one of "+
				"another precision, or on another server")
		}
		taken, _ := spec(inputs, name)
		if given.Shape != nil && !agree(given.Shape, tap.Shape) || taken.DType != tensor.Float32 ||
			taken.Shape != nil && !agree(taken.Shape, tap.Shape) {
			return nil, e.graphError(name, "has shape %v, the bundle says %v, the adapter takes %v", given.Shape,
				tap.Shape, taken.Shape)
		}
		taps = append(taps, tap)
	}
	return taps, nil
}

// tailCanary classifies the bundle's canary with adapters and returns their values; it is an error
// if one of them is unknown.
func (e *Engine) tailCanary(kinds ...signal.Kind) (*signal.Set, error) {
	ctx, cancel := context.WithTimeout(context.Background(), canaryTimeout)
	defer cancel()
	o := DefaultOptions()
	text := singleText(canaryText)
	set, need := new(signal.Set), signal.Mask(0)
	for _, k := range kinds {
		need |= signal.MaskOf(k)
	}
	err := e.extract(ctx, newGather(nil, newRequest(&text, everyWindow, &o), need, set, nil, nil), need, false, &o)
	for _, k := range kinds {
		if v := set.Value(k); v.State != signal.Known {
			return nil, &CanaryError{Bundle: e.name, Task: e.taskOf(k).Name, Reason: v.Reason, Err: err}
		}
	}
	return set, nil
}

// appendTaps appends the outputs that tails continue from to dst, each once.
func (e *Engine) appendTaps(dst []string, tails []int) []string {
	from := len(dst)
	for _, i := range tails {
		for _, tap := range e.tasks[i].tail.taps {
			if !slices.Contains(dst[from:], tap.Value) {
				dst = append(dst, tap.Value)
			}
		}
	}
	return dst
}

// tailError is the error of one adapter, which does not affect the others.
type tailError struct {
	name string
	err  error
}

func (e *tailError) Error() string       { return fmt.Sprintf("adapter %q: %v", e.name, e.err) }
func (e *tailError) Unwrap() error       { return e.err }
func (*tailError) Reason() signal.Reason { return signal.ReasonInvalid }

// besideTokens is the minimum number of tokens of a run whose tails run in parallel. A tail takes
// 0.1 ms for 16 tokens and 0.4 ms for 256; waking another thread for it costs about 0.15 ms of
// processor time (2 vCPU of an AMD EPYC).
const besideTokens = 1024

// tailOut is the output of a tail for the rows of a run, float32 [rows, width], or the reason for
// its absence.
type tailOut struct {
	x   tensor.Tensor
	err error
}

// runTails runs the tails of rows: those of a stack as one graph, and the graphs in parallel if
// there are many tokens, the last of them on this goroutine. Its errors are *tailError, joined, and
// are only meant for a log; the task of each tail holds the reason why it has no value.
func (p *pass) runTails(ctx context.Context, rows []int32, tails []int, taps []tensor.Tensor) error {
	if len(tails) == 0 {
		return nil
	}
	outs, groups := make([]tailOut, len(tails)), p.tailGroups(tails)
	run := func(k int) { p.runGroup(ctx, tails, groups[k], taps, outs) }
	var others sync.WaitGroup
	for k := range len(groups) - 1 {
		if p.shape[0]*p.shape[1] < besideTokens {
			run(k)
		} else {
			others.Go(func() { run(k) })
		}
	}
	run(len(groups) - 1)
	others.Wait()
	var faults []error
	for k, i := range tails {
		if outs[k].err == nil {
			p.collect(i, rows, &outs[k].x)
			continue
		}
		why := reasonOf(ctx, outs[k].err)
		p.planOf(i).failed = why
		if why == signal.ReasonInvalid || why == signal.ReasonInternal {
			faults = append(faults, &tailError{p.e.tasks[i].Name, outs[k].err})
		}
	}
	return errors.Join(faults...)
}

// tailGroups groups tails by the graph that runs them. A group holds indices of tails.
func (p *pass) tailGroups(tails []int) [][]int {
	stackOf := func(k int) *stack { return p.e.tasks[tails[k]].tail.stack }
	var groups [][]int
	for k := range tails {
		at := slices.IndexFunc(groups, func(g []int) bool { return stackOf(k) != nil && stackOf(g[0]) == stackOf(k) })
		if at < 0 {
			groups = append(groups, []int{k})
		} else {
			groups[at] = append(groups[at], k)
		}
	}
	return groups
}

// runGroup runs the members of group, indices of tails, and sets their outs.
func (p *pass) runGroup(ctx context.Context, tails, group []int, taps []tensor.Tensor, outs []tailOut) {
	tailAt := func(k int) *tail { return p.e.tasks[tails[k]].tail }
	if st := tailAt(group[0]).stack; st != nil && st.worth(len(group)) {
		all, err := p.runTail(ctx, tailAt(group[0]), st.session, taps)
		if err == nil && !st.shaped(&all, p.shape[0]) {
			err = &outputError{fmt.Sprintf("shape %v of %d adapters", all.Shape, st.tails)}
		}
		for _, k := range group {
			if outs[k].err = err; err == nil {
				outs[k] = st.part(&all, tailAt(k))
			}
		}
		if why := reasonOf(ctx, err); why != signal.ReasonInvalid && why != signal.ReasonInternal {
			return
		}
		// The faulty one is found by running each alone.
	}
	for _, k := range group {
		x, err := p.runTail(ctx, tailAt(k), tailAt(k).session, taps)
		if err == nil && len(x.Shape) == 3 && x.Shape[1] == 1 { // the axis of adapters
			x.Shape = []int64{x.Shape[0], x.Shape[2]}
		}
		outs[k] = tailOut{x, err}
	}
}

// shaped reports whether all has the shape of the stack's output for so many rows.
func (s *stack) shaped(all *tensor.Tensor, rows int64) bool {
	return len(all.Shape) == 3 && slices.Equal(all.Shape[:2], []int64{rows, int64(s.tails)}) &&
		int64(len(all.F32)) == rows*int64(s.tails)*all.Shape[2]
}

// part returns the output of a tail from all, the output of its stack, [rows, tails, widest].
func (s *stack) part(all *tensor.Tensor, t *tail) tailOut {
	rows, widest := int(all.Shape[0]), int(all.Shape[2])
	if t.width > widest {
		return tailOut{err: &outputError{fmt.Sprintf("%d numbers for an adapter, want %d", widest, t.width)}}
	}
	x := tensor.Tensor{Shape: []int64{all.Shape[0], int64(t.width)}, F32: make([]float32, 0, rows*t.width)}
	for r := range rows {
		from := (r*s.tails + t.at) * widest
		x.F32 = append(x.F32, all.F32[from:from+t.width]...)
	}
	return tailOut{x: x}
}

// runTail runs the graph of an adapter, or of its stack. taps are the outputs of the bundle's
// graph, by value.
func (p *pass) runTail(ctx context.Context, t *tail, session Session, taps []tensor.Tensor,
) (x tensor.Tensor, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = recovered(v)
		}
	}()
	in := make([]tensor.Tensor, 0, len(t.taps)+1)
	for _, tap := range t.taps {
		at := slices.IndexFunc(taps, func(x tensor.Tensor) bool { return x.Name == tap.Value })
		if at < 0 {
			return x, &outputError{fmt.Sprintf("no tap %q", tap.Name)}
		}
		given := taps[at]
		given.Name = tap.Name
		in = append(in, given)
	}
	if t.masked {
		in = append(in, tensor.Tensor{Name: bundle.AdapterMask, Shape: p.shape[:], I64: p.mask})
	}
	out, err := session.Run(ctx, in, []string{bundle.AdapterOutput})
	if err != nil {
		return x, err
	}
	if len(out) != 1 {
		return x, &outputError{fmt.Sprintf("%d outputs, want 1", len(out))}
	}
	return out[0], nil
}

// adapted sets v to the output of an adapter for the plan's row.
func (p *pass) adapted(t *task, plan *taskPlan, v *signal.Value) {
	r := t.tail.info.Result(p.reads[plan.reads.from].out)
	v.State, v.Labels, v.Probs, v.Label, v.Score = signal.Known, t.Labels, r.Probs, r.Label, r.Score
}
