package gpu

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// reasonOf finds the reason the way a consumer does.
func reasonOf(t *testing.T, err error) signal.Reason {
	t.Helper()
	var r interface{ Reason() signal.Reason }
	if !errors.As(err, &r) {
		t.Fatalf("%v tells no reason", err)
	}
	return r.Reason()
}

// fakeLibrary is a backend without any native code. Its sessions fill each output with ones, or
// compute what the test says; the probe of a provider gets the sums that it wants.
type fakeLibrary struct {
	refuse   error                           // what load returns
	loads    func(cfg loadOptions) error     // what load returns, by provider; nil: refuse alone
	during   func(ctx context.Context) error // called in each run
	compute  func(device int, in, out []tensor.Tensor) error
	closeErr error
	hangs    bool // loads does not answer
}

func (*fakeLibrary) version() string { return "fake" }

func (l *fakeLibrary) load(_ []byte, sig signature, _ []string, cfg loadOptions) (executor, error) {
	if l.refuse != nil {
		return nil, l.refuse
	}
	if l.loads != nil {
		if err := l.loads(cfg); err != nil {
			return nil, err
		}
	}
	cfg.handles.Add(1)
	return &fakeSession{l, sig, cfg}, nil
}

type fakeSession struct {
	lib *fakeLibrary
	sig signature
	cfg loadOptions
}

func (s *fakeSession) run(ctx context.Context, in, out []tensor.Tensor) error {
	if s.lib.during != nil {
		if err := s.lib.during(ctx); err != nil {
			return err
		}
	}
	if s.cfg.strict {
		out[0] = tensor.Tensor{Shape: in[0].Shape, F32: []float32{in[0].F32[0] + in[1].F32[0], in[0].F32[1] + in[1].F32[1]}}
		return nil
	}
	if s.lib.compute != nil {
		return s.lib.compute(s.cfg.device, in, out)
	}
	for i := range out {
		out[i] = tensor.Tensor{Shape: []int64{1}, F32: []float32{1}}
	}
	return nil
}

func (s *fakeSession) close() error {
	s.cfg.handles.Add(-1)
	return s.lib.closeErr
}

func fakeRuntime(lib *fakeLibrary, o Options) *Runtime {
	r := newRuntime(o, Library{Path: "/fake"}, lib)
	r.providers = []Provider{{Name: "cuda", State: SupportUnknown, Detail: "driver did not answer"}, {Name: ProviderCPU, State: SupportYes}}
	return r
}

