package classify

import (
	"context"
	"slices"
	"sync"
	"time"

	"signalbox/internal/signal"
)

// gather collects the signals of one Extract. Engines deliver values from their own goroutines,
// deadlines end the wait for them, and gather alone accesses the caller's set while Extract runs. A
// settled kind keeps its state, whatever arrives later: a value, an expired deadline, or the
// caller's decision that it no longer matters.
type gather struct {
	c       *Classifier // nil if no kind derived from the embedding is needed
	req     *request
	still   func() signal.Mask             // returns the kinds that still matter; nil: all of them
	extra   signal.Mask                    // vectors that are computed only for other signals
	history *history                       // nil if topic signals do not depend on earlier turns
	watched bool                           // kinds may be settled while a stage computes them
	start   time.Time                      // start of the deadlines
	limits  [signal.NumKinds]time.Duration // the deadlines; 0 for none

	timers   []*time.Timer
	expiring sync.WaitGroup // waits for timers that were not stopped

	mu     sync.Mutex // guards the fields below and calls of still
	set    *signal.Set
	open   signal.Mask                  // kinds that are waited for
	news   bool                         // the set has changed since the last call of still
	joint  signal.Mask                  // kinds that two engines compute together
	first  map[signal.Kind]signal.Value // the first value received of a joint kind
	stages []*stage
}

// stage is a piece of work that is only needed while one of its kinds is open.
type stage struct {
	kinds  signal.Mask
	cancel context.CancelFunc
}

// newGather returns a gather that waits for the kinds of need, and for the embedding if others of
// them depend on it.
func newGather(c *Classifier, req *request, need signal.Mask, set *signal.Set, still func() signal.Mask, t *history) *gather {
	g := &gather{c: c, req: req, still: still, set: set, open: need, history: t}
	if c != nil && need&g.ofEmbedding() != 0 {
		g.extra = signal.MaskOf(signal.Embedding) & c.neural & c.Signals() &^ (need | set.Have())
		if t != nil && t.asks {
			g.extra |= 1 << turnVector
		}
		g.open |= g.extra
	}
	return g
}

// ofEmbedding returns the kinds that depend on the embedding.
func (g *gather) ofEmbedding() (m signal.Mask) {
	m = g.c.made()
	if g.history != nil {
		m |= inherited
	}
	return m
}

// watch starts the deadlines of the open kinds that have one of their own.
func (g *gather) watch(timeouts *[signal.NumKinds]time.Duration) {
	g.start, g.limits = time.Now(), *timeouts
	made := g.c.made() | signal.MaskOf(signal.Intent) // derived from the embedding
	for _, k := range made.Kinds() {
		if e, i := g.limits[signal.Embedding], &g.limits[k]; e > 0 && (*i == 0 || e < *i) {
			*i = e
		}
	}
	waited := g.open // copied: an already expired deadline may change it during the loop
	for k := range signal.NumKinds {
		m, d := signal.MaskOf(k), timeouts[k]
		if d == 0 || waited&m == 0 {
			continue
		}
		if k == signal.Embedding {
			m |= made
		}
		g.watched = true
		g.expiring.Add(1)
		g.timers = append(g.timers, time.AfterFunc(d, func() {
			defer g.expiring.Done()
			g.expire(m, d)
		}))
	}
}

// close stops the deadlines. After it returns, only the caller accesses the set.
func (g *gather) close() {
	for _, t := range g.timers {
		if t.Stop() {
			g.expiring.Done()
		}
	}
	g.expiring.Wait()
}

// expire settles the kinds of m that are still open after d.
func (g *gather) expire(m signal.Mask, d time.Duration) {
	g.hurry(m)
	for _, k := range m.Kinds() {
		late := signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout, Elapsed: d}
		if g.store(k, late); g.wanted(signal.MaskOf(k)) != 0 {
			g.store(k, late) // the second of two engines
		}
	}
	g.narrow()
}

// wanted returns the members of m that are open, or m for a nil gather.
func (g *gather) wanted(m signal.Mask) signal.Mask {
	if g == nil {
		return m
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return m & g.open
}

// late reports whether k is unknown because its deadline expired.
func (g *gather) late(k signal.Kind) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.set.Value(k)
	return v.State == signal.Unknown && v.Reason == signal.ReasonTimeout
}

// put settles k with v if k is open, and, if k is the embedding, also the kinds derived from it.
// Call narrow after the last of several values that arrive together.
func (g *gather) put(k signal.Kind, v signal.Value) {
	g.store(k, v)
	if k != signal.Embedding {
		return
	}
	for _, made := range g.wanted(g.c.made()).Kinds() {
		g.store(made, g.c.derive(made, g.req, &v))
	}
}

