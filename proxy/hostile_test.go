package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/proxy/settings"
)

// result is what a client sees in a mode.
type result uint8

const (
	same       result = iota // what the backend sent, byte for byte
	mended                   // its events, in the form that every client reads
	ended                    // its events, and [DONE] behind them
	cut                      // the events before the fault, then an error event and a break
	cutLate                  // the same, for a stream that fell silent
	relayed                  // the backend's own error event, then a break
	refused                  // 502
	barred                   // 502, from a server that refuses the proxy's credentials
	late                     // 504
	passed                   // status and body of the backend's answer
	unreadable               // 502, from a server that gives a stream where none was asked for, or the reverse
)

// before returns the number of events that the backend sends before it is silent; 0 if it is not.
func (r result) before() int {
	if r == cutLate {
		return 2
	}
	return 0
}

// hostileRow is a mode with what a streaming and a non-streaming client see.
type hostileRow struct {
	mode         string
	stream, json result
	again        bool // another endpoint gets the request
	status       int  // of passed
	http2        bool // it is a mode of HTTP/2
	// the endpoint gets the request a second time, since it said that it did not process it
	repeated bool
	unread   bool // the request is never read
}

// shortPatience sets the timeouts of the tests. Responses that are not late must keep them on a
// busy machine as well, where eight times as long is allowed.
func shortPatience(o *settings.Server) {
	unit := 100 * time.Millisecond
	if !testkit.Timed() {
		unit *= 8
	}
	o.ConnectTimeout = option.Duration(3 * unit)
	o.FirstByteTimeout = option.Duration(4 * unit)
	o.AnswerTimeout = option.Duration(4 * unit)
	o.GapTimeout = option.Duration(4 * unit)
}

