package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/hub/local"
	"signalbox/internal/oip"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
	"signalbox/internal/worker"
)

// faulty is a host whose models fail as a test says.
type faulty struct {
	host

	run  atomic.Pointer[func(ctx context.Context) error]
	load func(o worker.SessionOptions) error
}

func (f *faulty) open(ctx context.Context, o worker.SessionOptions) (session, error) {
	if f.load != nil {
		if err := f.load(o); err != nil {
			return nil, err
		}
	}
	s, err := f.host.open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &faultySession{s, f}, nil
}

type faultySession struct {
	session

	host *faulty
}

func (s *faultySession) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	if fail := s.host.run.Load(); fail != nil {
		if err := (*fail)(ctx); err != nil {
			return nil, err
		}
	}
	return s.session.Run(ctx, in, outputs)
}

const domainRoute = `
  - {name: topics, when: {domain: math}, use: {models: [small]}}`

// degradation asks a product whose models do not work for what it documents: a route that fails
// closed blocks, a route that does not is passed over, the header and the metric say why, and
// nothing is a 500.
func degradation(t *testing.T, s *server, reason signal.Reason) {
	t.Helper()
	guest := []string{"Authorization", "Bearer guest-key"}
	got := s.post(t, "/v1/chat/completions", chat("auto", "What is the derivative of x^2?"), guest...)
	if got.status >= http.StatusInternalServerError && got.status != http.StatusServiceUnavailable || got.status == http.StatusOK {
		t.Errorf("the safety route: %d %s", got.status, got.body)
	}
	if route, lost := got.header.Get("x-signalbox-route"), got.header.Get("x-signalbox-degraded"); route != "safety" || !strings.Contains(lost, "jailbreak") {
		t.Errorf("route %q, degraded %q", route, lost)
	}
	got = s.post(t, "/v1/chat/completions", chat("auto", "What is the derivative of x^2?"), "Authorization", "Bearer ops-key")
	if got.status != http.StatusOK || got.header.Get("x-signalbox-route") != "default" || !strings.Contains(got.header.Get("x-signalbox-degraded"), "domain") {
		t.Errorf("a route that is passed over: %d, route %q, degraded %q: %s", got.status, got.header.Get("x-signalbox-route"), got.header.Get("x-signalbox-degraded"), got.body)
	}
	page := do(t, http.MethodGet, s.admin+"/metrics", "").body
	for _, name := range []string{"jailbreak", "domain"} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^signalbox_unknown_signals_total\{[^}]*reason=%q,signal=%q\} [1-9]`, reason, name)).MatchString(page) {
			t.Errorf("no signal %s is unknown for %s", name, reason)
		}
	}
}

// faultRoutes has a route that fails closed for guests, and one by domain.
const faultRoutes = `routes:
  - {name: safety, when: {all: [{role: guest}, {jailbreak: true}]}, on_unknown: match, block: {message: declined}}` + domainRoute

func TestEveryFaultOfAModelHasItsDegradation(t *testing.T) {
	needModels(t)
	_, url := startBackend(t, nil)
	f := &faulty{}
	cfg := parse(t, url, "classify: {timeout: 2s}\n"+faultRoutes)
	s := serveWith(t, cfg, Options{Settings: flags(t), around: func(h host) host { f.host = h; return f }})
	if got := s.post(t, "/v1/chat/completions", chat("auto", "hello"), "Authorization", "Bearer guest-key"); got.status != http.StatusOK {
		t.Fatalf("without a fault: %d %s", got.status, got.body)
	}
	for _, c := range []struct {
		name string
		err  func(ctx context.Context) error
		want signal.Reason
	}{
		{"the memory of the device is full", func(context.Context) error {
			return &gpu.RunError{Session: "a", Msg: "CUDA failure 2: out of memory ; GPU=0"}
		}, signal.ReasonOverload},
		{"the queue is full", func(context.Context) error { return gpu.ErrOverloaded }, signal.ReasonOverload},
		{"the device was lost", func(context.Context) error {
			return &gpu.RunError{Session: "a", Msg: "CUDA failure 719: unspecified launch failure"}
		}, signal.ReasonInternal},
		{"not a number", func(context.Context) error { return fmt.Errorf("%w: NaN", gpu.ErrNotFinite) }, signal.ReasonInvalid},
		{"the worker is down", func(context.Context) error { return worker.ErrDown }, signal.ReasonNoModel},
		{"no answer", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, signal.ReasonTimeout},
		{"an error that nobody knows", func(context.Context) error { return errors.New("?") }, signal.ReasonInternal},
		{"a panic", func(context.Context) error { panic("at the model") }, signal.ReasonInternal},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.run.Store(&c.err)
			degradation(t, s, c.want)
			f.run.Store(nil)
			if got := s.post(t, "/v1/chat/completions", chat("auto", "What is the derivative of x^2?"), "Authorization", "Bearer ops-key"); got.header.Get("x-signalbox-route") != "topics" {
				t.Errorf("afterwards: %d, route %q", got.status, got.header.Get("x-signalbox-route"))
			}
		})
	}
}

// fakeLibrary compiles a shared library that knows no version of the interface.
func fakeLibrary(t *testing.T, source string) string {
	t.Helper()
	if !cgo {
		t.Skip("without cgo nothing is loaded")
	}
	dir := t.TempDir()
	file, lib := filepath.Join(dir, "fake.c"), filepath.Join(dir, "libonnxruntime.so")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", lib, file).CombinedOutput(); err != nil {
		t.Fatalf("cc, which cgo needs too: %v %s", err, out)
	}
	return lib
}

// What is wrong with the library or the provider is found when the product starts: it starts, and
// degrades.
func TestEveryFaultOfTheLibraryHasItsDegradation(t *testing.T) {
	needModels(t)
	_, url := startBackend(t, nil)
	wrong := fakeLibrary(t, `static const void *api(unsigned v) { return 0; } static const char *name(void) { return "1.2.3"; }
