package app

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/proxy/settings"
)

func TestANameBecomesOneEndpointForEachServer(t *testing.T) {
	t.Parallel()
	d := newDiscovery(nil)
	d.lookup = func(_ context.Context, kind, host, _ string) ([]found, error) {
		switch {
		case kind == pool.ResolveSRV && host == "_http._tcp.vllm":
			return []found{{"pod-b", 8001, 5}, {"pod-a", 8000, 0}, {"pod-b", 8001, 5}}, nil
		case kind == pool.ResolveSRV:
			return []found{{"b", 1, 1}, {"a", 1, 65535}, {"c", 1, 32768}}, nil
		case kind == pool.ResolveSlices: // a Pod may be in two slices while they change
			return []found{{"10.0.0.1", 80, 0}, {"10.0.0.2", 80, 0}, {"10.0.0.1", 80, 0}}, nil
		case host == "pods":
			return []found{{address: "fd00::2"}, {address: "10.0.0.1"}}, nil
		}
		return nil, errors.New("no such host")
	}
	models := []backend.ModelOptions{{Name: "m", Endpoints: []pool.EndpointOptions{
		{Name: "plain", URL: "http://h/v1"},
		{Name: "a", URL: "https://pods:8443/v1", Resolve: "a", Weight: 2},
		{Name: "s", URL: "http://_http._tcp.vllm/v1", Resolve: "srv", Weight: 3},
		{Name: "w", URL: "http://_http._tcp.weighty/v1", Resolve: "srv"},
		{Name: "k", URL: "http://vllm/v1", Resolve: "endpointslice"},
		{Name: "lost", URL: "http://lost/v1", Resolve: "a"},
	}}}
	if err := d.ask(t.Context(), models); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("got %v", err)
	}
	before := addresses(d.expand(models))
	if _ = d.ask(t.Context(), models); addresses(d.expand(models)) != before || before == addresses(models) {
		t.Error("the same answers in another order are a change")
	}
	tls := pool.TLSOptions{ServerName: "pods"}
	want := []pool.EndpointOptions{
		{Name: "plain", URL: "http://h/v1"},
		{Name: "a-10-0-0-1-8443", URL: "https://10.0.0.1:8443/v1", Resolve: "a", Weight: 2, TLS: tls},
		{Name: "a-fd00--2-8443", URL: "https://[fd00::2]:8443/v1", Resolve: "a", Weight: 2, TLS: tls},
		{Name: "s-pod-a-8000", URL: "http://pod-a:8000/v1", Resolve: "srv", Weight: 3},
		{Name: "s-pod-b-8001", URL: "http://pod-b:8001/v1", Resolve: "srv", Weight: 5},
		{Name: "w-a-1", URL: "http://a:1/v1", Resolve: "srv", Weight: 1000},
		{Name: "w-b-1", URL: "http://b:1/v1", Resolve: "srv", Weight: 1},
		{Name: "w-c-1", URL: "http://c:1/v1", Resolve: "srv", Weight: 500},
		{Name: "k-10-0-0-1-80", URL: "http://10.0.0.1:80/v1", Resolve: "endpointslice"},
		{Name: "k-10-0-0-2-80", URL: "http://10.0.0.2:80/v1", Resolve: "endpointslice"},
		{Name: "lost", URL: "http://lost/v1", Resolve: "a"},
	}
	if diff := cmp.Diff(want, d.expand(models)[0].Endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if len(models[0].Endpoints) != 6 {
		t.Error("the configuration was changed")
	}
	if err := (backend.ModelOptions{Name: "m", Endpoints: want}).Validate(); err != nil {
		t.Errorf("they are refused: %v", err)
	}
}

func TestServersThatComeAndGoAreFollowed(t *testing.T) {
	t.Parallel()
	first, second := hostile.Start(t, hostile.Options{}), hostile.Start(t, hostile.Options{})
	text := "models: [{name: small, endpoints: [{name: n, url: 'http://localhost/v1', resolve: srv}]}]\ndefault: {models: [small]}\n"
	cfg, _, err := config.Parse(filepath.Join(t.TempDir(), "test.yaml"), []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	cfg.File = ""
	srv := serve(t, cfg, memoryOnly(flags(t)))
	var now atomic.Pointer[hostile.Server]
	now.Store(first)
	srv.app.discovery.mu.Lock()
	srv.app.discovery.lookup = func(context.Context, string, string, string) ([]found, error) {
		u, err := url.Parse(now.Load().URL())
		if err != nil {
			return nil, err
		}
		port, err := strconv.Atoi(u.Port())
		return []found{{u.Hostname(), port, 0}}, err
	}
	srv.app.discovery.mu.Unlock()
	for _, s := range []*hostile.Server{first, second} {
		now.Store(s)
		good := srv.app.cfg.Load()
		broken := *good // no state comes about with the first answer
		broken.Prompts = []settings.Prompt{{Name: "empty"}}
		srv.app.cfg.Store(&broken)
		srv.app.rediscover(t.Context())
		srv.app.cfg.Store(good)
		srv.app.rediscover(t.Context())
		before := s.Requests()
		got := srv.post(t, "/v1/chat/completions", `{"model":"small","messages":[{"role":"user","content":"hi"}]}`, "Content-Type", "application/json")
		if got.status != http.StatusOK || s.Requests() != before+1 {
			t.Errorf("status %d, %d requests", got.status, s.Requests())
		}
	}
}
