//go:build cgo

package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// openRuntime opens the library that `make onnxruntime` fetched. Where it is missing the test is
// skipped, except in CI.
func openRuntime(tb testing.TB, change func(*Options)) *Runtime {
	tb.Helper()
	o := DefaultOptions()
	o.LibrarySHA256 = os.Getenv("SIGNALBOX_ORT_SHA256")
	if change != nil {
		change(&o)
	}
	r, err := Open(o)
	if errors.Is(err, ErrUnavailable) && os.Getenv("CI") == "" {
		tb.Skipf("shared library of ONNX Runtime (make onnxruntime): %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Errorf("close runtime: %v", err)
		}
		if n := r.Handles(); n != 0 {
			tb.Errorf("%d native handles are alive after Close", n)
		}
	})
	return r
}

func readGraph(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".onnx"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func openSession(tb testing.TB, r *Runtime, graph string, change func(*SessionOptions)) *Session {
	tb.Helper()
	o := SessionOptions{Name: graph}
	if change != nil {
		change(&o)
	}
	s, err := r.NewSession(tb.Context(), readGraph(tb, graph), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close session: %v", err)
		}
	})
	return s
}

func f32(name string, shape []int64, data ...float32) tensor.Tensor {
	return tensor.Tensor{Name: name, Shape: shape, F32: data}
}

func i64(name string, shape []int64, data ...int64) tensor.Tensor {
	return tensor.Tensor{Name: name, Shape: shape, I64: data}
}

func TestRuntimeKnowsItsLibraryAndProviders(t *testing.T) {
	r := openRuntime(t, nil)
	if got := r.Version(); got != LibraryVersion {
		t.Errorf("version %q, want %q", got, LibraryVersion)
	}
	if !filepath.IsAbs(r.Library()) {
		t.Errorf("library %q is not absolute", r.Library())
	}
	var cpu Provider
	for _, p := range r.Providers() {
		if p.Name == ProviderCPU {
			cpu = p
		}
		if p.State != SupportYes && p.Detail == "" {
			t.Errorf("provider %s is %s without a reason", p.Name, p.State)
		}
	}
	if want := (Provider{Name: ProviderCPU, State: SupportYes, Detail: runtime.GOARCH}); cpu != want {
		t.Errorf("got %+v, want %+v", cpu, want)
	}
	if got := r.Precision(); got != "int8" {
		t.Errorf("precision %q", got)
	}
}

