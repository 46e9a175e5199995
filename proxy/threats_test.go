package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/stream/guard"
)

// S24: what a client says of traces goes no further than its place in them: baggage ends here, and a state without a trace that can be
// read is nobody's.
func TestS24OfATraceOnlyThePlaceInItGoesOn(t *testing.T) {
	t.Parallel()
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, traced := range []bool{false, true} {
		up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
		b := start(t, oneModel(up))
		if traced {
			b.tel.Tracer = sdktrace.NewTracerProvider().Tracer("test")
		}
		long := "k=" + strings.Repeat("v", 16<<10)
		b.chat(ask("hi"), "Traceparent", "00-"+trace+"-"+parent+"-01", "Tracestate", "v=1", "Baggage", "user=boss", "Baggage", long)
		h := up.Last(t).Header
		if h.Get("Baggage") != "" || !strings.HasPrefix(h.Get("Traceparent"), "00-"+trace+"-") || h.Get("Tracestate") != "v=1" {
			t.Errorf("traced %v: the model got %.300v", traced, h)
		}
		if !traced {
			continue
		}
		for name, line := range map[string]string{
			"none": "", "zeros": "00-" + strings.Repeat("0", 32) + "-" + parent + "-01", "short": "00-" + trace + "-01", "words": "boss",
			"another version's": "ff-" + trace + "-" + parent + "-01", "a long one": "00-" + strings.Repeat(trace, 500) + "-" + parent + "-01",
		} {
			b.chat(ask("hi"), "Traceparent", line, "Tracestate", "v=1")
			h := up.Last(t).Header
			if got := h.Get("Traceparent"); len(got) != len("00-"+trace+"-"+parent+"-01") || strings.Contains(got, trace) || h.Get("Tracestate") != "" {
				t.Errorf("%s: the model got %.200q with the state %q", name, got, h.Get("Tracestate"))
			}
		}
	}
}

// exactly sends a body in a request of its own and returns all bytes of what comes back, cut behind the head.
func (b *bench) exactly(tb testing.TB, body string) (head []string, rest string) {
	tb.Helper()
	var d net.Dialer
	conn, err := d.DialContext(tb.Context(), "tcp", b.Listener.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(body), body); err != nil {
		tb.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		tb.Fatal(err)
	}
	top, rest, ok := strings.Cut(string(all), "\r\n\r\n")
	if !ok {
		tb.Fatalf("no head in %.300q", all)
	}
	return strings.Split(top, "\r\n"), rest
}

