package classify

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// chunkBytes is how much text is tokenised between two looks at the context.
const chunkBytes = 256 << 10

// smallestBucket is the row length, in tokens, below which rows share a batch.
const smallestBucket = 16

// maxPooledTokens is the most tokens for which a pass goes back to the pool.
const maxPooledTokens = 64 << 10

// view is a reading of the text that tasks share.
type view uint8

const (
	lastUser view = iota
	safety
	numViews
)

// pass is the scratch space of one neural pass. Its rows borrow ids from the views.
type pass struct {
	c       *Classifier
	views   [numViews]reading
	rows    []row
	index   map[rowKey]int32
	reads   []read
	plans   []taskPlan
	order   []int32
	chunk   tokenize.Encoding
	ids     []int64
	mask    []int64
	types   []int64
	shape   [2]int64
	in      []tensor.Tensor
	outputs []string
	wanted  []int // by output, the index of its task
	probs   []float64
	sums    []float64
}

// reading is the tokens of one view.
type reading struct {
	done bool
	ids  []int32
}

// rowKey tells which rows are the same: equal ranges of equal token sequences.
type rowKey struct {
	view     view
	from, to int32
}

// row is one row of a model input and who reads it.
type row struct {
	ids   []int32 // without special tokens
	tasks uint32  // bit i: task i reads it
	first int32   // its first read, -1 when there is none
}

// read is one window of one task. out has the length of the task's output and is set by run.
type read struct {
	task int32
	next int32 // the next read of the same row, -1 at the end
	out  []float32
}

// taskPlan is what one task reads in this pass.
type taskPlan struct {
	task    int
	reads   span // in pass.reads
	windows int  // that cover the text
	failed  signal.Reason
}

type span struct{ from, to int }

func (p *pass) reset(c *Classifier) {
	p.c = c
	for i := range p.views {
		p.views[i].done = false
		p.views[i].ids = p.views[i].ids[:0]
	}
	if p.index == nil {
		p.index = make(map[rowKey]int32)
	}
	clear(p.index)
	clear(p.reads) // lets go of the outputs of the last pass
	p.rows, p.reads, p.plans, p.order = p.rows[:0], p.reads[:0], p.plans[:0], p.order[:0]
}

// small reports whether the pass is worth keeping.
func (p *pass) small() bool {
	return cap(p.views[lastUser].ids)+cap(p.views[safety].ids) <= maxPooledTokens && len(p.ids) <= maxPooledTokens
}

// plan tokenises the views and lays out the rows.
func (p *pass) plan(ctx context.Context, text *signal.Text, need signal.Mask) error {
	for i := range p.c.tasks {
		t := &p.c.tasks[i]
		if !need.Has(t.kind) {
			continue
		}
		v, err := p.read(ctx, text, t.view)
		if err != nil {
			return err
		}
		p.addTask(i, v)
	}
	return nil
}

// addTask lays out the windows of task i over view v.
func (p *pass) addTask(i int, v view) {
	t := &p.c.tasks[i]
	ids := p.views[v].ids
	if len(ids) == 0 {
		p.plans = append(p.plans, taskPlan{task: i, failed: signal.ReasonNoText})
		return
	}
	windows := p.c.tokens.Windows(len(ids), t.Window.Tokens, t.Window.Stride)
	all := windows.Len()
	count := all
	if t.Window.Max > 0 {
		count = min(all, t.Window.Max)
	}
	start := len(p.reads)
	for k := range count {
		if k == count-1 {
			k = all - 1 // the end of a text, where the question often is
		}
		from, to := windows.At(k)
		r := p.row(rowKey{v, int32(from), int32(to)}, ids[from:to])
		p.reads = append(p.reads, read{task: int32(i), next: r.first})
		r.tasks |= 1 << i
		r.first = int32(len(p.reads) - 1)
	}
	p.plans = append(p.plans, taskPlan{task: i, reads: span{start, len(p.reads)}, windows: all})
}