func TestRunsGiveWhatTheGraphComputes(t *testing.T) {
	r := openRuntime(t, nil)
	for _, c := range []struct {
		name, graph string
		in          []tensor.Tensor
		outputs     []string
		want        []tensor.Tensor
	}{
		{
			"inputs are found by name, whatever their order", "add",
			[]tensor.Tensor{f32("y", []int64{1, 2}, 10, 20), f32("x", []int64{1, 2}, 1, 2)},
			[]string{"sum"},
			[]tensor.Tensor{f32("sum", []int64{1, 2}, 11, 22)},
		},
		{
			"the same session takes another shape", "add",
			[]tensor.Tensor{f32("x", []int64{2, 1}, 1, 2), f32("y", []int64{2, 1}, 3, 4)},
			nil,
			[]tensor.Tensor{f32("sum", []int64{2, 1}, 4, 6)},
		},
		{
			"integers go in and come out", "echo",
			[]tensor.Tensor{i64("input_ids", []int64{2, 2}, 1, 2, 3, math.MaxInt32)},
			[]string{"ids", "values"},
			[]tensor.Tensor{i64("ids", []int64{2, 2}, 1, 2, 3, math.MaxInt32), f32("values", []int64{2, 2}, 1, 2, 3, 2147483648)},
		},
		{
			"an output may be asked for twice", "echo",
			[]tensor.Tensor{i64("input_ids", []int64{1, 1}, 7)},
			[]string{"values", "values"},
			[]tensor.Tensor{f32("values", []int64{1, 1}, 7), f32("values", []int64{1, 1}, 7)},
		},
		{
			"half, brain and double precision come out as float32", "half",
			[]tensor.Tensor{f32("x", []int64{1, 3}, 1.5, -2, 1.0/3)},
			nil,
			[]tensor.Tensor{
				f32("half", []int64{1, 3}, 1.5, -2, 0.33325195),
				f32("brain", []int64{1, 3}, 1.5, -2, 0.33398438),
				f32("double", []int64{1, 3}, 1.5, -2, 1.0/3),
				f32("single", []int64{1, 3}, 1.5, -2, 1.0/3),
			},
		},
		{
			"int64 goes into an input of 32 bits", "int32",
			[]tensor.Tensor{i64("x", []int64{1, 4}, 0, -1, math.MaxInt32, math.MinInt32)},
			nil,
			[]tensor.Tensor{f32("y", []int64{1, 4}, 0, -1, 2147483648, -2147483648)},
		},
		{
			"float32 goes into an input of half precision", "float16",
			[]tensor.Tensor{f32("x", []int64{2, 2}, 1.5, -2, 1.0/3, 65504)},
			nil,
			[]tensor.Tensor{f32("y", []int64{2, 2}, 1.5, -2, 0.33325195, 65504)},
		},
		{
			"a graph with fixed dimensions takes them", "fixed",
			[]tensor.Tensor{f32("x", []int64{2, 3}, -1, 0, 1, 2, -3, 4)},
			nil,
			[]tensor.Tensor{f32("y", []int64{2, 3}, 0, 0, 1, 2, 0, 4)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openSession(t, r, c.graph, nil)
			got, err := s.Run(t.Context(), c.in, c.outputs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpecsDescribeTheGraph(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "half", func(o *SessionOptions) { o.Outputs = []string{"single", "half"} })
	shape := []int64{tensor.Dynamic, tensor.Dynamic}
	if diff := cmp.Diff([]tensor.Spec{{Name: "x", DType: tensor.Float32, Shape: shape}}, s.Inputs()); diff != "" {
		t.Error(diff)
	}
	want := []tensor.Spec{{Name: "single", DType: tensor.Float32, Shape: shape}, {Name: "half", DType: tensor.Float32, Shape: shape}}
	if diff := cmp.Diff(want, s.Outputs()); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Run(t.Context(), []tensor.Tensor{f32("x", []int64{1, 1}, 1)}, []string{"double"}); err == nil {
		t.Error("an output that the session left out was returned")
	}
}

// A decoder's caches are not the caller's business: they have no tokens in any run, whatever the
// batch.
func TestCachesAreEmptyInEveryRun(t *testing.T) {
	r := openRuntime(t, nil)
	for _, graph := range []string{"cache", "cache_float16"} {
		s := openSession(t, r, graph, nil)
		if names := s.Inputs(); len(names) != 1 || names[0].Name != "x" {
			t.Errorf("%s: inputs %+v, want x", graph, names)
		}
		for _, batch := range []int64{1, 2} {
			x := tensor.Tensor{Name: "x", Shape: []int64{batch, 2, 1, 3}, F32: make([]float32, batch*6)}
			for i := range x.F32 {
				x.F32[i] = float32(i)
			}
			got, err := s.Run(t.Context(), []tensor.Tensor{x}, nil)
			if err != nil {
				t.Fatal(err)
			}
			x.Name = "y"
			if diff := cmp.Diff([]tensor.Tensor{x}, got); diff != "" {
				t.Errorf("%s: %s", graph, diff)
			}
		}
	}
}

// What is narrowed lies in memory that runs share one after the other, and must not be mixed up by
// runs side by side or of another length.
func TestNarrowedInputsStayApart(t *testing.T) {
	s := openSession(t, openRuntime(t, func(o *Options) { o.MaxConcurrent = 4 }), "int32", nil)
	if want := (tensor.Spec{Name: "x", DType: tensor.Int64, Shape: []int64{tensor.Dynamic, tensor.Dynamic}}); !cmp.Equal(want, s.Inputs()[0]) {
		t.Errorf("the input is %+v, want %+v", s.Inputs()[0], want)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			x := make([]int64, 1+i%50)
			want := make([]float32, len(x))
			for j := range x {
				x[j], want[j] = int64(i), float32(i)
			}
			got, err := s.Run(t.Context(), []tensor.Tensor{i64("x", []int64{1, int64(len(x))}, x...)}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(want, got[0].F32); diff != "" {
				t.Error(diff)
			}
		})
	}
	wg.Wait()
}

func TestOutputsStayValidAfterLaterRuns(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "echo", nil)
	first, err := s.Run(t.Context(), []tensor.Tensor{i64("input_ids", []int64{1, 2}, 1, 2)}, []string{"values"})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := s.Run(t.Context(), []tensor.Tensor{i64("input_ids", []int64{1, 2}, 9, 9)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	if diff := cmp.Diff([]float32{1, 2}, first[0].F32); diff != "" {
		t.Error(diff)
	}
}

func TestAnotherProviderFallsBackVisibly(t *testing.T) {
	var log bytes.Buffer
	r := openRuntime(t, func(o *Options) { o.Logger, o.ProbeAll = slog.New(slog.NewTextHandler(&log, nil)), true })
	s := openSession(t, r, "add", func(o *SessionOptions) { o.Provider = "cuda" })
	if s.Provider() != ProviderCPU {
		t.Errorf("runs on %q", s.Provider())
	}
	if !strings.HasPrefix(s.Fallback(), "cuda: no: ") {
		t.Errorf("fallback is %q", s.Fallback())
	}
	if !strings.Contains(log.String(), "session=add") {
		t.Errorf("log says %q", log.String())
	}
	for _, want := range []string{"", ProviderAuto, ProviderCPU} {
		s := openSession(t, r, "add", func(o *SessionOptions) { o.Provider = want })
		if s.Provider() != ProviderCPU || s.Fallback() != "" {
			t.Errorf("%q runs on %q, fallback %q", want, s.Provider(), s.Fallback())
		}
	}
}

func TestBytesThatAreNoModelAreRefused(t *testing.T) {
	r := openRuntime(t, nil)
	add := readGraph(t, "add")
	for name, model := range map[string][]byte{
		"nothing":                       nil,
		"text":                          []byte("this is not a model"),
		"the first half":                add[:len(add)/2],
		"an operator that nobody knows": bytes.ReplaceAll(add, []byte("Add"), []byte("Adq")),
		"an input that nobody declares": bytes.Replace(add, []byte("x"), []byte("q"), 1),
		"an input of 8 bits":            readGraph(t, "uint8"),
		"an output without dimensions":  readGraph(t, "scalar"),
		"a model after the model's end": append(slices.Clone(add), 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := r.NewSession(t.Context(), model, SessionOptions{Name: "broken"})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was accepted")
			}
			var modelErr *ModelError
			if !errors.As(err, &modelErr) || modelErr.Reason() != signal.ReasonNoModel {
				t.Errorf("got %T: %v", err, err)
			}
		})
	}
	if n := r.Handles(); n != 0 {
		t.Errorf("%d handles are left of models that did not load", n)
	}
}

func TestAnOutputWithoutDimensionsCanBeLeftOut(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "scalar", func(o *SessionOptions) { o.Outputs = []string{"y"} })
	got, err := s.Run(t.Context(), []tensor.Tensor{f32("x", []int64{1, 1}, 3)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tensor.Tensor{f32("y", []int64{1, 1}, 3)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNonFiniteOutputsAreAnError(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "nan", nil)
	for name, x := range map[string]float32{"not a number": -1, "infinity": 0} {
		_, err := s.Run(t.Context(), []tensor.Tensor{f32("x", []int64{1, 2}, 1, x)}, nil)
		if !errors.Is(err, ErrNotFinite) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := reasonOf(t, err); got != signal.ReasonInvalid {
			t.Errorf("%s: reason %q", name, got)
		}
	}
}

func TestFailureInTheLibraryIsAnError(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "add", nil)
	_, err := s.Run(t.Context(), []tensor.Tensor{f32("x", []int64{1, 2}, 1, 2), f32("y", []int64{1, 3}, 1, 2, 3)}, nil)
	if _, ok := errors.AsType[*RunError](err); !ok {
		t.Fatalf("got %v", err)
	}
	if got := reasonOf(t, err); got != signal.ReasonInternal {
		t.Errorf("reason %q", got)
	}
}

// slowInput makes slow.onnx take the given number of steps, each some microseconds.
func slowInput(steps int64) []tensor.Tensor {
	return []tensor.Tensor{i64("steps", []int64{1}, steps), {Name: "x", Shape: []int64{1, 64}, F32: make([]float32, 64)}}
}

const forever = math.MaxInt64 / 2

// startForever starts a run that only its context ends, and returns when it computes.
func startForever(t *testing.T, s *Session) (cancel func(), result <-chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, slowInput(forever), nil)
		done <- err
	}()
	waitFor(t, func() bool { return s.inFlight() == 1 })
	return stop, done
}

func (c *core) inFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func TestCancelStopsARunWithin100ms(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "slow", nil) // it would go on for hours
	for range 3 {
		cancel, result := startForever(t, s)
		start := time.Now()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); testkit.Timed() && took > 100*time.Millisecond {
			t.Errorf("stopped after %v", took)
		}
	}
	if _, err := s.Run(t.Context(), slowInput(3), nil); err != nil {
		t.Errorf("the session is of no use after a cancelled run: %v", err)
	}
}

