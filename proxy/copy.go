package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/redact"
)

// windowSize is how much of an answer is held at a time, in bytes.
const windowSize = 32 << 10

// window holds the part of an answer that was read and not passed on.
type window struct {
	b       [windowSize]byte
	n       int            // bytes in use
	scanned int            // bytes without an event's end
	open    bool           // a part of the event at the front has been passed on
	tail    [tailSize]byte // the end of what was passed on, of a body that is no stream
	tailLen int
}

var windows = sync.Pool{New: func() any { return new(window) }} //nolint:gochecknoglobals // buffers, no state

func takeWindow() *window {
	b := windows.Get().(*window) //nolint:errcheck,forcetypeassert // only windows are in it
	b.n, b.scanned, b.open, b.tailLen = 0, 0, false, 0
	return b
}

// peek reads what decides whether the answer is usable: all of a short body, the first bytes of a
// long one or of a stream.
func (u *upstream) peek() error {
	whole := !u.events && (u.length >= 0 || isJSON(u.header))
	for u.err == nil && u.buf.n < windowSize && (whole || u.buf.n == 0) {
		u.read()
		u.watch.expect(u.model.gap)
	}
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return u.err
	}
	if u.events && u.buf.n == 0 {
		return errNoEnd
	}
	return nil
}

// read adds to the window what the upstream has, at least one byte unless it fails.
func (u *upstream) read() {
	var n int
	n, u.err = u.body.Read(u.buf.b[u.buf.n:])
	u.buf.n += n
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
	windows.Put(u.buf)
	u.buf = nil
	u.endpoint.leave()
}

// errNoEnd: a stream that ends without [DONE] was cut, even when the connection ended in order.
// Official SDKs take it for a complete answer.
var errNoEnd = errors.New("stream ended without [DONE]")

// relay passes an answer on to the client.
func (p *Proxy) relay(ctx context.Context, w *reply, u *upstream, o *outcome) error {
	defer u.close()
	if what := u.misfit(o.req.Stream); what != "" {
		return &misfitError{what}
	}
	if o.vault != nil && !u.plain() {
		return &misfitError{"a body in an encoding that was not asked for"} // hidden values could not be put back
	}
	h := w.Header()
	copyAnswerHeader(h, u.header)
	h["Server-Timing"] = []string{o.timing(o.queue, u.took)}
	t := tally{metrics: p.tel.Metrics, model: u.model.name, usage: o.req.IncludeUsage}
	var err error
	switch {
	case u.events && u.plain():
		h["X-Accel-Buffering"] = []string{"no"}
		w.WriteHeader(u.status)
		p.tel.Metrics.TTFT(u.model.name, time.Since(w.start))
		err = u.copyEvents(w, &t, o.vault.Stream())
	case o.req.Extras.Explain && u.status == http.StatusOK && isJSON(u.header) && u.plain():
		err = u.copyExplained(w, o, &t)
	case o.vault != nil && isJSON(u.header) && u.plain():
		err = u.copyRestored(w, o, &t)
	default:
		w.WriteHeader(u.status)
		err = u.copyBody(w, &t, nil)
	}
	o.tokens, o.measure = t.tokens, t.measure
	return settleAnswer(ctx, w, u, err)
}

// settleAnswer tells the endpoint's part in how the answer ended.
func settleAnswer(ctx context.Context, w *reply, u *upstream, err error) error {
	var cut *cutError
	switch {
	case err == nil:
		if u.status < http.StatusInternalServerError && u.status != http.StatusTooManyRequests {
			u.endpoint.succeeded()
		}
		return nil
	case !errors.As(err, &cut):
		return err
	case ctx.Err() != nil:
		return errClientGone
	}
	u.model.failed(u.endpoint, time.Now())
	if u.watch.barked() {
		cut.err = errNoProgress
	}
	if u.events && !u.buf.open {
		_ = w.send(openai.StreamError(wire(cut, w.id)), time.Now()) // the connection is broken off next
	}
	return cut
}

// copyEvents passes a stream on, flushed after each read, in whole events: an event that the
// upstream does not finish is not begun, so that an error event can follow any time. Only an event
// larger than the window is passed on in parts. It allocates nothing for a chunk.
func (u *upstream) copyEvents(w *reply, t *tally, r *redact.Stream) error {
	b := u.buf
	for {
		end, done := b.events(errors.Is(u.err, io.EOF))
		if end > 0 {
			now := time.Now()
			if err := w.send(r.Feed(b.b[:end]), now); err != nil {
				return clientError(err)
			}
			t.chunk(b.b[:end], now)
			b.drop(end)
		}
		switch {
		case done:
			if rest := r.Rest(); len(rest) > 0 {
				if err := w.send(rest, time.Now()); err != nil {
					return clientError(err)
				}
			}
			u.drain()
			return nil
		case end > 0 && b.n > 0 && u.err != nil:
			continue // what is left may be the last event
		case errors.Is(u.err, io.EOF):
			return &cutError{errNoEnd}
		case u.err != nil:
			return &cutError{u.err}
		}
		u.watch.expect(u.model.gap)
		u.read()
	}
}

