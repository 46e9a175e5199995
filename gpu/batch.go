package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/tensor"
)

// The modes of batching.
const (
	BatchAuto = "auto" // where it is faster
	BatchOn   = "on"
	BatchOff  = "off"
)

// BatchOptions configures the batching of runs of several requests. Only rows of similar length are
// batched, so that little computation is spent on padding.
type BatchOptions struct {
	// Mode selects when runs are batched: auto, on or off. auto always batches on devices other
	// than the CPU; on the CPU it batches only runs that have to wait for a slot anyway, and only
	// at row lengths for which batching has proven faster. on batches on the CPU as well, whether
	// or not it is faster. Default auto.
	Mode string `yaml:"mode" words:"auto on off"`
	// MaxBatch is the maximum number of rows in one run, 2 to 256. Default 16.
	MaxBatch int `yaml:"max_batch"`
	// MaxWait is how long the first of several concurrent requests waits for others to join its
	// run. At most 100ms. A single request never waits, and with mode auto nothing waits on the
	// CPU. Default 1ms.
	MaxWait option.Duration `yaml:"max_wait"`
}

const (
	defaultMaxBatch = 16
	defaultMaxWait  = option.Duration(time.Millisecond)
	mostBatch       = 256
	longestWait     = option.Duration(100 * time.Millisecond)
)

// DefaultBatchOptions returns the defaults.
func DefaultBatchOptions() BatchOptions {
	return BatchOptions{Mode: BatchAuto, MaxBatch: defaultMaxBatch, MaxWait: defaultMaxWait}
}

func (o BatchOptions) problems() []error {
	var errs []error
	if o.Mode != "" && !slices.Contains([]string{BatchAuto, BatchOn, BatchOff}, o.Mode) {
		errs = append(errs, fmt.Errorf("batch.mode: %q is none of auto, on, off", o.Mode))
	}
	if o.MaxBatch != 0 && (o.MaxBatch < 2 || o.MaxBatch > mostBatch) {
		errs = append(errs, fmt.Errorf("batch.max_batch: %d is outside 2 to %d", o.MaxBatch, mostBatch))
	}
	if o.MaxWait < 0 || o.MaxWait > longestWait {
		errs = append(errs, fmt.Errorf("batch.max_wait: %v is outside 0s to %v", o.MaxWait, longestWait))
	}
	return errs
}

func (o BatchOptions) resolved() BatchOptions {
	o.Mode = cmp.Or(o.Mode, BatchAuto)
	o.MaxBatch = cmp.Or(o.MaxBatch, defaultMaxBatch)
	return o
}

const (
	shortestBucket = 16 // maximum tokens of a row in the first bucket
	// per run, padding included: the memory of attention grows with the square of the row length.
	maxBatchTokens = 1 << 14
	numBuckets     = 48
)

// bucketOf returns the index of the bucket of a row length; rows of one bucket may share a run. The
// upper ends of the buckets are 16, 24, 32, 48, 64, 96 and so on.
func bucketOf(width int) int {
	if width <= shortestBucket {
		return 0
	}
	log := bits.Len(uint(width - 1)) // 2^(log-1) < width <= 2^log
	b := 2 * (log - bits.Len(shortestBucket-1))
	if width <= 3<<(log-2) {
		b--
	}
	return min(b, numBuckets-1)
}

// batcher batches the runs of one session. The first run of a group leads it: while it waits for a
// slot, other runs of similar length join. Once it has a slot, all of them become one run. A run
// waits for others only if the options say so, and never if no other run is in progress.
//
// The lock is held for bookkeeping only, never during a run.
type batcher struct {
	c        *core
	pad      []int64 // value for padding, by input
	most     int     // maximum number of rows
	wait     time.Duration
	adaptive bool // batches only where this is faster
	// it is unknown whether an output is per token: only rows of equal length are batched
	exact bool
	about atomic.Int64
	unfit atomic.Bool // the outputs cannot be divided by rows

	mu   sync.Mutex // guards the fields below and the groups
	open [numBuckets]*group
	gain [numBuckets]gain
}

