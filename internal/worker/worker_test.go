//go:build cgo

package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"signalbox/gpu"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// TestMain runs the tests. The program is also the worker of a test, and a parent that a test ends.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 3 && os.Args[1] == "worker":
		if err := Serve(context.Background(), os.Stdin, os.Stdout, os.Args[3], "test", slog.New(slog.DiscardHandler)); err != nil {
			os.Exit(1)
		}
	case len(os.Args) > 1 && os.Args[1] == "parent":
		p, err := Start(context.Background(), Options{Command: []string{os.Args[0], "worker"}, GPU: gpu.Options{Provider: gpu.ProviderCPU}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	default:
		goleak.VerifyTestMain(m)
	}
}

func start(tb testing.TB, change func(*Options)) *Process {
	tb.Helper()
	o := Options{
		Command: []string{os.Args[0], "worker"}, GPU: gpu.Options{Provider: gpu.ProviderCPU, QueueDepth: 1000},
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil)), Pause: 10 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	p, err := Start(tb.Context(), o)
	if errors.Is(err, gpu.ErrUnavailable) && os.Getenv("CI") == "" {
		tb.Skipf("shared library of ONNX Runtime (make onnxruntime): %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
		if _, err := os.Stat(p.folder.path); !errors.Is(err, os.ErrNotExist) {
			tb.Errorf("the folder of the socket is left: %v", err)
		}
	})
	return p
}

func graph(name string) func(gpu.Choice) ([]byte, error) {
	return func(gpu.Choice) ([]byte, error) {
		return os.ReadFile(filepath.Join("..", "..", "gpu", "testdata", name+".onnx"))
	}
}

