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

// Servers is the set of a model's endpoints as placement sees them, by their index in the group. It
// is immutable except for what is learned.
type Servers struct {
	*affinity.Placer // nil if there are more endpoints than a Placer supports

	All    []Server
	KV     kv.ModelOptions
	Splits *Splits
	length *atomic.Uint64 // float64 bits: average ratio of actual to estimated prompt tokens
}

// Server is one endpoint.
type Server struct {
	kv.Options

	Endpoint *pool.Endpoint
	Salted   *atomic.Bool  // accepts a cache_salt
	ModelLen *atomic.Int64 // context length that the server reports, in tokens; 0 if unknown

	Warming *WarmLimit
}

// newServers makes the servers of a model from valid options.
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

// Inherit takes over what older servers of the model have learned about endpoints that both have.
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

// Correct corrects an estimated prompt length by the ratio learned from responses.
func (w *Servers) Correct(estimate int) int {
	return int(float64(estimate) * math.Float64frombits(w.length.Load()))
}

// How fast the actual lengths of prompts correct the estimate, from which length on, and by how
// much at most.
const (
	lengthShare = 0.05
	lengthFrom  = 256
	lengthRange = 4
)

// Learn records the actual length of a prompt that had been estimated.
func (w *Servers) Learn(estimate int, told int64) {
	if estimate < lengthFrom || told == 0 {
		return
	}
	ratio := min(max(float64(told)/float64(estimate), 1.0/lengthRange), lengthRange)
	now := math.Float64frombits(w.length.Load())
	// of two concurrent updates, one may be lost
	w.length.Store(math.Float64bits(now + lengthShare*(ratio-now)))
}

// Change is the difference between two successive reports of an endpoint.
type Change struct{ Restarted, Slept, Woke bool }

// Report processes a report of endpoint i and returns what has changed.
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
	if w.Placer == nil || x.Level == kv.LevelOpenAI { // such a server's load is not reported
		return c
	}
	w.Resize(i, r.Tokens)
	w.BlockSize(i, r.Block)
	c.Restarted = w.Observe(now, i, affinity.Status{
		Started: r.Started, Queries: r.Queries, Running: r.Running, Waiting: r.Waiting,
	})
	return c
}

// SleepMemory is how long an endpoint is believed to be asleep without another report, since some
// reports may be lost.
func (w *Servers) SleepMemory() time.Duration {
	const reports, least = 3, 10 * time.Second
	return max(reports*time.Duration(w.KV.Scrape.Interval), least)
}

// Index returns the index of an endpoint in the group.
func (w *Servers) Index(e *pool.Endpoint) int {
	for i := range w.All {
		if w.All[i].Endpoint == e {
			return i
		}
	}
	return -1
}

// Penalties sets out to +Inf for the endpoints that the group would not pick: those that are
// asleep, down, full or in tried, and less fit ones while a fitter one is left. full reports
// whether one is excluded only because it is full.
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

// Splits remembers the class in which a key was last sent to a model whose template puts parameters
// before the messages. With different parameters, a prompt does not match what servers have cached.
// It is safe for concurrent use.
type Splits struct {
	mu         sync.Mutex // guards the fields below
	young, old map[uint64]affinity.Class
}

// manySplits is the minimum number remembered; the maximum is twice that.
const manySplits = 4096

// Parted reports whether a key was last sent in a different class.
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

// WarmLimit limits reading ahead at one endpoint: one context at a time, and a number of tokens per
// second.
type WarmLimit struct {
	busy chan struct{} // capacity 1: the context being read

	mu   sync.Mutex // guards next
	next time.Time  // when more may be read
}

// NewWarmLimit returns an unused limit.
func NewWarmLimit() *WarmLimit { return &WarmLimit{busy: make(chan struct{}, 1)} }

// Enter waits for its turn, which Leave ends. The error is fault.ErrBusy if ctx ends first.
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

// Wait waits until that many tokens may be read, at a rate in tokens per second; 0 means the
// default.
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

// defaultWarmRate is the maximum number of tokens that an endpoint reads ahead per second.
const defaultWarmRate = 20_000

// Crowded reports whether a request to endpoint i would delay others: a request is waiting there,
// or half of the seats are taken.
func (w *Servers) Crowded(i int, now time.Time) bool {
	running, waiting := w.Load(now, i)
	return waiting > 0 || w.All[i].Seats > 0 && 2*running >= w.All[i].Seats
}

// Board informs other replicas of what endpoints hold; their notices go to Proxy.Learn.
// Implementations are safe for concurrent use.
type Board interface {
	// Publish must not block. A lost notice costs only time.
	Publish(model string, r affinity.Residence)
	// Claim takes a name for d and reports whether no other replica has it. In doubt it returns
	// true.
	Claim(ctx context.Context, name string, d time.Duration) bool
}

// Boards passes notices on to the board. Without a board they are dropped.
type Boards struct{ board atomic.Pointer[Board] }

var _ affinity.Board = (*notice)(nil)

// Use sets the board.
func (n *Boards) Use(b Board) { n.board.Store(&b) }

// Adopt takes over the board of another Boards.
func (n *Boards) Adopt(old *Boards) { n.board.Store(old.board.Load()) }

// Claim takes a name among all replicas.
func (n *Boards) Claim(ctx context.Context, name string, d time.Duration) bool {
	b := n.board.Load()
	return b == nil || (*b).Claim(ctx, name, d)
}

// Of returns the board of one model.
func (n *Boards) Of(model string) affinity.Board { return &notice{n, model} }

// notice passes on the notices of one model.
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