static struct { const void *(*a)(unsigned); const char *(*b)(void); } base = {api, name}; const void *OrtGetApiBase(void) { return &base; }`)
	crash := fakeLibrary(t, "#include <stdlib.h>\nconst void *OrtGetApiBase(void) { abort(); }")
	for _, c := range []struct {
		name, library, says string
	}{
		{"missing", filepath.Join(t.TempDir(), "libonnxruntime.so"), "no model for domain"},
		{"of another version", wrong, "no model for domain"},
		{"ends the process that loads it", crash, "the process of the models is down: it ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := parse(t, url, "classify: {isolation: process}\n"+faultRoutes)
			s := serve(t, cfg, config.Settings{Library: c.library})
			degradation(t, s, signal.ReasonNoModel)
			if ready := do(t, http.MethodGet, s.url+"/readyz", ""); ready.status != http.StatusOK || !strings.Contains(ready.body, c.says) {
				t.Errorf("readyz: %d %s", ready.status, ready.body)
			}
		})
	}
	t.Run("without the provider that is asked for", func(t *testing.T) {
		cfg := parse(t, url, "classify: {provider: cuda}\n"+faultRoutes)
		s := serve(t, cfg, flags(t))
		if _, fallback := s.app.neural.host.(inProcess).Provider(); fallback == "" {
			t.Skip("this machine has a CUDA device")
		}
		got := s.post(t, "/v1/chat/completions", chat("auto", "What is the derivative of x^2?"), "Authorization", "Bearer ops-key")
		if got.status != http.StatusOK || got.header.Get("x-signalbox-route") != "topics" || got.header.Get("x-signalbox-degraded") != "" {
			t.Errorf("%d, route %q, degraded %q", got.status, got.header.Get("x-signalbox-route"), got.header.Get("x-signalbox-degraded"))
		}
		ready := do(t, http.MethodGet, s.url+"/readyz", "").body
		for _, want := range []string{
			`"fallback":"cuda: no: `, `{"name":"cpu","available":"yes"`,
			`models run on the cpu: cuda: no: `,
			`"bundles":[{"name":"signalbox-minilm","provider":"cpu"}`,
		} {
			if !strings.Contains(ready, want) {
				t.Errorf("readyz does not hold %s: %s", want, ready)
			}
		}
		if strings.Contains(ready, filepath.Dir(s.app.neural.host.(inProcess).Library())) {
			t.Errorf("readyz tells a path: %s", ready)
		}
		if page := do(t, http.MethodGet, s.admin+"/metrics", "").body; !strings.Contains(page, `signalbox_provider_info{device="amd64",provider="cpu"} 1`) && !strings.Contains(page, `provider="cpu"} 1`) {
			t.Error("no metric of the provider")
		}
	})
	t.Run("with a device that cannot load the model", func(t *testing.T) {
		cfg := parse(t, url, faultRoutes)
		f := &faulty{load: func(o worker.SessionOptions) error {
			return &gpu.ProviderError{Session: o.Name, Provider: "cuda", Msg: "out of memory"}
		}}
		s := serveWith(t, cfg, Options{Settings: flags(t), around: func(h host) host { f.host = h; return f }})
		degradation(t, s, signal.ReasonNoModel)
	})
}