// row returns the row of k, valid until the next call.
func (p *pass) row(k rowKey, ids []int32) *row {
	r, ok := p.index[k]
	if !ok {
		r = int32(len(p.rows))
		p.rows = append(p.rows, row{ids: ids, first: -1})
		p.index[k] = r
	}
	return &p.rows[r]
}

// read tokenises view v once and returns the view whose tokens to use: the other one when its
// tokens are the same, so that both share rows.
func (p *pass) read(ctx context.Context, text *signal.Text, v view) (view, error) {
	joined := text.LastUser
	if v == safety {
		joined = safetyText(text)
		if joined == text.LastUser {
			v = lastUser
		}
	}
	if p.views[v].done {
		return v, nil
	}
	if err := p.encode(ctx, joined, &p.views[v].ids); err != nil {
		return v, err
	}
	p.views[v].done = true
	if other := 1 - v; p.views[other].done && slices.Equal(p.views[other].ids, p.views[v].ids) {
		return other, nil
	}
	return v, nil
}

// safetyText joins every segment that has text, in order, by line breaks.
func safetyText(text *signal.Text) string {
	only, n, size := "", 0, 0
	for _, s := range text.Segments {
		if s.Text != "" {
			only = s.Text
			n++
			size += len(s.Text) + 1
		}
	}
	if n <= 1 {
		return only
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range text.Segments {
		if s.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s.Text)
	}
	return b.String()
}

// encode appends the tokens of text to ids. Long texts are cut at white space into chunks, and the
// context is checked between them; with tokenizers that split at white space that changes nothing,
// with others at most the tokens at a cut.
func (p *pass) encode(ctx context.Context, text string, ids *[]int32) error {
	for text != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := text
		if len(text) > chunkBytes {
			cut := strings.LastIndexAny(text[:chunkBytes], " \n")
			if cut <= 0 {
				for cut = chunkBytes; cut > chunkBytes-utf8.UTFMax && !utf8.RuneStart(text[cut]); {
					cut--
				}
			}
			part = text[:cut]
		}
		p.c.tokens.Encode(part, &p.chunk)
		*ids = append(*ids, p.chunk.IDs...)
		text = text[len(part):]
	}
	return nil
}

// bucket numbers the lengths that share a batch: powers of two.
func bucket(tokens int) int { return bits.Len(uint(max(tokens, smallestBucket) - 1)) }