func open(tb testing.TB, p *Process, name string) *Session {
	tb.Helper()
	s, err := p.Open(tb.Context(), SessionOptions{Name: name, Graph: graph(name)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func sum(s *Session, ctx context.Context, x, y float32) error { //nolint:revive // a helper of tests
	out, err := s.Run(ctx, []tensor.Tensor{
		{Name: "x", Shape: []int64{1, 1}, F32: []float32{x}}, {Name: "y", Shape: []int64{1, 1}, F32: []float32{y}},
	}, []string{"sum"})
	if err != nil {
		return err
	}
	if diff := cmp.Diff([]tensor.Tensor{{Name: "sum", Shape: []int64{1, 1}, F32: []float32{x + y}}}, out); diff != "" {
		return errors.New(diff)
	}
	return nil
}

func waitFor(t *testing.T, what string, holds func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > testkit.Patience {
			t.Fatalf("waited in vain for %s", what)
		}
		runtime.Gosched()
	}
	return time.Since(begun)
}

func reason(err error) signal.Reason {
	var r interface{ Reason() signal.Reason }
	if !errors.As(err, &r) {
		return ""
	}
	return r.Reason()
}

func TestModelsRunInAnotherProcess(t *testing.T) {
	p := start(t, nil)
	if p.PID() == os.Getpid() || p.PID() == 0 {
		t.Errorf("process %d", p.PID())
	}
	if p.Version() != gpu.LibraryVersion || p.Library() == "" {
		t.Errorf("ONNX Runtime %q at %q", p.Version(), p.Library())
	}
	if name, why := p.Provider(); name != gpu.ProviderCPU || why != "" || len(p.Providers()) < 2 {
		t.Errorf("provider %q, %q of %v", name, why, p.Providers())
	}
	s := open(t, p, "add")
	if s.Provider() != gpu.ProviderCPU || s.Fallback() != "" {
		t.Errorf("runs on %q, %q", s.Provider(), s.Fallback())
	}
	vector := []int64{-1, -1}
	want := []tensor.Spec{{Name: "x", DType: tensor.Float32, Shape: vector}, {Name: "y", DType: tensor.Float32, Shape: vector}}
	if diff := cmp.Diff(want, s.Inputs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]tensor.Spec{{Name: "sum", DType: tensor.Float32, Shape: vector}}, s.Outputs()); diff != "" {
		t.Error(diff)
	}
	if err := sum(s, t.Context(), 1, 2); err != nil {
		t.Error(err)
	}
	second := open(t, p, "add")
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if err := sum(second, t.Context(), 1, 2); !errors.Is(err, ErrDown) {
		t.Errorf("a closed session: %v", err)
	}
	if err := sum(s, t.Context(), 3, 4); err != nil {
		t.Errorf("its twin: %v", err)
	}
}

func TestFaultsKeepTheirReasonAcrossProcesses(t *testing.T) {
	p := start(t, nil)
	s := open(t, p, "nan")
	x := func(v float32) []tensor.Tensor {
		return []tensor.Tensor{{Name: "x", Shape: []int64{1, 1}, F32: []float32{v}}}
	}
	if _, err := s.Run(t.Context(), x(-1), nil); reason(err) != signal.ReasonInvalid {
		t.Errorf("an output that is not a number: %v", err)
	}
	if _, err := s.Run(t.Context(), nil, nil); reason(err) != signal.ReasonInternal {
		t.Errorf("no inputs: %v", err)
	}
	slow := open(t, p, "slow")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := slow.Run(ctx, []tensor.Tensor{{Name: "steps", Shape: []int64{1}, I64: []int64{1 << 60}}, {Name: "x", Shape: []int64{1, 64}, F32: make([]float32, 64)}}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run without end: %v", err)
	}
	// The worker has given up the run as well: there is a place for the next.
	if _, err := s.Run(t.Context(), x(1), nil); err != nil {
		t.Error(err)
	}
	_, err = p.Open(t.Context(), SessionOptions{Name: "text", Graph: func(gpu.Choice) ([]byte, error) { return []byte("no graph"), nil }})
	if err == nil || !strings.Contains(err.Error(), "not an ONNX model") {
		t.Errorf("bytes that are no graph: %v", err)
	}
}

// The worker dies under load, by a fault of its own or by force. No run hangs; those that are lost
// say so; and the same sessions work again soon.
func TestAWorkerThatDiesComesBack(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			var restarts atomic.Int64
			p := start(t, func(o *Options) { o.Restart = func() { restarts.Add(1) } })
			s := open(t, p, "add")
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var good, lost atomic.Int64
			for i := range 4 {
				wg.Go(func() {
					for ctx.Err() == nil {
						err := sum(s, ctx, float32(i), 1)
						switch {
						case err == nil:
							good.Add(1)
						case reason(err) == signal.ReasonNoModel:
							lost.Add(1)
							runtime.Gosched()
						case ctx.Err() == nil:
							t.Errorf("a run without a reason: %v", err)
							return
						}
					}
				})
			}
			for round := range int64(2) {
				before := good.Load()
				waitFor(t, "runs", func() bool { return good.Load() > before })
				was := p.PID()
				if err := syscall.Kill(was, sig); err != nil {
					t.Fatal(err)
				}
				waitFor(t, "a restart", func() bool { return restarts.Load() == round+1 })
				took := waitFor(t, "a worker", func() bool { return p.Fault() == nil && p.PID() != was && sum(s, ctx, 1, 2) == nil })
				t.Logf("back after %v", took)
				if testkit.Timed() && took > 20*time.Second {
					t.Errorf("back after %v", took)
				}
			}
			cancel()
			wg.Wait()
			t.Logf("%d runs, %d lost", good.Load(), lost.Load())
		})
	}
}

func TestAModelThatIsOpenedWhileTheWorkerIsDownSaysSo(t *testing.T) {
	block := make(chan struct{})
	var once sync.Once
	p := start(t, func(o *Options) { o.Restart = func() { <-block } })
	defer once.Do(func() { close(block) })
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end", func() bool { return p.Fault() != nil })
	_, err := p.Open(t.Context(), SessionOptions{Name: "add", Graph: graph("add")})
	if !errors.Is(err, ErrDown) || reason(err) != signal.ReasonNoModel || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
	once.Do(func() { close(block) })
	waitFor(t, "a worker", func() bool { return p.Fault() == nil })
	if err := sum(open(t, p, "add"), t.Context(), 1, 2); err != nil {
		t.Error(err)
	}
}