// group is a set of runs that become one.
type group struct {
	bucket  int
	members []*member
	leader  *member // until the group runs
	width   int     // row length of the first member
	rows    int
	live    int           // number of members that wait for a result
	full    chan struct{} // closed when no more members can join
	cancel  context.CancelFunc
}

// member is one run of a group. in is copied before the group runs, so that the caller may leave
// early; after that only the caller may read it.
type member struct {
	in          []tensor.Tensor
	rows, width int
	gone        bool
	// capacity 1; receives a value when the member has to lead the group; nil for the first leader
	lead chan struct{}
	done chan result // capacity 1
}

// result is the result for a member: its part of the outputs, or the instruction to run alone.
type result struct {
	out   []tensor.Tensor
	err   error
	alone bool
}

// newBatcher returns nil for sessions whose runs are never batched.
func newBatcher(c *core, o *BatchOptions, pad map[string]int64) *batcher {
	if o.Mode == BatchOff || pad == nil || !batchable(c) {
		return nil
	}
	b := &batcher{c: c, most: o.MaxBatch, wait: time.Duration(o.MaxWait), pad: make([]int64, len(c.inputs))}
	if c.provider == ProviderCPU && o.Mode == BatchAuto {
		b.adaptive, b.wait = true, 0
	}
	b.exact = slices.ContainsFunc(c.outputs, func(s tensor.Spec) bool {
		return s.Shape == nil || len(s.Shape) == 2 && s.Shape[1] == tensor.Dynamic
	})
	for i := range c.inputs {
		b.pad[i] = pad[c.inputs[i].Name]
	}
	return b
}

// batchable reports whether rows can be added to the inputs and separated in the outputs.
func batchable(c *core) bool {
	for _, s := range c.inputs {
		if s.DType != tensor.Int64 || len(s.Shape) != 2 || s.Shape[0] != tensor.Dynamic || s.Shape[1] != tensor.Dynamic {
			return false
		}
	}
	return !slices.ContainsFunc(c.outputs, func(s tensor.Spec) bool { return len(s.Shape) > 0 && s.Shape[0] != tensor.Dynamic })
}

// takes reports whether a run may join a group.
func (b *batcher) takes(in []tensor.Tensor) bool {
	if b == nil || b.unfit.Load() {
		return false
	}
	shape := in[0].Shape
	if slices.ContainsFunc(in, func(t tensor.Tensor) bool { return !slices.Equal(t.Shape, shape) }) {
		return false
	}
	rows, width := int(shape[0]), int(shape[1])
	return 2*rows <= b.most && 2*rows*width <= maxBatchTokens
}

// run computes all outputs of one run, in a group or alone. It returns the duration of the run, or
// 0 for a run in a group, for which the observer is called once.
func (b *batcher) run(ctx context.Context, in []tensor.Tensor) ([]tensor.Tensor, time.Duration, error) {
	b.about.Add(1)
	defer b.about.Add(-1)
	rows, width := int(in[0].Shape[0]), int(in[0].Shape[1])
	k := bucketOf(width)
	limit := min(b.most, maxBatchTokens/widthOf(k))
	b.mu.Lock()
	if g := b.open[k]; g != nil {
		if g.rows+rows <= limit && (!b.exact || g.width == width) {
			m := &member{in: in, rows: rows, width: width, lead: make(chan struct{}, 1), done: make(chan result, 1)}
			g.members = append(g.members, m)
			g.rows, g.live = g.rows+rows, g.live+1
			if g.rows == limit {
				b.shut(g)
			}
			b.mu.Unlock()
			return b.follow(ctx, g, m)
		}
		b.shut(g)
	}
	if b.adaptive && !b.gain[k].worthwhile() {
		b.mu.Unlock()
		return b.measured(ctx, in, k)
	}
	m := &member{in: in, rows: rows, width: width}
	g := &group{bucket: k, members: []*member{m}, leader: m, width: width, rows: rows, live: 1, full: make(chan struct{})}
	b.open[k] = g
	b.mu.Unlock()
	return b.lead(ctx, g, m)
}