func TestDeadlineStopsARun(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "slow", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, slowInput(forever), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Run(ctx, slowInput(1), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run started after its deadline: %v", err)
	}
}

func TestFullQueueRefuses(t *testing.T) {
	r := openRuntime(t, func(o *Options) { o.MaxConcurrent, o.QueueDepth = 1, 1 })
	s := openSession(t, r, "slow", nil)
	cancel, first := startForever(t, s)
	second := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), slowInput(1), nil)
		second <- err
	}()
	waitFor(t, func() bool { return r.Waiting() == 1 })
	_, err := s.Run(t.Context(), slowInput(1), nil)
	if !errors.Is(err, ErrOverloaded) {
		t.Errorf("the third run got %v", err)
	}
	if got := reasonOf(t, err); got != signal.ReasonOverload {
		t.Errorf("reason %q", got)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first run got %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the run that waited got %v", err)
	}
}

func TestCloseWaitsForTheRunInFlight(t *testing.T) {
	r := openRuntime(t, nil)
	s := openSession(t, r, "slow", nil)
	cancel, run := startForever(t, s)
	closed := make(chan error, 2)
	go func() { closed <- s.Close() }()
	go func() { closed <- r.Close() }()
	waitFor(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.closed })
	if _, err := s.Run(t.Context(), slowInput(1), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a run during Close got %v", err)
	}
	select {
	case <-closed:
		t.Error("closed while a run was in flight")
	default:
	}
	cancel()
	if err := <-run; !errors.Is(err, context.Canceled) {
		t.Errorf("the run got %v", err)
	}
	for range 2 {
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := r.NewSession(t.Context(), readGraph(t, "add"), SessionOptions{Name: "late"}); !errors.Is(err, ErrClosed) {
		t.Errorf("a session on a closed runtime: %v", err)
	}
}

