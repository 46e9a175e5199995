package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/stream/guard"
)

// The table of disconnects for HTTP/2 clients: a stream that is reset and a connection that is
// closed. Other streams of the connection continue.
func TestTheBackendSeesThatAClientOverHTTP2HasGone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ phase, mode, body, first, guard string }{
		{"waiting for the head of an answer", "watch-ttft", ask("hi"), "", ""},
		{"waiting for the head of a stream", "watch-ttft", askStream("hi"), "", ""},
		{"in a silent stream", "watch-stall", askStream("hi"), "data: ", ""},
		{"in a stream that flows", "flood?max=1G&bytes=10", askStream("hi"), "data: ", ""},
		{"held by the guard", "watch-stall", guarded(askStream("hi"), towerFact), "", guard.Hold.String()},
	} {
		t.Run(tt.phase, func(t *testing.T) {
			t.Parallel()
			s := hostile.Start(t, hostile.Options{Mode: tt.mode})
			b := start(t, hostileModels(s), func(s *setup) {
				if tt.guard != "" {
					s.guard.Mode = tt.guard
				}
			})
			front := httptest.NewUnstartedServer(b.proxy.Handler())
			front.Config.Protocols = new(http.Protocols)
			front.Config.Protocols.SetUnencryptedHTTP2(true)
			front.Start()
			t.Cleanup(front.Close)
			runs := disconnects(30)
			var took []time.Duration
			for i := 1; i <= runs; i++ {
				leave := departingOverHTTP2(t, front.URL, tt.body, tt.first, []departure{byReset, byClose}[i%2])
				if _, ok := s.Wait(patience, func(e *hostile.Event) bool { return e.Kind == hostile.Received && e.Req == i }); !ok {
					t.Fatal("no request")
				}
				left := leave()
				gone, ok := s.WaitGone(i, patience)
				if !ok {
					t.Fatalf("run %d: the backend did not see it", i)
				}
				took = append(took, gone.Sub(left))
			}
			slices.Sort(took)
			t.Logf("p50 %s, p90 %s, the slowest %s", took[runs/2], took[runs*9/10], took[runs-1])
			if testkit.Timed() && took[runs*9/10] > goneLimit {
				t.Errorf("nine of ten took up to %s", took[runs*9/10])
			}
			waitFor(t, "the records", func() bool { return strings.Contains(b.metrics(), fmt.Sprintf(`status="499"} %d`, runs)) })
			if e := b.state.Models[1].Endpoints[0]; e.Failures() != 0 || e.Inflight() != 0 {
				t.Errorf("%d failures, %d in flight", e.Failures(), e.Inflight())
			}
		})
	}
}

// departure is a way to disconnect.
type departure uint8

const (
	byReset departure = iota // of the stream
	byClose                  // of the connection
)

// departingOverHTTP2 sends a request and returns a function that disconnects: by resetting its
// stream while another one continues, or by closing the connection.
func departingOverHTTP2(t *testing.T, url, body, first string, by departure) (leave func() time.Time) {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	probe := func() error { // over the same connection
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
	if err := probe(); err != nil {
		t.Fatal(err)
	}
	// The last connection dialled need not be the one: net/http may dial a second one for the
	// request and send it on the first.
	conns := make(chan net.Conn, 1)
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conns <- i.Conn }}))
	t.Cleanup(cancel)
	begun := make(chan struct{})
	var client sync.WaitGroup
	client.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+chatPath, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		if first == "" {
			close(begun)
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			return // it left
		}
		defer res.Body.Close()
		got := make([]byte, len(first))
		if _, err := io.ReadFull(res.Body, got); err == nil && first != "" {
			close(begun)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	})
	t.Cleanup(client.Wait)
	within(t, begun, "the beginning of the answer")
	return func() time.Time {
		now := time.Now()
		if by == byClose {
			_ = (<-conns).Close()
			return now
		}
		cancel()
		if err := probe(); err != nil {
			t.Errorf("another stream of the connection: %v", err)
		}
		return now
	}
}
