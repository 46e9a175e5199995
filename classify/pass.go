package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// smallestBucket is the row length, in tokens, below which rows share a batch.
const smallestBucket = 16

// maxBatchTokens is the maximum number of tokens in the rows of one run, padding included. The
// memory of attention grows with the square of the row length, so rows of thousands of tokens run
// alone.
const maxBatchTokens = 8 << 10

// maxPooledTokens is the maximum size, in tokens, of a pass that goes back to the pool.
const maxPooledTokens = 64 << 10

// pass is the scratch space of one pass of one engine over one request. Its rows borrow ids from
// the readings.
type pass struct {
	e     *Engine
	req   *request
	opts  *Options
	g     *gather // nil if every result matters until the end, as for pairs
	begun time.Time
	// foreign: only the units in other languages than English are read.
	foreign bool

	readings []reading
	read     int // number of readings in use
	safe     safetyPlan
	sample   tokenize.Encoding
	rows     []row
	index    map[uint64]int32 // hash of a row's ids -> row
	reads    []read
	shares   []share
	plans    []taskPlan
	order    []int32
	// for rows without a reading: pairs, and answers with their evidence
	texts []tokenize.Encoding

	ids       []int64
	mask      []int64
	types     []int64
	positions []int64
	shape     [2]int64
	width     int // tokens of the rows of the current batch, padding included
	in        []tensor.Tensor
	outputs   []string
	wanted    []int // index of the task of each output
	tails     []int // tasks of adapters

	probs []float64
	sums  []float64
}

// row is one row of a model input and the tasks that read it.
type row struct {
	ids   []int32 // without special tokens
	with  []int32 // second text of a pair
	pair  bool
	tasks uint32        // bit i: task i reads it
	first int32         // index of its first read, -1 if there is none
	due   time.Duration // the earliest deadline of its tasks; noDeadline if they have none
}

// read is one window of one task. out is the graph's output, set by run: the logits of a label, the
// vector of an embedding, or the logits of every token of the row, special tokens included.
type read struct {
	task    int32
	next    int32 // the next read of the same row, -1 at the end
	reading int32
	from    int32 // range of tokens in the reading
	to      int32
	out     []float32
	kept    bool // out was computed by an earlier pass
}

// taskPlan is what one task reads in this pass.
type taskPlan struct {
	task     int
	reads    span // in pass.reads
	close    span // in pass.reads: the second looks
	closed   bool // the second looks have been chosen
	shares   span // in pass.shares
	windows  int  // number of windows that cover the text
	read     int  // number of windows read
	coverage signal.Coverage
	failed   signal.Reason
	ready    bool // its value can be computed
	done     bool // its value was delivered
	known    bool // its value is known
}

type span struct{ from, to int }

func (p *pass) reset(e *Engine, req *request, o *Options) {
	p.e, p.req, p.opts, p.g, p.foreign = e, req, o, nil, false
	p.read = 0
	s := &p.safe
	p.safe = safetyPlan{
		portions: s.portions[:0], hits: s.hits[:0], picks: s.picks[:0],
		windows: s.windows[:0], candidates: s.candidates[:0], order: s.order[:0],
	}
	if p.index == nil {
		p.index = make(map[uint64]int32)
	}
	clear(p.index)
	p.rows, p.reads, p.plans, p.order = p.rows[:0], p.reads[:0], p.plans[:0], p.order[:0]
	p.shares = p.shares[:0]
}

// small reports whether the pass is worth keeping.
func (p *pass) small() bool {
	n := len(p.ids) + cap(p.safe.candidates) + cap(p.safe.windows) +
		cap(p.safe.portions) + cap(p.reads)
	for i := range p.texts {
		n += cap(p.texts[i].IDs)
	}
	for i := range p.readings {
		n += cap(p.readings[i].enc.IDs)
	}
	return n <= maxPooledTokens
}

// release drops references to the request and to the outputs of its runs.
func (p *pass) release() {
	clear(p.reads)
	clear(p.safe.portions)
	clear(p.safe.hits)
	for i := range p.readings {
		p.readings[i].key = readingKey{}
	}
	p.req, p.g = nil, nil
}