// hostileRows is the table of documented results. Large values exceed the limit that they are
// about: 8 MB for a whole body or an event, 1 MB for what the guard holds.
func hostileRows() []hostileRow {
	return []hostileRow{
		{mode: "ok"},
		{mode: "ok-stream", json: unreadable},
		{mode: "ok-json", stream: unreadable},
		// Before the first byte of a body.
		{mode: "rst-before-head", stream: refused, json: refused, again: true},
		{mode: "close-before-head", stream: refused, json: refused, again: true},
		{mode: "half-head", stream: refused, json: refused, again: true},
		{mode: "slow-head?d=60ms", stream: late, json: late, again: true},
		{mode: "ttft?d=50ms"},
		{mode: "ttft?d=5s", stream: late, json: late, again: true},
		{mode: "head-ttft?d=5s", stream: late, json: unreadable, again: true},
		{mode: "watch-ttft", stream: late, json: late, again: true},
		{mode: "1xx"},
		{mode: "1xx-flood?n=10000", stream: refused, json: refused, again: true},
		{mode: "101", stream: unreadable, json: unreadable},
		{mode: "no-100"},
		// Heads.
		{mode: "status?code=400", stream: passed, json: passed, status: 400},
		{mode: "status?code=401", stream: barred, json: barred, again: true},
		{mode: "status?code=403", stream: passed, json: passed, status: 403},
		{mode: "status?code=404", stream: passed, json: passed, status: 404},
		{mode: "status?code=408", stream: passed, json: passed, status: 408},
		{mode: "status?code=409", stream: passed, json: passed, status: 409},
		{mode: "status?code=422", stream: passed, json: passed, status: 422},
		{mode: "status?code=429&ra=7", stream: passed, json: passed, status: 429, again: true},
		{mode: "status?code=451", stream: passed, json: passed, status: 451},
		{mode: "status?code=500", stream: passed, json: passed, status: 500},
		{mode: "status?code=501", stream: passed, json: passed, status: 501},
		{mode: "status?code=502", stream: passed, json: passed, status: 502, again: true},
		{mode: "status?code=503", stream: passed, json: passed, status: 503, again: true},
		{mode: "status?code=504", stream: passed, json: passed, status: 504},
		{mode: "status?code=599", stream: passed, json: passed, status: 599},
		{mode: "status-html", stream: refused, json: refused, again: true},
		{mode: "redirect?code=301", stream: unreadable, json: unreadable},
		{mode: "redirect?code=302", stream: unreadable, json: unreadable},
		{mode: "redirect?code=307", stream: unreadable, json: unreadable},
		{mode: "redirect?code=308", stream: unreadable, json: unreadable},
		{mode: "huge-headers", stream: refused, json: refused, again: true},
		{mode: "header-count", stream: refused, json: refused, again: true},
		{mode: "bad-header", stream: refused, json: refused, again: true},
		{mode: "bad-header-0", stream: refused, json: refused, again: true},
		{mode: "dup-cl", stream: refused, json: refused, again: true}, // for a stream it is a length beside a coding
		{mode: "dup-cl-differ", stream: refused, json: refused, again: true},
		{mode: "cl-and-te", stream: refused, json: refused, again: true},
		{mode: "te-identity", stream: refused, json: refused, again: true},
		{mode: "neg-cl", stream: refused, json: refused, again: true},
		{mode: "set-cookie"},
		{mode: "http10"},
		// Bodies.
		{mode: "cl-too-long", stream: unreadable, json: refused, again: true},
		{mode: "cl-too-short", stream: unreadable, again: true},
		{mode: "gzip-json", stream: unreadable},
		{mode: "br-json", stream: unreadable},
		{mode: "zstd-json", stream: unreadable},
		{mode: "deflate-json", stream: unreadable},
		{mode: "deflate-raw", stream: unreadable},
		{mode: "gzip-corrupt", stream: unreadable},
		{mode: "gzip-trunc", stream: unreadable},
		{mode: "gzip-bomb?mb=4", stream: unreadable},
		{mode: "json-huge?mb=12", stream: unreadable},
		{mode: "json-deep", stream: unreadable},
		{mode: "json-nan", stream: unreadable},
		{mode: "json-trailing", stream: unreadable},
		{mode: "json-empty", stream: unreadable, again: true},
		{mode: "json-array", stream: unreadable},
		{mode: "sse-for-json", json: unreadable},
		{mode: "json-200-for-stream", stream: unreadable},
		{mode: "gzip-stream", json: unreadable},
		// Streams that break, long enough after the first event for it to have been passed on;
		// earlier breaks are refused.
		{mode: "rst-mid?d=300ms", stream: cut, json: unreadable},
		{mode: "close-mid?d=300ms", stream: cut, json: unreadable},
		{mode: "close-mid-event?d=300ms", stream: cut, json: unreadable},
		{mode: "bad-chunk?d=300ms", stream: cut, json: unreadable},
		{mode: "bad-chunk-lf?d=300ms", stream: cut, json: unreadable},
		{mode: "clean-no-done", stream: cut, json: unreadable},
		{mode: "clean-fin-no-done", stream: ended, json: unreadable},
		{mode: "after-done?n=50", stream: mended, json: unreadable},
		{mode: "never-end", stream: mended, json: unreadable},
		{mode: "stall", stream: cutLate, json: unreadable},
		{mode: "watch-stall", stream: cutLate, json: unreadable},
		{mode: "slow-drip?d=30ms", stream: cutLate, json: unreadable},
		{mode: "error-event", json: unreadable},
		{mode: "error-event-named", stream: relayed, json: unreadable},
		{mode: "bad-json-event", json: unreadable},
		// Streams that are in order.
		{mode: "dup-choice", json: unreadable},
		{mode: "two-choices", json: unreadable},
		{mode: "index-gap", json: unreadable},
		{mode: "tool-call-fragments", json: unreadable},
		{mode: "reasoning_content", json: unreadable},
		{mode: "logprobs", json: unreadable},
		{mode: "empty-delta", json: unreadable},
		{mode: "role-only", json: unreadable},
		{mode: "usage-chunk-last", json: unreadable},
		{mode: "usage-null-every-chunk", json: unreadable},
		// Syntax.
		{mode: "crlf", json: unreadable},
		{mode: "cr", stream: mended, json: unreadable},
		{mode: "mixed-eol", stream: mended, json: unreadable},
		{mode: "crlf-split", json: unreadable},
		{mode: "bom", stream: mended, json: unreadable},
		{mode: "bom-split", stream: mended, json: unreadable},
		{mode: "comments", json: unreadable},
		{mode: "fields", json: unreadable},
		{mode: "multiline", stream: mended, json: unreadable},
		{mode: "nospace", json: unreadable},
		{mode: "split1", json: unreadable},
		{mode: "split-bytes", json: unreadable},
		{mode: "coalesced", json: unreadable},
		{mode: "lone-surrogate", json: unreadable},
		{mode: "invalid-utf8", json: unreadable},
		{mode: "nul", json: unreadable},
		{mode: "escape-zoo", json: unreadable},
		{mode: "huge-line?bytes=2M", json: unreadable},
		{mode: "trailers", json: unreadable},
		// Without an end, or hardly one.
		{mode: "endless-line?max=16M", stream: refused, json: unreadable, again: true},
		{mode: "flood?max=2M", json: unreadable},
		{mode: "flood-comments?max=512K", json: unreadable},
		{mode: "flood-empty-lines?max=256K", json: unreadable},
		{mode: "drip-comments?n=20", json: unreadable},
		// Of many requests, the first.
		{mode: "flaky?p=0"},
		{mode: "brownout"},
		{mode: "fail-first", stream: passed, json: passed, status: 503, again: true},
		{mode: "recover-after", stream: passed, json: passed, status: 503, again: true},
		{mode: "concurrency-cap"},
		{mode: "rate-limit?rps=0", stream: passed, json: passed, status: 429, again: true},
		{mode: "keepalive-limit"},
		{mode: "models-404"},
		{mode: "health-lies", stream: passed, json: passed, status: 500},
		{mode: "wrong-model-echo", stream: unreadable},
	}
}

