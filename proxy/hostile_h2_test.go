package proxy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/backend"
)

// hostileRows2 is the table of documented results over HTTP/2.
func hostileRows2() []hostileRow {
	return []hostileRow{
		{mode: "ok"},
		{mode: "ok-json", stream: unreadable},
		{mode: "ok-stream", json: unreadable},
		// Before the head.
		{mode: "rst-before-head?code=0", stream: refused, json: refused, again: true},                 // NO_ERROR
		{mode: "rst-before-head?code=1", stream: refused, json: refused, again: true, repeated: true}, // PROTOCOL_ERROR, by which some servers refuse
		{mode: "rst-before-head?code=2", stream: refused, json: refused, again: true},                 // INTERNAL_ERROR
		{mode: "rst-before-head?code=3", stream: refused, json: refused, again: true},                 // FLOW_CONTROL_ERROR
		{mode: "rst-before-head?code=5", stream: refused, json: refused, again: true},                 // STREAM_CLOSED
		{mode: "rst-before-head?code=7", stream: refused, json: refused, again: true, repeated: true}, // REFUSED_STREAM: nothing was done
		{mode: "rst-before-head?code=8", stream: refused, json: refused, again: true},                 // CANCEL
		{mode: "rst-before-head?code=11", stream: refused, json: refused, again: true},                // ENHANCE_YOUR_CALM
		{mode: "rst-before-head?code=13", stream: refused, json: refused, again: true},                // HTTP_1_1_REQUIRED
		{mode: "rst-before-head?code=4096", stream: refused, json: refused, again: true},              // not known
		{mode: "close-before-head", stream: refused, json: refused, again: true},
		{mode: "cut-before-head", stream: refused, json: refused, again: true},
		{mode: "goaway-unseen", stream: refused, json: refused, again: true, repeated: true},
		{mode: "goaway-before-head", stream: refused, json: refused, again: true},
		{mode: "goaway-before-head?code=0", stream: refused, json: refused, again: true},
		{mode: "half-head", stream: refused, json: refused, again: true},
		{mode: "ttft?d=50ms"},
		{mode: "ttft?d=5s", stream: late, json: late, again: true},
		{mode: "head-ttft?d=5s", stream: late, json: unreadable, again: true},
		{mode: "watch-ttft", stream: late, json: late, again: true},
		{mode: "1xx"},
		{mode: "1xx-flood?n=10000", stream: refused, json: refused, again: true},
		{mode: "101", stream: late, json: late, again: true}, // HTTP/2 has no protocols to switch to, and the final answer never comes
		{mode: "data-before-head", stream: refused, json: refused, again: true},
		{mode: "push", stream: refused, json: refused, again: true},
		// Heads.
		{mode: "status?code=400", stream: passed, json: passed, status: 400},
		{mode: "status?code=429&ra=7", stream: passed, json: passed, status: 429, again: true},
		{mode: "status?code=500", stream: passed, json: passed, status: 500},
		{mode: "status?code=503", stream: passed, json: passed, status: 503, again: true},
		{mode: "status-html", stream: refused, json: refused, again: true},
		{mode: "redirect?code=307", stream: unreadable, json: unreadable},
		{mode: "huge-headers", stream: refused, json: refused, again: true},
		{mode: "header-count", stream: refused, json: refused, again: true},
		{mode: "bad-header", stream: refused, json: refused, again: true},
		{mode: "upper-case", stream: refused, json: refused, again: true},
		{mode: "connection-header"},
		{mode: "set-cookie"},
		{mode: "no-status", stream: refused, json: refused, again: true},
		{mode: "status-twice", stream: refused, json: refused, again: true},
		{mode: "head-alone", stream: refused, again: true},
		{mode: "cl-too-long", stream: unreadable, json: refused, again: true},
		{mode: "cl-too-short", stream: unreadable, json: refused, again: true},
		{mode: "json-200-for-stream", stream: unreadable},
		{mode: "sse-for-json", json: unreadable},
		// Streams that break.
		{mode: "rst-mid?code=0", stream: cut, json: unreadable},
		{mode: "rst-mid?code=1", stream: cut, json: unreadable},
		{mode: "rst-mid?code=2", stream: cut, json: unreadable},
		{mode: "rst-mid?code=7", stream: cut, json: unreadable},
		{mode: "rst-mid?code=8", stream: cut, json: unreadable},
		{mode: "rst-mid?code=11", stream: cut, json: unreadable},
		{mode: "close-mid", stream: cut, json: unreadable},
		{mode: "cut-mid", stream: cut, json: unreadable},
		{mode: "goaway-mid", stream: cut, json: unreadable},
		{mode: "goaway-mid?code=0", stream: cut, json: unreadable},
		{mode: "goaway-unseen-mid", stream: cut, json: unreadable},
		{mode: "goaway-rest", json: unreadable},
		{mode: "bad-frame-mid", stream: cut, json: unreadable},
		{mode: "padding-mid", stream: cut, json: unreadable},
		{mode: "too-much-mid", stream: cut, json: unreadable},
		{mode: "head-mid", stream: cut, json: unreadable},
		{mode: "close-mid-event", stream: cut, json: unreadable},
		{mode: "clean-no-done", stream: cut, json: unreadable},
		{mode: "clean-fin-no-done", stream: ended, json: unreadable},
		{mode: "after-done", stream: mended, json: unreadable},
		{mode: "never-end", stream: mended, json: unreadable},
		{mode: "stall", stream: cutLate, json: unreadable},
		{mode: "watch-stall", stream: cutLate, json: unreadable},
		{mode: "slow-drip?d=30ms", stream: cutLate, json: unreadable},
		{mode: "error-event", json: unreadable},
		// Streams that are in order.
		{mode: "trailers", json: unreadable},
		{mode: "split1", json: unreadable},
		{mode: "empty-frames", json: unreadable},
		{mode: "pings", json: unreadable},
		{mode: "settings", json: unreadable},
		{mode: "no-more-streams", json: unreadable},
		{mode: "padded", json: unreadable},
		{mode: "unknown-frame", json: unreadable},
		{mode: "reset-at-end"},
		{mode: "flood?max=4M", json: unreadable},
		// Connections.
		{mode: "speaks-http1", stream: refused, json: refused, again: true, unread: true},
	}
}