// store settles k with v if k is open. A value after the deadline counts as late even if the timer
// has not fired yet.
func (g *gather) store(k signal.Kind, v signal.Value) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case k == turnVector:
		// Stored even if nothing waits for it, because the next turn reads it; not if words alone
		// have already decided how far this turn follows the one before.
		if v.Vector != nil && !g.history.settled {
			g.history.after.other = v.Vector
		}
		if g.open.Has(k) {
			g.open &^= 1 << turnVector
			g.settle()
		}
	case !g.open.Has(k):
	default:
		if d := g.limits[k]; d > 0 && time.Since(g.start) > d {
			v = signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout, Elapsed: d}
		}
		if g.joint.Has(k) {
			first, both := g.first[k]
			if !both {
				g.first[k] = v
				return
			}
			v = g.c.merge(k, &first, &v)
		}
		g.accept(k, v)
	}
}

// accept settles k with v, or with v combined with the turns before. A value stays open while it
// waits for the embedding, which shows how far the turn follows them. g.mu must be held.
func (g *gather) accept(k signal.Kind, v signal.Value) {
	t := g.history
	switch {
	case t == nil:
	case k == signal.Embedding:
		g.resolve(k, v)
		g.settle()
		return
	case v.State == signal.Known && inherited&signal.MaskOf(k) != 0:
		if t.before != nil && !t.settled {
			t.held[k] = v
			g.settle()
			return
		}
		v = t.take(k, v)
	}
	g.resolve(k, v)
}

// resolve stores the final value of k. g.mu must be held.
func (g *gather) resolve(k signal.Kind, v signal.Value) {
	g.set.Put(k, v)
	g.open &^= signal.MaskOf(k)
	g.news = true
}

// hurry settles the history with the vectors available if a kind of m only waits for the history.
func (g *gather) hurry(m signal.Mask) {
	if g.history == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.history.held {
		if m.Has(k) {
			g.release()
			return
		}
	}
}

// settle settles the history once the vectors that it needs have arrived. g.mu must be held.
func (g *gather) settle() {
	if g.open&(1<<signal.Embedding|1<<turnVector) == 0 {
		g.release()
	}
}

// release settles the history, and the kinds that waited for it. g.mu must be held.
func (g *gather) release() {
	g.history.settle(g.set.Value(signal.Embedding))
	for k, v := range g.history.held {
		if delete(g.history.held, k); g.open.Has(k) {
			g.resolve(k, g.history.take(k, v))
		}
	}
}

// finish settles the kinds that still wait for the history: no more values will arrive.
func (g *gather) finish() {
	if g.history == nil {
		return
	}
	g.mu.Lock()
	g.release()
	g.mu.Unlock()
	g.history.remember()
}

// join marks kinds as settled only by the values of two engines together.
func (g *gather) join(kinds signal.Mask) {
	if kinds == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joint, g.first = kinds, make(map[signal.Kind]signal.Value, kinds.Len())
}

// fail settles the open kinds of m as unknown.
func (g *gather) fail(m signal.Mask, why signal.Reason) {
	for _, k := range g.wanted(m).Kinds() {
		g.put(k, signal.Value{State: signal.Unknown, Reason: why})
	}
	if g.wanted(m&(1<<turnVector)) != 0 { // not a kind of a set
		g.put(turnVector, signal.Value{State: signal.Unknown, Reason: why})
	}
}

// narrow asks which kinds still matter after new values have arrived, and cancels the stages that
// are no longer needed.
func (g *gather) narrow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.news {
		return
	}
	g.news = false
	if g.still != nil && g.open != 0 {
		keep := g.ask()
		if keep&g.ofEmbedding() != 0 {
			keep |= 1<<signal.Embedding | 1<<turnVector
		}
		g.open &= keep
	}
	if g.open&g.ofEmbedding() == 0 {
		g.open &^= g.extra
	}
	for _, s := range g.stages {
		if s.kinds&g.open == 0 {
			s.cancel()
		}
	}
}

// ask calls still. A panic in still could end the process from the goroutine of a deadline. It is
// therefore recovered and all kinds count as needed; the caller meets its fault when it uses the
// set.
func (g *gather) ask() (keep signal.Mask) {
	defer func() {
		if recover() != nil {
			g.still, keep = nil, ^signal.Mask(0)
		}
	}()
	return g.still()
}

// enter begins a stage that computes the given kinds. Its context ends with ctx, or as soon as none
// of the kinds is open; its error can then be ignored. The caller must call leave once.
func (g *gather) enter(ctx context.Context, kinds signal.Mask) (stageCtx context.Context, leave func()) {
	if g == nil || !g.watched {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{kinds: kinds, cancel: cancel}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stages = append(g.stages, s)
	if g.open&kinds == 0 {
		cancel()
	}
	return ctx, func() {
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stages = slices.DeleteFunc(g.stages, func(other *stage) bool { return other == s })
	}
}

// prepare lays out the text that the kinds of need read. Only the safety signals take long.
func (g *gather) prepare(ctx context.Context, need signal.Mask) error {
	kinds := need & safetyKinds
	stageCtx, leave := g.enter(ctx, kinds)
	defer leave()
	if err := g.req.prepare(stageCtx, need); err != nil && g.wanted(kinds) != 0 {
		return err
	}
	return nil
}
