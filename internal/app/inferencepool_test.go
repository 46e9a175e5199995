package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox/internal/config"
)

// What stands behind one endpoint may be many servers, as an InferencePool of Kubernetes: requests
// reach them all, none of them is asked about its health or its cache, and nothing is said of what a
// server would have cached. A refusal of the pool is the answer.
func TestOneEndpointMayBeAPool(t *testing.T) {
	t.Parallel()
	var behind []http.Handler
	for range 2 {
		_, at := startBackend(t, nil)
		u, err := url.Parse(strings.TrimSuffix(at, "/v1"))
		if err != nil {
			t.Fatal(err)
		}
		behind = append(behind, httputil.NewSingleHostReverseProxy(u))
	}
	var answered [2]atomic.Int64
	var next, others atomic.Int64
	var full atomic.Bool
	pool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/chat/completions":
			others.Add(1)
			http.NotFound(w, r)
		case full.Load():
			w.Header().Set("Retry-After", "2")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = fmt.Fprint(w, `{"error":{"message":"the pool is full","type":"rate_limit_error","param":null,"code":null}}`)
		default:
			i := next.Add(1) % 2
			answered[i].Add(1)
			behind[i].ServeHTTP(w, r)
		}
	}))
	defer pool.Close()
	text := "models: [{name: small, kv: {level: openai}, health: {path: off}, endpoints: [{name: pool, url: '" + pool.URL + "/v1'}]}]\n" +
		"default: {models: [small]}\n"
	cfg, _, err := config.Parse("pool.yaml", []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, flags(t))
	const ask = `{"model":"auto","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]}`
	for range 6 {
		got := s.post(t, "/v1/chat/completions", ask)
		if got.status != http.StatusOK || got.header.Get("X-Signalbox-Endpoint") != "pool" {
			t.Fatalf("%d %s %v", got.status, got.body, got.header)
		}
		if tokens := got.header.Get("X-Signalbox-Context-Predicted-Tokens"); tokens != "" {
			t.Errorf("%s tokens are said to be cached", tokens)
		}
	}
	if a, b := answered[0].Load(), answered[1].Load(); a != 3 || b != 3 {
		t.Errorf("the servers answered %d and %d", a, b)
	}
	if n := others.Load(); n != 0 {
		t.Errorf("the pool was asked %d times for something else than an answer", n)
	}
	full.Store(true)
	got := s.post(t, "/v1/chat/completions", ask)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "2" || !strings.Contains(got.body, "the pool is full") {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
}