// A worker that comes back may not get a model open at once: the memory of a device may still be
// that of the process before. The model is unknown until then, and said to be.
func TestAModelThatCannotBeOpenedAgainIsTriedAgain(t *testing.T) {
	var broken atomic.Bool
	var tried atomic.Int64
	p := start(t, nil)
	s, err := p.Open(t.Context(), SessionOptions{Name: "add", Graph: func(c gpu.Choice) ([]byte, error) {
		if broken.Load() {
			tried.Add(1)
			return nil, errors.New("no memory")
		}
		return graph("add")(c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other := open(t, p, "nan")
	broken.Store(true)
	was := p.PID()
	if err := syscall.Kill(was, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a worker", func() bool { return p.PID() != was && p.Fault() == nil })
	waitFor(t, "a second try", func() bool { return tried.Load() > 1 })
	if err := p.Lost(); err == nil || err.Error() != `model "add" cannot be opened again: cpu: no memory` {
		t.Errorf("told of what is lost: %v", err)
	}
	if err := sum(s, t.Context(), 1, 2); reason(err) != signal.ReasonNoModel {
		t.Errorf("a run: %v", err)
	}
	if _, err := other.Run(t.Context(), []tensor.Tensor{{Name: "x", Shape: []int64{1, 1}, F32: []float32{1}}}, nil); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	broken.Store(false)
	waitFor(t, "the model", func() bool { return sum(s, t.Context(), 1, 2) == nil })
	if err := p.Lost(); err != nil {
		t.Error(err)
	}
}

// models is how many models the worker has open, of those that were ever opened.
func models(t *testing.T, p *Process) (n int) {
	t.Helper()
	p.mu.Lock()
	client, names := p.client, p.names
	p.mu.Unlock()
	for i := range names {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://worker/v2/models/m"+strconv.Itoa(i+1)+"/ready", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			n++
		}
		_ = resp.Body.Close()
	}
	return n
}

// A model that is closed while a new worker opens it again stays in nobody's memory.
func TestAModelThatIsClosedWhileItIsOpenedAgainIsNotLeftBehind(t *testing.T) {
	p := start(t, nil)
	keep := open(t, p, "add")
	opening, goOn := make(chan struct{}), make(chan struct{})
	var again atomic.Bool
	s, err := p.Open(t.Context(), SessionOptions{Name: "add", Graph: func(c gpu.Choice) ([]byte, error) {
		if again.Load() {
			close(opening)
			<-goOn
		}
		return graph("add")(c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	again.Store(true)
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-opening
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	close(goOn)
	waitFor(t, "a worker", func() bool { return p.Fault() == nil && sum(keep, t.Context(), 1, 2) == nil })
	if n := models(t, p); n != 1 {
		t.Errorf("%d models are open, want 1", n)
	}
	if err := sum(s, t.Context(), 1, 2); !errors.Is(err, ErrDown) {
		t.Errorf("a closed session: %v", err)
	}
}

// A run that the worker cannot end, as when a driver hangs, does not keep who closes the model for
// ever.
func TestClosingAModelOfAWorkerThatHangsEnds(t *testing.T) {
	p := start(t, func(o *Options) { o.closeLimit = 100 * time.Millisecond })
	s, err := p.Open(t.Context(), SessionOptions{Name: "add", Graph: graph("add")})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all threads of the worker to stop", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
		return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(stat string) bool {
			b, err := os.ReadFile(stat)
			return err == nil && !strings.Contains(string(b), ") T ") // the state behind the name (proc_pid_stat(5))
		})
	})
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "has not closed it within 100ms") {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A run that goes on though it was told to stop ends its worker, and a new one takes the place. One
// that only takes long does not.
func TestAWorkerWhoseRunDoesNotEndIsReplaced(t *testing.T) {
	var restarts atomic.Int64
	p := start(t, func(o *Options) {
		o.GPU.HangLimit, o.Restart = 100*time.Millisecond, func() { restarts.Add(1) }
	})
	add, stuck := open(t, p, "add"), open(t, p, "stuck")
	run := func(ctx context.Context, more int64) error {
		_, err := stuck.Run(ctx, []tensor.Tensor{{Name: "x", Shape: []int64{1, 1, 1<<16 + more}, F32: make([]float32, 1<<16+more)}}, nil)
		return err
	}
	if err := run(t.Context(), 10_000); err != nil { // some 500 ms
		t.Error(err)
	}
	if n := restarts.Load(); n != 0 {
		t.Fatalf("%d restarts for a run that took long", n)
	}
	for limit := time.Second; restarts.Load() == 0; limit *= 2 { // until it has begun in the time
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if err := run(ctx, 1_000_000); !errors.Is(err, context.DeadlineExceeded) { // some 50 s
			t.Fatalf("got %v", err)
		}
		<-ctx.Done()
		cancel()
		for end := time.Now().Add(limit); restarts.Load() == 0 && time.Now().Before(end); {
			runtime.Gosched()
		}
	}
	waitFor(t, "the worker", func() bool { return restarts.Load() == 1 && p.Fault() == nil })
	waitFor(t, "the models", func() bool { return sum(add, t.Context(), 1, 2) == nil && run(t.Context(), 0) == nil })
}

// fakeLibrary compiles a shared library that is not ONNX Runtime.
func fakeLibrary(t *testing.T, source string) string {
	t.Helper()
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

const (
	wrongVersion = `
#include <stddef.h>
static const void *api(unsigned version) { return NULL; } /* OrtApiBase.GetApi knows no such version */
static const char *name(void) { return "1.2.3"; }
static struct { const void *(*GetApi)(unsigned); const char *(*GetVersionString)(void); } base = {api, name};
const void *OrtGetApiBase(void) { return &base; }`
	crashes = `
#include <stdlib.h>
const void *OrtGetApiBase(void) { abort(); }`
)

func TestALibraryThatCannotBeUsedIsUnavailable(t *testing.T) {
	for name, library := range map[string]string{
		"missing":       filepath.Join(t.TempDir(), "libonnxruntime.so"),
		"wrong version": fakeLibrary(t, wrongVersion),
		"no library":    fakeLibrary(t, "int nothing;"),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(t.Context(), Options{Command: []string{os.Args[0], "worker"}, GPU: gpu.Options{Library: library}})
			if !errors.Is(err, gpu.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			if p != nil {
				t.Error("there is a process")
			}
		})
	}
}

// A library that ends the process when it is loaded does not end ours.
func TestAWorkerThatCrashesWhenItStartsIsDown(t *testing.T) {
	lib := fakeLibrary(t, crashes)
	var restarts atomic.Int64
	p := start(t, func(o *Options) { o.GPU.Library, o.Restart = lib, func() { restarts.Add(1) } })
	if err := p.Fault(); err == nil || !strings.Contains(err.Error(), "it ended: exit status") {
		t.Errorf("fault: %v", err)
	}
	waitFor(t, "two restarts", func() bool { return restarts.Load() >= 2 })
	if _, err := p.Open(t.Context(), SessionOptions{Name: "add", Graph: graph("add")}); !errors.Is(err, ErrDown) {
		t.Errorf("got %v", err)
	}
	if found, err := Probe(t.Context(), Options{Command: []string{os.Args[0], "worker"}, GPU: gpu.Options{Library: lib}}); err == nil {
		t.Errorf("a probe that crashes found %v", found)
	}
}

func TestAProbeTellsAndEnds(t *testing.T) {
	found, err := Probe(t.Context(), Options{Command: []string{os.Args[0], "worker"}, GPU: gpu.Options{Provider: gpu.ProviderCUDA}})
	if errors.Is(err, gpu.ErrUnavailable) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil || len(found) < 2 {
		t.Errorf("found %v, %v", found, err)
	}
}

// Whatever ends the parent, the worker does not stay.
func TestNoWorkerOutlivesItsParent(t *testing.T) {
	dir := t.TempDir() // a parent that is killed leaves the folder of the socket
	cmd := exec.CommandContext(t.Context(), os.Args[0], "parent")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || bad != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if os.Getenv("CI") == "" {
			t.Skipf("the parent said %q", line)
		}
		t.Fatalf("the parent said %q", line)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the worker %d: %v", pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	waitFor(t, "the end of the worker", func() bool { return !alive(pid) })
	left := func() int {
		found, err := filepath.Glob(filepath.Join(dir, folderPattern+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := left(); n != 1 {
		t.Fatalf("%d folders are left", n)
	}
	if sweep(dir, time.Now().Add(-time.Hour)); left() != 1 {
		t.Error("one that is new was removed")
	}
	if sweep(dir, time.Now().Add(time.Hour)); left() != 0 {
		t.Error("one that nobody holds stays")
	}
}

// What is in use stays, whoever starts.
func TestAFolderInUseStays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	sweep(os.TempDir(), time.Now().Add(time.Hour))
	if _, err := os.Stat(f.path); err != nil {
		t.Error(err)
	}
	if err := f.remove(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// alive reports whether a process runs. One that has ended and that nobody waits for is not alive.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// BenchmarkRun is what the way to the worker and back costs: the graph adds two numbers.
func BenchmarkRun(b *testing.B) {
	s := open(b, start(b, nil), "add")
	b.ReportAllocs()
	for b.Loop() {
		if err := sum(s, b.Context(), 1, 2); err != nil {
			b.Fatal(err)
		}
	}
}
