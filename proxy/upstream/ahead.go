package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/stream/response"
)

// ReadAhead reads the body to its end, but at most MaxWhole bytes; later reads return the same
// bytes again. whole is false for a longer body. The error is that of a body that broke off.
func (u *Response) ReadAhead() (whole bool, err error) {
	a := u.hold()
	piece := make([]byte, WindowSize)
	for a.err == nil && len(a.all) < MaxWhole {
		n, err := a.ReadCloser.Read(piece)
		a.take(piece[:n], err)
		u.watch.expect(u.Model.Gap)
	}
	u.watch.asleep.Store(true)
	switch {
	case a.err == nil:
		return false, nil
	case !errors.Is(a.err, io.EOF):
		return false, a.err
	}
	return true, nil
}

// ReadEventsAhead is ReadAhead for a stream of events. It reads for as long as the stream may be
// held, and puts its chunks. late reports that the time was over before the end.
func (u *Response) ReadEventsAhead(
	o response.StreamOptions, hold time.Duration, to response.Sink,
) (whole, late bool, err error) {
	a := u.hold()
	defer u.watch.asleep.Store(true)
	s := response.TakeStream(o)
	defer s.Release()
	timer := time.After(hold)
	piece := make([]byte, WindowSize)
	for len(a.all) < MaxWhole {
		a.begin(piece)
		select {
		case <-timer:
			return false, true, nil
		case r := <-a.came:
			a.came = nil
			a.take(piece[:r.n], r.err)
			s.Feed(piece[:r.n])
		}
		if a.err != nil {
			s.End(a.err)
		}
		for c := s.Next(); c != nil; c = s.Next() {
			to.Put(c)
		}
		if s.Progress() {
			u.watch.expect(u.Model.Gap)
		}
		ended, err := s.Ended()
		switch {
		case s.Done(), s.Failed():
			return true, false, nil
		case ended:
			return false, false, err
		}
	}
	return false, false, nil
}

func (u *Response) hold() *ahead {
	u.ahead = &ahead{ReadCloser: u.body}
	u.body = u.ahead
	return u.ahead
}

// Ahead returns what was read ahead of the body; nil before ReadAhead and ReadEventsAhead.
func (u *Response) Ahead() []byte {
	if u.ahead == nil {
		return nil
	}
	return u.ahead.all
}

// ReplaceAhead replaces a body that was read ahead to its end.
func (u *Response) ReplaceAhead(body []byte) {
	u.ahead.all = body
	if u.Header = u.Header.Clone(); u.Length >= 0 {
		u.Length = int64(len(body))
		u.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	for _, name := range [...]string{
		"Content-Digest", "Repr-Digest", "Digest", "Content-Md5", "Etag",
	} {
		delete(u.Header, name)
	}
}

// Kept is a response that was read ahead to its end and closed.
type Kept struct {
	Model *backend.Model
	head  Response // without what belongs to its connection
	body  []byte
}

// Keep stores a response that was read ahead to its end, and closes it. The caller reports the
// result to the endpoint.
func (u *Response) Keep() *Kept {
	k := &Kept{Model: u.Model, body: u.ahead.all, head: Response{
		Model: u.Model, Endpoint: u.Endpoint, Status: u.Status, Header: u.Header, Length: u.Length,
		Events: u.Events, Took: u.Took, MaxRetryAfter: u.MaxRetryAfter, names: u.names,
		useless: u.useless,
	}}
	u.Close()
	return k
}

// Open returns the stored response for reading.
func (k *Kept) Open(ctx context.Context, o response.StreamOptions) *Response {
	u := k.head
	u.counted = true
	_, u.watch = newWatchdog(ctx, 0)
	u.buf, u.body = takeWindow(), io.NopCloser(bytes.NewReader(k.body))
	if u.Events {
		u.Stream = response.TakeStream(o)
	}
	return &u
}

// Open makes a response without a request to an endpoint, for tests. m and e receive its result
// like any other. body is called with the context of the attempt, which must make progress within
// limit; 0 means no limit. Events are read according to o.
func Open(
	ctx context.Context, m *backend.Model, e *pool.Endpoint, limit time.Duration,
	body func(ctx context.Context) io.ReadCloser, o *response.StreamOptions,
) *Response {
	ctx, watch := newWatchdog(ctx, limit)
	u := &Response{
		Model: m, Endpoint: e, Status: http.StatusOK, Header: http.Header{}, Length: -1,
		body: body(ctx), buf: takeWindow(), watch: watch,
	}
	if o != nil {
		u.Events, u.Stream = true, response.TakeStream(*o)
		u.names = o.API == openai.Response
	}
	return u
}

// ahead is a body whose beginning was read ahead and is read again.
type ahead struct {
	io.ReadCloser

	all  []byte // what was read ahead
	at   int    // how much of it was read again
	err  error  // the error after it
	came chan piece
	last []byte // buffer of the read in progress
}

// piece is the result of a read.
type piece struct {
	n   int
	err error
}

// begin starts a read in the background. The next call of Read waits for it unless it was already
// collected.
func (a *ahead) begin(b []byte) {
	came := make(chan piece, 1)
	a.came, a.last = came, b
	go func(from io.Reader) {
		n, err := from.Read(b)
		came <- piece{n, err}
	}(a.ReadCloser)
}

// take stores the result of a read.
func (a *ahead) take(b []byte, err error) { a.all, a.err = append(a.all, b...), err }

// Read implements io.Reader.
func (a *ahead) Read(b []byte) (int, error) {
	if a.at == len(a.all) && a.came != nil {
		r := <-a.came
		a.came, a.err = nil, r.err
		a.all, a.at = append(a.all[:0], a.last[:r.n]...), 0
	}
	if a.at < len(a.all) {
		n := copy(b, a.all[a.at:])
		a.at += n
		return n, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	a.all, a.last = nil, nil
	a.at = 0
	return a.ReadCloser.Read(b)
}

// Close implements io.Closer. It waits for a read in progress.
func (a *ahead) Close() error {
	err := a.ReadCloser.Close()
	if a.came != nil {
		<-a.came
		a.came = nil
	}
	return err
}
