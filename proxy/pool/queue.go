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

// The reasons why a request got no endpoint although some are healthy.
var (
	ErrQueueFull = errors.New("too many requests are waiting for an endpoint")
	ErrQueueLate = errors.New("no endpoint became available in time")
)

// queue holds the waiting requests in the order of their arrival. A group shares it with its
// successors, and an endpoint likewise. All requests of one group need the same: when one of them
// finds nothing free, those behind it would not either. A request of another group might.
type queue struct {
	mu      sync.Mutex // guards waiting; a leaf lock
	waiting []*waiter
}

// waiter is one request in a queue. It keeps its place until it has a slot or gives up.
type waiter struct {
	of   *Group
	turn chan struct{} // capacity 1; filled when something may be free
}

// call lets the request try. A second call before it has tried has no effect.
func (w *waiter) call() {
	select {
	case w.turn <- struct{}{}:
	default:
	}
}

// join appends a request of g, unless limit requests already wait (w is nil then), and reports
// whether it is the first of its group.
func (q *queue) join(g *Group, limit int) (w *waiter, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= limit {
		return nil, false
	}
	w = &waiter{of: g, turn: make(chan struct{}, 1)}
	first = !q.has(g)
	q.waiting = append(q.waiting, w)
	return w, first
}

// has reports whether a request of g waits. The caller holds the lock.
func (q *queue) has(g *Group) bool {
	return slices.ContainsFunc(q.waiting, func(w *waiter) bool { return w.of == g })
}

// holds is has for a caller that does not hold the lock.
func (q *queue) holds(g *Group) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.has(g)
}

// leave removes a request and calls the first one, in case it was the removed one's turn.
func (q *queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, w); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.callFirst()
}

// yield is called when w found nothing free. It calls the first request behind w whose group has
// none before it.
func (q *queue) yield(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, w)
	for i := at + 1; i < len(q.waiting); i++ {
		next := q.waiting[i]
		if !slices.ContainsFunc(q.waiting[:i], func(other *waiter) bool { return other.of == next.of }) {
			next.call()
			return
		}
	}
}

// wake calls the first request, because something may be free.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.callFirst()
}

// callFirst is wake for callers that hold the lock.
func (q *queue) callFirst() {
	if len(q.waiting) > 0 {
		q.waiting[0].call()
	}
}

// length returns the number of waiting requests.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Queued returns the number of requests that wait for any endpoint of the group or for a particular
// one.
func (g *Group) Queued() int {
	n := g.queue.length()
	for _, e := range g.Endpoints {
		n += e.alone.length()
	}
	return n
}

// Ahead returns the number of requests that wait for the endpoint only or, if only is nil, for any
// endpoint of the group. Requests that wait for a particular endpoint are not ahead of others.
func (g *Group) Ahead(only *Endpoint) int { return g.lineOf(only).length() }

// lineOf returns the queue for the endpoint only or, if only is nil, for any endpoint of the group.
func (g *Group) lineOf(only *Endpoint) *queue {
	if only != nil {
		return &only.alone
	}
	return g.queue
}

// Wait blocks until try returns true. try is called immediately if no request of the group waits,
// and whenever something may have become free. only is the endpoint to wait for; nil for any of the
// group. A request that gets a slot lets the next one try, since an endpoint that comes up, or a
// new one, has several. The error is ErrQueueFull, ErrQueueLate, or that of ctx.
func (g *Group) Wait(ctx context.Context, only *Endpoint, try func() bool) error {
	q := g.lineOf(only)
	if g.Queued() >= g.line.Max {
		// over all queues of the group; join limits a single queue as well
		if !q.holds(g) && try() { // those that wait may not know the endpoint that is free
			return nil
		}
		return ErrQueueFull
	}
	w, first := q.join(g, g.line.Max)
	if w == nil {
		return ErrQueueFull
	}
	defer q.leave(w)
	if first && try() { // a slot that became free before the join has notified nobody
		return nil
	}
	late := time.After(time.Duration(g.line.Wait))
	for {
		select {
		case <-w.turn:
			if try() {
				return nil
			}
			q.yield(w)
		case <-late:
			return ErrQueueLate
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's own error
		}
	}
}
