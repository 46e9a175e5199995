package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// feed is the content of one stream.
type feed struct {
	events [][]byte
	due    func(ctx context.Context, i int) bool // waits until event i may be sent; false if ctx ended
	sent   []atomic.Int64                        // nanoseconds since the start, per event
}

// newFeed creates the events of a stream that sends the pieces one by one. Event i has a member
// "seq" i; a piece is plain text without quotes or backslashes, except line feeds.
func newFeed(pieces []string, due func(ctx context.Context, i int) bool) *feed {
	f := &feed{due: due, sent: make([]atomic.Int64, len(pieces))}
	for i, p := range pieces {
		f.events = append(f.events, fmt.Appendf(nil,
			`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","seq":%d,"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n",
			i, p))
	}
	return f
}

// paced releases event i at start + i * pace.
func paced(start time.Time, pace time.Duration) func(ctx context.Context, i int) bool {
	return func(ctx context.Context, i int) bool {
		wait := time.Until(start.Add(time.Duration(i) * pace))
		if wait <= 0 {
			return ctx.Err() == nil
		}
		select {
		case <-time.After(wait):
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// stepped releases a group of events for each value of next; the first group is released
// immediately.
func stepped(next <-chan struct{}, group int) func(ctx context.Context, i int) bool {
	return func(ctx context.Context, i int) bool {
		if i == 0 || i%group != 0 {
			return true
		}
		select {
		case <-next:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// upstream is a model server on loopback that sends feeds.
type upstream struct {
	*httptest.Server

	start time.Time

	mu    sync.Mutex // guards what follows
	feeds map[int]*feed
	next  int
}

func openUpstream(start time.Time) *upstream {
	u := &upstream{start: start, feeds: map[int]*feed{}}
	u.Server = httptest.NewServer(u)
	return u
}

// take registers a feed for one request and returns its number, which the request names.
func (u *upstream) take(f *feed) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next++
	u.feeds[u.next] = f
	return u.next
}

func (u *upstream) give(number int) *feed {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.feeds[number]
	delete(u.feeds, number)
	return f
}

const (
	feedMark = "feed " // what a question names its feed with
	opening  = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	closing  = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// ServeHTTP sends the feed that the question names.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f := u.give(number(body, feedMark))
	if f == nil {
		http.Error(w, "no such feed", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := http.NewResponseController(w)
	send := func(event []byte) bool {
		_, err := w.Write(event)
		return err == nil && out.Flush() == nil
	}
	if !send([]byte(opening)) {
		return
	}
	for i, event := range f.events {
		if !f.due(r.Context(), i) {
			return
		}
		f.sent[i].Store(int64(time.Since(u.start)))
		if !send(event) {
			return
		}
	}
	send([]byte(closing))
}

// number reads the digits after a mark; -1 if there are none.
func number(b []byte, mark string) int {
	at := bytes.Index(b, []byte(mark))
	if at < 0 {
		return -1
	}
	b = b[at+len(mark):]
	end := 0
	for end < len(b) && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(string(b[:end]))
	if err != nil {
		return -1
	}
	return n
}