// plan tokenises the views and lays out the rows of the tasks for the kinds of need.
func (p *pass) plan(ctx context.Context, need signal.Mask) error {
	for i := range p.e.tasks {
		t := &p.e.tasks[i]
		need = p.g.wanted(need)
		if !need.Has(t.kind) {
			continue
		}
		lay, kinds := p.planTopic, signal.MaskOf(t.kind)
		if t.safety() {
			lay, kinds = p.planSafety, need&safetyKinds
		}
		stageCtx, leave := p.g.enter(ctx, kinds)
		err := lay(stageCtx, i, need)
		leave()
		if err != nil && p.g.wanted(kinds) != 0 {
			return err
		}
	}
	return nil
}

// alive returns the bit set of the tasks whose result is still waited for.
func (p *pass) alive() uint32 {
	if p.g == nil {
		return ^uint32(0)
	}
	open := p.g.wanted(p.e.signals)
	var m uint32
	for i := range p.e.tasks {
		if open.Has(p.e.tasks[i].kind) {
			m |= 1 << i
		}
	}
	return m
}

// kindsOf returns the signals of a bit set of tasks.
func (p *pass) kindsOf(tasks uint32) signal.Mask {
	var m signal.Mask
	for i := range p.e.tasks {
		if tasks>>i&1 == 1 {
			m |= signal.MaskOf(p.e.tasks[i].kind)
		}
	}
	return m
}

// add makes task i read tokens [from,to) of a reading.
func (p *pass) add(i int, reading int32, from, to int) {
	p.addRow(i, reading, from, to, p.readings[reading].enc.IDs[from:to])
}

// addRow is add for a row that contains further tokens.
func (p *pass) addRow(i int, reading int32, from, to int, ids []int32) {
	r := p.row(ids)
	p.reads = append(p.reads, read{task: int32(i), next: r.first, reading: reading, from: int32(from), to: int32(to)})
	r.tasks |= 1 << i
	r.first = int32(len(p.reads) - 1)
}

// row returns the row that holds ids, valid until the next call. Rows with equal tokens are merged.
func (p *pass) row(ids []int32) *row {
	at, ok := p.find(ids)
	if !ok {
		at = int32(len(p.rows))
		p.rows = append(p.rows, row{ids: ids, first: -1})
		p.index[hashOf(ids)] = at
	}
	return &p.rows[at]
}

// find returns the index of the row that holds ids, if there is one.
func (p *pass) find(ids []int32) (at int32, ok bool) {
	at, ok = p.index[hashOf(ids)]
	return at, ok && slices.Equal(p.rows[at].ids, ids)
}

// hashOf is FNV-1a over whole ids. Colliding rows are distinguished by comparing their ids.
func hashOf(ids []int32) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, id := range ids {
		h = (h ^ uint64(uint32(id))) * prime
	}
	return h
}

// bucket returns the length class of a row; rows of one class (a power of two) share a batch.
func bucket(tokens int) int { return bits.Len(uint(max(tokens, smallestBucket) - 1)) }

// tokens returns the length of a row, special tokens included.
func (p *pass) tokens(r int32) int {
	row := &p.rows[r]
	if row.pair {
		return len(row.ids) + len(row.with) + p.e.pairSpecials
	}
	return len(row.ids) + p.e.specials
}

// noDeadline is later than any deadline.
const noDeadline = time.Duration(math.MaxInt64)

// sort orders the rows by deadline, earliest first, then by length, shortest first.
func (p *pass) sort() {
	dated := p.opts.Timeouts != [signal.NumKinds]time.Duration{}
	for i := range p.rows {
		r := &p.rows[i]
		r.due = noDeadline
		if dated {
			r.due = p.due(r.tasks)
		}
		p.order = append(p.order, int32(i))
	}
	slices.SortStableFunc(p.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.rows[a].due, p.rows[b].due), cmp.Compare(p.tokens(a), p.tokens(b)))
	})
}