func TestThousandConcurrentRunsAreBitEqual(t *testing.T) {
	r := openRuntime(t, func(o *Options) { o.MaxConcurrent, o.QueueDepth = 8, 1000 })
	s := openSession(t, r, "slow", nil)
	in := slowInput(20)
	for i := range in[1].F32 {
		in[1].F32[i] = float32(i) / 64
	}
	want, err := s.Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			got, err := s.Run(t.Context(), in, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for i, f := range got[0].F32 {
				if math.Float32bits(f) != math.Float32bits(want[0].F32[i]) {
					t.Errorf("element %d is %v, was %v", i, f, want[0].F32[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCancelledRunsLeaveNothingBehind(t *testing.T) {
	r := openRuntime(t, func(o *Options) { o.MaxConcurrent = 4 })
	s := openSession(t, r, "slow", nil)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%20)*100*time.Microsecond)
			defer cancel()
			_, err := s.Run(ctx, slowInput(int64(1+i%7*100)), nil)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// What may stay until Close: the session, and run options kept for reuse.
	if n := r.Handles(); n < 1 || n > 1+4 {
		t.Errorf("%d native handles are alive", n)
	}
}

func TestASecondOpenSharesTheLibrary(t *testing.T) {
	a := openRuntime(t, nil)
	b := openRuntime(t, nil)
	openSession(t, a, "add", nil)
	openSession(t, b, "add", nil)
	other := filepath.Join(t.TempDir(), "libonnxruntime.so")
	if err := os.WriteFile(other, []byte("another library"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Library: other})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "restart needed") {
		t.Errorf("got %v", err)
	}
}

func TestADroppedSessionIsReported(t *testing.T) {
	log := make(lineWriter, 16)
	r := openRuntime(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	func() {
		s, err := r.NewSession(t.Context(), readGraph(t, "add"), SessionOptions{Name: "forgotten"})
		if err != nil {
			t.Fatal(err)
		}
		if s.Name() != "forgotten" {
			t.Error(s.Name())
		}
	}()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		runtime.GC()
		select {
		case line := <-log:
			if !strings.Contains(line, "session=forgotten") {
				t.Errorf("log says %q", line)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Error("nothing was reported")
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

type recorder struct {
	mu   sync.Mutex // guards runs
	runs []string
}

func (o *recorder) ModelRun(session, provider string, elapsed time.Duration, rows int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if elapsed <= 0 {
		session += " took no time"
	}
	o.runs = append(o.runs, fmt.Sprintf("%s on %s: %d rows", session, provider, rows))
}

func TestTheObserverSeesSuccessfulRuns(t *testing.T) {
	var seen recorder
	r := openRuntime(t, func(o *Options) { o.Observer = &seen })
	s := openSession(t, r, "add", nil)
	for _, in := range [][]tensor.Tensor{
		{f32("x", []int64{3, 1}, 1, 2, 3), f32("y", []int64{3, 1}, 1, 2, 3)},
		{f32("x", []int64{1, 1}, 1), f32("y", []int64{1, 1}, float32(math.NaN()))},
	} {
		_, _ = s.Run(t.Context(), in, nil)
	}
	if diff := cmp.Diff([]string{"add on cpu: 3 rows"}, seen.runs); diff != "" {
		t.Error(diff)
	}
}

// TestManyRunsDoNotGrowTheProcess sees what the handle count cannot: memory that the library keeps.
// A leak of one run's native tensors grows the process by 22 MiB in every round; what is allocated
// once, and the shadow memory of the race detector, does not come again.
func TestManyRunsDoNotGrowTheProcess(t *testing.T) {
	const rounds, limitKiB = 4, 8 << 10
	runs := testkit.Fewer(30_000)
	s := openSession(t, openRuntime(t, nil), "add", nil)
	in := []tensor.Tensor{f32("x", []int64{1, 2}, 1, 2), f32("y", []int64{1, 2}, 1, 2)}
	var grown []int
	for range rounds {
		before := residentKiB(t)
		for range runs {
			if _, err := s.Run(t.Context(), in, nil); err != nil {
				t.Fatal(err)
			}
		}
		grown = append(grown, residentKiB(t)-before)
		if grown[len(grown)-1] <= limitKiB {
			return
		}
	}
	t.Errorf("%d rounds of %d runs each grew the process by %v KiB", rounds, runs, grown)
}

// residentKiB is the memory of this process that is in RAM, without garbage.
func residentKiB(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("/proc: %v", err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize() / 1024
}

// TestProductsOfBytesAreExact adds 32 products of the largest bytes: on a processor without VNNI
// the sums would stop at 16 bits. The weights are shared, which ONNX Runtime alone refuses there.
func TestProductsOfBytesAreExact(t *testing.T) {
	s := openSession(t, openRuntime(t, nil), "bytes", nil)
	x := tensor.Tensor{Name: "x", Shape: []int64{3, 32}, F32: slices.Repeat([]float32{255}, 96)}
	out, err := s.Run(t.Context(), []tensor.Tensor{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		for i, got := range o.F32 {
			if got != 32*255*127 {
				t.Fatalf("%s[%d] is %v, want %d", o.Name, i, got, 32*255*127)
			}
		}
	}
}
