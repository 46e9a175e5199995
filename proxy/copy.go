package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/answer"
	"signalbox/proxy/headers"
	"signalbox/proxy/redact"
)

// peek reads what decides whether the answer is usable: all of a short body, the first bytes of a long one, the first event
// of a stream. An upstream that breaks off before can still be replaced by another.
func (u *upstream) peek() error {
	if u.flow != nil {
		return u.peekEvents()
	}
	whole := u.length >= 0 || isJSON(u.header)
	for u.err == nil && !u.buf.Full() && (whole || len(u.buf.Bytes()) == 0) {
		u.read()
		u.watch.expect(u.model.gap)
	}
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return u.err
	}
	return nil
}

func (u *upstream) peekEvents() error {
	for f := u.flow; !f.begun && !f.ended && f.out.Len() < answer.WindowSize; {
		u.advance(u.model.firstByte)
	}
	switch f := u.flow; {
	case f.done:
		return nil
	case f.ended && !f.begun:
		return f.err
	case u.err != nil && !errors.Is(u.err, io.EOF):
		return u.err
	}
	u.fresh = true
	return nil
}

// advance reads on in a stream of events. Progress has to come within limit of asking for more after the last; bytes that
// complete no event are none.
func (u *upstream) advance(limit time.Duration) {
	if u.fresh {
		u.fresh = false
		u.watch.expect(limit)
	}
	u.read()
	u.fresh = u.flow.feed(u.buf.Bytes(), u.alive)
	u.buf.Clear()
	if u.err != nil {
		u.flow.end(u.err)
	}
}

// take is what a stream of events has for the client.
func (u *upstream) take() []byte {
	b := u.flow.take()
	if u.tape != nil && len(b) > 0 {
		_, _ = u.tape.Write(b)
	}
	return b
}

// read adds to the window what the upstream has, at least one byte unless it fails.
func (u *upstream) read() {
	u.watch.asleep.Store(false)
	u.err = u.buf.Read(u.body)
	u.watch.asleep.Store(true)
}

// close gives everything back; the upstream request is cancelled if it still runs. A second call,
// and a call on nil, do nothing.
func (u *upstream) close() {
	if u == nil || u.closed {
		return
	}
	u.closed = true
	u.watch.stop()
	_ = u.body.Close()
	u.buf.Release()
	u.flow.release()
	u.buf, u.flow = nil, nil
	u.lease.Close()
}

// errNoEnd: a stream that ends without its mark was cut, even when the connection ended in order: [DONE],
// or in the Responses API the event that says how the response ended. Official SDKs take it for a
// complete answer.
var errNoEnd = errors.New("stream ended without its end mark")

// relay passes an answer on to the client.
func (p *Proxy) relay(ctx context.Context, w *reply, u *upstream, o *outcome) error {
	defer u.close()
	if what := u.misfit(streams(o.req)); what != "" {
		return &misfitError{what}
	}
	if err := u.asTooLong(o.req.PromptField()); err != nil {
		u.endpoint.Succeeded() // it has answered
		return err
	}
	if w.status != 0 && u.flow == nil { // a comment went out before it
		return &misfitError{"status " + strconv.Itoa(u.status) + " behind a comment"}
	}
	if o.vault != nil && !u.plain() {
		return &misfitError{"a body in an encoding that was not asked for"} // hidden values could not be put back
	}
	h := w.Header()
	if err := o.misses(u, h); err != nil {
		return err
	}
	o.memo.tap(u)
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
	case (o.guarding != nil || o.req.Extras.Explain || o.saves()) && u.good() && isJSON(u.header) && u.plain():
		err = u.copyWhole(ctx, w, o, &t)
	case o.vault != nil && isJSON(u.header) && u.plain():
		err = u.copyRestored(w, o, &t)
	default:
		w.WriteHeader(u.status)
		err = u.copyBody(w, &t, nil)
	}
	if u.flow != nil && u.flow.usage != (answer.Usage{}) {
		t.Usage = u.flow.usage
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

// copyStream passes a stream of events on.
func (u *upstream) copyStream(ctx context.Context, w *reply, o *outcome, t *meter) error {
	w.Header()["X-Accel-Buffering"] = []string{"no"}
	if w.status == 0 {
		w.WriteHeader(u.status)
	}
	if o.req.API == openai.Response { // announced before there is any of it
		t.asked = w.start
	} else {
		t.metrics.TTFT(u.model.Name, time.Since(w.start))
	}
	w.keeper.watch()
	switch {
	case o.guarding != nil:
		return u.copyChecked(ctx, w, o, t)
	case o.saves() && u.good():
		return u.copySaved(ctx, w, o, t)
	default:
		return u.copyEvents(w, t, o.vault.Stream())
	}
}

// settleAnswer tells the endpoint's part in how the answer ended.
func settleAnswer(ctx context.Context, w *reply, u *upstream, err error) error {
	var cut *cutError
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
		if u.watch.barked() {
			cut.err = errNoProgress
		}
	case stopped(ctx, errClientGone) != errStopped: //nolint:errorlint // returned as it is
		return errClientGone
	default:
		cut.err = errStopped
	}
	if u.flow != nil && !u.told && !u.flow.failed() {
		_ = w.send(openai.StreamError(wire(cut, w.id)), time.Now()) // the connection is broken off next
	}
	return cut
}

