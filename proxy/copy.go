package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
	"signalbox/proxy/redact"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// clientSink sends a stream to the client.
type clientSink struct {
	w   *reply
	out []byte
	now time.Time // when what comes next came; zero where that is longer ago
}

// Put implements response.Sink.
func (s *clientSink) Put(c *response.Chunk) {
	if s.w != nil && s.w.translates() {
		s.out = s.w.messages.Put(s.out, c)
		return
	}
	s.out = append(s.out, c.Raw...)
}

// Flush implements guard.Sink.
func (s *clientSink) Flush() error {
	if len(s.out) == 0 {
		return s.w.unreadable()
	}
	if s.now.IsZero() {
		s.now = time.Now()
	}
	err := s.w.send(s.out, s.now)
	s.now = time.Time{}
	if s.out = s.out[:0]; cap(s.out) > keptOut {
		s.out = nil
	}
	if err != nil {
		return clientError(err)
	}
	return s.w.unreadable()
}

// keptOut is how much of a buffer that has grown is kept, in bytes.
const keptOut = 64 << 10

// relay passes an answer on to the client.
func (p *Proxy) relay(ctx context.Context, w *reply, u *upstream, o *exchange) error {
	defer u.close()
	if w.messages != nil {
		w.messages.direct = u.direct
		w.messages.Prompt = cmp.Or(o.where.length, w.messages.Prompt)
	}
	if what := u.misfit(streams(o.req)); what != "" {
		return &fault.UnusableError{Problem: what}
	}
	if err := u.asTooLong(o.req.PromptField()); err != nil {
		u.endpoint.Succeeded() // it has answered
		return err
	}
	if w.status != 0 && u.flow == nil { // a comment went out before it
		return &fault.UnusableError{Problem: "status " + strconv.Itoa(u.status) + " behind a comment"}
	}
	if o.vault != nil && !u.plain() {
		return &fault.UnusableError{Problem: "a body in an encoding that was not asked for"} // hidden values could not be put back
	}
	h := w.Header()
	if err := o.misses(u, h); err != nil {
		return err
	}
	o.memo.tap(u)
	o.mirror.tap(u)
	headers.ForClient(h, u.header)
	headers.CapRetryAfter(h, time.Now(), u.patience)
	h["Server-Timing"] = []string{o.timing(o.queue, u.took)}
	t := meter{metrics: p.tel.Metrics, model: u.model.Name, usage: o.req.IncludeUsage}
	t.API, t.ticket = o.req.API, &o.where.ticket
	if !u.events && u.good() {
		// All of it is there, or soon will be. A refusal has computed nothing.
		t.ticket.First(time.Now())
	}
	var err error
	switch {
	case u.flow != nil:
		err = u.copyStream(ctx, w, o, &t)
	case (o.guarding != nil || o.req.Extras.Explain || o.saves() || w.translates()) &&
		u.good() && isJSON(u.header) && u.plain():
		err = u.copyWhole(ctx, w, o, &t)
	case w.translates():
		err = u.copyRefusal(w)
	case o.vault != nil && isJSON(u.header) && u.plain():
		err = u.copyRestored(w, o, &t)
	default:
		w.WriteHeader(u.status)
		err = u.copyBody(w, &t, nil)
	}
	if u.flow != nil && u.flow.HiddenUsage() != (response.Usage{}) {
		t.Usage = u.flow.HiddenUsage()
	}
	if u.flow != nil && err == nil {
		t.pace()
	}
	o.told = t.Tally
	if o.req.API == openai.Response && !t.first.IsZero() {
		o.first = t.first
	}
	return settleAnswer(ctx, w, u, err)
}

// settleAnswer tells the endpoint's part in how the answer ended.
func settleAnswer(ctx context.Context, w *reply, u *upstream, err error) error {
	var cut *fault.InterruptedError
	switch {
	case err == nil:
		if u.status < http.StatusInternalServerError && u.status != http.StatusTooManyRequests {
			u.endpoint.Succeeded()
		}
		return nil
	case !errors.As(err, &cut):
		return err
	case ctx.Err() == nil:
		u.model.Failed(u.endpoint, time.Now())
		if u.watch.expired() {
			cut.Err = fault.ErrNoProgress
		}
	case fault.Stopped(ctx, fault.ErrClientGone) != fault.ErrStopped: //nolint:errorlint // returned as it is
		return fault.ErrClientGone
	default:
		cut.Err = fault.ErrStopped
	}
	if u.flow != nil && !u.told && !u.flow.Failed() {
		_ = w.send(w.errorEvent(fault.Wire(cut, w.id)), time.Now()) // the connection is broken off next
	}
	return cut
}

// After the end mark the client has all there is. The upstream gets a moment to end its body in
// order, so that the connection can be used again, and no more. What it still says is dropped, but
// for a [DONE] behind the last event of a response: some servers send one, and their clients may
// wait for it.
const (
	drainTime  = 50 * time.Millisecond
	drainReads = 4
)

