package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/bench/lab"
	"signalbox/internal/app"
	"signalbox/internal/config" //nolint:depguard // the report builds the product as its commands do
	"signalbox/internal/simulator"
)

// testbed is four simulated servers, the proxies in front of them, and a Redis when there are
// several.
type testbed struct {
	servers []*modelServer
	proxies []*lab.Server
	redis   *redisServer
	client  *http.Client

	mu     sync.Mutex // guards bodies
	bodies [][]byte   // of all requests that reached a server, in their order
}

// modelServer is a simulated server on loopback.
type modelServer struct {
	sim   *simulator.Server
	url   string
	http  *httptest.Server
	asked atomic.Int64 // requests of clients that pick servers themselves
}

// liveServer is one of four servers with a cache of 48,000 tokens: a third of the times of
// simulated runs, and answers whose length matters to nobody here.
func liveServer() simulator.Options {
	o := simulator.DefaultOptions()
	o.Model, o.TTFT, o.TPOT = "m", 7*time.Millisecond, time.Millisecond
	o.KV = simulator.DefaultKV()
	o.KV.Blocks, o.KV.Prefill = 3000, 20*time.Microsecond
	return o
}

// openStand starts everything for a way. The caller calls close.
func openStand(ctx context.Context, w way, log io.Writer) (*testbed, error) {
	at := &testbed{client: &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: time.Minute}).DialContext, MaxIdleConnsPerHost: 100, DisableCompression: true,
	}}}
	for range 4 {
		if err := at.openServer(); err != nil {
			return nil, errors.Join(err, at.close(ctx))
		}
	}
	if w.proxies > 1 {
		var err error
		if at.redis, err = startRedis(ctx); err != nil {
			return nil, errors.Join(err, at.close(ctx))
		}
	}
	for range w.proxies {
		if err := at.openProxy(ctx, w, log); err != nil {
			return nil, errors.Join(err, at.close(ctx))
		}
	}
	return at, nil
}

func (at *testbed) openServer() error {
	sim, err := simulator.New(liveServer())
	if err != nil {
		return err
	}
	h := sim.Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/chat/completions" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			at.mu.Lock()
			at.bodies = append(at.bodies, body)
			at.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		h.ServeHTTP(w, r)
	}))
	at.servers = append(at.servers, &modelServer{sim: sim, http: s, url: s.URL})
	return nil
}

func (at *testbed) openProxy(ctx context.Context, w way, log io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `server: {listen: "127.0.0.1:0", admin_listen: "localhost:0", drain_timeout: 1s%s}
telemetry: {log: error}
default: {models: [m]}
classify: {library: /none/libonnxruntime.so}
memory: {salt_secret: "${SALT}"%s}
models:
  - name: m
    context_window: 32768
    health: {path: off}
    kv: {level: apc, prefill_us_per_token: 20, scrape: {interval: 250ms}}
    endpoints:
`, w.options, at.redisOptions())
	for i, s := range at.servers {
		fmt.Fprintf(&b, "      - {name: server-%d, url: %q}\n", i, s.url+"/v1")
	}
	env := func(name string) (string, bool) { return "a secret of the bench", name == "SALT" }
	cfg, _, err := config.Parse("bench.yaml", []byte(b.String()), env, app.Catalog)
	if err != nil {
		return err
	}
	s := config.Settings{} // without a cache folder there are no models: what they read of a text says nothing about where it goes
	a, err := app.Build(ctx, cfg, app.Options{Version: "bench", Settings: s, Log: log, Env: env})
	if err != nil {
		return err
	}
	p, err := lab.Serve(ctx, a)
	if err != nil {
		return err
	}
	at.proxies = append(at.proxies, p)
	return nil
}

func (at *testbed) redisOptions() string {
	if at.redis == nil {
		return ""
	}
	return fmt.Sprintf(", redis: {url: %q}", at.redis.url)
}

func (at *testbed) close(ctx context.Context) error {
	var errs []error
	at.client.CloseIdleConnections()
	for _, p := range at.proxies {
		errs = append(errs, p.Close(ctx))
	}
	for _, s := range at.servers {
		s.http.Close()
	}
	if at.redis != nil {
		at.redis.stop()
	}
	return errors.Join(errs...)
}

// create stores a context by the first proxy.
func (at *testbed) create(ctx context.Context, text string) (string, error) {
	_, answer, err := lab.Post(ctx, at.client, at.proxies[0].URL+"/v1/contexts", map[string]any{"content": text, "warm": "none"})
	if err != nil {
		return "", err
	}
	var created struct {
		ID string `json:"id"`
	}
	err = json.Unmarshal(answer, &created)
	return created.ID, err
}

// leastLoaded is the server that clients have the fewest requests at.
func (at *testbed) leastLoaded() int {
	best := 0
	for i, s := range at.servers {
		if s.asked.Load() < at.servers[best].asked.Load() {
			best = i
		}
	}
	return best
}

// ideal is the share of prompt tokens that one endless cache would have had, were each request
// alone.
func (at *testbed) ideal() (float64, error) {
	o := liveServer()
	o.TTFT, o.TPOT, o.KV.Prefill, o.KV.Blocks = 0, 0, 0, 1<<17
	sim, err := simulator.New(o)
	if err != nil {
		return 0, err
	}
	h := sim.Handler()
	cached, prompt := 0, 0
	for _, body := range at.bodies {
		w := httptest.NewRecorder()
		r, err := http.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body)) //nolint:noctx // nothing is sent
		if err != nil {
			return 0, fmt.Errorf("replay: %w", err)
		}
		h.ServeHTTP(w, r)
		var a answer
		if err := a.read(w.Body, time.Now()); err != nil {
			return 0, fmt.Errorf("replay: %w", err)
		}
		cached, prompt = cached+a.cached, prompt+a.prompt
	}
	return float64(cached) / float64(prompt), nil
}

// read takes in a stream.
func (a *answer) read(r io.Reader, began time.Time) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var text strings.Builder
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("%w: %w", errCut, err)
		}
		data, found := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !found:
			continue
		case bytes.HasPrefix(data, []byte("[DONE]")):
			a.text = text.String()
			return nil
		}
		var chunk struct {
			Error   json.RawMessage
			Choices []struct{ Delta struct{ Content string } }
			Usage   struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return fmt.Errorf("chunk: %w", err)
		}
		if chunk.Error != nil {
			return fmt.Errorf("%w: %s", errCut, chunk.Error)
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" && a.first == 0 {
				a.first = time.Since(began)
			}
			text.WriteString(c.Delta.Content)
		}
		if chunk.Usage.Prompt > 0 {
			a.prompt, a.cached = chunk.Usage.Prompt, chunk.Usage.Details.Cached
		}
	}
}