// copyEvents passes a stream on, flushed after each read, in whole events. It allocates nothing for a chunk.
func (u *upstream) copyEvents(w *reply, t *meter, r *redact.Stream) error {
	f := u.flow
	for {
		if out := u.take(); len(out) > 0 {
			now := time.Now()
			t.chunk(f, out, now)
			if err := w.send(r.Feed(out), now); err != nil {
				return clientError(err)
			}
		}
		switch {
		case f.done:
			if rest := r.Rest(); len(rest) > 0 {
				if err := w.send(rest, time.Now()); err != nil {
					return clientError(err)
				}
			}
			u.drain(w)
			return nil
		case f.ended:
			return &cutError{f.err}
		}
		u.advance(u.model.gap)
	}
}

// After the end mark the client has all there is. The upstream gets a moment to end its body in order, so
// that the connection can be used again, and no more. What it still says is dropped, but for a [DONE]
// behind the last event of a response: some servers send one, and their clients may wait for it.
const (
	drainTime  = 50 * time.Millisecond
	drainReads = 4
)

func (u *upstream) drain(w *reply) {
	u.watch.expect(drainTime)
	u.fresh = false
	for range drainReads {
		if u.err != nil {
			return
		}
		u.advance(drainTime)
		if done := u.take(); len(done) > 0 {
			_ = w.send(done, time.Now()) // the client has its answer, and may be gone
		}
	}
}

// copyBody passes on a body that is no stream of events, through r when hidden values are to be put back.
func (u *upstream) copyBody(w *reply, t *meter, r *redact.Body) error {
	b := u.buf
	for {
		if len(b.Bytes()) > 0 {
			w.renew(time.Now())
			if err := send(w, r.Feed(b.Bytes())); err != nil {
				return err
			}
		}
		if errors.Is(u.err, io.EOF) {
			t.Body(b.Tail(), b.Bytes())
			return send(w, r.Rest())
		}
		if u.err != nil {
			return &cutError{u.err}
		}
		if u.length < 0 {
			if err := w.rc.Flush(); err != nil {
				return clientError(err)
			}
		}
		b.Pass()
		u.watch.expect(u.model.gap)
		u.read()
	}
}

// maxWhole bounds an answer that is read whole, to be checked or to have an explanation added, in bytes; a
// larger one stays as it is.
const maxWhole = 8 << 20

// copyWhole passes on a JSON object that may change: hidden values are put back, its claims are checked,
// the decision is added.
func (u *upstream) copyWhole(ctx context.Context, w *reply, o *outcome, t *meter) error {
	came, err := u.readWhole()
	if err != nil {
		return err
	}
	t.Body(nil, came)
	whole := errors.Is(u.err, io.EOF)
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
		u.buf.Clear()
		return u.copyBody(w, t, r)
	}
	if out, err = o.check(ctx, out, h); err != nil {
		return err
	}
	if o.req.Extras.Explain {
		out = addDecision(out, o)
	}
	if s := o.saver(); s != nil {
		out = s.whole(ctx, out, h)
	}
	if !bytes.Equal(out, came) {
		headers.DropStale(h)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	w.WriteHeader(u.status)
	return send(w, out)
}

// readWhole reads the body, up to maxWhole bytes or a little more; u.err is io.EOF when that was all.
func (u *upstream) readWhole() ([]byte, error) {
	all := bytes.Clone(u.buf.Bytes())
	for u.err == nil && len(all) < maxWhole {
		u.buf.Clear()
		u.watch.expect(u.model.gap)
		u.read()
		all = append(all, u.buf.Bytes()...)
	}
	u.watch.expect(0)
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return nil, &unansweredError{u.err} // nothing was sent yet
	}
	return all, nil
}

// clientError classifies a failed write.
func clientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errClientStalled
	}
	return errClientGone
}