// ownTests are the modes with tests of their own: those of connections, and of more than one
// request.
func ownTests() []string {
	return append(hostile.Connections(), "half-open", "idle-close", "ok-then-rst-next", "early-413", "other-tenant-marker")
}

func TestEveryHostileModeHasARow(t *testing.T) {
	t.Parallel()
	rows := ownTests()
	for _, r := range hostileRows() {
		name, _, _ := strings.Cut(r.mode, "?")
		rows = append(rows, name)
	}
	for _, mode := range hostile.Modes() {
		if !slices.Contains(rows, mode) {
			t.Errorf("%s has no test", mode)
		}
	}
}

// raw sends one request without decompression. begun is called when the response head has arrived.
func (b *bench) raw(body string, begun ...func()) answered {
	b.tb.Helper()
	return b.rawTo(chatPath, body, begun...)
}

func (b *bench) rawTo(path, body string, begun ...func()) answered {
	b.tb.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(b.tb.Context(), http.MethodPost, b.URL+path, strings.NewReader(body))
	if err != nil {
		b.tb.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return answered{err: err}
	}
	defer res.Body.Close()
	for _, f := range begun {
		f()
	}
	got, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(got), err}
}

// direct returns what a client of the backend itself sees: everything or, of a stream that becomes
// silent, its first events. A server that waits for its client to leave is closed.
func direct(tb testing.TB, mode, body string, events int) answered {
	tb.Helper()
	return directly(tb, hostile.Options{Mode: mode, Still: true}, body, events)
}

