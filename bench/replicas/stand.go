package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"signalbox/bench/lab"
	"signalbox/internal/simulator"
)

// stand is a redis-server, model servers and replicas.
type stand struct {
	redis    string // address
	replicas []replica
	models   []*httptest.Server
	polls    [3]atomic.Int64 // requests to model servers: /health, /metrics, and others except completions
	ends     []func() error
	client   *http.Client
	asked    int
	own      [2]int // bytes that this program exchanged with Redis
}

type replica struct{ api, admin string }

const startLimit = 60 * time.Second

func newStand(ctx context.Context, binary, dir, text string) (*stand, error) {
	s := &stand{client: &http.Client{}}
	free, err := lab.Addresses(ctx, 4)
	if err != nil {
		return s, err
	}
	cmd, at, err := lab.Redis(ctx, dir)
	if cmd != nil {
		s.ends = append(s.ends, func() error { return lab.Stop(cmd, startLimit) })
	}
	if err != nil {
		return s, err
	}
	s.redis = at
	var endpoints []string
	for range 2 {
		m, err := s.model()
		if err != nil {
			return s, err
		}
		endpoints = append(endpoints, fmt.Sprintf("{name: e%d, url: %s/v1}", len(endpoints), m.URL))
	}
	text = fmt.Sprintf("models:\n  - name: m\n    price: {input: 1, output: 2}\n    kv: {level: apc, prefill_us_per_token: 100}\n    endpoints: [%s]\n"+
		"memory: {salt_secret: \"file:salt\", redis: {url: \"redis://%s/0\"}}\ndefault: {models: [m]}\ntelemetry: {log: warn}\n%s",
		strings.Join(endpoints, ", "), s.redis, text)
	if err := os.WriteFile(filepath.Join(dir, "salt"), []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		return s, err
	}
	file := filepath.Join(dir, "signalbox.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return s, err
	}
	for i := range 2 {
		r := replica{api: free[2*i], admin: free[1+2*i]}
		s.replicas = append(s.replicas, r)
		if err := s.start(ctx, binary, "serve", file, "--listen", r.api, "--admin-listen", r.admin); err != nil {
			return s, err
		}
		if err := lab.Wait(ctx, startLimit, "a replica", func() bool { _, err := s.get(ctx, "http://"+r.api+"/readyz"); return err == nil }); err != nil {
			return s, err
		}
	}
	return s, nil
}

// model starts a simulated server that counts requests other than completions.
func (s *stand) model() (*httptest.Server, error) {
	o := simulator.DefaultOptions()
	o.Model, o.KV = "m", simulator.DefaultKV()
	o.TTFT, o.TPOT = time.Millisecond, 0
	sim, err := simulator.New(o)
	if err != nil {
		return nil, err
	}
	h := sim.Handler()
	m := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health":
			s.polls[0].Add(1)
		case r.URL.Path == "/metrics":
			s.polls[1].Add(1)
		case r.Method == http.MethodGet:
			s.polls[2].Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	s.models = append(s.models, m)
	s.ends = append(s.ends, func() error { m.Close(); return nil })
	return m, nil
}

// start runs a program until the stand is closed.
func (s *stand) start(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // what is measured
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.ends = append(s.ends, func() error { return lab.Stop(cmd, startLimit) })
	return nil
}

// close stops everything, in reverse order of start.
func (s *stand) close() (err error) {
	s.client.CloseIdleConnections()
	for _, end := range slices.Backward(s.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// ask sends n requests to the replicas in turn; each conversation has two turns.
func (s *stand) ask(ctx context.Context, n int) error {
	for range n {
		// Turns come in pairs; the second turn of every other pair goes to the other replica.
		talk, turn := s.asked/2, s.asked%2
		s.asked++
		r := s.replicas[(talk+turn*(talk/2%2))%len(s.replicas)]
		first := fmt.Sprintf(`{"role":"user","content":"What do you know of number %d of the catalogue? %s"}`, talk, strings.Repeat("Be precise. ", 40))
		messages := first
		if turn == 1 {
			messages += `,{"role":"assistant","content":"It is large."},{"role":"user","content":"How large?"}`
		}
		body := `{"model":"auto","max_tokens":20,"messages":[` + messages + `]}`
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.api+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return err
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+key)
		if _, err := s.do(q); err != nil {
			return err
		}
	}
	return nil
}

func (s *stand) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return s.do(r)
}