func TestEveryHostileModeOfHTTP2HasARow(t *testing.T) {
	t.Parallel()
	rows := []string{"frame-in-two"} // it takes two requests
	for _, r := range hostileRows2() {
		name, _, _ := strings.Cut(r.mode, "?")
		rows = append(rows, name)
	}
	for _, mode := range hostile.Modes2() {
		if !slices.Contains(rows, mode) {
			t.Errorf("%s has no test", mode)
		}
	}
}

// hostileModels2 returns models served over HTTP/2, in clear text or over TLS.
func hostileModels2(t *testing.T, servers ...*hostile.Server) []backend.ModelOptions {
	t.Helper()
	models := hostileModels(servers...)
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, hostile.RootsPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range models {
		for j := range models[i].Endpoints {
			e := &models[i].Endpoints[j]
			e.Protocol = "h2c"
			if strings.HasPrefix(e.URL, "https") {
				e.Protocol, e.TLS.CAFile = "h2", file
			}
		}
	}
	return models
}

// The table for HTTP/1.1 in HTTP/2 frames, and errors that only frames can have; with and without
// TLS.
func TestAHostileBackendOverHTTP2GivesItsDocumentedResult(t *testing.T) {
	t.Parallel()
	for _, row := range hostileRows2() {
		row.http2 = true
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			for _, secure := range []bool{false, true} {
				for name, body := range map[string]string{"streamed": askStream("hi"), "not streamed": ask("hi")} {
					want := map[string]result{"streamed": row.stream, "not streamed": row.json}[name]
					t.Run(name+map[bool]string{true: ", TLS"}[secure], func(t *testing.T) { hostileOverHTTP2(t, row, want, secure, body) })
				}
			}
		})
	}
}