// The process of the models is killed while requests come in. None of them is a 500, routes that
// fail closed stay closed, and the models are back soon.
func TestKillingTheProcessOfTheModelsNeverBreaksARequest(t *testing.T) {
	needModels(t)
	_, url := startBackend(t, nil)
	s := serve(t, parse(t, url, "classify: {isolation: process}\n"+faultRoutes), flags(t))
	p := s.app.neural.host.(isolated)
	var asked atomic.Int64 // no question comes twice: what was read before needs no model
	ask := func(ctx context.Context, key string) (int, string, string, error) {
		question := fmt.Sprintf("What is the derivative of x^%d?", 2+asked.Add(1))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions",
			strings.NewReader(chat("auto", question)))
		if err != nil {
			return 0, "", "", err
		}
		req.Header.Set("Authorization", "Bearer "+key)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", "", err
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("x-signalbox-route"), resp.Header.Get("x-signalbox-degraded"), nil
	}
	if status, route, _, err := ask(t.Context(), "ops-key"); err != nil || status != http.StatusOK || route != "topics" {
		t.Fatalf("before: %d %q %v", status, route, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	var whole, degraded atomic.Int64
	for i := range 3 {
		key := []string{"ops-key", "guest-key"}[i%2]
		load.Go(func() {
			for ctx.Err() == nil {
				status, route, lost, err := ask(ctx, key)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					t.Error(err)
				case status == http.StatusOK && lost == "":
					whole.Add(1)
				case key == "ops-key" && status == http.StatusOK && route == "default" && lost == "domain",
					key == "guest-key" && route == "safety" && (status == http.StatusBadRequest || status == http.StatusServiceUnavailable) && strings.Contains(lost, "jailbreak"):
					degraded.Add(1)
				default:
					t.Errorf("%s: %d, route %q, degraded %q", key, status, route, lost)
				}
			}
		})
	}
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL} {
		lost, was := degraded.Load(), p.PID()
		if err := syscall.Kill(was, sig); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		await(t, "requests without the models", func() bool { return degraded.Load() > lost })
		await(t, "the models", func() bool { return p.PID() != was && p.Fault() == nil })
		good := whole.Load()
		await(t, "requests with them", func() bool { return whole.Load() > good })
		t.Logf("%v: requests have all signals again after %v", sig, time.Since(begun))
	}
	cancel()
	load.Wait()
	if page := do(t, http.MethodGet, s.admin+"/metrics", "").body; !strings.Contains(page, "signalbox_worker_restarts_total 2") {
		t.Error("the metric does not count two restarts")
	}
	t.Logf("%d requests whole, %d degraded", whole.Load(), degraded.Load())
}

// await polls.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(testkit.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-tick.C
	}
}

// tier is a server of models, with the embedded graph behind the protocol.
type tier struct {
	url   string
	model atomic.Pointer[session] // nil: it does not have the model
	runs  atomic.Int64
}

func newTier(t *testing.T) *tier {
	t.Helper()
	a := build(t, "")
	tr := &tier{}
	for _, l := range a.neural.loaded {
		if !l.place.foreign {
			tr.model.Store(&l.session)
		}
	}
	h := oip.NewHandler("tier", "1", func(name string) oip.Model {
		m := tr.model.Load()
		if m == nil || name != "minilm" {
			return nil
		}
		return counted{*m, &tr.runs}
	})
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	tr.url = srv.URL
	return tr
}

