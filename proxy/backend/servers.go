package backend

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/proxy/affinity"
	"signalbox/proxy/fault"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
)

// Servers is the endpoints of one model as placement sees them, by their index in the group.
// It is immutable but for what is learnt.
type Servers struct {
	*affinity.Placer // nil when there are more endpoints than it can tell apart

	All    []Server
	KV     kv.ModelOptions
	Splits *Splits
	length *atomic.Uint64 // float64 bits: tokens of a prompt for each that was estimated, averaged
}

// Server is one endpoint.
type Server struct {
	kv.Options

	Endpoint *pool.Endpoint
	Salted   *atomic.Bool  // it takes a cache_salt
	ModelLen *atomic.Int64 // tokens that the server says its model has room for; 0 when not known

	Warming *WarmLimit
}

// newServers makes the servers of a model from options that are valid.
func newServers(o *ModelOptions, g *pool.Group, board affinity.Board) (*Servers, error) {
	w := &Servers{KV: o.KV, Splits: new(Splits), length: new(atomic.Uint64)}
	w.length.Store(math.Float64bits(1))
	ends := make([]affinity.Endpoint, len(g.Endpoints))
	for i, e := range g.Endpoints {
		x := Server{
			Options: o.Endpoints[i].KV.Over(&o.KV), Endpoint: e,
			Salted: new(atomic.Bool), ModelLen: new(atomic.Int64), Warming: NewWarmLimit(),
		}
		x.Salted.Store(x.Level == kv.LevelAPC)
		w.All = append(w.All, x)
		ends[i] = affinity.Endpoint{
			Name: e.Name, Address: e.Chat.String(), Weight: float64(max(o.Endpoints[i].Weight, 1)),
			Tokens: x.Tokens, Seats: x.Seats, Prefill: x.Prefill(),
		}
	}
	if len(ends) > affinity.MaxEndpoints {
		return w, nil
	}
	how := affinity.DefaultOptions()
	how.Board = board
	var err error
	w.Placer, err = affinity.New(ends, how, time.Now())
	return w, err
}

// Inherit takes over what older servers of the model have learnt of endpoints that both have.
func (w *Servers) Inherit(old *Servers) {
	if w.Placer != nil && old.Placer != nil {
		w.Adopt(old.Placer)
	}
	w.length, w.Splits = old.length, old.Splits
	for i := range w.All {
		for j := range old.All {
			a, b := &w.All[i], &old.All[j]
			if a.Endpoint.Name == b.Endpoint.Name && *a.Endpoint.Chat == *b.Endpoint.Chat && a.Level == b.Level {
				a.Salted, a.ModelLen, a.Warming = b.Salted, b.ModelLen, b.Warming
			}
		}
	}
}

// Correct corrects an estimated length of a prompt by what answers told of others.
func (w *Servers) Correct(estimate int) int {
	return int(float64(estimate) * math.Float64frombits(w.length.Load()))
}

// How fast the real length of prompts corrects the estimate, from which length on, and how far.
const (
	lengthShare = 0.05
	lengthFrom  = 256
	lengthRange = 4
)

// Learn notes how long a prompt was that had been estimated.
func (w *Servers) Learn(estimate int, told int64) {
	if estimate < lengthFrom || told == 0 {
		return
	}
	ratio := min(max(float64(told)/float64(estimate), 1.0/lengthRange), lengthRange)
	now := math.Float64frombits(w.length.Load())
	w.length.Store(math.Float64bits(now + lengthShare*(ratio-now))) // of two at once, one counts
}

// Change is what a report of an endpoint tells that the one before did not.
type Change struct{ Restarted, Slept, Woke bool }

// Report takes in what endpoint i says of itself, and returns what is new.
func (w *Servers) Report(now time.Time, i int, r kv.Report) (c Change) {
	x := &w.All[i]
	if x.Level == kv.LevelAuto {
		x.Salted.Store(r.VLLM && r.Caching)
	}
	if r.Asleep {
		c.Slept = x.Endpoint.Sleep(now, now.Add(w.SleepMemory()))
	} else {
		c.Woke = x.Endpoint.Wake(now)
	}
	if w.Placer == nil || x.Level == kv.LevelOpenAI { // which goes by answers alone
		return c
	}
	w.Resize(i, r.Tokens)
	w.BlockSize(i, r.Block)
	c.Restarted = w.Observe(now, i, affinity.Status{
		Started: r.Started, Queries: r.Queries, Running: r.Running, Waiting: r.Waiting,
	})
	return c
}

// SleepMemory is for how long it is believed that an endpoint sleeps when it says nothing more: some
// reports may be lost.
func (w *Servers) SleepMemory() time.Duration {
	const reports, least = 3, 10 * time.Second
	return max(reports*time.Duration(w.KV.Scrape.Interval), least)
}

