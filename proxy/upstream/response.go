// Package upstream sends one request to one endpoint and reads its response: whole, in pieces, or as
// a stream of events. It decides nothing: which endpoint is asked, whether another one is, and what
// the client gets of the response is up to the caller.
//
// A Response belongs to one goroutine at a time. Its watchdog is the one timer beside it, which
// Close stops; a body that is read ahead is read by one goroutine for each read, which Close waits
// for.
package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
	"signalbox/proxy/pool"
	"signalbox/stream/response"
)

// MaxWhole bounds a response that is read in one piece, in bytes.
const MaxWhole = 8 << 20

// Response is the response of an endpoint.
type Response struct {
	Model    *backend.Model
	Endpoint *pool.Endpoint
	Status   int
	Header   http.Header
	Length   int64 // of the body in bytes; -1 when it is not known
	Events   bool  // the body is a stream of events
	Direct   bool  // it is of the Messages API
	Took     time.Duration
	// Stream parses the events; nil when the body is no stream of events that can be read.
	Stream        *response.Stream
	MaxRetryAfter time.Duration

	lease  *pool.Lease // of Endpoint; closed with the response; nil in tests
	body   io.ReadCloser
	buf    *window // of the body: read, and not passed on
	err    error   // of the last read of body; io.EOF when all of it is in buf
	watch  *watchdog
	taps   []Tap
	ahead  *ahead // that was read ahead; nil for none
	names  bool   // the id is still to be looked for
	id     string // as it is spelled; empty when none was found
	asks   bool   // its names are still to be looked for
	told   Names
	fresh  bool // there was progress since the watchdog was told
	closed bool
}

// Tap is told of all that comes of a stream, before the client gets it.
type Tap interface {
	response.Sink
	// Mark says that chunks have come at a time, and that no more are here.
	Mark(now time.Time)
}

// Tap adds a tap. The body must be a stream of events.
func (u *Response) Tap(t Tap) { u.taps = append(u.taps, t) }

// Tee makes w get what was read of the body and all that will be. Errors of w are ignored.
func (u *Response) Tee(w io.Writer) {
	_, _ = w.Write(u.buf.bytes())
	u.body = &teed{u.body, w}
}

// teed is a body that is copied while it is read.
type teed struct {
	io.ReadCloser

	to io.Writer
}

// Read implements io.Reader.
func (t *teed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	_, _ = t.to.Write(b[:n])
	return n, err
}

// tell tells the endpoint what its status means for it.
func (u *Response) tell(now time.Time) {
	switch u.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait, ok := headers.RetryAfter(u.Header, now); ok {
			u.Endpoint.Rest(now.Add(min(wait, u.MaxRetryAfter)))
		}
	}
	if u.Status >= http.StatusInternalServerError {
		u.Model.Failed(u.Endpoint, now)
	}
}

// Refused reports a response that another endpoint may well not give: the endpoint is busy, or a
// gateway did not reach it. 500 and 504 are final: the work was done or may still be going on.
func (u *Response) Refused() bool {
	switch u.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// Misfit says why the response must not reach a client; empty when it may.
func (u *Response) Misfit(streaming bool) string {
	switch {
	case u.Status < 200 || u.Status >= 300 && u.Status < 400:
		return "a redirect or protocol switch" // not followed: it could lead anywhere
	case u.Status >= http.StatusInternalServerError && !u.JSON():
		return "an error page"
	case u.Good() && u.Events != streaming:
		// Official SDKs take either mismatch for a response without content.
		return "a body of another kind than asked for"
	}
	return ""
}

// Good reports whether the status is one of success.
func (u *Response) Good() bool { return u.Status >= 200 && u.Status < 300 }

// Plain reports whether the body has no content encoding.
func (u *Response) Plain() bool {
	enc := u.Header.Get("Content-Encoding")
	return enc == "" || strings.EqualFold(enc, "identity")
}

// JSON reports whether the body is JSON, by its media type.
func (u *Response) JSON() bool { return hasType(u.Header, "application/json") }

// Better returns the one of two refusals that helps the client more, and closes the other: of two
// 429 the one that may be repeated sooner, else the later one. held may be nil.
func Better(held, u *Response) *Response {
	if held != nil && held.Status == http.StatusTooManyRequests && u.Status == http.StatusTooManyRequests &&
		retryAfter(held.Header) < retryAfter(u.Header) {
		u.Close()
		return held
	}
	held.Close()
	return u
}

// retryAfter reads Retry-After; a year when there is none that can be read.
func retryAfter(h http.Header) time.Duration {
	if d, ok := headers.RetryAfter(h, time.Now()); ok {
		return d
	}
	return 365 * 24 * time.Hour
}

// Peek reads what decides whether the response is usable: all of a short body, the first bytes of a
// long one, the first event of a stream. An endpoint that breaks off before can still be replaced
// by another.
func (u *Response) Peek() error {
	if u.Stream != nil {
		return u.peekEvents()
	}
	whole := u.Length >= 0 || u.JSON()
	for u.err == nil && !u.buf.full() && (whole || len(u.buf.bytes()) == 0) {
		u.read()
		u.watch.expect(u.Model.Gap)
	}
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return u.err
	}
	return nil
}