type counted struct {
	session

	runs *atomic.Int64
}

func (c counted) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	c.runs.Add(1)
	return c.session.Run(ctx, in, outputs)
}

func (tr *tier) task(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "{name: %s, model: embedded, remote: {url: %q, model: minilm}}, ", name, tr.url)
	}
	return b.String()
}

func TestARemoteModelGivesWhatTheSameModelGivesHere(t *testing.T) {
	needModels(t)
	tr := newTier(t)
	here, there := build(t, ""), build(t, taskLines(t.TempDir(), tr.task("domain", "pii")))
	need := signal.MaskOf(signal.Domain, signal.PII, signal.Complexity)
	for _, text := range []string{"What is the derivative of x^2?", "Call Maria Keller at +49 30 901820 about the contract.", strings.Repeat("A long story of the sea. ", 100)} {
		want, got := here.Extract(t.Context(), text, need), there.Extract(t.Context(), text, need)
		for _, k := range need.Kinds() {
			w, g := want.Value(k), got.Value(k)
			if g.State != signal.Known || g.Label != w.Label || g.Score != w.Score || len(g.Spans) != len(w.Spans) {
				t.Errorf("%.20q: %v is %v %q %v, want %q %v", text, k, g.State, g.Label, g.Score, w.Label, w.Score)
			}
		}
		if p := got.Value(signal.Domain).Provider; p != "remote" {
			t.Errorf("provider %q", p)
		}
		if p := got.Value(signal.Complexity).Provider; p != "cpu" {
			t.Errorf("what no entry moves away runs on %q", p)
		}
	}
	if tr.runs.Load() == 0 {
		t.Error("the server was not asked")
	}
	n := 0
	for _, l := range there.neural.loaded {
		if !l.place.foreign {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d models for two tasks of one server and the rest here", n)
	}
}

// A server of models that is not there when the product starts, or has lost the model, costs the
// signals until it is back.
func TestARemoteModelComesBack(t *testing.T) {
	needModels(t)
	tr := newTier(t)
	model := tr.model.Load()
	tr.model.Store(nil)
	_, url := startBackend(t, nil)
	cfg := parse(t, url, "classify: {models_dir: '"+t.TempDir()+"', tasks: ["+tr.task("domain", "jailbreak")+"]}\n"+faultRoutes)
	s := serveWith(t, cfg, Options{Settings: flags(t), mendAfter: 20 * time.Millisecond})
	degradation(t, s, signal.ReasonNoModel)
	if ready := do(t, http.MethodGet, s.url+"/readyz", ""); !strings.Contains(ready.body, `remote model \"minilm\"`) {
		t.Errorf("readyz: %s", ready.body)
	}
	topics := func() bool {
		return s.post(t, "/v1/chat/completions", chat("auto", "What is the derivative of x^2?"), "Authorization", "Bearer ops-key").header.Get("x-signalbox-route") == "topics"
	}
	tr.model.Store(model)
	await(t, "the model", topics)
	tr.model.Store(nil)
	degradation(t, s, signal.ReasonNoModel)
	tr.model.Store(model)
	if !topics() {
		t.Error("a model that is back is not used")
	}
}

// A model that comes back while no state can be made, as while a folder of models is being
// replaced, is put into use later.
func TestAModelThatIsBackIsNotForgotten(t *testing.T) {
	needModels(t)
	tr := newTier(t)
	model := tr.model.Load()
	tr.model.Store(nil)
	_, url := startBackend(t, nil)
	cfg := parse(t, url, "classify: {models_dir: '"+t.TempDir()+"', tasks: ["+tr.task("domain", "jailbreak")+"]}\n"+faultRoutes)
	s := serveWith(t, cfg, Options{Settings: flags(t), mendAfter: time.Hour})
	tr.model.Store(model)
	now := s.app.cfg.Load()
	broken := *now
	broken.Classify.Tasks = append(slices.Clone(now.Classify.Tasks), config.Task{Name: "complexity", Model: "not-there"})
	s.app.cfg.Store(&broken)
	if found, err := s.app.rebuild(t.Context()); err == nil {
		t.Fatalf("found %v, no error", found)
	}
	s.app.cfg.Store(now)
	if found, err := s.app.rebuild(t.Context()); !found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	if route := s.post(t, "/v1/chat/completions", chat("auto", "What is the derivative of x^2?"), "Authorization", "Bearer ops-key").header.Get("x-signalbox-route"); route != "topics" {
		t.Errorf("route %q", route)
	}
}

func TestARemoteModelIsChecked(t *testing.T) {
	for task, want := range map[string]string{
		"{name: domain, remote: {url: triton, model: m}}":                                     "tasks[0].remote.url",
		"{name: domain, remote: {url: 'http://triton:8000'}}":                                 "tasks[0].remote.model",
		"{name: domain, remote: {url: 'http://triton:8000', model: m, timeout: -1s}}":         "tasks[0].remote.timeout",
		"{name: domain, remote: {url: 'http://triton:8000', model: m, kind: x}}":              "tasks[0].remote",
		"{name: pii, model: patterns, remote: {url: 'http://triton:8000', model: m}}":         "patterns cannot run on a server",
		"{name: domain, remote: {url: 'http://triton:8000', model: m, api_key: '${NO KEY}'}}": "api_key",
	} {
		if _, err := load(t, taskLines(t.TempDir(), task)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", task, err)
		}
	}
	cfg, err := load(t, "classify: {isolation: process, batch: {mode: 'on', max_wait: 5ms}, devices: [0, 1], device_memory: 2GiB}\n")
	if err != nil {
		t.Fatal(err)
	}
	if o := cfg.Classify; o.Isolation != config.IsolationProcess || o.MemoryLimit != 2<<30 || o.Batch.Mode != "on" || o.Batch.MaxBatch != 16 || len(o.Devices) != 2 {
		t.Errorf("got %+v", o)
	}
	for section, want := range map[string]string{
		"classify: {isolation: thread}\n":        "isolation",
		"classify: {batch: {mode: sometimes}}\n": "batch.mode",
		"classify: {batch: {max_wait: 5s}}\n":    "batch.max_wait",
		"classify: {devices: [0, 0]}\n":          "devices",
		"classify: {provider: gpu}\n":            "provider",
	} {
		if _, err := load(t, section); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", section, err)
		}
	}
}

