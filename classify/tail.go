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

// tail is the graph of an adapter, which goes on from what the graph of the bundle has computed.
type tail struct {
	session Session
	info    *trained.Info
	width   int          // of its output
	taps    []bundle.Tap // in the order of its inputs
	masked  bool
}

// WithTail returns an engine that gives one kind more: what an adapter says, by a session that runs
// its graph. It shares session, tokenizer and memory with e, which stays as it is; neither owns a
// session. The adapter reads the last user message in rows of its own length: where that is the
// length of the bundle's rows, it shares the row, and the bundle's graph runs once for both. Tails
// of a run of many tokens run beside each other, those of a short one in turn.
//
// Errors: an adapter that was trained on another graph than the bundle's (bundle.ErrNoGraph), one
// whose taps the session of e does not give (*GraphError), and one that gives no answer to the
// bundle's canary (*CanaryError).
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
	out := &Engine{
		name: e.name, manifest: e.manifest, tokens: e.tokens, session: e.session, provider: e.provider,
		lead: e.lead, specials: e.specials, pairSpecials: e.pairSpecials, pairLead: e.pairLead,
		separator: e.separator, scanner: e.scanner, memo: e.memo,
		signals: e.signals | signal.MaskOf(kind),
		tasks:   slices.Clone(e.tasks),
	}
	out.tasks = append(out.tasks, task{
		Task: &bundle.Task{
			Name: name, Kind: bundle.Sequence, Output: bundle.AdapterOutput, Labels: a.Labels, Temperature: 1,
			Window: bundle.Window{Tokens: a.Tokens, Skeleton: a.Skeleton},
		},
		kind: kind, positive: -1, tail: t,
	})
	if err := out.tailCanary(&out.tasks[len(out.tasks)-1]); err != nil {
		return fail(err)
	}
	return out, nil
}

// maxTasks is how many tasks the bits of a row can name.
const maxTasks = 32

// tapsOf finds the taps of an adapter by their names, and checks that the sessions agree on them.
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

// tailCanary lets an adapter read the bundle's canary.
func (e *Engine) tailCanary(t *task) error {
	ctx, cancel := context.WithTimeout(context.Background(), canaryTimeout)
	defer cancel()
	o := DefaultOptions()
	text := singleText(canaryText)
	set, need := new(signal.Set), signal.MaskOf(t.kind)
	err := e.extract(ctx, newGather(nil, newRequest(&text, everyWindow, &o), need, set, nil, nil), need, false, &o)
	if v := set.Value(t.kind); v.State != signal.Known {
		return &CanaryError{Bundle: e.name, Task: t.Name, Reason: v.Reason, Err: err}
	}
	return nil
}

// appendTaps adds the outputs that tails go on from to dst, each once.
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

// tailError is the fault of one adapter, which leaves its neighbours alone.
type tailError struct {
	name string
	err  error
}

func (e *tailError) Error() string       { return fmt.Sprintf("adapter %q: %v", e.name, e.err) }
func (e *tailError) Unwrap() error       { return e.err }
func (*tailError) Reason() signal.Reason { return signal.ReasonInvalid }

// besideTokens is the least number of tokens of a run whose tails run beside each other. A tail takes
// 0.1 ms for 16 tokens and 0.4 ms for 256; to hand it to another thread, which has to be woken, costs
// about 0.15 ms of processor time (2 vCPU of an AMD EPYC).
const besideTokens = 1024

// runTails runs the tails of rows, those of many tokens beside each other, the last of them here. Its
// errors are *tailError, joined, of what is for a log; each tail's task knows why it has no answer.
func (p *pass) runTails(ctx context.Context, rows []int32, tails []int, taps []tensor.Tensor) error {
	if len(tails) == 0 {
		return nil
	}
	outs, errs := make([][]tensor.Tensor, len(tails)), make([]error, len(tails))
	run := func(k int) { outs[k], errs[k] = p.runTail(ctx, &p.e.tasks[tails[k]], taps) }
	var others sync.WaitGroup
	for k := range len(tails) - 1 {
		if p.shape[0]*p.shape[1] < besideTokens {
			run(k)
		} else {
			others.Go(func() { run(k) })
		}
	}
	run(len(tails) - 1)
	others.Wait()
	var faults []error
	for k, i := range tails {
		if errs[k] == nil {
			p.collect(i, rows, &outs[k][0])
			continue
		}
		why := reasonOf(ctx, errs[k])
		p.planOf(i).failed = why
		if why == signal.ReasonInvalid || why == signal.ReasonInternal {
			faults = append(faults, &tailError{p.e.tasks[i].Name, errs[k]})
		}
	}
	return errors.Join(faults...)
}

// runTail runs the graph of one adapter. taps are what the bundle's graph gave, by value.
func (p *pass) runTail(ctx context.Context, t *task, taps []tensor.Tensor) (out []tensor.Tensor, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = recovered(v)
		}
	}()
	in := make([]tensor.Tensor, 0, len(t.tail.taps)+1)
	for _, tap := range t.tail.taps {
		at := slices.IndexFunc(taps, func(x tensor.Tensor) bool { return x.Name == tap.Value })
		if at < 0 {
			return nil, &outputError{fmt.Sprintf("no tap %q", tap.Name)}
		}
		x := taps[at]
		x.Name = tap.Name
		in = append(in, x)
	}
	if t.tail.masked {
		in = append(in, tensor.Tensor{Name: bundle.AdapterMask, Shape: p.shape[:], I64: p.mask})
	}
	if out, err = t.tail.session.Run(ctx, in, []string{bundle.AdapterOutput}); err != nil {
		return nil, err
	}
	if len(out) != 1 {
		return nil, &outputError{fmt.Sprintf("%d outputs, want 1", len(out))}
	}
	return out, nil
}

// adapted sets v to what an adapter says of the plan's row.
func (p *pass) adapted(t *task, plan *taskPlan, v *signal.Value) {
	r := t.tail.info.Result(p.reads[plan.reads.from].out)
	v.State, v.Labels, v.Probs, v.Label, v.Score = signal.Known, t.Labels, r.Probs, r.Label, r.Score
}