func directly(tb testing.TB, o hostile.Options, body string, events int) answered {
	tb.Helper()
	s := hostile.Start(tb, o)
	var silent sync.WaitGroup
	defer silent.Wait()
	defer s.Close()
	tr := &http.Transport{DisableCompression: true, DisableKeepAlives: true, Protocols: new(http.Protocols)}
	if tr.Protocols.SetHTTP1(!o.HTTP2); o.HTTP2 {
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	silent.Go(func() {
		e, ok := s.Wait(time.Minute, func(e *hostile.Event) bool { return e.Kind == hostile.Holding || e.Kind == hostile.Served })
		if ok && e.Kind == hostile.Holding {
			s.Close()
		}
	})
	res, err := client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	var got []byte
	for piece := make([]byte, 64<<10); err == nil && (events == 0 || bytes.Count(got, []byte("\n\n")) < events); {
		var n int
		n, err = res.Body.Read(piece)
		got = append(got, piece[:n]...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return answered{res.StatusCode, res.Header, string(got), err}
}

// heardEvents returns the data of the events of a stream, parsed line by line.
func heardEvents(stream string) (data []string) {
	stream = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(stream, "\ufeff"), "\r\n", "\n"), "\r", "\n")
	var lines []string
	for line := range strings.SplitSeq(stream, "\n") {
		switch v, ok := strings.CutPrefix(line, "data:"); {
		case line == "" && len(lines) > 0:
			data = append(data, strings.Join(lines, " "))
			lines = nil
		case ok:
			lines = append(lines, strings.TrimPrefix(v, " "))
		}
	}
	return data
}

func TestAHostileBackendGivesItsDocumentedResult(t *testing.T) {
	t.Parallel()
	for _, row := range hostileRows() {
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			for name, want := range map[string]result{"streamed": row.stream, "not streamed": row.json} {
				limits := func(s *setup) {
					if want == late || want == cutLate {
						shortPatience(&s.options)
					}
				}
				body := ask("hi")
				if name == "streamed" {
					body = askStream("hi")
				}
				t.Run(name+", one endpoint", func(t *testing.T) {
					s := hostile.Start(t, hostile.Options{Mode: row.mode, Still: true})
					b := start(t, hostileModels(s), limits)
					got := b.raw(body)
					checkResult(t, row, want, got, body)
					checkSecrets(t, s, got)
					if n := s.Requests(); n != 1 {
						t.Errorf("the request was sent %d times", n)
					}
					if want == mended {
						// what follows the end does not reach the proxy, and need not
						if _, ok := s.WaitGone(1, patience); !ok && strings.HasPrefix(row.mode, "never-end") {
							t.Error("the backend's connection stays")
						}
					}
				})
				t.Run(name+", two endpoints", func(t *testing.T) {
					again := row.again && want != unreadable
					anew := func() (*bench, answered, int) {
						return askTwo(t, row.mode, body, hostile.Options{Still: true}, hostileModels, limits)
					}
					b, got, sent := anew()
					for tries := 1; again && got.status == 504 && sent == 1 && tries < 5; tries++ { // the other was not reached in time
						b, got, sent = anew()
					}
					if again {
						want, row := same, hostileRow{mode: "ok"}
						checkResult(t, row, want, got, body)
					} else {
						checkResult(t, row, want, got, body)
					}
					if sent != 1+map[bool]int{true: 1}[again] {
						t.Errorf("the request was sent %d times", sent)
					}
					if got := b.raw(body); got.status != 200 { // nothing of the fault is left
						t.Errorf("the next request got %d %s", got.status, got.body)
					}
				})
			}
		})
	}
}

// askTwo sends a request through a new proxy in front of two new servers. The first one asked
// behaves as mode says, the other one answers normally. It returns how often they were asked.
func askTwo(
	t *testing.T, mode, body string, o hostile.Options,
	models func(...*hostile.Server) []backend.ModelOptions, limits func(*setup),
) (b *bench, got answered, sent int) {
	t.Helper()
	var asked atomic.Int64
	o.Choose = func() string {
		if asked.Add(1) == 1 {
			return mode
		}
		return "ok"
	}
	b = start(t, models(hostile.Start(t, o), hostile.Start(t, o)), limits)
	got = b.raw(body)
	return b, got, int(asked.Load())
}

// hostileModels returns models for servers.
func hostileModels(servers ...*hostile.Server) []backend.ModelOptions {
	var out []backend.ModelOptions
	for _, name := range []string{"big", "small", "effort"} {
		m := backend.ModelOptions{Name: name, ContextWindow: 8192}
		for i, s := range servers {
			m.Endpoints = append(m.Endpoints, pool.EndpointOptions{Name: "node-" + string(rune('a'+i)), URL: s.URL(), APIKey: "backend-secret"})
		}
		out = append(out, m)
	}
	return out
}