// due returns the earliest deadline in a bit set of tasks.
func (p *pass) due(tasks uint32) time.Duration {
	kinds := p.kindsOf(tasks)
	if kinds.Has(signal.Embedding) {
		// derived from it, as are heads, which have its deadline
		kinds |= signal.MaskOf(signal.Intent)
	}
	earliest := noDeadline
	for _, k := range p.g.wanted(kinds & TimedKinds).Kinds() {
		if d := p.opts.Timeouts[k]; d > 0 {
			earliest = min(earliest, d)
		}
	}
	return earliest
}

// run computes the rows that are still needed, batch by batch.
func (p *pass) run(ctx context.Context) error {
	p.sort()
	var fault error
	alive := ^uint32(0)
	for rest := p.order; len(rest) > 0; {
		if now := p.alive(); now != alive {
			alive = now
			rest = slices.DeleteFunc(rest, func(r int32) bool { return p.rows[r].tasks&now == 0 })
			continue
		}
		n := p.together(rest)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.runFor(ctx, rest[:n], alive); err != nil {
			if reasonOf(ctx, err) != signal.ReasonInvalid {
				return err
			}
			fault = err // recorded in the tasks concerned; the others continue
		}
		again, err := p.lookClosely(ctx)
		if err != nil {
			return err
		}
		if rest = append(rest[n:], again...); len(rest) > 0 && p.g != nil {
			p.report(ctx)
		}
	}
	return fault
}

// together returns how many of the first rows share a run because their lengths are similar.
func (p *pass) together(rows []int32) int {
	n := 1
	for n < len(rows) && n < p.opts.MaxBatch {
		tokens := p.tokens(rows[n])
		if bucket(tokens) != bucket(p.tokens(rows[0])) || (n+1)*tokens > maxBatchTokens {
			break
		}
		n++
	}
	return n
}

// runFor computes the given rows for those of their tasks that are alive. When the last of these
// tasks is settled elsewhere, the run is cancelled; this is not an error.
func (p *pass) runFor(ctx context.Context, rows []int32, alive uint32) error {
	var tasks uint32
	for _, r := range rows {
		tasks |= p.rows[r].tasks & alive
	}
	kinds := p.kindsOf(tasks)
	stageCtx, leave := p.g.enter(ctx, kinds)
	defer leave()
	if err := p.runBatch(stageCtx, rows, tasks); err != nil && p.g.wanted(kinds) != 0 {
		return err
	}
	return nil
}

// runBatch computes the given rows for the given tasks in one run. If the graph's output is
// invalid, each output is requested separately, so that a fault in one task does not affect the
// others.
func (p *pass) runBatch(ctx context.Context, rows []int32, tasks uint32) error {
	p.fill(rows)
	p.outputs, p.wanted, p.tails = p.outputs[:0], p.wanted[:0], p.tails[:0]
	for i := range p.e.tasks {
		switch {
		case tasks>>i&1 == 0:
		case p.e.tasks[i].tail != nil:
			p.tails = append(p.tails, i)
		default:
			p.outputs, p.wanted = append(p.outputs, p.e.tasks[i].Output), append(p.wanted, i)
		}
	}
	own := len(p.outputs)
	p.outputs = p.e.appendTaps(p.outputs, p.tails)
	err := p.runOutputs(ctx, rows, p.outputs, p.wanted, p.tails)
	if _, one := errors.AsType[*tailError](err); one || err == nil || reasonOf(ctx, err) != signal.ReasonInvalid {
		return err
	}
	for k := range p.wanted {
		alone := err
		if len(p.outputs) > 1 {
			alone = p.runOutputs(ctx, rows, p.outputs[k:k+1], p.wanted[k:k+1], nil)
		}
		if alone != nil {
			p.planOf(p.wanted[k]).failed = reasonOf(ctx, alone)
		}
	}
	if len(p.tails) == 0 {
		return err
	}
	alone := p.runOutputs(ctx, rows, p.outputs[own:], nil, p.tails)
	if _, one := errors.AsType[*tailError](alone); alone != nil && !one {
		for _, i := range p.tails {
			p.planOf(i).failed = reasonOf(ctx, alone)
		}
	}
	return err
}