func fakeSessionOn(t *testing.T, r *Runtime, graph string) *Session {
	t.Helper()
	model, err := os.ReadFile("testdata/" + graph + ".onnx")
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewSession(t.Context(), model, SessionOptions{Name: graph})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func addInput() []tensor.Tensor {
	return []tensor.Tensor{{Name: "x", Shape: []int64{1, 1}, F32: []float32{1}}, {Name: "y", Shape: []int64{1, 1}, F32: []float32{1}}}
}

func TestTensorsThatDoNotFitNeverReachTheLibrary(t *testing.T) {
	lib := &fakeLibrary{during: func(context.Context) error {
		t.Error("the library was called")
		return nil
	}}
	r := fakeRuntime(lib, Options{})
	ones := []float32{1, 1, 1, 1, 1, 1}
	type tt = tensor.Tensor
	y := tt{Name: "y", Shape: []int64{1, 1}, F32: ones[:1]}
	for _, c := range []struct {
		name, graph string
		in          []tt
		outputs     []string
		tensor      string // the one at fault
	}{
		{"no inputs at all", "add", nil, nil, "x"},
		{"one input is missing", "add", []tt{y}, nil, "x"},
		{"an input that the graph has not", "add", []tt{y, {Name: "z", Shape: []int64{1, 1}, F32: ones[:1]}}, nil, "z"},
		{"an input twice", "add", []tt{y, y}, nil, "y"},
		{"an output that the graph has not", "add", addInput(), []string{"sum", "difference"}, "difference"},
		{"integers where floats belong", "add", []tt{y, {Name: "x", Shape: []int64{1, 1}, I64: []int64{1}}}, nil, "x"},
		{"floats where integers belong", "echo", []tt{{Name: "input_ids", Shape: []int64{1, 1}, F32: ones[:1]}}, nil, "input_ids"},
		{"both kinds of data", "add", []tt{y, {Name: "x", Shape: []int64{1, 1}, I64: []int64{1}, F32: ones[:1]}}, nil, "x"},
		{"no data", "add", []tt{y, {Name: "x", Shape: []int64{1, 1}}}, nil, "x"},
		{"no shape", "add", []tt{y, {Name: "x", F32: ones[:1]}}, nil, "x"},
		{"another rank", "add", []tt{y, {Name: "x", Shape: []int64{1}, F32: ones[:1]}}, nil, "x"},
		{"another fixed dimension", "fixed", []tt{{Name: "x", Shape: []int64{3, 2}, F32: ones}}, nil, "x"},
		{"too little data", "add", []tt{y, {Name: "x", Shape: []int64{2, 3}, F32: ones[:5]}}, nil, "x"},
		{"too much data", "add", []tt{y, {Name: "x", Shape: []int64{1, 5}, F32: ones}}, nil, "x"},
		{"an empty batch", "add", []tt{y, {Name: "x", Shape: []int64{0, 5}, F32: ones[:0]}}, nil, "x"},
		{"a negative dimension", "add", []tt{y, {Name: "x", Shape: []int64{-1, -6}, F32: ones}}, nil, "x"},
		{"an integer of more than 32 bits", "int32", []tt{{Name: "x", Shape: []int64{1, 2}, I64: []int64{1, 1 << 31}}}, nil, "x"},
		{"a number beyond half precision", "float16", []tt{{Name: "x", Shape: []int64{1, 2}, F32: []float32{1, -65505}}}, nil, "x"},
		{"a product that overflows to what is there", "add", []tt{y, {Name: "x", Shape: []int64{1 << 32, 1 << 32}, F32: ones[:0]}}, nil, "x"},
		{"a product that overflows to one element", "add", []tt{y, {Name: "x", Shape: []int64{0x5555555555555555, 3}, F32: ones[:1]}}, nil, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fakeSessionOn(t, r, c.graph)
			_, err := s.Run(t.Context(), c.in, c.outputs)
			var in *InputError
			if !errors.As(err, &in) {
				t.Fatalf("got %v", err)
			}
			if in.Tensor != c.tensor || in.Session != c.graph {
				t.Errorf("blamed %q of %q: %v", in.Tensor, in.Session, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSessionOptionsAreChecked(t *testing.T) {
	r := fakeRuntime(&fakeLibrary{}, Options{})
	model, err := os.ReadFile("testdata/add.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]SessionOptions{
		"no name":               {},
		"a provider of no kind": {Name: "a", Provider: "gpu"},
		"negative threads":      {Name: "a", IntraOpThreads: -1},
		"too many threads":      {Name: "a", IntraOpThreads: maxThreads + 1},
		"an unknown output":     {Name: "a", Outputs: []string{"difference"}},
	} {
		if _, err := r.NewSession(t.Context(), model, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestASessionThatCannotOpenLeavesNothing(t *testing.T) {
	model, err := os.ReadFile("testdata/add.onnx")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := fakeRuntime(&fakeLibrary{}, Options{})
	if _, err := r.NewSession(ended, model, SessionOptions{Name: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	refused := fakeRuntime(&fakeLibrary{refuse: errors.New("no such operator")}, Options{})
	_, err = refused.NewSession(t.Context(), model, SessionOptions{Name: "a"})
	if got := reasonOf(t, err); got != signal.ReasonNoModel {
		t.Errorf("refused graph: reason %q", got)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.NewSession(t.Context(), model, SessionOptions{Name: "a"}); !errors.Is(err, ErrClosed) {
		t.Errorf("closed runtime: %v", err)
	}
	if n := r.Handles() + refused.Handles(); n != 0 {
		t.Errorf("%d handles are alive", n)
	}
}

func TestAProviderThatCouldNotBeProbedIsReplaced(t *testing.T) {
	r := fakeRuntime(&fakeLibrary{}, Options{Provider: "cuda"})
	s := fakeSessionOn(t, r, "add")
	if s.Provider() != ProviderCPU || s.Fallback() != "cuda: unknown: driver did not answer" {
		t.Errorf("runs on %q, fallback %q", s.Provider(), s.Fallback())
	}
	if _, why := r.Provider(); why != s.Fallback() {
		t.Errorf("the runtime says %q", why)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseGivesEveryCallerTheSameError(t *testing.T) {
	broken := errors.New("device lost")
	r := fakeRuntime(&fakeLibrary{closeErr: broken}, Options{})
	s := fakeSessionOn(t, r, "add")
	for range 2 {
		if err := s.Close(); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Errorf("a session closed before is closed again: %v", err)
	}
}

func TestErrorsOfARunKeepTheirCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		run   func(cancel func()) error
		want  error
		state signal.Reason // of errors that are no context error
	}{
		{"a run that fails is a run error", func(func()) error { return errors.New("bad kernel") }, nil, signal.ReasonInternal},
		{"a run that ends with its context is a context error", func(cancel func()) error { cancel(); return errors.New("terminated") }, context.Canceled, ""},
		{"a run that ends well in spite of its context is a success", func(cancel func()) error { cancel(); return nil }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := fakeRuntime(&fakeLibrary{during: func(context.Context) error { return c.run(cancel) }}, Options{})
			s := fakeSessionOn(t, r, "add")
			_, err := s.Run(ctx, addInput(), nil)
			if !errors.Is(err, c.want) && c.want != nil {
				t.Errorf("got %v", err)
			}
			if c.state != "" && reasonOf(t, err) != c.state {
				t.Errorf("got reason %q", reasonOf(t, err))
			}
			if c.want == nil && c.state == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAWideRunTakesMorePlaces(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	lib := &fakeLibrary{during: func(context.Context) error {
		started <- struct{}{}
		<-release
		return nil
	}}
	r := fakeRuntime(lib, Options{MaxConcurrent: 2, QueueDepth: -1})
	narrow := fakeSessionOn(t, r, "add")
	wide, err := r.NewSession(t.Context(), readFile(t, "testdata/add.onnx"), SessionOptions{Name: "wide", IntraOpThreads: 64})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := wide.Run(t.Context(), addInput(), nil)
		done <- err
	}()
	<-started
	if _, err := narrow.Run(t.Context(), addInput(), nil); !errors.Is(err, ErrOverloaded) {
		t.Errorf("beside a wide run: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for range 2 {
		go func() {
			_, err := narrow.Run(t.Context(), addInput(), nil)
			done <- err
		}()
		<-started
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestAWaitingRunLeavesWithItsContext(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	lib := &fakeLibrary{during: func(context.Context) error {
		started <- struct{}{}
		<-release
		return nil
	}}
	r := fakeRuntime(lib, Options{MaxConcurrent: 1})
	s := fakeSessionOn(t, r, "add")
	done := make(chan error)
	go func() {
		_, err := s.Run(t.Context(), addInput(), nil)
		done <- err
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() {
		_, err := s.Run(ctx, addInput(), nil)
		waited <- err
	}()
	waitFor(t, func() bool { return r.Waiting() == 1 })
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d runs still wait", n)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrorsSpeakOfWhatHappened(t *testing.T) {
	got := []string{
		(&ModelError{Session: "intent", Msg: "not an ONNX model"}).Error(),
		(&InputError{Session: "intent", Tensor: "input_ids", Msg: "missing"}).Error(),
		(&RunError{Session: "intent", Msg: "bad kernel"}).Error(),
	}
	want := []string{
		`model "intent": not an ONNX model`,
		`session "intent": tensor "input_ids": missing`,
		`run session "intent": bad kernel`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for err, want := range map[error]signal.Reason{
		ErrUnavailable: signal.ReasonNoModel, ErrOverloaded: signal.ReasonOverload,
		ErrClosed: signal.ReasonNoModel, ErrNotFinite: signal.ReasonInvalid,
	} {
		if got := reasonOf(t, err); got != want {
			t.Errorf("%v: reason %q, want %q", err, got, want)
		}
	}
}

// waitFor yields until the condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(testkit.Patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("waited for nothing")
		}
		runtime.Gosched()
	}
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
