package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"signalbox/bench/lab"
	"signalbox/internal/simulator"
	"signalbox/internal/testkit/hostile"
)

// testbed is the program with its surroundings.
type testbed struct {
	dir, config string
	api, admin  string // base URLs
	good, bad   string // URLs of the model servers
	cmd         *exec.Cmd
	generation  int
	client      *http.Client
	closers     []func()
}

// faults are the faults of the misbehaving model server. Faults that only end with a timeout, or
// that send hundreds of megabytes, are left to other tests: here they would use up most of the
// time.
func faults() []string {
	return []string{
		"ok", "ok", "rst-before-head", "close-before-head", "half-head", "ttft?d=400ms", "head-ttft?d=400ms", "ok-then-rst-next", "1xx", "early-413",
		"status?code=500", "status?code=503", "status?code=429&ra=1", "status-html", "redirect", "bad-header", "dup-cl-differ", "cl-and-te",
		"cl-too-long", "cl-too-short", "gzip-json", "gzip-corrupt", "gzip-trunc", "json-trailing", "sse-for-json", "json-200-for-stream", "gzip-stream",
		"rst-mid?k=3&d=5ms", "watch-ttft",
	}
}

// owner replaces the test that servers of package hostile expect; it has only the methods that they
// call.
type owner struct {
	testing.TB

	ctx     context.Context //nolint:containedctx // as a test has one
	cleanup []func()
	failed  atomic.Value // the latest failure
}

func (*owner) Helper()                    {}
func (o *owner) Context() context.Context { return o.ctx }
func (o *owner) Cleanup(f func())         { o.cleanup = append(o.cleanup, f) }
func (o *owner) Error(args ...any)        { o.failed.Store(fmt.Sprint(args...)) }
func (*owner) Fatal(args ...any)          { panic(fmt.Sprint(args...)) }

// newStand starts everything.
func newStand(ctx context.Context, o options) (s *testbed, err error) {
	s = &testbed{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "bench-soak"); err != nil {
		return s, err
	}
	if o.binary, err = lab.Binary(ctx, o.binary, s.dir); err != nil {
		return s, err
	}
	well := simulator.DefaultOptions()
	well.Model, well.TTFT, well.TPOT, well.MaxModelLen = "good", 5*time.Millisecond, 2*time.Millisecond, 1<<24
	sim, err := simulator.New(well)
	if err != nil {
		return s, err
	}
	server := httptest.NewServer(sim.Handler())
	tb := &owner{ctx: ctx}
	all := faults()
	bad := hostile.Start(tb, hostile.Options{Still: true, Choose: func() string { return all[rand.IntN(len(all))] }}) //nolint:gosec // a choice
	s.good, s.bad = server.URL+"/v1", bad.URL()
	s.closers = append(s.closers, s.client.CloseIdleConnections, func() {
		for _, f := range tb.cleanup {
			f()
		}
	}, server.Close)
	return s, s.start(ctx, o.binary)
}

// start starts the program and waits until it is ready.
func (s *testbed) start(ctx context.Context, binary string) error {
	at, err := lab.Addresses(ctx, 2)
	if err != nil {
		return err
	}
	s.api, s.admin = "http://"+at[0], "http://"+at[1]
	s.config = filepath.Join(s.dir, "signalbox.yaml")
	if err := s.write(); err != nil {
		return err
	}
	s.cmd = exec.CommandContext(ctx, binary, "serve", "--config", s.config)  //nolint:gosec // what is tried
	s.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+s.dir, "HOME="+s.dir) // where no library of models is
	s.cmd.Stderr = os.Stderr
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return lab.Wait(ctx, time.Minute, "signalbox to be ready", func() bool {
		status, _, err := s.get(ctx, s.api+"/healthz")
		return err == nil && status == http.StatusOK
	})
}

// write writes the configuration; each version differs from the previous one.
func (s *testbed) write() error {
	s.generation++
	text := fmt.Sprintf(`server: {listen: %q, admin_listen: %q, pprof: true, first_byte_timeout: 5s, answer_timeout: 5s, gap_timeout: 5s}
models:
  - {name: good, endpoints: [{name: a, url: %q}]}
  - {name: bad, endpoints: [{name: b, url: %q}], health: {path: "off"}}
signals: {keywords: [{name: titan, any: [project titan, generation %d]}]}
routes:
  - {name: blocked, when: {keyword: titan}, block: {message: "no"}}
  - {name: shaky, when: {tokens: {gt: 600}}, use: {models: [bad, good]}}
default: {models: [good]}
cache: {mode: exact, max_bytes: 1MiB} # soon full
telemetry: {log: error, prometheus: true}
`, strings.TrimPrefix(s.api, "http://"), strings.TrimPrefix(s.admin, "http://"), s.good, s.bad, s.generation)
	next := s.config + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.config)
}

// reload changes the configuration.
func (s *testbed) reload(ctx context.Context) error {
	if err := s.write(); err != nil {
		return err
	}
	status, body, err := s.send(ctx, http.MethodPost, s.admin+"/-/reload", "")
	if err == nil && status >= http.StatusMultipleChoices {
		err = fmt.Errorf("reload: %d %s", status, body)
	}
	return err
}

// close ends everything.
func (s *testbed) close() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = lab.Stop(s.cmd, time.Minute) // other tests check how it ends
	}
	for _, f := range s.closers {
		f()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *testbed) get(ctx context.Context, url string) (status int, body []byte, err error) {
	return s.send(ctx, http.MethodGet, url, "")
}

func (s *testbed) send(ctx context.Context, method, url, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// note is an observation of the process.
type note struct {
	at                     time.Duration
	rss                    int64 // bytes
	goroutines, descriptor int
}

// look forces a collection and observes the process. Connections to it are closed first, because
// each has a goroutine and a descriptor.
func (s *testbed) look(ctx context.Context, at time.Duration) (n note, err error) {
	n.at = at
	for range 2 { // the second one releases what finalizers hold
		if _, _, err := s.get(ctx, s.admin+"/debug/pprof/heap?gc=1"); err != nil {
			return n, err
		}
	}
	_, text, err := s.get(ctx, s.admin+"/debug/pprof/goroutine?debug=1")
	if err != nil {
		return n, err
	}
	if _, err := fmt.Sscanf(string(text), "goroutine profile: total %d", &n.goroutines); err != nil {
		return n, fmt.Errorf("goroutines: %w", err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		return n, err
	}
	n.descriptor = len(open)
	n.rss = lab.Memory(strconv.Itoa(s.cmd.Process.Pid), "VmRSS")
	if n.rss == 0 {
		return n, errors.New("no VmRSS")
	}
	return n, nil
}