// maxWhole bounds an answer that is read whole, to be checked or to have an explanation added, in
// bytes; a larger one stays as it is.
const maxWhole = 8 << 20

// clientError classifies a failed write.
func clientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.ErrClientStalled
	}
	return fault.ErrClientGone
}

// deliver puts what has come of a stream of events, and reports whether anything has.
func (u *upstream) deliver(to response.Sink, t *meter) (came bool) {
	for c := u.flow.Next(); c != nil; c = u.flow.Next() {
		came = true
		if u.direct {
			t.NoteMessage(c)
		} else {
			t.chunk(c)
		}
		if u.tape != nil {
			u.tape.Put(c)
		}
		if u.copied != nil {
			u.copied.Put(c)
		}
		to.Put(c)
	}
	if u.tape != nil && came {
		u.tape.Mark()
	}
	u.fresh = u.fresh || u.flow.Progress()
	if came {
		u.flow.client.now = time.Now()
		t.came(u.flow.client.now)
	}
	return came
}

// copyStream passes a stream of events on.
func (u *upstream) copyStream(ctx context.Context, w *reply, o *exchange, t *meter) error {
	w.Header()["X-Accel-Buffering"] = []string{"no"}
	if w.status == 0 {
		headers.DropStale(w.Header()) // what checks, restores or ends a stream changes its length
		w.WriteHeader(u.status)
	}
	if o.req.API == openai.Response { // announced before there is any of it
		t.asked = w.start
	} else {
		t.metrics.TTFT(u.model.Name, time.Since(w.start))
	}
	w.keeper.watch()
	client := &u.flow.client
	client.w = w
	var to guard.Sink = client
	if o.saves() && u.good() {
		to = &saver{ctx: ctx, o: o, next: to}
	}
	if o.guarding != nil {
		return u.copyChecked(ctx, o, t, client, to)
	}
	return u.copyEvents(t, o.vault.Stream(to), client)
}

// copyEvents passes a stream on by way of its filters, flushed after each read, in whole events. It
// allocates nothing for a chunk.
func (u *upstream) copyEvents(t *meter, to response.Sink, client *clientSink) error {
	for {
		u.deliver(to, t)
		if err := client.Flush(); err != nil {
			return err
		}
		ended, err := u.flow.Ended()
		switch {
		case u.flow.Done():
			u.drain(t, client)
			return nil
		case ended:
			return &fault.InterruptedError{Err: err}
		}
		u.advance(u.model.gap)
	}
}

func (u *upstream) drain(t *meter, client *clientSink) {
	u.watch.expect(drainTime)
	u.fresh = false
	if u.direct {
		return // nothing comes behind the last event
	}
	for range drainReads {
		if u.err != nil {
			return
		}
		u.advance(drainTime)
		u.deliver(client, t)
		_ = client.Flush() // the client has its answer, and may be gone
	}
}

// copyBody passes on a body that is no stream of events, through r when hidden values are to be put
// back.
func (u *upstream) copyBody(w *reply, t *meter, r *redact.Body) error {
	b := u.buf
	for {
		if len(b.bytes()) > 0 {
			w.renew(time.Now())
			if err := send(w, r.Feed(b.bytes())); err != nil {
				return err
			}
		}
		if errors.Is(u.err, io.EOF) {
			t.Body(b.last(), b.bytes())
			return send(w, r.Rest())
		}
		if u.err != nil {
			return &fault.InterruptedError{Err: u.err}
		}
		if u.length < 0 {
			if err := w.rc.Flush(); err != nil {
				return clientError(err)
			}
		}
		b.pass()
		u.watch.expect(u.model.gap)
		u.read()
	}
}

// copyWhole passes on a JSON object that may change: hidden values are put back, its claims are
// checked, the decision is added.
func (u *upstream) copyWhole(ctx context.Context, w *reply, o *exchange, t *meter) error {
	came, err := u.readWhole()
	if err != nil {
		return err
	}
	t.Body(nil, came)
	whole := errors.Is(u.err, io.EOF)
	if !whole && w.translates() {
		return errLongMessage
	}
	r, out := o.vault.Body(), came
	if r != nil {
		if out = bytes.Clone(r.Feed(came)); whole {
			out = append(out, r.Rest()...)
		}
	}
	h := w.Header()
	if !whole {
		if err := o.forgo(h); err != nil {
			return err
		}
		if r != nil {
			headers.DropStale(h)
		}
		w.WriteHeader(u.status)
		if err := send(w, out); err != nil {
			return err
		}
		u.buf.clear()
		return u.copyBody(w, t, r)
	}
	if out, err = o.check(ctx, out, h); err != nil {
		return err
	}
	if o.req.Extras.Explain {
		out = addDecision(out, o)
	}
	if o.saves() {
		out = o.saveWhole(ctx, out, h)
	}
	if out, err = w.spell(out); err != nil {
		return err
	}
	if !bytes.Equal(out, came) {
		headers.DropStale(h)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	w.WriteHeader(u.status)
	return send(w, out)
}