func hostileOverHTTP2(t *testing.T, row hostileRow, want result, secure bool, body string) {
	t.Helper()
	limits := func(s *setup) {
		if want == late || want == cutLate {
			shortPatience(&s.options)
		}
	}
	s := hostile.Start(t, hostile.Options{Mode: row.mode, Still: true, HTTP2: true, Secure: secure})
	b := start(t, hostileModels2(t, s), limits)
	got := b.raw(body)
	checkResult(t, row, want, got, body)
	checkSecrets(t, s, got)
	times := 1
	switch {
	case row.unread:
		times = 0
	case row.repeated:
		times = 2
	}
	if n := s.Requests(); n != times {
		t.Errorf("the request was sent %d times, want %d", n, times)
	}
	if (want == mended || want == cutLate || want == late) && row.mode != "after-done" {
		// the other side must not be left working for nobody
		if _, ok := s.WaitGone(1, patience); !ok {
			t.Error("the stream stays open")
		}
	}
	if n := b.state.Models[1].Endpoints[0].Inflight(); n != 0 {
		t.Errorf("%d requests are still in flight", n)
	}
	if row.unread {
		return // its mode is that of connections
	}
	again := row.again && want != unreadable
	anew := func() (*bench, answered, int) {
		two := func(servers ...*hostile.Server) []backend.ModelOptions { return hostileModels2(t, servers...) }
		return askTwo(t, row.mode, body, hostile.Options{Still: true, HTTP2: true, Secure: secure}, two, limits)
	}
	b, got, n := anew()
	for tries := 1; again && got.status == 504 && n == 1 && tries < 5; tries++ { // the other was not reached in time
		b, got, n = anew()
	}
	if again {
		want, row = same, hostileRow{mode: "ok", http2: true}
	}
	checkResult(t, row, want, got, body)
	if n != 1+map[bool]int{true: 1}[again] {
		t.Errorf("the request was sent %d times", n)
	}
	if got := b.raw(body); got.status != 200 { // nothing of the fault is left
		t.Errorf("the next request got %d %s", got.status, got.body)
	}
}

// A piece of a response may look like the head of another one.
func TestAFrameThatComesInPiecesIsRead(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "frame-in-two", Still: true, HTTP2: true})
	b := start(t, hostileModels2(t, s))
	first := make(chan answered)
	go func() { first <- b.raw(askStream("hi")) }()
	if _, ok := s.Wait(patience, func(e *hostile.Event) bool { return e.Kind == hostile.FirstByte && e.Req == 1 }); !ok {
		t.Error("the first request is not answered")
	}
	if got := b.raw(askStream("hi")); got.err != nil || got.status != 200 || !strings.HasSuffix(got.body, hostile.Done) {
		t.Errorf("the second got %d %q, %v", got.status, got.body, got.err)
	}
	if got := <-first; got.err != nil || !strings.Contains(got.body, "HTTP/1.1 200 OK") || !strings.HasSuffix(got.body, hostile.Done) || s.Accepts() != 1 {
		t.Errorf("the first got %d %q, %v; %d connections", got.status, got.body, got.err, s.Accepts())
	}
}

// An HTTP/2 connection carries many requests: an error of one affects the others only if the
// connection ends.
func TestAStreamThatIsResetLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := hostile.Start(t, hostile.Options{Still: true, HTTP2: true, Choose: func() string {
		return []string{"ok", "rst-mid", "rst-before-head", "trailers"}[asked.Add(1)%4]
	}})
	b := start(t, hostileModels2(t, s))
	results := make(chan answered)
	const requests = 40
	for range requests {
		go func() { results <- b.raw(askStream("hi")) }()
	}
	seen := map[int]int{}
	whole := 0
	for range requests {
		got := <-results
		seen[got.status]++
		if got.err == nil && got.status == 200 {
			whole++
			if !strings.HasSuffix(got.body, hostile.Done) {
				t.Errorf("a whole answer is %q", got.body)
			}
		}
	}
	if seen[200] != requests*3/4 || seen[502] != requests/4 || whole != requests/2 {
		t.Errorf("statuses %v, %d answers whole", seen, whole)
	}
}
