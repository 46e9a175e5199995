package framing

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A connection whose server sends more than its response is never reused, however many requests
// wait for one.
func TestAConnectionWithMoreThanTheAnswerIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokEXTRA")
		_ = buffered.Flush()
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
	}))
	t.Cleanup(srv.Close)
	tr := Transport{&http.Transport{DialContext: Dialer(new(net.Dialer).DialContext).Dial, MaxIdleConnsPerHost: 16}}
	t.Cleanup(tr.CloseIdleConnections)
	const clients, each = 8, 50
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, io.NopCloser(strings.NewReader("x"))) // cannot be sent again
				if err != nil {
					t.Error(err)
					return
				}
				res, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := io.ReadAll(res.Body); err != nil || string(got) != "ok" {
					t.Errorf("%q, %v", got, err)
				}
				_ = res.Body.Close()
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n != clients*each {
		t.Errorf("the server was asked %d times for %d requests", n, clients*each)
	}
}

// Whatever traces a request, its connection is reused and notified of every request.
func TestATransportAsksOnEveryRequest(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(srv.Close)
	tr := Transport{&http.Transport{DialContext: Dialer(new(net.Dialer).DialContext).Dial}}
	t.Cleanup(tr.CloseIdleConnections)
	var reused int
	foreign := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for i, ctx := range []context.Context{t.Context(), Trace(t.Context()), foreign, Trace(foreign), Trace(Trace(t.Context())), t.Context(), foreign} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || string(got) != "{}" {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
		_ = res.Body.Close()
	}
	if reused != 3 {
		t.Errorf("a trace of its own saw %d of 3 requests on a connection that was used before", reused)
	}
}