func checkResult(t *testing.T, row hostileRow, want result, got answered, body string) {
	t.Helper()
	var sent answered
	if want != refused && want != barred && want != late && want != unreadable {
		sent = directly(t, hostile.Options{Mode: row.mode, Still: true, HTTP2: row.http2}, body, want.before())
	}
	switch want {
	case refused, unreadable:
		if got.status != 502 || got.code(t) != "upstream_error" {
			t.Errorf("got %d %.300s", got.status, got.body)
		}
	case barred:
		if got.status != 502 || got.code(t) != "upstream_auth_failed" {
			t.Errorf("got %d %.300s", got.status, got.body)
		}
	case late:
		if got.status != 504 || got.code(t) != "upstream_timeout" {
			t.Errorf("got %d %.300s", got.status, got.body)
		}
	case passed, same:
		status := max(row.status, 200)
		if got.status != status || got.err != nil || got.body != sent.body {
			t.Errorf("got %d, %v; bodies are equal: %v\n%.300q\n%.300q", got.status, got.err, got.body == sent.body, got.body, sent.body)
		}
		if got.header.Get("Content-Encoding") != sent.header.Get("Content-Encoding") || got.header.Get("Content-Type") != sent.header.Get("Content-Type") {
			t.Errorf("head is %v, was %v", got.header, sent.header)
		}
	case mended, ended:
		wantEvents := heardEvents(sent.body)
		if i := slices.Index(wantEvents, "[DONE]"); i >= 0 {
			wantEvents = wantEvents[:i+1]
		} else {
			wantEvents = append(wantEvents, "[DONE]")
		}
		if diff := cmp.Diff(wantEvents, heardEvents(got.body)); diff != "" || got.err != nil {
			t.Errorf("%v, events (-want +got):\n%s", got.err, diff)
		}
		if strings.Contains(strings.ReplaceAll(got.body, "\r\n", ""), "\r") || strings.HasPrefix(got.body, "\ufeff") || strings.Contains(got.body, "\ndata: \"delta\"") {
			t.Errorf("stream is %q", got.body)
		}
	case relayed:
		events := heardEvents(got.body)
		if got.err == nil || strings.Contains(got.body, "event:") || !slices.Equal(events, heardEvents(sent.body)) || !strings.Contains(events[len(events)-1], `"error"`) {
			t.Errorf("%v, stream is %q", got.err, got.body)
		}
	case cut, cutLate:
		code := "upstream_error"
		if want == cutLate {
			code = "upstream_timeout"
		}
		events := heardEvents(got.body)
		if got.status != 200 || got.err == nil || len(events) != 3 {
			t.Fatalf("got %d, %v: %q", got.status, got.err, got.body)
		}
		before := strings.Split(sent.body, "\n\n")
		if events[0] != strings.TrimPrefix(before[0], "data: ") || !strings.HasPrefix(events[2], `{"error":{"message":`) || !strings.HasSuffix(events[2], `"code":"`+code+`"}}`) {
			t.Errorf("stream is %q", got.body)
		}
	}
}

// checkSecrets checks that neither a backend's address nor its credentials reach a client.
func checkSecrets(t *testing.T, s *hostile.Server, got answered) {
	t.Helper()
	all := got.body
	for name, values := range got.header {
		all += name + strings.Join(values, ",")
	}
	address := strings.TrimSuffix(regexp.MustCompile(`^https?://`).ReplaceAllString(s.URL(), ""), "/v1")
	for _, secret := range []string{address, "127.0.0.1", "backend-secret", "10.0.0.7", "169.254", "goroutine", ".go:", "certificate", "x509", "Set-Cookie", "X-Internal", "Keep-Alive"} {
		if strings.Contains(all, secret) {
			t.Errorf("the client sees %q", secret)
		}
	}
}