// Index is the place of an endpoint of the group.
func (w *Servers) Index(e *pool.Endpoint) int {
	for i := range w.All {
		if w.All[i].Endpoint == e {
			return i
		}
	}
	return -1
}

// Penalties rules out, by +Inf, what the group would not pick: endpoints that are asleep, down,
// full, or were tried, and those that something is known against as long as a better one is left.
// It reports whether one is full that would do otherwise.
func (w *Servers) Penalties(out []float64, tried []*pool.Endpoint, now time.Time) (full bool) {
	var fits [affinity.MaxEndpoints]pool.Fitness
	best := pool.Down
	for i := range w.All {
		e := w.All[i].Endpoint
		fits[i] = e.Fitness(now)
		switch {
		case fits[i] >= pool.Asleep:
		case slices.Contains(tried, e):
			fits[i] = pool.Down
		case e.Full():
			fits[i], full = pool.Down, true
		}
		best = min(best, fits[i])
	}
	for i := range w.All {
		if out[i] = 0; fits[i] >= pool.Asleep || fits[i] > best {
			out[i] = math.Inf(1)
		}
	}
	return full
}

// Splits remembers under which class what requests belong to was last sent to a model whose
// template puts parameters in front: other parameters part its prompts from what servers have of
// it. Safe for concurrent use.
type Splits struct {
	mu         sync.Mutex // guards what follows
	young, old map[uint64]affinity.Class
}

// manySplits is how many are remembered at least, twice as many at most.
const manySplits = 4096

// Parted reports whether what a key stands for was last sent under another class.
func (s *Splits) Parted(key uint64, class affinity.Class) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.young[key]
	if !ok {
		last, ok = s.old[key]
	}
	if _, known := s.young[key]; !known && len(s.young) >= manySplits || s.young == nil {
		s.old, s.young = s.young, make(map[uint64]affinity.Class)
	}
	s.young[key] = class
	return ok && last != class
}

// WarmLimit bounds what one endpoint reads ahead: one context at a time, and so many tokens a
// second.
type WarmLimit struct {
	busy chan struct{} // holds 1: the one that is read

	mu   sync.Mutex // guards next
	next time.Time  // when there is time for more
}

// NewWarmLimit is a limit that nothing has used.
func NewWarmLimit() *WarmLimit { return &WarmLimit{busy: make(chan struct{}, 1)} }

// Enter waits for its turn, which Leave ends. Its error is fault.ErrBusy when ctx ends before.
func (l *WarmLimit) Enter(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.ErrBusy
	}
}

// Leave ends a turn.
func (l *WarmLimit) Leave() { <-l.busy }

// Wait waits until there is time for so many tokens, at a rate in tokens a second, 0 standing for
// the default.
func (l *WarmLimit) Wait(ctx context.Context, tokens int, rate float64) error {
	rate = cmp.Or(rate, defaultWarmRate)
	l.mu.Lock()
	now := time.Now()
	pause := l.next.Sub(now)
	l.next = now.Add(max(pause, 0) + time.Duration(float64(tokens)/rate*float64(time.Second)))
	l.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return fault.ErrBusy
	}
}

// defaultWarmRate is how many tokens an endpoint reads ahead in a second, at most.
const defaultWarmRate = 20_000

// Crowded reports whether what is sent to endpoint i would delay others: somebody waits, or half of
// the seats are taken.
func (w *Servers) Crowded(i int, now time.Time) bool {
	running, waiting := w.Load(now, i)
	return waiting > 0 || w.All[i].Seats > 0 && 2*running >= w.All[i].Seats
}

// Board tells other replicas what endpoints hold; what they tell goes to Proxy.Learn.
// Implementations are safe for concurrent use.
type Board interface {
	// Publish must not block. What is lost costs time only.
	Publish(model string, r affinity.Residence)
	// Claim takes a name for a while and reports whether no other replica has it. In doubt it is
	// granted.
	Claim(ctx context.Context, name string, d time.Duration) bool
}

// Boards are what goes to the board; until there is one, nowhere.
type Boards struct{ board atomic.Pointer[Board] }

var _ affinity.Board = (*notice)(nil)

// Use makes b the board.
func (n *Boards) Use(b Board) { n.board.Store(&b) }

// Adopt takes over the board of another link.
func (n *Boards) Adopt(old *Boards) { n.board.Store(old.board.Load()) }

// Claim takes a name among all replicas.
func (n *Boards) Claim(ctx context.Context, name string, d time.Duration) bool {
	b := n.board.Load()
	return b == nil || (*b).Claim(ctx, name, d)
}

// Of is the board of one model.
func (n *Boards) Of(model string) affinity.Board { return &notice{n, model} }

// notice is the notices of one model.
type notice struct {
	to    *Boards
	Model string
}

// Publish implements affinity.Board.
func (n *notice) Publish(r affinity.Residence) {
	if b := n.to.board.Load(); b != nil {
		(*b).Publish(n.Model, r)
	}
}
