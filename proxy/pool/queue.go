package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"signalbox/internal/option"
)

// QueueOptions limits the requests that wait while every endpoint of a model has max_inflight
// requests in flight.
type QueueOptions struct {
	// Max is the maximum number of waiting requests. When the queue is full, a request falls back
	// to the route's next model, or gets a 503 if there is none. At least 1. Default 100.
	Max int `yaml:"max"`
	// Wait is the maximum time that a request waits in the queue. After that it falls back to the
	// route's next model, or gets a 503 if there is none. Default 30s.
	Wait option.Duration `yaml:"wait"`
}

const (
	defaultQueueMax  = 100
	defaultQueueWait = 30 * time.Second
)

// Check reports every bad option to p; at is the path of the section.
func (o *QueueOptions) Check(p *option.Problems, at string) {
	option.NotNegative(p, at+".max", o.Max)
	option.NotNegative(p, at+".wait", o.Wait)
}

// The reasons why a request got no endpoint although some are well.
var (
	ErrQueueFull = errors.New("too many requests wait for an endpoint")
	ErrQueueLate = errors.New("no endpoint was free in time")
)

// queue is the requests that wait, first come, first served. A group and its successors share one,
// and so do an endpoint and its own.
type queue struct {
	mu      sync.Mutex // guards waiting; a leaf
	waiting []chan struct{}
}

// join puts a request at the end, unless limit of them wait.
func (q *queue) join(limit int) (turn chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= limit {
		return nil, false
	}
	turn = make(chan struct{}, 1)
	q.waiting = append(q.waiting, turn)
	return turn, true
}

// rejoin puts a request whose turn came in vain back to the front.
func (q *queue) rejoin(turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Insert(q.waiting, 0, turn)
}

// leave takes a request out. Where its turn has come, that of the next has.
func (q *queue) leave(turn chan struct{}) {
	q.mu.Lock()
	at := slices.Index(q.waiting, turn)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.mu.Unlock()
	if at < 0 {
		q.wake()
	}
}

// pass takes out a request that got what it waited for, and gives the turn to the next.
func (q *queue) pass(turn chan struct{}) {
	q.mu.Lock()
	if at := slices.Index(q.waiting, turn); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.mu.Unlock()
	q.wake()
}

// first reports whether nobody waits longer.
func (q *queue) first(turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0 && q.waiting[0] == turn
}

// wake tells the first that something may be free.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return
	}
	q.waiting[0] <- struct{}{} // holds one, and only whoever is in the list is told
	q.waiting = q.waiting[1:]
}

// length is how many wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Queued is how many requests wait for an endpoint of the group, or for one of them alone.
func (g *Group) Queued() int {
	n := g.queue.length()
	for _, e := range g.Endpoints {
		n += e.alone.length()
	}
	return n
}

// Ahead is how many requests wait for only alone, or, where only is nil, for any endpoint of the
// group: those that want a certain one are in nobody else's way.
func (g *Group) Ahead(only *Endpoint) int { return g.lineOf(only).length() }

// lineOf is where a request waits for only, or for any endpoint of the group where that is nil.
func (g *Group) lineOf(only *Endpoint) *queue {
	if only != nil {
		return &only.alone
	}
	return g.queue
}

// Wait waits until try, which is called at once and whenever something may have become free,
// returns true. only is the endpoint that is waited for, nil for any of the group. Whoever gets
// something lets the next in the line try: an endpoint that comes up, or a new one, has more than
// one place. The error is ErrQueueFull, ErrQueueLate, or that of ctx.
func (g *Group) Wait(ctx context.Context, only *Endpoint, try func() bool) error {
	if g.Queued() >= g.line.Max { // over all lines; a line has no more either
		return ErrQueueFull
	}
	q := g.lineOf(only)
	turn, ok := q.join(g.line.Max)
	if !ok {
		return ErrQueueFull
	}
	late := time.After(time.Duration(g.line.Wait))
	for {
		if q.first(turn) && try() { // what became free before the join has told nobody
			q.pass(turn)
			return nil
		}
		select {
		case <-turn:
			if try() {
				q.wake()
				return nil
			}
			q.rejoin(turn)
		case <-late:
			q.leave(turn)
			return ErrQueueLate
		case <-ctx.Done():
			q.leave(turn)
			return ctx.Err() //nolint:wrapcheck // the caller's own
		}
	}
}
