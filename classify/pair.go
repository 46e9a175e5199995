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

// Pair is two texts that a model reads together, such as a premise and a claim.
type Pair struct{ First, Second string }

// ErrNoTask reports a task that no bundle provides, or whose bundle cannot run.
var ErrNoTask = errors.New("no model for this task")

// PairLabels returns the labels of a task over pairs, in the order of the probabilities that
// ClassifyPairs returns, or nil if there is no such task. The caller must not modify the result.
func (c *Classifier) PairLabels(task string) []string {
	if _, t := c.pairTask(task); t != nil {
		return t.Labels
	}
	return nil
}

// ClassifyPairs returns the calibrated probabilities of every pair, [len(pairs)][len(labels)],
// which the caller owns. If a pair is longer than a row, the end of its first text is cut; the
// second text is cut only if it would leave less than a quarter of the row to a longer first text.
// Errors: ErrNoTask, those of the session, a Reasoned error for invalid output, and ctx's.
// Options.Timeout does not apply; only the caller's context limits the call.
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
	return c.findTask(func(t *task) bool { return t.Kind == bundle.Pair && t.Name == name })
}

func (c *Classifier) findTask(is func(t *task) bool) (*Engine, *task) {
	for _, s := range c.sources {
		if s.Foreign {
			continue
		}
		if i := slices.IndexFunc(s.Engine.tasks, func(t task) bool { return is(&t) }); i >= 0 {
			return s.Engine, &s.Engine.tasks[i]
		}
	}
	return nil, nil
}

// pairPass returns a pass for one task over rows of two texts, with room for so many texts.
func (e *Engine) pairPass(t *task, texts int, o *Options) *pass {
	p, ok := e.passes.Get().(*pass)
	if !ok {
		p = new(pass)
	}
	p.reset(e, nil, o)
	for len(p.texts) < texts {
		p.texts = append(p.texts, tokenize.Encoding{})
	}
	at := slices.IndexFunc(e.tasks, func(other task) bool { return other.Task == t.Task })
	p.plans = append(p.plans, taskPlan{task: at})
	return p
}

// addPair adds a row of two texts.
func (p *pass) addPair(first, second []int32) {
	at := p.plans[0].task
	p.rows = append(p.rows, row{ids: first, with: second, pair: true, tasks: 1 << at, first: int32(len(p.reads))})
	p.reads = append(p.reads, read{task: int32(at), next: -1})
}

// runPairs computes the rows added by addPair. The outputs are in the reads, in the same order.
func (p *pass) runPairs(ctx context.Context) error {
	p.plans[0].reads = span{0, len(p.reads)}
	if err := p.run(ctx); err != nil {
		return err
	}
	if p.plans[0].failed != signal.ReasonNone {
		return &outputError{fmt.Sprintf("%q of bundle %q", p.e.tasks[p.plans[0].task].Output, p.e.name)}
	}
	return nil
}

// putBack returns a pass to the pool if it is worth keeping.
func (e *Engine) putBack(p *pass) {
	if p.small() {
		p.release()
		e.passes.Put(p)
	}
}

func (e *Engine) classifyPairs(ctx context.Context, t *task, pairs []Pair, o *Options) (out [][]float32, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = recovered(v)
		}
	}()
	p := e.pairPass(t, 2*len(pairs), o)
	for i := range pairs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first, second := &p.texts[2*i], &p.texts[2*i+1]
		e.tokens.Encode(pairs[i].First, first)
		e.tokens.Encode(pairs[i].Second, second)
		p.addPair(fit(first.IDs, second.IDs, t.Window.Tokens-e.pairSpecials))
	}
	if err := p.runPairs(ctx); err != nil {
		return nil, err
	}
	out = p.probabilities(t)
	e.putBack(p)
	return out, nil
}

// probabilities returns the probabilities of the labels of t for every read.
func (p *pass) probabilities(t *task) [][]float32 {
	width := len(t.Labels)
	probs := make([]float64, width)
	values := make([]float32, len(p.reads)*width)
	out := make([][]float32, len(p.reads))
	for i := range p.reads {
		softmax(probs, p.reads[i].out, t.Temperature)
		out[i] = values[i*width : (i+1)*width : (i+1)*width]
		for j, q := range probs {
			out[i][j] = float32(q)
		}
	}
	return out
}

// fit cuts the ends of two texts so that together they have at most room tokens: the first one down
// to a quarter of the room, and only then the second. Half a claim is a different claim; half of
// the evidence is still evidence.
func fit(first, second []int32, room int) (a, b []int32) {
	room = max(room, 2)
	keep := min(len(first), max(room/4, 1))
	second = second[:min(len(second), room-keep)]
	return first[:min(len(first), room-len(second))], second
}