// events returns the length of the whole events at the front, and whether the last of them ends the
// stream. At the end of the body, a last event without its blank line counts when it is [DONE].
func (b *window) events(ended bool) (end int, done bool) {
	fresh := !b.open
	end = eventsEnd(b.b[:b.n], max(0, b.scanned-3))
	switch {
	case end > 0:
		b.open = false
	case ended:
		end = max(0, doneEnd(b.b[:b.n], fresh))
		return end, end > 0
	case b.n == windowSize:
		end, b.open = b.n, true
	default:
		b.scanned = b.n
		return 0, false
	}
	if at := doneEnd(b.b[:end], fresh); at >= 0 {
		return at, true
	}
	return end, false
}

// drop removes n bytes from the front.
func (b *window) drop(n int) {
	copy(b.b[:], b.b[n:b.n])
	b.n -= n
	b.scanned = b.n
}

// eventsEnd returns the offset behind the last blank line of s that ends at or behind from, 0
// without one. Lines end in LF, CRLF or CR (WHATWG HTML, section 9.2.5).
func eventsEnd(s []byte, from int) int {
	for i := len(s) - 1; i > from; i-- {
		switch {
		case s[i] == '\n' && (s[i-1] == '\n' || i > 1 && s[i-1] == '\r' && s[i-2] == '\n'):
			return i + 1
		case s[i] == '\r' && s[i-1] == '\r':
			return i + 1
		}
		next := bytes.LastIndexByte(s[from:i], '\n')
		if cr := bytes.LastIndexByte(s[from:i], '\r'); cr > next {
			next = cr
		}
		if next < 0 {
			return 0
		}
		i = from + next + 1 // the loop steps onto it
	}
	return 0
}

// doneEnd returns the offset behind the event `data: [DONE]` in s, or -1. atStart tells whether s
// begins with a line. Inside the JSON of other events a line break is escaped, so what follows one is
// a field name.
func doneEnd(s []byte, atStart bool) int { //nolint:revive // a fact about s
	for from := 0; ; {
		i := bytes.Index(s[from:], []byte("[DONE]"))
		if i < 0 {
			return -1
		}
		i += from
		line := bytes.TrimSuffix(s[:i], []byte(" "))
		before, ok := bytes.CutSuffix(line, []byte("data:"))
		if ok && (len(before) == 0 && atStart || len(before) > 0 && (before[len(before)-1] == '\n' || before[len(before)-1] == '\r')) {
			end := i + len("[DONE]")
			for end < len(s) && (s[end] == '\n' || s[end] == '\r') {
				end++
			}
			return end
		}
		from = i + 1
	}
}

// After [DONE] the client has all there is. The upstream gets a moment to end its body in order, so
// that the connection can be used again, and no more.
const (
	drainTime  = 50 * time.Millisecond
	drainReads = 4
)

func (u *upstream) drain() {
	u.watch.expect(drainTime)
	for range drainReads {
		if u.err != nil {
			return
		}
		u.buf.n = 0
		u.read()
	}
}

// copyBody passes on a body that is no stream of events, through r when hidden values are to be put back.
func (u *upstream) copyBody(w *reply, t *tally, r *redact.Body) error {
	b := u.buf
	for {
		if b.n > 0 {
			w.renew(time.Now())
			if err := send(w, r.Feed(b.b[:b.n])); err != nil {
				return err
			}
		}
		if errors.Is(u.err, io.EOF) {
			t.body(b.tail[:b.tailLen], b.b[:b.n])
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
		b.tailLen = copy(b.tail[:], b.b[max(0, b.n-tailSize):b.n])
		b.n = 0
		u.watch.expect(u.model.gap)
		u.read()
	}
}

// maxExplained bounds an answer that an explanation is added to, in bytes; a larger one stays as it is.
const maxExplained = 8 << 20

// copyExplained passes on a JSON object with the decision added to it.
func (u *upstream) copyExplained(w *reply, o *outcome, t *tally) error {
	all := bytes.Clone(u.buf.b[:u.buf.n])
	for u.err == nil && len(all) < maxExplained {
		u.buf.n = 0
		u.watch.expect(u.model.gap)
		u.read()
		all = append(all, u.buf.b[:u.buf.n]...)
	}
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return &unansweredError{u.err} // nothing was sent yet
	}
	t.body(nil, all)
	whole := errors.Is(u.err, io.EOF)
	r := o.vault.Body()
	if r != nil {
		dropStale(w.Header())
		if all = bytes.Clone(r.Feed(all)); whole {
			all = append(all, r.Rest()...)
		}
	}
	if object, ok := bytes.CutSuffix(bytes.TrimRight(all, " \t\r\n"), []byte("}")); ok && whole {
		all = append(appendDecision(bytes.Clone(object), o), '}')
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(all))}
	}
	w.WriteHeader(u.status)
	if _, err := w.Write(all); err != nil {
		return clientError(err)
	}
	if whole {
		return nil
	}
	u.buf.n = 0
	return u.copyBody(w, t, r)
}

// clientError classifies a failed write.
func clientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errClientStalled
	}
	return errClientGone
}
