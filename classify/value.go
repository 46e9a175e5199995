package classify

import (
	"context"
	"math"
	"slices"
	"time"

	"signalbox/classify/bundle"
	"signalbox/internal/signal"
)

// finish settles every kind of need. why is the reason for reads that were not run.
func (p *pass) finish(ctx context.Context, need signal.Mask, why signal.Reason) {
	for i := range p.plans {
		p.plans[i].ready = true
	}
	p.deliver(ctx, why)
	for i := range p.plans {
		if p.plans[i].done {
			// another engine may still compute it
			need &^= signal.MaskOf(p.e.tasks[p.plans[i].task].kind)
		}
	}
	if why == signal.ReasonNone {
		why = signal.ReasonInternal
	}
	p.g.fail(need, why)
	p.g.narrow()
}

// report settles the tasks whose rows have all run, while rows of others remain.
func (p *pass) report(ctx context.Context) {
	for i := range p.plans {
		plan := &p.plans[i]
		plan.ready = p.failure(plan, signal.ReasonInternal) == signal.ReasonNone
	}
	p.deliver(ctx, signal.ReasonNone)
	p.g.narrow()
}

// deliver settles the tasks that are ready. Token tasks come last, because they match patterns
// against the whole text.
func (p *pass) deliver(ctx context.Context, why signal.Reason) {
	for _, last := range [...]bool{false, true} {
		for i := range p.plans {
			plan := &p.plans[i]
			t := &p.e.tasks[plan.task]
			if !plan.ready || plan.done || (t.Kind == bundle.Token) != last {
				continue
			}
			plan.done = true
			if kind := signal.MaskOf(t.kind); p.g.wanted(kind) != 0 {
				stageCtx, leave := p.g.enter(ctx, kind)
				v := p.value(stageCtx, t, plan, why)
				leave()
				plan.known = v.State == signal.Known
				p.g.put(t.kind, v)
			}
		}
	}
}

// value returns the value of a task. why is the reason for reads that were not run.
func (p *pass) value(ctx context.Context, t *task, plan *taskPlan, why signal.Reason) signal.Value {
	v := signal.Value{
		Source: p.e.name, Provider: p.e.provider, Elapsed: time.Since(p.begun),
		Coverage: plan.coverage, Windows: plan.windows, Read: plan.read,
	}
	if t.tail != nil {
		v.Source = t.Name
	}
	switch failed := p.failure(plan, why); {
	case failed == signal.ReasonNoText && attackKinds.Has(t.kind):
		harmless(t, &v)
	case failed == signal.ReasonNoText && t.kind == signal.PII:
		p.entities(ctx, t, plan, &v)
	case failed != signal.ReasonNone:
		v = unknown(&v, failed)
	case t.Kind == bundle.Embedding:
		p.embed(t, plan, &v)
	case t.Kind == bundle.Token:
		p.entities(ctx, t, plan, &v)
	case t.tail != nil:
		p.adapted(t, plan, &v)
	case attackKinds.Has(t.kind):
		p.judge(ctx, t, plan, &v)
	default:
		p.classify(t, plan, &v)
	}
	return v
}

// failure returns why a task of a pass has no value, or ReasonNone. why is the reason for reads
// that were not run.
func (p *pass) failure(plan *taskPlan, why signal.Reason) signal.Reason {
	if plan.failed != signal.ReasonNone {
		return plan.failed
	}
	for _, reads := range [...]span{plan.reads, plan.close} {
		for i := reads.from; i < reads.to; i++ {
			if p.reads[i].out == nil {
				return why
			}
		}
	}
	return signal.ReasonNone
}

// unknown returns v as an unknown value with the reason why.
func unknown(v *signal.Value, why signal.Reason) signal.Value {
	return signal.Value{State: signal.Unknown, Reason: why, Source: v.Source, Provider: v.Provider, Elapsed: v.Elapsed}
}

// finite reports whether x holds neither NaN nor an infinity.
func finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(f float32) bool { return math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) })
}

// softmax writes the probabilities of logits at temperature t to dst, which has the same length.
// The maximum is subtracted first, so that no exponential overflows.
func softmax(dst []float64, logits []float32, t float64) {
	top := math.Inf(-1)
	for _, l := range logits {
		top = max(top, float64(l))
	}
	sum := 0.0
	for i, l := range logits {
		dst[i] = math.Exp((float64(l) - top) / t)
		sum += dst[i]
	}
	for i := range dst {
		dst[i] /= sum
	}
}

// classify sets v to the mean of the calibrated probabilities of the plan's windows.
func (p *pass) classify(t *task, plan *taskPlan, v *signal.Value) {
	n := len(t.Labels)
	if cap(p.probs) < n {
		p.probs, p.sums = make([]float64, n), make([]float64, n)
	}
	probs, sums := p.probs[:n], p.sums[:n]
	clear(sums)
	reads := p.reads[plan.reads.from:plan.reads.to]
	for i := range reads {
		softmax(probs, reads[i].out, t.Temperature)
		for j, q := range probs {
			sums[j] += q / float64(len(reads))
		}
	}
	best := 0
	v.Probs = make([]float32, n)
	for j, q := range sums {
		v.Probs[j] = float32(q)
		if q > sums[best] {
			best = j
		}
	}
	v.State, v.Labels, v.Label, v.Score = signal.Known, t.Labels, t.Labels[best], min(sums[best], 1)
}

// harmless sets v for a request without any text for the task: there is nothing that could
// manipulate a model. Images are not read.
func harmless(t *task, v *signal.Value) {
	v.State, v.Labels, v.Probs = signal.Known, t.Labels, make([]float32, len(t.Labels))
	for i, l := range t.Labels {
		if i != t.positive {
			v.Label, v.Probs[i] = l, 1
			break
		}
	}
}

// pool reduces the token vectors of a row to one vector. values is [tokens, width], without
// padding. The result is a fresh slice unless a single token is selected. Without a pooling, values
// is the vector.
func pool(values []float32, width int, how bundle.Pooling) []float32 {
	switch how {
	case bundle.CLSPooling:
		return values[:width]
	case bundle.LastTokenPooling:
		return values[len(values)-width:]
	case bundle.MeanPooling:
		sum := make([]float32, width)
		for row := range slices.Chunk(values, width) {
			for i, x := range row {
				sum[i] += x
			}
		}
		n := float32(len(values) / width)
		for i := range sum {
			sum[i] /= n
		}
		return sum
	case bundle.NoPooling:
	}
	return values
}

// embed sets v to the L2-normalised mean of the plan's vectors. A vector without a direction is an
// invalid output.
func (p *pass) embed(t *task, plan *taskPlan, v *signal.Value) {
	sum := make([]float32, t.Dims)
	for _, r := range p.reads[plan.reads.from:plan.reads.to] {
		for i, x := range r.out {
			sum[i] += x
		}
	}
	norm := 0.0
	for _, x := range sum {
		norm += float64(x) * float64(x)
	}
	norm = math.Sqrt(norm)
	if norm == 0 || math.IsInf(norm, 0) {
		*v = unknown(v, signal.ReasonInvalid)
		return
	}
	for i := range sum {
		sum[i] = float32(float64(sum[i]) / norm)
	}
	v.State, v.Vector = signal.Known, sum
}