// widthOf returns the maximum row length of a bucket.
func widthOf(bucket int) int {
	if bucket%2 == 0 {
		return shortestBucket << (bucket / 2)
	}
	return 3 * shortestBucket / 2 << (bucket / 2)
}

// measured runs alone and records the duration.
func (b *batcher) measured(ctx context.Context, in []tensor.Tensor, k int) ([]tensor.Tensor, time.Duration, error) {
	out, took, err := b.c.alone(ctx, in)
	if err == nil && b.adaptive {
		b.learn(k, 1, took/time.Duration(in[0].Shape[0]))
	}
	return out, took, err
}

func (b *batcher) learn(k, members int, perRow time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gain[k].learn(members, perRow)
}

// shut closes a group for new members. The caller must hold the lock.
func (b *batcher) shut(g *group) {
	if b.open[g.bucket] == g {
		b.open[g.bucket] = nil
		close(g.full)
	}
}

// lead waits for a slot for a group and runs it. m is one of its members.
func (b *batcher) lead(ctx context.Context, g *group, m *member) ([]tensor.Tensor, time.Duration, error) {
	p, err := b.c.enter(ctx)
	if err != nil {
		b.leave(g, m)
		return nil, 0, err
	}
	b.gather(ctx, g)
	b.mu.Lock()
	b.shut(g)
	g.leader = nil
	g.members = slices.DeleteFunc(g.members, func(m *member) bool { return m.gone })
	if len(g.members) == 1 {
		b.mu.Unlock()
		defer p.leave()
		out, took, err := b.c.runOn(ctx, p, m.in)
		if err == nil && b.adaptive {
			b.learn(g.bucket, 1, took/time.Duration(m.rows))
		}
		return out, took, err
	}
	whole, width := b.merge(g)
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel = cancel
	b.mu.Unlock()
	if m.done == nil {
		m.done = make(chan result, 1)
	}
	go func() {
		defer cancel()
		out, took, err := b.c.runOn(runCtx, p, whole)
		p.leave()
		if err == nil {
			b.c.rt.observe(b.c, took, whole[0].Shape[0])
			b.learn(g.bucket, len(g.members), took/time.Duration(whole[0].Shape[0]))
		}
		b.share(g, width, out, err)
	}()
	return b.follow(ctx, g, m)
}

// gather waits for further members: for the time in the options, or until the group is full; it
// returns immediately if no other run is in progress.
func (b *batcher) gather(ctx context.Context, g *group) {
	b.mu.Lock()
	others := b.about.Load() > int64(len(g.members))
	b.mu.Unlock()
	if b.wait <= 0 || !others {
		return
	}
	select {
	case <-g.full:
	case <-time.After(b.wait):
	case <-ctx.Done():
	}
}

// follow waits for a member's result, or for the instruction to lead.
func (b *batcher) follow(ctx context.Context, g *group, m *member) ([]tensor.Tensor, time.Duration, error) {
	select {
	case r := <-m.done:
		if r.alone {
			return b.c.alone(ctx, m.in)
		}
		return r.out, 0, r.err
	case <-m.lead:
		return b.lead(ctx, g, m)
	case <-ctx.Done():
		b.leave(g, m)
		return nil, 0, ctx.Err()
	}
}

// leave removes a member from its group. If it was the leader or about to become it, another member
// takes over; if it was the last member, the run is terminated.
func (b *batcher) leave(g *group, m *member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.gone = true
	g.live--
	switch {
	case g.live == 0:
		b.shut(g)
		if g.cancel != nil {
			g.cancel()
		}
	case g.leader == m:
		i := slices.IndexFunc(g.members, func(m *member) bool { return !m.gone })
		g.leader = g.members[i]
		g.leader.lead <- struct{}{}
	}
}