// run computes every row, batch by batch, shortest first.
func (p *pass) run(ctx context.Context) error {
	for i := range p.rows {
		p.order = append(p.order, int32(i))
	}
	specials := p.c.tokens.Specials()
	length := func(r int32) int { return len(p.rows[r].ids) + specials }
	slices.SortStableFunc(p.order, func(a, b int32) int { return cmp.Compare(length(a), length(b)) })
	for rest := p.order; len(rest) > 0; {
		n := 1
		for n < len(rest) && n < p.c.opts.MaxBatch && bucket(length(rest[n])) == bucket(length(rest[0])) {
			n++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.runBatch(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// runBatch computes the given rows, sorted by length, in one run.
func (p *pass) runBatch(ctx context.Context, rows []int32) error {
	p.fill(rows)
	p.outputs, p.wanted = p.outputs[:0], p.wanted[:0]
	var tasks uint32
	for _, r := range rows {
		tasks |= p.rows[r].tasks
	}
	for i := range p.c.tasks {
		if tasks>>i&1 == 1 {
			p.outputs, p.wanted = append(p.outputs, p.c.tasks[i].Output), append(p.wanted, i)
		}
	}
	out, err := p.c.session.Run(ctx, p.in, p.outputs)
	if err != nil {
		return err
	}
	if len(out) != len(p.outputs) {
		return &outputError{fmt.Sprintf("%d outputs, want %d", len(out), len(p.outputs))}
	}
	for k, i := range p.wanted {
		p.collect(i, rows, &out[k])
	}
	return nil
}

// fill lays out the input tensors of rows, the last of which is the longest.
func (p *pass) fill(rows []int32) {
	m := p.c.manifest
	width := len(p.rows[rows[len(rows)-1]].ids) + p.c.tokens.Specials()
	p.ids, p.mask = p.ids[:0], p.mask[:0]
	for i, r := range rows {
		p.ids = p.c.tokens.AppendRow(p.ids, p.rows[r].ids)
		for len(p.mask) < len(p.ids) {
			p.mask = append(p.mask, 1)
		}
		for len(p.ids) < (i+1)*width {
			p.ids, p.mask = append(p.ids, m.PadID), append(p.mask, 0)
		}
	}
	p.shape = [2]int64{int64(len(rows)), int64(width)}
	p.in = append(p.in[:0],
		tensor.Tensor{Name: m.Inputs.IDs, Shape: p.shape[:], I64: p.ids},
		tensor.Tensor{Name: m.Inputs.Mask, Shape: p.shape[:], I64: p.mask})
	if m.Inputs.Types != "" {
		p.types = slices.Grow(p.types[:0], len(p.ids))[:len(p.ids)]
		clear(p.types)
		p.in = append(p.in, tensor.Tensor{Name: m.Inputs.Types, Shape: p.shape[:], I64: p.types})
	}
}

// collect gives the reads of task i their part of out, [len(rows), width] in the order of rows. An
// output that is not what the manifest says makes the task unknown, not its neighbours.
func (p *pass) collect(i int, rows []int32, out *tensor.Tensor) {
	at := slices.IndexFunc(p.plans, func(t taskPlan) bool { return t.task == i })
	plan := &p.plans[at]
	width := p.c.tasks[i].width()
	if len(out.Shape) != 2 || out.Shape[0] != int64(len(rows)) || out.Shape[1] != int64(width) || len(out.F32) != len(rows)*width {
		plan.failed = signal.ReasonInvalid
		return
	}
	for j, r := range rows {
		values := out.F32[j*width : (j+1)*width : (j+1)*width]
		for k := p.rows[r].first; k >= 0; k = p.reads[k].next {
			if int(p.reads[k].task) != i {
				continue
			}
			p.reads[k].out = values
			if !finite(values) {
				plan.failed = signal.ReasonInvalid
			}
		}
	}
}

// outputError is an answer of a session that breaks its contract.
type outputError struct{ msg string }

func (e *outputError) Error() string       { return "invalid output: " + e.msg }
func (*outputError) Reason() signal.Reason { return signal.ReasonInvalid }

// finish writes the value of every kind of need. why is the reason for reads that did not happen.
func (p *pass) finish(need signal.Mask, set *signal.Set, took time.Duration, why signal.Reason) {
	for i := range p.plans {
		plan := &p.plans[i]
		t := &p.c.tasks[plan.task]
		v := signal.Value{
			Source: p.c.manifest.Name, Provider: p.c.provider, Elapsed: took,
			Windows: plan.windows, Read: plan.reads.to - plan.reads.from,
		}
		if plan.windows > 1 {
			v.Coverage = signal.Windowed
		}
		failed := plan.failed
		for _, r := range p.reads[plan.reads.from:plan.reads.to] {
			if r.out == nil && failed == signal.ReasonNone {
				failed = why
			}
		}
		switch {
		case failed == signal.ReasonNoText && t.kind == signal.Jailbreak:
			harmless(t, &v)
		case failed != signal.ReasonNone:
			v = signal.Value{State: signal.Unknown, Reason: failed, Source: v.Source, Provider: v.Provider, Elapsed: took}
		case t.Kind == bundle.Embedding:
			p.embed(t, plan, &v)
		default:
			p.classify(t, plan, &v)
		}
		set.Values[t.kind] = v
	}
	if why == signal.ReasonNone {
		why = signal.ReasonInternal
	}
	set.Fail(need, why)
}

var _ Reasoned = (*outputError)(nil)
