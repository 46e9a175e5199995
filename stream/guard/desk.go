package guard

import (
	"context"
	"sync"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// task is a claim that a model has to read.
type task struct {
	record   *record
	claim    check.Claim
	fallback check.Result // result without a model
	since    time.Time    // the end of the claim
	deadline time.Time
}

// reply is the verdict on a task.
type reply struct {
	record *record
	result check.Result
	shed   bool
}

// desk is where one answer submits its tasks and receives its verdicts. Its methods are safe for
// concurrent use.
type desk struct {
	pool     *pool
	checker  Checker
	evidence *evidence.Evidence
	question string
	wake     chan struct{} // capacity 1: there are replies

	mu      sync.Mutex // protects the following fields
	tasks   []task
	queued  bool // it is in the pool's queue, or about to be
	replies []reply
	state   deskState
	checks  int // number of checks started
	running map[int]context.CancelFunc
}

type deskState uint8

const (
	attended deskState = iota // the answer collects its replies
	left                      // the answer is gone; replies go to the Observer
	closed                    // the verdicts are not wanted any more
)

func newDesk(p *pool, c Checker, e *evidence.Evidence, question string) *desk {
	return &desk{pool: p, checker: c, evidence: e, question: question, wake: make(chan struct{}, 1), running: map[int]context.CancelFunc{}}
}

// submit adds tasks, in the order of their deadlines, and returns how many fit into the queue.
func (d *desk) submit(list []task) int {
	n := d.pool.reserve(len(list))
	if n == 0 {
		return 0
	}
	d.mu.Lock()
	d.tasks = append(d.tasks, list[:n]...)
	send := !d.queued
	d.queued = true
	d.mu.Unlock()
	if send {
		d.pool.queue <- d
	}
	return n
}

// take returns the next tasks, and whether there are more, in which case the desk must be queued
// again.
func (d *desk) take() (list []task, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(d.tasks), batchSize)
	list = append(list, d.tasks[:n]...)
	d.tasks = append(d.tasks[:0], d.tasks[n:]...)
	d.queued = len(d.tasks) > 0
	return list, d.queued
}

// start registers a check. wanted is false if its verdicts are not needed any more.
func (d *desk) start(cancel context.CancelFunc) (id int, wanted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks++
	d.running[d.checks] = cancel
	return d.checks, d.state != closed
}

// end unregisters a check.
func (d *desk) end(id int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, id)
}

// deliver hands in verdicts. results may be nil, which sheds all tasks.
func (d *desk) deliver(list []task, results []check.Result) {
	out := make([]reply, len(list))
	now := time.Now()
	for i, t := range list {
		out[i] = reply{record: t.record, result: t.fallback, shed: results == nil || !now.Before(t.deadline)}
		if !out[i].shed {
			out[i].result = results[i]
		}
	}
	d.mu.Lock()
	state := d.state
	if state == attended {
		d.replies = append(d.replies, out...)
	}
	d.mu.Unlock()
	switch state {
	case attended:
		select {
		case d.wake <- struct{}{}:
		default: // it is already awake
		}
	case left:
		for _, r := range out {
			if !r.record.decided { // the answer will not process it
				d.pool.tell(r, now.Sub(r.record.since))
			}
		}
	case closed:
	}
}

// collect returns the verdicts that have arrived.
func (d *desk) collect() []reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.replies
	d.replies = nil
	return out
}

// leave lets the checks continue without the answer, and returns the verdicts that have arrived.
func (d *desk) leave() []reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = left
	out := d.replies
	d.replies = nil
	return out
}

// close discards all verdicts and cancels running checks. Waiting tasks keep their places until a
// worker takes them.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = closed
	d.replies = nil
	for _, cancel := range d.running {
		cancel()
	}
}