// merge makes the inputs of a group: all rows, padded to the longest. The caller must hold the
// lock, so that no member leaves while its input is copied.
func (b *batcher) merge(g *group) (in []tensor.Tensor, width int) {
	rows := 0
	for _, m := range g.members {
		rows, width = rows+m.rows, max(width, m.width)
	}
	in = make([]tensor.Tensor, len(b.pad))
	shape := []int64{int64(rows), int64(width)}
	values := make([]int64, 0, len(in)*rows*width)
	for i := range in {
		from := len(values)
		for _, m := range g.members {
			for row := range slices.Chunk(m.in[i].I64, m.width) {
				values = append(values, row...)
				for range width - m.width {
					values = append(values, b.pad[i])
				}
			}
		}
		in[i] = tensor.Tensor{Name: b.c.inputs[i].Name, Shape: shape, I64: values[from:len(values):len(values)]}
	}
	return in, width
}

// share gives every member its rows of the outputs. If the run failed, or the outputs are not per
// row, each member runs alone: a fault in one input must not cost the others their result.
func (b *batcher) share(g *group, width int, all []tensor.Tensor, err error) {
	rows := 0
	for _, m := range g.members {
		rows += m.rows
	}
	if err == nil && slices.ContainsFunc(all, func(t tensor.Tensor) bool { return len(t.Shape) == 0 || t.Shape[0] != int64(rows) }) {
		b.unfit.Store(true)
		err = errors.New("outputs are not by rows")
	}
	at := 0
	for _, m := range g.members {
		var r result
		switch {
		case errors.Is(err, ErrClosed):
			r.err = err
		case err != nil:
			r.alone = true
		default:
			r.out = b.part(all, cutting{at, m.rows, width, m.width})
		}
		at += m.rows
		m.done <- r
	}
}

// cutting selects the rows of a member in the outputs, and gives the length of its own rows.
type cutting struct{ at, rows, width, have int }

// part copies a member's rows from the outputs; per-token outputs are cut to the member's tokens.
func (b *batcher) part(all []tensor.Tensor, c cutting) []tensor.Tensor {
	out := make([]tensor.Tensor, len(all))
	for i := range all {
		t := &all[i]
		shape := slices.Clone(t.Shape)
		c := c
		if len(shape) > 2 && shape[1] == int64(c.width) && b.c.perToken(i) {
			shape[1] = int64(c.have)
		} else {
			c.have = c.width
		}
		shape[0] = int64(c.rows)
		out[i] = tensor.Tensor{Shape: shape}
		if t.F32 != nil {
			out[i].F32 = cut(t.F32, len(t.F32)/int(t.Shape[0]), c)
		} else {
			out[i].I64 = cut(t.I64, len(t.I64)/int(t.Shape[0]), c)
		}
	}
	return out
}

// perToken reports whether the second dimension of an output may be that of the tokens.
func (c *core) perToken(output int) bool {
	s := c.outputs[output].Shape
	return s == nil || len(s) > 1 && s[1] == tensor.Dynamic
}

// cut returns rows of each numbers, or copies of their beginnings if the member's rows are shorter.
func cut[T any](values []T, each int, c cutting) []T {
	part := values[c.at*each : (c.at+c.rows)*each : (c.at+c.rows)*each]
	if c.have == c.width {
		return part
	}
	keep := each / c.width * c.have
	out := make([]T, 0, c.rows*keep)
	for row := range slices.Chunk(part, each) {
		out = append(out, row[:keep]...)
	}
	return out
}

// gain records the time per row alone and in a group, as moving averages in nanoseconds; 0: not
// known.
type gain struct {
	alone, together float64
	asked           uint
}

const (
	leastGain = .95 // maximum ratio of the time in a group to the time alone
	// number of runs after which a length that was not faster in groups is tried again.
	lookAgain  = 256
	oldestPart = 16 // window of the moving averages, in runs
)

// worthwhile reports whether rows should be batched: unless that is known not to be faster.
func (p *gain) worthwhile() bool {
	if p.together == 0 || p.alone == 0 || p.together < leastGain*p.alone {
		return true
	}
	p.asked++
	return p.asked%lookAgain == 0
}

func (p *gain) learn(members int, perRow time.Duration) {
	v := &p.alone
	if members > 1 {
		v = &p.together
	}
	if *v == 0 {
		*v = float64(perRow)
		return
	}
	*v += (float64(perRow) - *v) / oldestPart
}
