package proxy

import (
	"crypto/tls"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
)

func TestAHostileConnectionIsReplacedOrAnError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode   string
		status int
		code   string
		within time.Duration // of the time limit that applies; 0 for at once
	}{
		{"refuse", 502, "upstream_error", 0},
		{"blackhole", 504, "upstream_timeout", 300 * time.Millisecond},
		{"rst-on-accept", 502, "upstream_error", 0},
		{"close-on-accept", 502, "upstream_error", 0},
		{"accept-silent", 504, "upstream_timeout", 400 * time.Millisecond},
		{"slow-accept?d=50ms", 200, "", 50 * time.Millisecond},
		{"tls-expired", 502, "upstream_error", 0},
		{"tls-wrong-name", 502, "upstream_error", 0},
		{"tls-mtls-required", 502, "upstream_error", 0},
		{"tls-stall", 504, "upstream_timeout", 0},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{ask("hi"), askStream("hi")} {
				s, fine := hostile.Start(t, hostile.Options{Mode: tt.mode}), hostile.Start(t, hostile.Options{})
				trust := func(b *bench) *bench {
					b.proxy.transport.TLSClientConfig = &tls.Config{RootCAs: hostile.Roots(), MinVersion: tls.VersionTLS12}
					return b
				}
				short := func(s *setup) { shortPatience(&s.options) }
				b := trust(start(t, hostileModels(s), short))
				begun := time.Now()
				got := b.raw(body)
				took := time.Since(begun)
				if got.status != tt.status || tt.code != "" && got.code(t) != tt.code {
					t.Errorf("got %d %s", got.status, got.body)
				}
				if took < tt.within || testkit.Timed() && tt.within > 0 && took > tt.within+time.Second {
					t.Errorf("took %s, limit %s", took, tt.within)
				}
				checkSecrets(t, s, got)
				b = trust(start(t, hostileModels(s, fine), short))
				for range 4 { // whichever is picked first
					if got := b.raw(body); got.status != 200 || got.err != nil {
						t.Errorf("with another endpoint: %d %s", got.status, got.body)
					}
				}
			}
		})
	}
}

func TestAConnectionThatClosesWhileItIdlesIsNoError(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"ok-then-rst-next", "idle-close?d=3ms", "keepalive-limit?n=3"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := hostile.Start(t, hostile.Options{Mode: mode, Still: true})
			b := start(t, hostileModels(s), func(s *setup) { s.options.MaxAttempts = 1 })
			for i := range 200 {
				if got := b.chat(ask("hi")); got.status != 200 || got.body != hostile.Completion {
					t.Fatalf("request %d: %d %s, %v", i, got.status, got.body, got.err)
				}
			}
		})
	}
}

func TestAnAnswerThatComesWhileTheBodyIsSentIsPassedOn(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "early-413"})
	models := hostileModels(s)
	models[1].ContextWindow = 0
	b := start(t, models)
	body := strings.Replace(ask("hi"), "hi", strings.Repeat("x", 32<<20), 1)
	if got := b.raw(strings.Replace(body, `"auto"`, `"small"`, 1)); got.status != 413 || !strings.Contains(got.body, "too large") {
		t.Errorf("got %d %.200s, %v", got.status, got.body, got.err)
	}
}

func TestABackendThatFreezesIsNoticedAndReplaced(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "half-open"})
	b := start(t, hostileModels(s), func(s *setup) { shortPatience(&s.options) })
	if got := b.chat(ask("hi")); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	for _, body := range []string{ask("hi"), askStream("hi")} {
		if got := b.raw(body); got.status != 504 {
			t.Errorf("got %d %s", got.status, got.body)
		}
	}
	if n := b.state.Models[1].Endpoints[0].Inflight(); n != 0 {
		t.Errorf("%d requests are still in flight", n)
	}
	s = hostile.Start(t, hostile.Options{Mode: "half-open?k=2"})
	b = start(t, hostileModels(s), func(s *setup) { shortPatience(&s.options) })
	if got := b.raw(askStream("hi")); got.err == nil || !strings.HasSuffix(got.body, `"code":"upstream_timeout"}}`+"\n\n") || len(heardEvents(got.body)) != 3 {
		t.Errorf("in a stream: %v %q", got.err, got.body)
	}
}

func TestCommentsKeepAStreamAliveUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "drip-comments?n=200&d=20ms"})
	short := func(s *setup) { shortPatience(&s.options) }
	if got := start(t, hostileModels(s), short).raw(askStream("hi")); got.err != nil || !strings.HasSuffix(got.body, testkit.Done) {
		t.Errorf("got %v %q", got.err, got.body)
	}
	got := start(t, hostileModels(s), short, func(s *setup) { s.options.CommentsAreProgress = false }).raw(askStream("hi"))
	if got.err == nil || !strings.HasSuffix(got.body, `"code":"upstream_timeout"}}`+"\n\n") {
		t.Errorf("got %v %q", got.err, got.body)
	}
}

