package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/claims"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// ErrOpaque is returned if a body cannot be read, and therefore not checked.
var ErrOpaque = errors.New("answer cannot be read")

// Body checks an answer in one piece and returns it as the job's policy requires, as the same slice
// if nothing changes.
//
// In every mode except Observe without a summary, the member x_signalbox is added. Annotate puts
// the marker after each failed claim, unless it marks by Field; Hold puts it in place of the claim.
// Both keep the finish_reason. Terminate, and Hold where it would end a stream, cut a choice before
// the claim that ends it, with everything that follows, including tool calls, and set its
// finish_reason to content_filter.
//
// All claims are available at once, so MaxHold limits the time until the next verdicts arrive and
// not the total time: claims for which a checker returns nothing for that long are shed. A body
// that is not understood has the State Failed. It is returned unchanged or, with OnUnchecked Block,
// not at all, and the error wraps ErrOpaque. If ctx ends, Body returns its cause.
func (g *Guard) Body(ctx context.Context, body []byte, job Job) ([]byte, Outcome, error) {
	b := bodyCheck{ledger: newLedger(g, job)}
	b.act, b.late = func(*record) {}, true
	if job.idle() {
		b.finish(nil)
		b.out.State = sse.Done
		return body, b.out, nil
	}
	var r response.Reader
	e := r.ReadBody(body)
	b.several, b.many = e.Shape != response.Response, len(e.Choices()) > 1
	b.read(e)
	if e.Shape == response.Opaque || e.Unread {
		b.unread()
	}
	err := b.wait(ctx)
	b.conclude()
	b.finish(err)
	b.out.State = sse.Done
	if e.Shape == response.Opaque || e.Failed {
		b.out.State = sse.Failed
	}
	if err == nil && b.unreads > 0 && b.blocks(check.Unchecked) {
		err = fmt.Errorf("%w: %s", ErrOpaque, cmp.Or(e.Why, "it holds more than text"))
	}
	if err != nil {
		return nil, b.out, err
	}
	return b.write(body, e), b.out, nil
}

// bodyCheck checks an answer in one piece.
type bodyCheck struct {
	ledger
	texts []bodyText
	todo  []task
}

// bodyText is a text of the body. The client receives it up to offset to.
type bodyText struct {
	delta int
	lane  *lane
	text  []byte
	to    int
	cut   bool  // the answer ends there
	marks []int // the ends of claims to mark
}

// read processes all texts, in the order in which a stream would bring those of a choice: reasoning
// precedes the answer, wherever it is in the body.
func (b *bodyCheck) read(e *response.Event) {
	stops := stopped(e)
	for i := range e.Deltas {
		d := &e.Deltas[i]
		if !b.checked(d.Kind) {
			continue
		}
		ln := b.newLane(d, d.Part)
		b.look(ln, d.Text)
		b.texts = append(b.texts, bodyText{delta: i, lane: ln, text: d.Text, to: len(d.Text)})
		b.enter(ln, ln.feed(d.Text))
		if stops[i] {
			b.enterHalf(ln)
		} else {
			b.enter(ln, ln.close())
		}
	}
	b.todo, b.batch = b.batch, nil
	if b.several {
		slices.SortStableFunc(b.texts, func(x, y bodyText) int {
			return cmp.Or(cmp.Compare(x.lane.choice, y.lane.choice), cmp.Compare(order(x.lane.kind), order(y.lane.kind)))
		})
	}
}

// stopped returns, for each delta, whether the answer stops in the middle of it. That is the last
// delta of each choice that was broken off, and of a failed response.
func stopped(e *response.Event) []bool {
	last := map[int]int{} // last delta of each choice
	for k := range e.Deltas {
		d := &e.Deltas[k]
		at, ok := last[d.Choice]
		if !ok || order(d.Kind) >= order(e.Deltas[at].Kind) {
			last[d.Choice] = k
		}
	}
	stops := make([]bool, len(e.Deltas))
	n := len(stops) - 1
	if n >= 0 && e.Failed {
		stops[n] = true
	}
	for i := range e.Finishes {
		f := &e.Finishes[i]
		at, ok := last[f.Choice]
		if f.Choice == response.Everything {
			at, ok = n, n >= 0
		}
		if ok && f.Broken() {
			stops[at] = true
		}
	}
	return stops
}

