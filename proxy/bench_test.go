package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/proxy/framing"
	"signalbox/proxy/rewrite"
	"signalbox/rules"
)

// The two benchmarks below differ in what is between the client and the same upstream; the ratio is
// the cost of the proxy.
func BenchmarkRequestThroughProxy(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	p := start(b, oneModel(up))
	hammer(b, p.URL, ask("hello, how are you today"))
}

func BenchmarkRequestNamedThroughProxy(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	p := start(b, oneModel(up))
	hammer(b, p.URL, strings.Replace(ask("hello, how are you today"), "auto", "small", 1))
}

func BenchmarkRequestThroughReverseProxy(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	hammer(b, reverseProxy(b, up), ask("hello, how are you today"))
}

// One operation is a stream of 200 chunks, each written and flushed separately.
func BenchmarkStreamThroughProxy(b *testing.B) {
	p := start(b, oneModel(testkit.NewUpstream(b, longStream())))
	hammer(b, p.URL, askStream("hello"))
}

func BenchmarkStreamThroughReverseProxy(b *testing.B) {
	hammer(b, reverseProxy(b, testkit.NewUpstream(b, longStream())), askStream("hello"))
}

func BenchmarkStreamDirect(b *testing.B) {
	hammer(b, strings.TrimSuffix(testkit.NewUpstream(b, longStream()).URL(), "/v1"), askStream("hello"))
}

func longStream() testkit.Answer {
	return testkit.Stream(append(slices.Repeat([]string{testkit.Event(" token")}, 199), testkit.Done)...)
}

// reverseProxy starts the standard library's reverse proxy, which gets the whole body at once, and
// returns its base URL.
func reverseProxy(b *testing.B, up *testkit.Upstream) string {
	b.Helper()
	target, err := url.Parse(strings.TrimSuffix(up.URL(), "/v1"))
	if err != nil {
		b.Fatal(err)
	}
	transport := framing.NewTransport(time.Second)
	b.Cleanup(transport.CloseIdleConnections)
	rp := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		rp.ServeHTTP(w, r)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// BenchmarkRequestDirect measures the cost of client and upstream in the benchmarks above.
func BenchmarkRequestDirect(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	hammer(b, strings.TrimSuffix(up.URL(), "/v1"), ask("hello, how are you today"))
}

func hammer(b *testing.B, base, body string) {
	b.Helper()
	b.ReportAllocs()
	transport := framing.NewTransport(time.Second)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	before := testkit.Used(b)
	defer func() { b.ReportMetric(float64(testkit.Used(b)-before)/1000/float64(b.N), "cpu-us/op") }()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			b.Fatal(res.Status)
		}
	}
}

// A reference to 600 KiB compared with the same text in the body: the work of the proxy before
// anything is sent.
func BenchmarkContext(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	r := keeping(b, oneModel(up), nil)
	text := strings.Repeat("The lessee pays on the \"first\" of the month.\n", 600<<10/45)
	id := r.keep(text)
	one := func(body []byte) int64 {
		req, err := openai.ParseChat(body, openai.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		held, err := r.proxy.resolver.Resolve(b.Context(), Principal{Tenant: anyone().Tenant}, req, http.Header{})
		if err != nil {
			b.Fatal(err)
		}
		defer held.Release()
		d, err := r.state.Start(Principal{Tenant: anyone().Tenant}, req, http.Header{}, held)
		if err != nil {
			b.Fatal(err)
		}
		d.Action = &rules.Action{}
		out, _, err := rewrite.New(r.state.edits, req, d).Payload(b.Context(), r.state.ByName["small"])
		if err != nil {
			b.Fatal(err)
		}
		return out.Size()
	}
	quotedText, err := json.Marshal(text)
	if err != nil {
		b.Fatal(err)
	}
	for name, body := range map[string]string{
		"pointer": with(quoted(id), hi),
		"in full": `{"model":"small","messages":[{"role":"system","content":` + string(quotedText) + `},` + hi + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			begun := testkit.Used(b)
			defer func() { b.ReportMetric(float64((testkit.Used(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op") }()
			for b.Loop() {
				if one([]byte(body)) < int64(len(text)) {
					b.Fatal("a body without the text")
				}
			}
		})
	}
}