func TestRetryAfterIsPassedOnWhereItCanBeTakenAtItsWord(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{})
	b := start(t, hostileModels(s))
	date := time.Now().Add(10 * time.Second).UTC().Format(http.TimeFormat)
	for _, tt := range []struct {
		given    string
		min, max int // -1: none is passed on
	}{
		{"7", 7, 7},
		{"0", 0, 0},
		{"1000000000", 60, 60},
		{"99999999999999999999999", -1, -1},
		{strings.ReplaceAll(strings.ReplaceAll(date, " ", "+"), ",", "%2C"), 8, 10},
		{"Wed%2C+21+Oct+2099+07:28:00+GMT", 60, 60},
		{"Wed%2C+21+Oct+2015+07:28:00+GMT", 0, 0},
		{"-5", -1, -1},
		{"1e9", -1, -1},
		{"soon", -1, -1},
	} {
		for _, code := range []string{"429", "503"} {
			s.Next("status?code=" + code + "&ra=" + tt.given)
			got := b.raw(ask("hi"))
			n := -1
			if v := got.header.Get("Retry-After"); v != "" {
				n, _ = strconv.Atoi(v)
			}
			if strconv.Itoa(got.status) != code || n < tt.min || n > tt.max {
				t.Errorf("%s of %q became %d, %q", code, tt.given, got.status, got.header.Get("Retry-After"))
			}
		}
	}
}

// Unbounded input would fill the memory: a line without an end, and a client that does not read.
func TestEndlessAnswersStayWithinTheirBounds(t *testing.T) {
	s := hostile.Start(t, hostile.Options{Mode: "endless-line?max=1G"})
	b := start(t, hostileModels(s))
	var before, after runtime.MemStats
	// regardless of GOGC, which determines how far a heap grows
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	runtime.ReadMemStats(&before)
	if got := b.raw(askStream("hi")); got.status != 502 {
		t.Errorf("got %d", got.status)
	}
	if _, ok := s.WaitGone(1, patience); !ok {
		t.Error("the backend may go on")
	}
	runtime.ReadMemStats(&after)
	const limit = 8 << 20
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 6*limit {
		// growing a buffer leaves the smaller ones for the collector
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	flood := hostile.Start(t, hostile.Options{Mode: "flood?max=1G"})
	b = start(t, hostileModels(flood))
	leave := b.leaveable(askStream("hi"), "data: ")
	if _, ok := flood.Wait(patience, func(e *hostile.Event) bool { return e.Kind == hostile.Accept }); !ok {
		t.Fatal("no connection")
	}
	sent := func() (n int64) {
		for _, e := range flood.Events() {
			if e.Kind == hostile.Sent {
				n = e.N
			}
		}
		return n
	}
	taken, last := sent(), int64(-1)
	for end := time.Now().Add(patience); taken != last && time.Now().Before(end); taken = sent() {
		last = taken
		<-time.After(500 * time.Millisecond)
	}
	// The system holds what its buffers of two connections do: tcp_rmem and tcp_wmem, proc(5).
	held := int64(limit)
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		held += 2 * largestBuffer(t, name)
	}
	if taken != last || taken > held {
		t.Errorf("%d MiB were taken for a client that does not read, at most %d are held", taken>>20, held>>20)
	}
	leave()
	if _, ok := flood.WaitGone(1, patience); !ok {
		t.Error("the backend may go on")
	}
}

// largestBuffer returns the maximum size of a connection's buffer, in bytes.
func largestBuffer(t *testing.T, name string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	if err != nil {
		t.Fatal(err)
	}
	sizes := strings.Fields(string(text))
	n, err := strconv.ParseInt(sizes[len(sizes)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFlakyBackends(t *testing.T) {
	t.Parallel()
	t.Run("one request in ten is reset", func(t *testing.T) {
		t.Parallel()
		a, c := hostile.Start(t, hostile.Options{Mode: "flaky?p=0.1"}), hostile.Start(t, hostile.Options{Mode: "flaky?p=0.1"})
		b := start(t, hostileModels(a, c))
		for i := range 200 {
			if got := b.chat(ask("hi")); got.status != 200 && got.status != 502 || got.status == 502 && got.code(t) != "upstream_error" {
				t.Fatalf("request %d: %d %s", i, got.status, got.body)
			}
		}
		if n := a.Requests() + c.Requests(); n > 200+40+burst {
			t.Errorf("200 requests became %d", n)
		}
	})
	t.Run("a backend that lies about its health is left", func(t *testing.T) {
		t.Parallel()
		liar, fine := hostile.Start(t, hostile.Options{Mode: "health-lies"}), hostile.Start(t, hostile.Options{})
		models := hostileModels(liar, fine)
		for i := range models {
			models[i].Health.Interval = option.Duration(20 * time.Millisecond)
		}
		b := start(t, models, func(s *setup) { s.health = true })
		for range 200 {
			b.chat(ask("hi"))
		}
		if n := liar.Requests(); n > 50 { // until five in a row failed
			t.Errorf("the liar got %d of 200 requests", n)
		}
	})
	t.Run("tenants never see each other's answers", func(t *testing.T) {
		t.Parallel()
		s := hostile.Start(t, hostile.Options{Mode: "other-tenant-marker"})
		b := start(t, hostileModels(s))
		seen := map[string]string{}
		for i := range 60 {
			tenant := "tenant-" + strconv.Itoa(i%3)
			got := b.chat(ask("hi"), "X-Tenant", tenant)
			if seen[tenant] == "" {
				seen[tenant] = got.body
			}
			if got.body != seen[tenant] {
				t.Fatalf("%s got %s", tenant, got.body)
			}
		}
		if len(seen) != 3 || seen["tenant-0"] == seen["tenant-1"] {
			t.Errorf("answers are %v", seen)
		}
	})
}