// S26, HC15: whatever the name of a model, a session, a label of a classifier or an answer holds, the head of an answer has the lines of
// a harmless one, and they stay short; an error is one JSON text.
func FuzzS26NobodyWritesTheHeadOfAnAnswer(f *testing.F) {
	for _, s := range []string{
		"", "math", "\r\nSet-Cookie: a=b", "a\nX-Injected: 1", "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "h\u00e9\u6f22\U0001f642", "\u2028\u0085\u000b", "\x00\x7f\x1b[2J", "\xff\xfe\xc0\xaf",
		strings.Repeat("long ", 2000), `"},"x":{"`, "\u560d\u560aSet-Cookie:a", "%0d%0aSet-Cookie:a",
	} {
		f.Add(s)
	}
	var said atomic.Value
	up := testkit.NewUpstream(f, func(_ *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
		body := fmt.Sprintf(`{"model":%[1]s,"choices":[{"index":0,"message":{"role":"assistant","content":%[1]s},"finish_reason":"stop"}]}`, said.Load())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	})
	b := start(f, oneModel(up))
	names := func(tb testing.TB, head []string) (out []string) {
		tb.Helper()
		for _, line := range head[1:] {
			name, value, ok := strings.Cut(line, ": ")
			if !ok || len(value) > 1000 || !option.VisibleASCII(strings.ReplaceAll(line, " ", "")) {
				tb.Errorf("a line of the head is %.300q", line)
			}
			if name != "X-Signalbox-Context-Predicted-Tokens" { // where the prompt is long enough, which is no matter here
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	f.Fuzz(func(t *testing.T, word string) {
		quoted, _ := json.Marshal(word)
		said.Store(quoted)
		for name, form := range map[string]string{
			"a label": `{"model":"auto","messages":[{"role":"user","content":"labelled %s"}]}`, "a session": `{"model":"auto","messages":[{"role":"user","content":"hi"}],"signalbox":{"session":"%s"}}`,
			"a model": `{"model":"no %s","messages":[{"role":"user","content":"hi"}]}`, "a role": `{"model":"auto","messages":[{"role":"no %s","content":"hi"}]}`,
		} {
			plain, _ := b.exactly(t, fmt.Sprintf(form, "x"))
			head, rest := b.exactly(t, fmt.Sprintf(form, quoted[1:len(quoted)-1]))
			if plain[0] != head[0] { // such as a session that is too long
				if !strings.HasPrefix(head[0], "HTTP/1.1 400 ") {
					t.Errorf("%s: %q became %q", name, plain[0], head[0])
				}
			} else if diff := cmp.Diff(names(t, plain), names(t, head)); diff != "" {
				t.Errorf("%s: lines of the head (-harmless +%.100q):\n%s", name, word, diff)
			}
			if !json.Valid([]byte(rest)) {
				t.Errorf("%s: body %.300q", name, rest)
			}
			if strings.Contains(head[0], " 40") && len(rest) > 2000 {
				t.Errorf("%s: an error of %d bytes: %.300q", name, len(rest), rest)
			}
		}
	})
}

// S27, JS9: a body that is packed, or in another character set than UTF-8, is refused before it is read, and nobody unpacks it.
func TestS27BodiesAreReadAsTheyStand(t *testing.T) {
	t.Parallel()
	b, u := target(t)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write([]byte(ask(strings.Repeat(" ", 4<<20))))
	_ = z.Close()
	plain := ask("hello")
	for name, tt := range map[string]struct {
		body, header, value string
		want                int
	}{
		"a bomb":                          {bomb.String(), "Content-Encoding", "gzip", 415},
		"a bomb that nobody announced":    {bomb.String(), "Content-Type", "application/json", 400},
		"a coding that is not there":      {plain, "Content-Encoding", "gzip", 415},
		"br":                              {plain, "Content-Encoding", "br", 415},
		"zstd":                            {plain, "Content-Encoding", "zstd", 415},
		"two codings":                     {plain, "Content-Encoding", "identity, gzip", 415},
		"an unknown coding":               {plain, "Content-Encoding", "x", 415},
		"no coding":                       {plain, "Content-Encoding", "identity", 200},
		"UTF-16":                          {plain, "Content-Type", "application/json; charset=utf-16", 415},
		"UTF-7":                           {plain, "Content-Type", `application/json; charset="UTF-7"`, 415},
		"UTF-8":                           {plain, "Content-Type", "application/json; charset=UTF-8", 200},
		"no type":                         {plain, "Content-Type", "", 200},
		"another type":                    {plain, "Content-Type", "text/plain", 200},
		"two character sets":              {plain, "Content-Type", "application/json; charset=utf-8; charset=utf-7", 415},
		"a type that cannot be read":      {plain, "Content-Type", "application/json; charset", 415},
		"a form where there is none":      {plain, "Content-Type", "multipart/form-data; boundary=" + strings.Repeat("x", 32<<10), 200},
		"an unknown character set":        {plain, "Content-Type", "application/json;charset=ebcdic-cp-us", 415},
		"a character set of the old days": {plain, "Content-Type", "application/json; charset=latin1", 415},
	} {
		before := len(u.Requests())
		got := b.chat(tt.body, "Authorization", "Bearer guest", tt.header, tt.value)
		if got.status != tt.want || got.status != 200 && got.error(t).Type != "invalid_request_error" {
			t.Errorf("%s: status %d with %.300s, want %d", name, got.status, got.body, tt.want)
		}
		if n := len(u.Requests()) - before; n != map[bool]int{true: 1}[tt.want == 200] {
			t.Errorf("%s: %d requests reached the model", name, n)
		}
	}
	if got := b.chat(plain, "Authorization", "Bearer guest", "Content-Type", "application/json", "Content-Type", "application/json; charset=utf-7"); got.status != http.StatusBadRequest {
		t.Errorf("two types: status %d with %s", got.status, got.body)
	}
}

// S27: an answer that unpacks to a lot is passed on packed, or withheld where it must be checked; in neither case does anybody unpack it.
func TestS27AnswersAreNotUnpacked(t *testing.T) {
	const mb = 96
	for _, mode := range []string{guard.Off.String(), guard.Hold.String()} {
		s := hostile.Start(t, hostile.Options{Mode: fmt.Sprintf("gzip-bomb?mb=%d", mb), Still: true})
		b := start(t, hostileModels(s), caches(cacheExact), func(s *setup) { s.guard.Mode = mode })
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		got := b.raw(guarded(ask("hi"), towerFact))
		runtime.ReadMemStats(&after)
		if got.status == http.StatusOK && (got.header.Get("Content-Encoding") != "gzip" || got.header.Get("X-Signalbox-Guard") == mode && mode != "off" || len(got.body) > mb<<13) {
			t.Errorf("%s: status %d, %v, %d bytes", mode, got.status, got.header, len(got.body))
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > mb<<20/2 {
			t.Errorf("%s: the heap has grown by %d MiB", mode, grown>>20)
		}
	}
}
