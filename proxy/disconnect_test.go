package proxy

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/pool"
	"signalbox/stream/guard"
)

// goneLimit is how soon a backend must notice that its client has left, at the 99th percentile of
// `make test-timed`.
const goneLimit = 100 * time.Millisecond

// C1: the table of disconnects. In every phase, and however the client leaves, the backend notices,
// the request is counted as 499, and no endpoint is blamed.
// TestAClientThatLeavesCancelsWhatRunsForIt covers classification and a client that does not read.
func TestTheBackendSeesThatTheClientHasGone(t *testing.T) {
	t.Parallel()
	held := guarded(askStream("hi"), towerFact)
	for _, tt := range []struct {
		phase, mode, body, first string
		guard                    string
	}{
		{"waiting for the head of an answer", "watch-ttft", ask("hi"), "", ""},
		{"waiting for the head of a stream", "watch-ttft", askStream("hi"), "", ""},
		{"waiting for the first event", "head-ttft?d=60s", askStream("hi"), "", ""},
		{"in a silent stream", "watch-stall", askStream("hi"), "data: ", ""},
		{"in a stream that flows", "flood?max=1G&bytes=10", askStream("hi"), "data: ", ""},
		{"in a stream that drips", "slow-drip?d=10ms", askStream("hi"), "data: ", ""},
		{"held by the guard", "watch-stall", held, "X-Signalbox-Guard: hold", guard.Hold.String()},
	} {
		t.Run(tt.phase, func(t *testing.T) {
			t.Parallel()
			s := hostile.Start(t, hostile.Options{Mode: tt.mode})
			models := hostileModels(s)
			b := start(t, models, func(s *setup) {
				if tt.guard != "" {
					s.guard.Mode = tt.guard
				}
			})
			runs := disconnects(50)
			var took []time.Duration
			for i := 1; i <= runs; i++ {
				leave := b.departing(tt.body, tt.first, lingers[i%2])
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
			t.Logf("p50 %s, p99 %s", took[runs/2], took[runs*99/100])
			if testkit.Timed() && took[runs*99/100] > goneLimit {
				t.Errorf("the slowest took %s", took[runs-1])
			}
			waitFor(t, "the records", func() bool {
				return strings.Contains(b.metrics(), fmt.Sprintf(`status="499"} %d`, runs))
			})
			e := b.state.Models[1].Endpoints[0]
			if e.Failures() != 0 || e.Inflight() != 0 || s.Requests() != runs {
				t.Errorf("%d failures, %d in flight, %d requests", e.Failures(), e.Inflight(), s.Requests())
			}
		})
	}
	t.Run("waiting in the queue", func(t *testing.T) {
		t.Parallel()
		s := hostile.Start(t, hostile.Options{Mode: "watch-ttft"})
		b := start(t, cappedModels(1, pool.QueueOptions{Wait: option.Duration(time.Minute)}, s))
		first := b.leaveable(ask("hi"), "")
		waitFor(t, "the first request", func() bool { return s.Requests() == 1 })
		small := b.state.Models[1]
		for i := range 20 {
			leave := b.departing(ask("hi"), "", lingers[i%2])
			waitFor(t, "one in the queue", func() bool { return small.Queued() == 1 })
			left := leave()
			waitFor(t, "an empty queue", func() bool { return small.Queued() == 0 })
			if took := time.Since(left); testkit.Timed() && took > goneLimit {
				t.Errorf("it took %s", took)
			}
		}
		first()
		waitFor(t, "the records", func() bool { return strings.Contains(b.metrics(), `status="499"} 2`) })
		if n := s.Requests(); n != 1 {
			t.Errorf("%d requests reached the backend", n)
		}
	})
	t.Run("while its body is sent", func(t *testing.T) {
		t.Parallel()
		s := hostile.Start(t, hostile.Options{})
		b := start(t, hostileModels(s))
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
		_ = conn.Close()
		waitFor(t, "the record", func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) })
		if n := s.Requests(); n != 0 {
			t.Errorf("%d requests reached the backend", n)
		}
	})
}

// disconnects is the number of disconnects: both ways once, or as many as percentiles need.
func disconnects(timed int) int {
	if testkit.Timed() {
		return timed
	}
	return 6
}

// A client that closes its side for writing after the request counts as gone: over HTTP/1.1 the
// server cannot tell the two apart before it writes.
func TestAHalfClosedConnectionIsADisconnect(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "watch-ttft"})
	b := start(t, hostileModels(s))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := ask("hi")
	_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	waitFor(t, "the request", func() bool { return s.Requests() == 1 })
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.WaitGone(1, patience); !ok {
		t.Error("the backend works on")
	}
}

// lingers are the ways to close a connection, as for SetLinger: with a reset, and in order.
var lingers = [...]int{0, -1}

// departing is leaveable for a client that disconnects in one of the ways in lingers.
func (b *bench) departing(body, first string, linger int) (leave func() time.Time) {
	b.tb.Helper()
	conn, err := (&net.Dialer{}).DialContext(b.tb.Context(), "tcp", b.Listener.Addr().String())
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for got := ""; !strings.Contains(got, first); {
		piece := make([]byte, 4096)
		n, err := conn.Read(piece)
		if got += string(piece[:n]); err != nil {
			b.tb.Fatalf("the client read %q, then %v", got, err)
		}
	}
	return func() time.Time {
		_ = conn.(*net.TCPConn).SetLinger(linger)
		now := time.Now()
		_ = conn.Close()
		return now
	}
}
