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

// ErrOpaque: a body cannot be read, so it cannot be checked.
var ErrOpaque = errors.New("answer cannot be read")

// Body checks an answer in one piece and returns it as the job's policy wants it: the same slice
// when nothing changes in it.
//
// Every mode but Observe without a summary adds the member x_signalbox. Annotate puts the marker
// behind each failed claim, unless it marks by Field, and Hold in its place; both keep the
// finish_reason. Terminate, and Hold where it would end a stream, cut a choice before the claim
// that ends it, with all that follows, as tool calls do, and make its finish_reason content_filter.
//
// All claims are there at once, so MaxHold bounds the time until the next verdicts come and not the
// time of all of them: what a checker says nothing about for that long is shed. A body that is not
// understood has the State Failed and is returned as it is, or, where OnUnchecked blocks, not at
// all: the error is ErrOpaque. The other error is that of ctx.
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

// bodyCheck is an answer in one piece.
type bodyCheck struct {
	ledger
	texts []bodyText
	todo  []task
}

// bodyText is a text of the body, of which the client gets what is before to.
type bodyText struct {
	delta int
	lane  *lane
	text  []byte
	to    int
	cut   bool  // the answer ends there
	marks []int // the ends of claims that a marker follows
}

// read takes in all texts, in the order in which a stream brings those of a choice: thoughts come
// before the answer, wherever they stand.
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

// stopped tells of each delta whether an answer stops in the middle of it: in the last of each choice
// that does, and of a response that failed.
func stopped(e *response.Event) []bool {
	last := map[int]int{} // delta of a choice
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

// order is the place of a kind of text in a choice of a chat.
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

// wait has the claims read by a model, some at a time, as long as that gets on.
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

// await waits for the claims that were sent. When none of them gets a verdict in time the rest is
// shed.
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

// conclude lets follow what has to, in the order of the text.
func (b *bodyCheck) conclude() {
	for i := range b.texts {
		p := &b.texts[i]
		if b.fallen(p.lane.choice) { // by a text before
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

// withhold notes which claims the client does not get, or not in full: windows overlap.
func (p *bodyText) withhold() {
	for _, r := range p.lane.open {
		r.withheld = r.claim.Bytes.End > p.to
	}
}

// annotate appends what puts the markers into the text. One claim may reach over the end of
// another, and so over the place where the text is cut.
func (p *bodyText) annotate(dst []response.Change, m *markers) []response.Change {
	for _, at := range p.marks {
		if at = min(at, p.to); at > 0 {
			text := m.behind(p.text[at-1])
			dst = append(dst, response.Change{Delta: p.delta, From: at, To: at, Text: text})
		}
	}
	return dst
}

// write returns the body as it goes to the client.
func (b *bodyCheck) write(body []byte, e *response.Event) []byte {
	var w response.Rewrite
	if b.out.Cut && !e.Failed { // what failed stays so
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
