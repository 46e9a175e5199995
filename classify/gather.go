package classify

import (
	"context"
	"slices"
	"sync"
	"time"

	"signalbox/internal/signal"
)

// gather is where the signals of one Extract come together. Engines deliver what they have from
// goroutines of their own, deadlines end what they wait for, and it alone touches the caller's set
// while Extract runs. A kind that is settled stays as it is, whatever comes later: a value, a
// deadline that passed, or the caller's word that it does not matter any more.
type gather struct {
	c       *Classifier // nil where nothing that is made of the embedding is asked for
	req     *request
	still   func() signal.Mask             // which kinds still matter; nil: all of them
	extra   signal.Mask                    // vectors that are computed for other signals alone
	history *history                       // nil where topic signals stand for themselves
	watched bool                           // kinds may be settled while a stage works for them
	start   time.Time                      // of the deadlines
	limits  [signal.NumKinds]time.Duration // the deadlines; 0 for none

	timers   []*time.Timer
	expiring sync.WaitGroup // of timers that were not stopped

	mu     sync.Mutex // guards what follows, and calls of still
	set    *signal.Set
	open   signal.Mask                  // kinds that are waited for
	news   bool                         // the set has changed since still was called
	joint  signal.Mask                  // kinds that two engines give together
	first  map[signal.Kind]signal.Value // of these what came in first
	stages []*stage
}

// stage is a piece of work that is worth its time only while one of some kinds is open.
type stage struct {
	kinds  signal.Mask
	cancel context.CancelFunc
}

// newGather waits for the kinds of need, and for embedding where others among them are made of it.
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

// ofEmbedding are the kinds that the embedding has a say in.
func (g *gather) ofEmbedding() (m signal.Mask) {
	m = g.c.made()
	if g.history != nil {
		m |= inherited
	}
	return m
}

// watch starts the deadlines of the kinds that are open and have one of their own.
func (g *gather) watch(timeouts *[signal.NumKinds]time.Duration) {
	g.start, g.limits = time.Now(), *timeouts
	made := g.c.made() | signal.MaskOf(signal.Intent) // of the embedding
	for _, k := range made.Kinds() {
		if e, i := g.limits[signal.Embedding], &g.limits[k]; e > 0 && (*i == 0 || e < *i) {
			*i = e
		}
	}
	waited := g.open // a deadline that has passed already changes it meanwhile
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

// close stops the deadlines. Once it returns, nobody but the caller touches the set.
func (g *gather) close() {
	for _, t := range g.timers {
		if t.Stop() {
			g.expiring.Done()
		}
	}
	g.expiring.Wait()
}

// expire settles the kinds of m that are open after d.
func (g *gather) expire(m signal.Mask, d time.Duration) {
	g.hurry(m)
	for _, k := range m.Kinds() {
		late := signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout, Elapsed: d}
		if g.store(k, late); g.wanted(signal.MaskOf(k)) != 0 {
			g.store(k, late) // for the other engine of two
		}
	}
	g.narrow()
}

// wanted returns the members of m that are open; all of them for a nil gather.
func (g *gather) wanted(m signal.Mask) signal.Mask {
	if g == nil {
		return m
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return m & g.open
}

// late reports whether k is unknown since its time was up.
func (g *gather) late(k signal.Kind) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.set.Value(k)
	return v.State == signal.Unknown && v.Reason == signal.ReasonTimeout
}

// put settles k with v, if it is open, and what is made of it where it is the embedding. After the
// last value that came at once, narrow.
func (g *gather) put(k signal.Kind, v signal.Value) {
	g.store(k, v)
	if k != signal.Embedding {
		return
	}
	for _, made := range g.wanted(g.c.made()).Kinds() {
		g.store(made, g.c.derive(made, g.req, &v))
	}
}

// store settles k with v, if it is open. What comes behind its deadline is late, also when the
// timer that should have told so has not had its turn yet.
func (g *gather) store(k signal.Kind, v signal.Value) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case k == turnVector:
		// Also where nothing waits for it, for the next turn reads it; but not where words have told
		// already what this one follows.
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

// accept settles k with v, or with what it becomes beside the turns before. A value that waits for
// the embedding, which tells how far the turn follows them, stays open. g.mu is held.
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

// resolve is the end of k. g.mu is held.
func (g *gather) resolve(k signal.Kind, v signal.Value) {
	g.set.Put(k, v)
	g.open &^= signal.MaskOf(k)
	g.news = true
}

// hurry settles the history by what is there, if a kind of m waits for more: its own value is known.
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

// settle settles the history once the vectors that it reads are there. g.mu is held.
func (g *gather) settle() {
	if g.open&(1<<signal.Embedding|1<<turnVector) == 0 {
		g.release()
	}
}

// release settles the history, and the kinds that waited for it. g.mu is held.
func (g *gather) release() {
	g.history.settle(g.set.Value(signal.Embedding))
	for k, v := range g.history.held {
		if delete(g.history.held, k); g.open.Has(k) {
			g.resolve(k, g.history.take(k, v))
		}
	}
}

// finish settles what waits: nothing more comes in.
func (g *gather) finish() {
	if g.history == nil {
		return
	}
	g.mu.Lock()
	g.release()
	g.mu.Unlock()
	g.history.remember()
}

// join makes kinds such that are settled by what two engines say of them.
func (g *gather) join(kinds signal.Mask) {
	if kinds == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joint, g.first = kinds, make(map[signal.Kind]signal.Value, kinds.Len())
}

// fail settles the kinds of m that are open as unknown.
func (g *gather) fail(m signal.Mask, why signal.Reason) {
	for _, k := range g.wanted(m).Kinds() {
		g.put(k, signal.Value{State: signal.Unknown, Reason: why})
	}
	if g.wanted(m&(1<<turnVector)) != 0 { // no kind of a set
		g.put(turnVector, signal.Value{State: signal.Unknown, Reason: why})
	}
}

// narrow asks what still matters now that something came in, and ends the stages that work for
// nothing.
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

// ask calls still. A panic in it would end the process from the goroutine of a deadline: all
// matters then, and the caller meets its fault where it uses the set.
func (g *gather) ask() (keep signal.Mask) {
	defer func() {
		if recover() != nil {
			g.still, keep = nil, ^signal.Mask(0)
		}
	}()
	return g.still()
}

// enter begins a stage that works for the given kinds. Its context ends with ctx, and as soon as
// none of them is open: its error concerns nobody then. The caller calls leave, once.
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

// prepare lays out what the kinds of need read. Only safety takes long.
func (g *gather) prepare(ctx context.Context, need signal.Mask) error {
	kinds := need & safetyKinds
	stageCtx, leave := g.enter(ctx, kinds)
	defer leave()
	if err := g.req.prepare(stageCtx, need); err != nil && g.wanted(kinds) != 0 {
		return err
	}
	return nil
}
