package proxy

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"signalbox/proxy/affinity"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
)

// serverCaches is the endpoints of one model as placement sees them, by their index in the group.
// It is immutable but for what is learnt.
type serverCaches struct {
	*affinity.Placer // nil when there are more endpoints than it can tell apart

	ends   []place
	kv     kv.ModelOptions
	splits *splits
	length *atomic.Uint64 // float64 bits: tokens of a prompt for each that was estimated, averaged
}

// place is one endpoint.
type place struct {
	kv.Options

	end    *pool.Endpoint
	apc    *atomic.Bool  // it takes a cache_salt
	window *atomic.Int64 // tokens that the server says its model has room for; 0 when not known

	warm *warmLimit
}

// newPlaces makes the places of a model from options that are valid.
func newPlaces(o *ModelOptions, g *pool.Group, board affinity.Board) (*serverCaches, error) {
	w := &serverCaches{kv: o.KV, splits: new(splits), length: new(atomic.Uint64)}
	w.length.Store(math.Float64bits(1))
	ends := make([]affinity.Endpoint, len(g.Endpoints))
	for i, e := range g.Endpoints {
		x := place{
			Options: o.Endpoints[i].KV.Over(&o.KV), end: e,
			apc: new(atomic.Bool), window: new(atomic.Int64), warm: newWarmLimit(),
		}
		x.apc.Store(x.Level == kv.LevelAPC)
		w.ends = append(w.ends, x)
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

// adopt takes over what older places of the model have learnt of endpoints that both have.
func (w *serverCaches) adopt(old *serverCaches) {
	if w.Placer != nil && old.Placer != nil {
		w.Adopt(old.Placer)
	}
	w.length, w.splits = old.length, old.splits
	for i := range w.ends {
		for j := range old.ends {
			a, b := &w.ends[i], &old.ends[j]
			if a.end.Name == b.end.Name && *a.end.Chat == *b.end.Chat && a.Level == b.Level {
				a.apc, a.window, a.warm = b.apc, b.window, b.warm
			}
		}
	}
}

// tokens corrects an estimated length of a prompt by what answers told of others.
func (w *serverCaches) tokens(estimate int) int {
	return int(float64(estimate) * math.Float64frombits(w.length.Load()))
}

// How fast the real length of prompts corrects the estimate, from which length on, and how far.
const (
	lengthShare = 0.05
	lengthFrom  = 256
	lengthRange = 4
)

// measured notes how long a prompt was that had been estimated.
func (w *serverCaches) measured(estimate int, told int64) {
	if estimate < lengthFrom || told == 0 {
		return
	}
	ratio := min(max(float64(told)/float64(estimate), 1.0/lengthRange), lengthRange)
	now := math.Float64frombits(w.length.Load())
	w.length.Store(math.Float64bits(now + lengthShare*(ratio-now))) // of two at once, one counts
}

// news is what a report of an endpoint tells that the one before did not.
type news struct{ restarted, slept, woke bool }

// observe takes in what endpoint i says of itself, and returns what is new.
func (w *serverCaches) observe(now time.Time, i int, r kv.Report) (c news) {
	x := &w.ends[i]
	if x.Level == kv.LevelAuto {
		x.apc.Store(r.VLLM && r.Caching)
	}
	if r.Asleep {
		c.slept = x.end.Sleep(now, now.Add(w.memory()))
	} else {
		c.woke = x.end.Wake(now)
	}
	if w.Placer == nil || x.Level == kv.LevelOpenAI { // which goes by answers alone
		return c
	}
	w.Resize(i, r.Tokens)
	w.BlockSize(i, r.Block)
	c.restarted = w.Observe(now, i, affinity.Status{
		Started: r.Started, Queries: r.Queries, Running: r.Running, Waiting: r.Waiting,
	})
	return c
}

// memory is for how long it is believed that an endpoint sleeps when it says nothing more: some
// reports may be lost.
func (w *serverCaches) memory() time.Duration {
	const reports, least = 3, 10 * time.Second
	return max(reports*time.Duration(w.kv.Scrape.Interval), least)
}

// index is the place of an endpoint of the group.
func (w *serverCaches) index(e *pool.Endpoint) int {
	for i := range w.ends {
		if w.ends[i].end == e {
			return i
		}
	}
	return -1
}

// penalties rules out, by +Inf, what the group would not pick: endpoints that are asleep, down,
// full, or were tried, and those that something is known against as long as a better one is left.
// It reports whether one is full that would do otherwise.
func (w *serverCaches) penalties(out []float64, tried []*pool.Endpoint, now time.Time) (full bool) {
	var fits [affinity.MaxEndpoints]pool.Fitness
	best := pool.Down
	for i := range w.ends {
		e := w.ends[i].end
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
	for i := range w.ends {
		if out[i] = 0; fits[i] >= pool.Asleep || fits[i] > best {
			out[i] = math.Inf(1)
		}
	}
	return full
}