// order returns the position of a kind of text within a chat choice.
func order(k response.Kind) int {
	switch k {
	case response.Reasoning:
		return 0
	case response.Tool, response.ToolName:
		return 2
	case response.Text, response.Refusal:
	}
	return 1
}

// wait sends the claims that need a model, in batches, as long as verdicts arrive.
func (b *bodyCheck) wait(ctx context.Context) error {
	for len(b.todo) > 0 {
		n := min(len(b.todo), batchSize)
		now := time.Now()
		for i := range b.todo[:n] {
			t := &b.todo[i]
			t.deadline = now.Add(b.MaxHold)
			t.record.deadline = t.deadline
		}
		b.batch = append(b.batch[:0], b.todo[:n]...)
		b.todo = b.todo[n:]
		b.send()
		if err := b.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the claims that were sent. If none of them gets a verdict in time, the remaining
// claims are shed.
func (b *bodyCheck) await(ctx context.Context) error {
	before := b.out.Shed
	sent := len(b.pending)
	for {
		deadline, ok := b.deadline()
		if !ok {
			break
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-b.desk.wake:
			b.receive(b.desk.collect())
		case <-timer.C:
			b.expire(time.Now())
		}
		timer.Stop()
	}
	if b.out.Shed-before < max(1, sent) {
		return nil
	}
	now := time.Now()
	for _, t := range b.todo {
		b.shed(t.record, now)
	}
	b.todo = nil
	return nil
}

// conclude applies the verdicts in the order of the text.
func (b *bodyCheck) conclude() {
	for i := range b.texts {
		p := &b.texts[i]
		// Ended by an earlier text.
		if b.fallen(p.lane.choice) {
			p.to = 0
			continue
		}
		for _, r := range p.lane.open {
			if !r.decided {
				continue
			}
			if b.follow(r); b.fallen(p.lane.choice) {
				p.to, p.cut, b.out.Cut = r.claim.Bytes.Start, true, true
				p.withhold()
				break
			}
			if r.failed && b.Mode == Annotate && !b.beside(p.lane) && r.claim.Place != claims.Inside {
				p.marks = append(p.marks, r.claim.Bytes.End)
			}
		}
	}
}

// withhold records which claims the client does not receive in full, because windows overlap.
func (p *bodyText) withhold() {
	for _, r := range p.lane.open {
		r.withheld = r.claim.Bytes.End > p.to
	}
}

// annotate appends the changes that insert the markers. A claim may extend beyond the end of
// another, and beyond the position where the text is cut.
func (p *bodyText) annotate(dst []response.Change, m *markers) []response.Change {
	for _, at := range p.marks {
		if at = min(at, p.to); at > 0 {
			text := m.behind(p.text[at-1])
			dst = append(dst, response.Change{Delta: p.delta, From: at, To: at, Text: text})
		}
	}
	return dst
}

// write returns the body for the client.
func (b *bodyCheck) write(body []byte, e *response.Event) []byte {
	var w response.Rewrite
	// A failed response remains failed.
	if b.out.Cut && !e.Failed {
		w.Finish = cutReason
	}
	m := newMarkers(b.Marker)
	for i := range b.texts {
		p := &b.texts[i]
		w.Changes = p.lane.changes(w.Changes, p.delta, 0, p.to, m.bare)
		w.Changes = p.annotate(w.Changes, &m)
		if p.cut {
			w.Cuts = append(w.Cuts, response.Cut{Delta: p.delta, At: p.to})
			b.pool.observer.Action(Cut)
		}
	}
	if b.Summary {
		w.Extension = b.summary()
	}
	if e.Shape == response.Opaque || e.Shape == response.Failure || len(w.Changes)+len(w.Cuts)+len(w.Extension) == 0 {
		return body
	}
	return e.Append(nil, w)
}
