package proxy

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
)

// Cases that users of other proxies have reported, each under the name of the symptom.

// D1: a server that is down gets no requests until it is back; health checks follow a reload.
func TestD1DeadServersAreLeftOutAndComeBack(t *testing.T) {
	t.Parallel()
	a, b := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer)), testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	models := oneModel(a, b)
	for i := range models {
		models[i].Health = pool.HealthOptions{Interval: option.Duration(10 * time.Millisecond)}
	}
	s := start(t, models, func(s *setup) { s.health = true })
	state := func(want string) {
		t.Helper()
		for end := time.Now().Add(patience); ; {
			_, d := s.proxy.Ready()
			if d.Models[1].Endpoints[0].State == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the first server is %s, want %s", d.Models[1].Endpoints[0].State, want)
			}
		}
	}
	a.SetSick(true)
	state("down")
	before := len(a.Requests())
	for range 20 {
		if got := s.chat(ask("hello")); got.status != 200 {
			t.Fatalf("status %d with %s", got.status, got.body)
		}
	}
	if n := len(a.Requests()) - before; n != 0 {
		t.Errorf("%d requests went to the server that is down", n)
	}
	a.SetSick(false)
	state("up")
	for end := time.Now().Add(patience); len(a.Requests()) == before; {
		s.chat(ask("hello"))
		if time.Now().After(end) {
			t.Fatal("the server that is back gets no requests")
		}
	}
}

// D2: a server is not blamed for refusing an invalid request.
func TestD2RefusedRequestsEjectNoServer(t *testing.T) {
	t.Parallel()
	a, b := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer)), testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	// otherwise 401 and 403 are about the proxy's credentials
	s := start(t, oneModel(a, b), passesOn)
	for _, status := range []int{400, 401, 403, 404, 413, 422} {
		for range 20 {
			bad := testkit.JSON(status, `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`)
			a.Next(bad)
			b.Next(bad)
			if got := s.chat(ask("hello")); got.status >= 500 { // one of the statuses: each server keeps to its own script
				t.Fatalf("status %d with %s", got.status, got.body)
			}
		}
	}
	_, d := s.proxy.Ready()
	for _, m := range d.Models {
		for _, e := range m.Endpoints {
			if e.State != "up" {
				t.Errorf("%s of %s is %s", e.Name, m.Name, e.State)
			}
		}
	}
}

// D3: a stream whose model fails before its first byte comes from the next model.
func TestD3StreamsFallBackBeforeTheirFirstByte(t *testing.T) {
	t.Parallel()
	const stream = `data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\ndata: [DONE]\n\n"
	good := testkit.NewUpstream(t, testkit.Stream(stream))
	for name, answer := range map[string]testkit.Answer{
		"502":               testkit.JSON(http.StatusBadGateway, `{"error":{"message":"m","type":"t","param":null,"code":null}}`),
		"503":               testkit.JSON(http.StatusServiceUnavailable, `{"error":{"message":"m","type":"t","param":null,"code":null}}`),
		"429":               testkit.JSON(http.StatusTooManyRequests, `{"error":{"message":"m","type":"t","param":null,"code":null}}`),
		"an empty stream":   testkit.Stream(),
		"nothing for long":  testkit.Silent(),
		"a closed endpoint": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := testkit.NewUpstream(t, answer)
			if answer == nil {
				bad.Close()
			}
			models := []backend.ModelOptions{modelOptions("big", "", reasoning.Options{}, bad), modelOptions("small", "", reasoning.Options{}, good), modelOptions("effort", "", reasoning.Options{}, good)}
			b := start(t, models, func(s *setup) { s.options.FirstByteTimeout = option.Duration(2 * time.Second) })
			got := b.chat(askStream("math"))
			if got.status != 200 || got.body != stream || got.header.Get("X-Signalbox-Model") != "small" || !strings.Contains(got.header.Get("X-Signalbox-Degraded"), "fallback") {
				t.Errorf("status %d from %q: %q %v", got.status, got.header.Get("X-Signalbox-Model"), got.body, got.err)
			}
		})
	}
}

// D4: Retry-After reaches the client, and nothing is retried after the first byte of a response was
// sent.
func TestD4WaitsArePassedOnAndAnswersAreNotReplayed(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusTooManyRequests, `{"error":{"message":"m","type":"t","param":null,"code":null}}`, "Retry-After", "7"))
	b := start(t, oneModel(u))
	if got := b.chat(ask("hello")); got.status != 429 || got.header.Get("Retry-After") != "7" {
		t.Errorf("status %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
	}
	cut, next := testkit.NewUpstream(t, testkit.Stream(`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")), testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	models := []backend.ModelOptions{modelOptions("big", "", reasoning.Options{}, cut), modelOptions("small", "", reasoning.Options{}, next), modelOptions("effort", "", reasoning.Options{}, next)}
	b = start(t, models)
	got := b.chat(askStream("math"))
	if strings.Contains(got.body, "[DONE]") || !strings.Contains(got.body, `"error"`) {
		t.Errorf("a stream that broke off: %q", got.body)
	}
	if len(cut.Requests()) != 1 || len(next.Requests()) != 0 {
		t.Errorf("it was sent again: %d and %d requests", len(cut.Requests()), len(next.Requests()))
	}
}