// runOutputs computes outputs: those of the tasks in wanted, followed by the taps that tails
// continue from, and runs the tails.
func (p *pass) runOutputs(ctx context.Context, rows []int32, outputs []string, wanted, tails []int) error {
	out, err := p.e.session.Run(ctx, p.in, outputs)
	if err != nil {
		return err
	}
	if len(out) != len(outputs) {
		return &outputError{fmt.Sprintf("%d outputs, want %d", len(out), len(outputs))}
	}
	for k, i := range wanted {
		p.collect(i, rows, &out[k])
	}
	taps := out[len(wanted):]
	for k := range taps {
		taps[k].Name = outputs[len(wanted)+k]
	}
	return p.runTails(ctx, rows, tails, taps)
}

func (p *pass) planOf(task int) *taskPlan {
	return &p.plans[slices.IndexFunc(p.plans, func(t taskPlan) bool { return t.task == task })]
}

// fill prepares the input tensors of rows.
func (p *pass) fill(rows []int32) {
	m := p.e.manifest
	p.width = 0
	for _, r := range rows {
		p.width = max(p.width, p.tokens(r))
	}
	p.ids, p.mask, p.types, p.positions = p.ids[:0], p.mask[:0], p.types[:0], p.positions[:0]
	for i, r := range rows {
		if row := &p.rows[r]; row.pair {
			p.ids, p.types = p.e.tokens.AppendPair(p.ids, p.types, row.ids, row.with)
		} else {
			p.ids = p.e.tokens.AppendRow(p.ids, row.ids)
		}
		p.mask = pad(p.mask, len(p.ids), 1)
		p.ids = pad(p.ids, (i+1)*p.width, m.PadID)
		p.mask = pad(p.mask, len(p.ids), 0)
		p.types = pad(p.types, len(p.ids), 0)
		for n := range p.width {
			p.positions = append(p.positions, int64(n))
		}
	}
	p.shape = [2]int64{int64(len(rows)), int64(p.width)}
	p.in = append(p.in[:0],
		tensor.Tensor{Name: m.Inputs.IDs, Shape: p.shape[:], I64: p.ids},
		tensor.Tensor{Name: m.Inputs.Mask, Shape: p.shape[:], I64: p.mask})
	if m.Inputs.Types != "" {
		p.in = append(p.in, tensor.Tensor{Name: m.Inputs.Types, Shape: p.shape[:], I64: p.types})
	}
	if m.Inputs.Positions != "" {
		p.in = append(p.in, tensor.Tensor{Name: m.Inputs.Positions, Shape: p.shape[:], I64: p.positions})
	}
}

// pad appends v until x has length n.
func pad(x []int64, n int, v int64) []int64 {
	for len(x) < n {
		x = append(x, v)
	}
	return x
}

// collect assigns to the reads of task i their part of out, in the order of rows. An output that
// contradicts the manifest makes only this task unknown.
func (p *pass) collect(i int, rows []int32, out *tensor.Tensor) {
	t, plan := &p.e.tasks[i], p.planOf(i)
	each := t.width()
	if t.perToken() {
		each *= p.width
	}
	if !t.shaped(out.Shape, len(rows), p.width) || len(out.F32) != len(rows)*each {
		plan.failed = signal.ReasonInvalid
		return
	}
	for j, r := range rows {
		values := out.F32[j*each : (j+1)*each : (j+1)*each]
		if t.perToken() {
			values = values[:p.tokens(r)*t.width()]
		}
		if t.Kind == bundle.Embedding {
			values = pool(values, t.width(), t.Pooling)[:t.Dims]
		}
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

// shaped reports whether shape is that of the task's output for a batch of rows. Some graphs drop
// the batch dimension of a single row.
func (t *task) shaped(shape []int64, rows, tokens int) bool {
	want := []int64{int64(rows), int64(t.width())}
	if t.perToken() {
		want = []int64{int64(rows), int64(tokens), int64(t.width())}
	}
	return slices.Equal(shape, want) || rows == 1 && slices.Equal(shape, want[1:])
}