func (u *Response) peekEvents() error {
	s := u.Stream
	for !s.Peek() && s.Ahead() < WindowSize {
		u.fresh = u.fresh || s.Progress()
		u.Advance(u.Model.FirstByte)
	}
	switch ended, err := s.Ended(); {
	case s.Done():
		return nil
	case ended && !s.Begun():
		return err
	case u.err != nil && !errors.Is(u.err, io.EOF):
		return u.err
	}
	u.fresh = true
	return nil
}

// responseID finds the id of a response where its body, or its stream, begins.
var responseID = regexp.MustCompile(`"id"\s*:\s*("[^"\\]{1,200}")`)

// ID is the id of a response of the Responses API as it is spelled, quotes included. It is looked
// for where the body begins; empty when none is there.
func (u *Response) ID() string {
	if u.names && u.buf != nil && len(u.buf.bytes()) > 0 {
		u.names = false
		if id := responseID.FindSubmatch(u.buf.bytes()); id != nil {
			u.id = string(id[1])
		}
	}
	return u.id
}

// Names are what a response calls itself; empty where it does not say, or not near its beginning.
type Names struct{ ID, Model string }

// Names are looked for where the call asks for them, in the first event of a stream or in a body as
// far as it was read first.
func (u *Response) Names() Names {
	if u.asks && u.buf != nil {
		u.find(u.buf.bytes())
	}
	return u.told
}

// find looks for names in what was read.
func (u *Response) find(b []byte) {
	if !u.asks || len(b) == 0 {
		return
	}
	if u.Stream != nil {
		i := bytes.Index(b, []byte("data:"))
		if i < 0 {
			return
		}
		b = b[i+len("data:"):]
	}
	u.asks = false
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err == nil && t == json.Delim('{') {
		u.told.read(dec)
	}
}

// read reads the members of an object, and of the one in it that an event of another API has around
// its response, up to where b ends. What comes first counts.
func (n *Names) read(dec *json.Decoder) {
	for dec.More() && (n.ID == "" || n.Model == "") {
		name, err := dec.Token()
		if err != nil {
			return
		}
		switch name {
		case "message", "response":
			if t, err := dec.Token(); err != nil || t != json.Delim('{') {
				return
			}
			n.read(dec)
			return
		case "id", "model":
			x, err := dec.Token()
			if err != nil {
				return
			}
			to := &n.ID
			if name == "model" {
				to = &n.Model
			}
			if x, ok := x.(string); ok && *to == "" && len(x) <= maxName {
				*to = x
			}
		default:
			if err := dec.Decode(new(json.RawMessage)); err != nil {
				return
			}
		}
	}
}

// maxName bounds a name, in bytes: those of models are paths at most.
const maxName = 200

// Advance reads on in a stream of events. Progress has to come within limit of asking for more
// after the last; bytes that complete no event are none.
func (u *Response) Advance(limit time.Duration) {
	if u.fresh {
		u.fresh = false
		u.watch.expect(limit)
	}
	u.read()
	u.ID()
	u.find(u.buf.bytes())
	u.Stream.Feed(u.buf.bytes())
	u.buf.clear()
	if u.err != nil {
		u.Stream.End(u.err)
	}
}

