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

// maxBatchTokens is the most tokens of rows that share a run, padding included. Attention takes
// memory with the square of a row, so that rows of thousands of tokens run alone.
const maxBatchTokens = 8 << 10

// maxPooledTokens is the most tokens for which a pass goes back to the pool.
const maxPooledTokens = 64 << 10

// pass is the scratch space of one pass of one engine over one request. Its rows borrow ids from
// the readings.
type pass struct {
	e     *Engine
	req   *request
	opts  *Options
	g     *gather // nil where all matters to the end, as of pairs
	begun time.Time
	// foreign: of the units those in other languages than English are read.
	foreign bool

	readings []reading
	read     int // how many of readings are in use
	safe     safetyPlan
	sample   tokenize.Encoding
	rows     []row
	index    map[uint64]int32 // hash of a row's ids -> row
	reads    []read
	shares   []share
	plans    []taskPlan
	order    []int32
	texts    []tokenize.Encoding // of rows that no reading holds: pairs, and answers with their evidence

	ids       []int64
	mask      []int64
	types     []int64
	positions []int64
	shape     [2]int64
	width     int // tokens of the rows of the current batch, padding included
	in        []tensor.Tensor
	outputs   []string
	wanted    []int // by output, the index of its task
	tails     []int // tasks that adapters give

	probs []float64
	sums  []float64
}

// row is one row of a model input and who reads it.
type row struct {
	ids   []int32 // without special tokens
	with  []int32 // the second text of a pair
	pair  bool
	tasks uint32        // bit i: task i reads it
	first int32         // its first read, -1 when there is none
	due   time.Duration // the earliest deadline of its tasks; noDeadline without any
}

// read is one window of one task. out is what the graph said, set by run: the logits of a label,
// the vector of an embedding, or the logits of every token of the row, special tokens included.
type read struct {
	task    int32
	next    int32 // the next read of the same row, -1 at the end
	reading int32
	from    int32 // its tokens in the reading
	to      int32
	out     []float32
	kept    bool // out is of an earlier pass
}

// taskPlan is what one task reads in this pass.
type taskPlan struct {
	task     int
	reads    span // in pass.reads
	close    span // in pass.reads: those of second looks
	closed   bool // what is to be looked at again is known
	shares   span // in pass.shares
	windows  int  // that cover the text
	read     int  // of them
	coverage signal.Coverage
	failed   signal.Reason
	ready    bool // its value can be told
	done     bool // and was
	known    bool // its value is no unknown one
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

// release lets go of the request and of the outputs of its runs.
func (p *pass) release() {
	clear(p.reads)
	clear(p.safe.portions)
	clear(p.safe.hits)
	for i := range p.readings {
		p.readings[i].key = readingKey{}
	}
	p.req, p.g = nil, nil
}

// plan tokenises the views and lays out the rows of the tasks that give the kinds of need.
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

// alive returns the tasks that somebody waits for, by their bits.
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

// kindsOf returns the signals of tasks, given by their bits.
func (p *pass) kindsOf(tasks uint32) signal.Mask {
	var m signal.Mask
	for i := range p.e.tasks {
		if tasks>>i&1 == 1 {
			m |= signal.MaskOf(p.e.tasks[i].kind)
		}
	}
	return m
}

// add lets task i read tokens [from,to) of a reading.
func (p *pass) add(i int, reading int32, from, to int) {
	p.addRow(i, reading, from, to, p.readings[reading].enc.IDs[from:to])
}

// addRow is add where the row holds other tokens besides.
func (p *pass) addRow(i int, reading int32, from, to int, ids []int32) {
	r := p.row(ids)
	p.reads = append(p.reads, read{task: int32(i), next: r.first, reading: reading, from: int32(from), to: int32(to)})
	r.tasks |= 1 << i
	r.first = int32(len(p.reads) - 1)
}

// row returns the row that holds ids, valid until the next call. Rows with equal tokens are one.
func (p *pass) row(ids []int32) *row {
	at, ok := p.find(ids)
	if !ok {
		at = int32(len(p.rows))
		p.rows = append(p.rows, row{ids: ids, first: -1})
		p.index[hashOf(ids)] = at
	}
	return &p.rows[at]
}

// find returns where the row that holds ids is, if there is one.
func (p *pass) find(ids []int32) (at int32, ok bool) {
	at, ok = p.index[hashOf(ids)]
	return at, ok && slices.Equal(p.rows[at].ids, ids)
}

// hashOf is FNV-1a over whole ids. Rows that collide are told apart by their ids.
func hashOf(ids []int32) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, id := range ids {
		h = (h ^ uint64(uint32(id))) * prime
	}
	return h
}

// bucket numbers the lengths that share a batch: powers of two.
func bucket(tokens int) int { return bits.Len(uint(max(tokens, smallestBucket) - 1)) }

// tokens is the length of a row, special tokens included.
func (p *pass) tokens(r int32) int {
	row := &p.rows[r]
	if row.pair {
		return len(row.ids) + len(row.with) + p.e.pairSpecials
	}
	return len(row.ids) + p.e.specials
}

// noDeadline is later than every deadline.
const noDeadline = time.Duration(math.MaxInt64)

// sort orders the rows: those with the earliest deadline first, the shortest first among equals.
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

// due returns the earliest deadline of tasks, given by their bits.
func (p *pass) due(tasks uint32) time.Duration {
	kinds := p.kindsOf(tasks)
	if kinds.Has(signal.Embedding) {
		kinds |= signal.MaskOf(signal.Intent) // is made of it, as are heads, which have its deadline
	}
	earliest := noDeadline
	for _, k := range p.g.wanted(kinds & TimedKinds).Kinds() {
		if d := p.opts.Timeouts[k]; d > 0 {
			earliest = min(earliest, d)
		}
	}
	return earliest
}

// run computes the rows that somebody waits for, batch by batch.
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
			fault = err // the tasks at fault know it; the others are read on
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

// together is how many of the first of rows share a run: rows of similar length.
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

// runFor computes the given rows for those of their tasks that are alive. When the last of these is
// settled elsewhere, the run is cancelled, which is no error.
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

// runBatch computes the given rows for the given tasks in one run. When the graph's answer is
// invalid, each output is asked for alone, so that one task's fault leaves its neighbours.
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

// runOutputs computes outputs: those of the tasks of wanted, and behind them the taps that tails go
// on from, which it runs.
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

// fill lays out the input tensors of rows.
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

// collect gives the reads of task i their part of out, in the order of rows. An output that is not
// what the manifest says makes the task unknown, not its neighbours.
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

// shaped reports whether shape is that of the task's output for a batch of rows. Some graphs
// squeeze a batch of one away.
func (t *task) shaped(shape []int64, rows, tokens int) bool {
	want := []int64{int64(rows), int64(t.width())}
	if t.perToken() {
		want = []int64{int64(rows), int64(tokens), int64(t.width())}
	}
	return slices.Equal(shape, want) || rows == 1 && slices.Equal(shape, want[1:])
}
