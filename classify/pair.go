package classify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
)

// Pair is two texts that a model reads together, such as a premise and a claim about it.
type Pair struct{ First, Second string }

// ErrNoTask reports a task that no bundle provides, or whose bundle cannot run.
var ErrNoTask = errors.New("no model for this task")

// PairLabels returns the labels of a task over pairs, in the order of the probabilities that
// ClassifyPairs gives, or nil when there is no such task. The caller must not modify it.
func (c *Classifier) PairLabels(task string) []string {
	if _, t := c.pairTask(task); t != nil {
		return t.Labels
	}
	return nil
}

// ClassifyPairs returns the calibrated probabilities of every pair, [len(pairs)][len(labels)], which
// the caller owns. A pair that is longer than a row loses the end of its longer text. Errors:
// ErrNoTask, those of the session, a Reasoned error for invalid output, and ctx's. Options.Timeout
// does not apply: the caller's context does.
func (c *Classifier) ClassifyPairs(ctx context.Context, task string, pairs []Pair) ([][]float32, error) {
	e, t := c.pairTask(task)
	if t == nil || !e.Ready() {
		return nil, fmt.Errorf("classify pairs: %w: %q", ErrNoTask, task)
	}
	out, err := e.classifyPairs(ctx, t, pairs, &c.opts)
	if err != nil {
		return nil, fmt.Errorf("classify pairs: %w", err)
	}
	return out, nil
}

func (c *Classifier) pairTask(name string) (*Engine, *task) {
	for _, s := range c.sources {
		for i := range s.Engine.tasks {
			if t := &s.Engine.tasks[i]; t.Kind == bundle.Pair && t.Name == name {
				return s.Engine, t
			}
		}
	}
	return nil, nil
}

func (e *Engine) classifyPairs(ctx context.Context, t *task, pairs []Pair, o *Options) (out [][]float32, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = recovered(v)
		}
	}()
	at := slices.IndexFunc(e.tasks, func(other task) bool { return other.Task == t.Task })
	p := new(pass)
	p.reset(e, nil, o)
	for i := range pairs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var first, second tokenize.Encoding
		e.tokens.Encode(pairs[i].First, &first)
		e.tokens.Encode(pairs[i].Second, &second)
		a, b := fit(first.IDs, second.IDs, t.Window.Tokens-e.pairSpecials)
		p.rows = append(p.rows, row{ids: a, with: b, pair: true, tasks: 1 << at, first: int32(i)})
		p.reads = append(p.reads, read{task: int32(at), next: -1})
	}
	p.plans = append(p.plans, taskPlan{task: at, reads: span{0, len(pairs)}})
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	if p.plans[0].failed != signal.ReasonNone {
		return nil, &outputError{fmt.Sprintf("%q of bundle %q", t.Output, e.name)}
	}
	probs := make([]float64, len(t.Labels))
	out = make([][]float32, len(pairs))
	for i := range p.reads {
		softmax(probs, p.reads[i].out, t.Temperature)
		out[i] = make([]float32, len(probs))
		for j, q := range probs {
			out[i][j] = float32(q)
		}
	}
	return out, nil
}

// fit cuts the ends of two texts so that they have at most room tokens together, the longer one
// first.
func fit(a, b []int32, room int) ([]int32, []int32) {
	over := len(a) + len(b) - max(room, 2)
	if over <= 0 {
		return a, b
	}
	long, short := &a, &b
	if len(b) > len(a) {
		long, short = &b, &a
	}
	cut := min(over, len(*long)-len(*short))
	*long = (*long)[:len(*long)-cut]
	over -= cut
	*long = (*long)[:len(*long)-(over+1)/2]
	*short = (*short)[:len(*short)-over/2]
	return a, b
}