// Deliver puts the chunks of a stream that are here, by way of the taps. It reports whether there
// were any, and when.
func (u *Response) Deliver(to response.Sink) (now time.Time, came bool) {
	for c := u.Stream.Next(); c != nil; c = u.Stream.Next() {
		came = true
		for _, t := range u.taps {
			t.Put(c)
		}
		to.Put(c)
	}
	u.fresh = u.fresh || u.Stream.Progress()
	if came {
		now = time.Now()
		for _, t := range u.taps {
			t.Mark(now)
		}
	}
	return now, came
}

// After the end mark the client has the whole response. The endpoint gets a moment to end its body
// in order, so that the connection can be used again, and no more. What it still sends is dropped,
// but for a [DONE] after the last event of a response: some servers send one, and their clients may
// wait for it.
const (
	drainTime  = 50 * time.Millisecond
	drainReads = 4
)

// Drain reads the end of a stream whose last event has come. put is called after each read.
func (u *Response) Drain(put func()) {
	u.watch.expect(drainTime)
	u.fresh = false
	if u.Direct {
		return // nothing comes after the last event
	}
	for range drainReads {
		if u.err != nil {
			return
		}
		u.Advance(drainTime)
		put()
	}
}

// Piece is the part of the body that was read and not passed on. It is valid until the next call of
// another method.
func (u *Response) Piece() []byte { return u.buf.bytes() }

// Previous is the end of the piece before, as far as Tally.Body needs it.
func (u *Response) Previous() []byte { return u.buf.last() }

// Next reads the next piece.
func (u *Response) Next() {
	u.buf.pass()
	u.watch.expect(u.Model.Gap)
	u.read()
}

// Discard forgets the piece that is here.
func (u *Response) Discard() { u.buf.clear() }

// Err is the error of the last read; io.EOF when Piece is the last one.
func (u *Response) Err() error { return u.err }

// read adds to the window what the endpoint has, at least one byte unless it fails.
func (u *Response) read() {
	u.watch.asleep.Store(false)
	u.err = u.buf.read(u.body)
	u.watch.asleep.Store(true)
}

// ReadWhole reads the body, up to MaxWhole bytes or a little more; Err is io.EOF when that was all.
func (u *Response) ReadWhole() ([]byte, error) {
	all := bytes.Clone(u.buf.bytes())
	for u.err == nil && len(all) < MaxWhole {
		u.buf.clear()
		u.watch.expect(u.Model.Gap)
		u.read()
		all = append(all, u.buf.bytes()...)
	}
	u.watch.expect(0)
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return nil, &fault.NoResponseError{Err: u.err} // nothing was sent yet
	}
	return all, nil
}

// ReadEvents reads a stream of events to its end.
func (u *Response) ReadEvents(to response.Sink) error {
	for {
		u.Deliver(to)
		ended, err := u.Stream.Ended()
		switch {
		case u.Stream.Done():
			return nil
		case ended:
			return &fault.InterruptedError{Err: err}
		}
		u.Advance(u.Model.Gap)
	}
}

// Waive says that progress need not come until the next Advance or Next: the client is reading.
func (u *Response) Waive() {
	u.watch.expect(0)
	u.fresh = true
}

// Late reports whether the response was ended for want of progress.
func (u *Response) Late() bool { return u.watch.expired() }

// Cancel makes a read that waits, and later ones, fail soon. It may be called from another goroutine
// than that which reads.
func (u *Response) Cancel() { u.watch.cancel() }

// Close gives everything back; the request to the endpoint is cancelled if it still runs. A second
// call, and a call on nil, do nothing.
func (u *Response) Close() {
	if u == nil || u.closed {
		return
	}
	u.closed = true
	u.watch.stop()
	_ = u.body.Close()
	u.buf.release()
	u.Stream.Release()
	u.buf, u.Stream = nil, nil
	u.lease.Close()
}