func (s *stand) do(r *http.Request) ([]byte, error) {
	w, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(w.Body)
	err = errors.Join(err, w.Body.Close())
	if err == nil && w.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", r.URL, w.StatusCode, b)
	}
	return b, err
}

// seen is the state of all counters at one time.
type seen struct {
	commands        map[string]float64
	in, out, memory float64 // bytes
	cpu, proxies    float64 // seconds of processor time: of redis-server, and of all replicas
	page            int     // bytes of a replica's /metrics
	polls           [3]int64
}

func (s *seen) total() (n float64) {
	for _, x := range s.commands {
		n += x
	}
	return n
}

var (
	stat    = regexp.MustCompile(`(?m)^cmdstat_([a-z|-]+):calls=(\d+)`)
	seconds = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)`)
)

func (s *stand) look(ctx context.Context) (*seen, error) {
	own := s.own
	text, err := s.info(ctx, "everything")
	if err != nil {
		return nil, err
	}
	out := &seen{commands: map[string]float64{}}
	for _, m := range stat.FindAllStringSubmatch(text, -1) {
		if m[1] == "info" || m[1] == "quit" || strings.HasPrefix(m[1], "client") || m[1] == "hello" {
			continue // of this program, or about connections
		}
		out.commands[m[1]], _ = strconv.ParseFloat(m[2], 64) // the expression only matches numbers
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(text, "\n"+name+":")
		rest, _, _ = strings.Cut(rest, "\r")
		x, err2 := strconv.ParseFloat(rest, 64)
		err = errors.Join(err, err2)
		return x
	}
	out.in, out.out = field("total_net_input_bytes")-float64(own[0]), field("total_net_output_bytes")-float64(own[1])
	out.memory = field("used_memory_dataset")
	out.cpu = field("used_cpu_user") + field("used_cpu_sys")
	for _, r := range s.replicas {
		page, failed := s.get(ctx, "http://"+r.admin+"/metrics")
		if failed != nil {
			return nil, failed
		}
		out.page = len(page)
		if m := seconds.FindSubmatch(page); m != nil {
			x, err2 := strconv.ParseFloat(string(m[1]), 64)
			err = errors.Join(err, err2)
			out.proxies += x
		}
	}
	for i := range out.polls {
		out.polls[i] = s.polls[i].Load()
	}
	return out, err
}

// settled takes an observation when writes that follow responses have reached Redis: when a second
// adds no more commands than an idle replica sends.
func (s *stand) settled(ctx context.Context) (*seen, error) {
	before, err := s.look(ctx)
	for range 30 {
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		var now *seen
		if now, err = s.look(ctx); err == nil && now.total()-before.total() <= float64(8*len(s.replicas)) {
			return now, nil
		}
		before = now
	}
	return nil, errors.New("the Redis server is never at rest")
}

// polled returns the requests to model servers, per replica, endpoint and second.
func (s *stand) polled(from, to *seen, seconds float64) string {
	n := seconds * float64(len(s.models))
	return fmt.Sprintf("an endpoint gets /health %.2f, /metrics %.2f, others %.2f", float64(to.polls[0]-from.polls[0])/n,
		float64(to.polls[1]-from.polls[1])/n, float64(to.polls[2]-from.polls[2])/n)
}

func (s *stand) pageOf(ctx context.Context) int {
	b, err := s.get(ctx, s.models[0].URL+"/metrics")
	if err != nil {
		return 0
	}
	return len(b)
}

// info queries Redis with its own protocol, so that no commands of a library are counted.
func (s *stand) info(ctx context.Context, what string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.redis)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	n, err := fmt.Fprintf(c, "INFO %s\r\nQUIT\r\n", what)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	s.own[0] += n
	s.own[1] += len(b)
	return string(b), err
}
