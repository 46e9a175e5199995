package guard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/stream/check"
)

// batchSize is how many claims of one answer are checked in one call: enough to fill a model run,
// few enough that the first verdict does not wait for the last.
const batchSize = 16

// pool runs checks for all answers. Its queue holds desks, each at most once and only while it has
// waiting claims. No more claims wait than the queue has places, so sending to the queue never
// blocks.
type pool struct {
	observer Observer
	queue    chan *desk
	limit    int64
	waiting  atomic.Int64 // claims at desks that no worker has taken
	stop     context.CancelFunc
	workers  sync.WaitGroup
}

func newPool(o Options) *pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &pool{observer: o.Observer, queue: make(chan *desk, o.Queue), limit: int64(o.Queue), stop: stop}
	for range o.Workers {
		p.workers.Go(func() { p.work(ctx) })
	}
	return p
}

func (p *pool) close() {
	p.stop()
	p.workers.Wait()
	for {
		select {
		case d := <-p.queue:
			p.drop(d)
		default:
			return
		}
	}
}

// drop sheds the claims waiting at a desk.
func (p *pool) drop(d *desk) {
	for {
		list, _ := d.take()
		if len(list) == 0 {
			return
		}
		p.waiting.Add(-int64(len(list)))
		d.deliver(list, nil)
	}
}

func (p *pool) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-p.queue:
			p.serve(ctx, d)
		}
	}
}

// serve checks the first claims at a desk.
func (p *pool) serve(ctx context.Context, d *desk) {
	list, more := d.take()
	if more {
		p.queue <- d
	}
	p.waiting.Add(-int64(len(list)))
	now := time.Now()
	fresh := list[:0]
	for _, t := range list {
		if now.Before(t.deadline) {
			fresh = append(fresh, t)
		} else {
			d.deliver([]task{t}, nil)
		}
	}
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, fresh[len(fresh)-1].deadline)
	defer cancel()
	if id, wanted := d.start(cancel); wanted {
		d.deliver(fresh, ask(ctx, d, fresh))
		d.end(id)
	}
}

// ask calls the checker of an answer. If the checker panics or returns a wrong number of results,
// all claims are unchecked, with an error.
func ask(ctx context.Context, d *desk, list []task) (results []check.Result) {
	defer func() {
		// A panic must not end the process: it is one check of many.
		if fault := recover(); fault != nil {
			results = failed(len(list), fmt.Errorf("check: panic: %v", fault))
		}
	}()
	asked := make([]check.Claim, len(list))
	for i := range list {
		asked[i] = list[i].claim
	}
	results = d.checker.Check(ctx, d.evidence, d.question, asked)
	if len(results) != len(list) {
		return failed(len(list), fmt.Errorf("check: %d results for %d claims", len(results), len(list)))
	}
	return results
}

func failed(n int, err error) []check.Result {
	out := make([]check.Result, n)
	for i := range out {
		out[i] = check.Result{Verdict: check.Unchecked, Source: -1, Reason: "check failed", Err: err}
	}
	return out
}

// reserve takes places in the queue for n claims, or for as many as fit, and returns their number.
func (p *pool) reserve(n int) int {
	over := p.waiting.Add(int64(n)) - p.limit
	if over <= 0 {
		return n
	}
	back := min(over, int64(n))
	p.waiting.Add(-back)
	return n - int(back)
}

// tell reports a verdict to the Observer.
func (p *pool) tell(r reply, took time.Duration) {
	if r.shed {
		p.observer.Action(Shed)
	}
	p.observer.Claim(r.result.Verdict, took)
}