// D5: a thousand concurrent requests are all answered.
func TestD5AThousandRequestsAtATime(t *testing.T) {
	t.Parallel()
	const clients = 1000
	gate := make(chan struct{})
	u := testkit.NewUpstream(t, testkit.After(gate, testkit.JSON(http.StatusOK, okAnswer)))
	b := start(t, oneModel(u), func(s *setup) {
		s.options.ConnectTimeout = option.Duration(3 * patience) // a busy machine takes its time for a thousand connections
	})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			if got := b.chat(ask("hello")); got.status != 200 || got.err != nil {
				t.Errorf("status %d, %v", got.status, got.err)
			}
		})
	}
	for end := time.Now().Add(3 * patience); len(u.Requests()) < clients; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d of %d requests are under way", len(u.Requests()), clients)
			break
		}
	}
	close(gate)
	wg.Wait()
}

// probes is how often TestF2MetricsGrowWithTheConfigurationAlone makes things up, in nine requests
// each: go test ./proxy -run F2 -args -probes 11200.
var probes = flag.Int("probes", 1000, "probes of the test of metrics")

// F2, S23: names invented by clients create no metric series: models, paths, methods, keys,
// sessions and headers. Requests do not cross a network here, so that there can be many of them.
func TestF2MetricsGrowWithTheConfigurationAlone(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	b := start(t, oneModel(u), withKeys(auth.KeyOptions{Name: "k"}))
	series := func() (all []string) {
		w := httptest.NewRecorder()
		b.tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		for line := range strings.Lines(w.Body.String()) {
			if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
				all = append(all, name)
			}
		}
		return all
	}
	send := func(method, path, body string, headers ...string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		b.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	answered := 0
	probe := func(i int) {
		word := fmt.Sprintf("made-up-%d", i)
		const known = "Bearer k"
		send(http.MethodPost, chatPath, strings.Replace(ask("hello"), "auto", word, 1), "Authorization", known)
		send(http.MethodPost, chatPath, ask("hello"), "Authorization", "Bearer "+word)
		send(http.MethodGet, "/"+word, "", "Authorization", known)
		send(http.MethodPost, "/v1/"+word+"/completions", ask("hello"), "Authorization", known)
		send(http.MethodGet, "/v1/models/"+word, "", "Authorization", known)
		send(strings.ToUpper(strings.ReplaceAll(word, "-", "")), "/v1/models", "", "Authorization", known)
		send(http.MethodPost, "/v1/embeddings", `{"model":"`+word+`","input":"a"}`, "Authorization", known)
		send(http.MethodPost, "/signalbox/v1/classify", `{"input":"a","signals":["`+word+`"]}`, "Authorization", known)
		send(http.MethodPost, chatPath, `{"model":"auto","user":"`+word+`","stream":"`+word+`","messages":[]}`, "Authorization", known)
		if i%10 == 0 { // those that reach a model cost more
			send(http.MethodPost, chatPath, ask(word), "Authorization", known, "X-Signalbox-Session", word, "User-Agent", word, "X-Request-Id", word, "X-Signalbox-Tenant", word, "Host", word)
			answered++
		}
	}
	probe(0)
	before := series()
	for i := range *probes {
		probe(i + 1)
	}
	if diff := cmp.Diff(before, series()); diff != "" {
		t.Errorf("series (-first +last):\n%s", diff)
	}
	if len(before) < 50 || len(u.Requests()) != answered {
		t.Errorf("%d series, %d requests of %d reached the model", len(before), len(u.Requests()), answered)
	}
}