// The graphs of half precision of the embedded bundle lie in models_dir, and only those of the same
// bundle are taken.
func TestAGPUTakesTheGraphOfHalfPrecision(t *testing.T) {
	dir := t.TempDir()
	placed, err := place(&config.Classify{ModelsDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := &placed[0]
	if _, err := p.graph("fp16", dir); err == nil || !strings.Contains(err.Error(), "no graph of half precision") {
		t.Errorf("without one: %v", err)
	}
	graph, err := os.ReadFile(filepath.Join("..", "..", "gpu", "testdata", "weights_float16.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, local.HalfModels, p.folder)
	write := func(version string) {
		t.Helper()
		m := p.bundle.Manifest
		m.Version = version
		sum := sha256.Sum256(graph)
		m.Graphs = []bundle.Graph{{File: bundle.File{Name: "model_fp16.onnx", SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(graph))}, Precision: "fp16"}}
		text, err := yaml.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, bundle.ManifestFile), text, 0o600),
			os.WriteFile(filepath.Join(folder, "model_fp16.onnx"), graph, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("0.0.1")
	if _, err := p.graph("fp16", dir); err == nil || !strings.Contains(err.Error(), "0.0.1, want ") {
		t.Errorf("of another version: %v", err)
	}
	write(p.bundle.Manifest.Version)
	if got, err := p.graph("fp16", dir); err != nil || !bytes.Equal(got, graph) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := os.WriteFile(filepath.Join(folder, "model_fp16.onnx"), append(graph, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.graph("fp16", dir); !errors.Is(err, bundle.ErrChecksum) {
		t.Errorf("another file: %v", err)
	}
	if got, err := p.graph("int8", dir); err != nil || len(got) < 1<<20 {
		t.Errorf("the CPU's graph: %d bytes, %v", len(got), err)
	}
}
