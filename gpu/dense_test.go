//go:build cgo

package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/gpu/dense"
	"signalbox/internal/tensor"
)

// loadModel makes a session of the library without what is around it, with or without operators of
// our own.
func loadModel(tb testing.TB, model []byte, threads int, plain bool) executor {
	tb.Helper()
	openRuntime(tb, nil)
	sig, err := readSignature(model)
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, v := range sig.outputs {
		names = append(names, v.name)
	}
	exec, err := onnxRuntime{}.load(model, sig, names, loadOptions{
		provider: &provider{name: ProviderCPU}, plain: plain, threads: threads, keep: 1, handles: new(atomic.Int64),
		limit: time.Minute, hung: func() { tb.Error("the run hangs") },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := exec.close(); err != nil {
			tb.Error(err)
		}
	})
	return exec
}

func outputsOf(tb testing.TB, exec executor, n int, in ...tensor.Tensor) []tensor.Tensor {
	tb.Helper()
	out := make([]tensor.Tensor, n)
	if err := exec.run(tb.Context(), in, out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// sameBits tells where two lists of outputs differ, empty when they do not.
func sameBits(want, got []tensor.Tensor) string {
	for i := range want {
		if !slices.Equal(want[i].Shape, got[i].Shape) {
			return fmt.Sprintf("output %d has shape %v, want %v", i, got[i].Shape, want[i].Shape)
		}
		for j := range want[i].F32 {
			if math.Float32bits(want[i].F32[j]) != math.Float32bits(got[i].F32[j]) {
				return fmt.Sprintf("output %d, number %d is %v, want %v", i, j, got[i].F32[j], want[i].F32[j])
			}
		}
	}
	return ""
}

// The operator gives the bits that the library's own operators give, for every number of rows that
// the kernel treats in another way, on one thread and several. Where the processor has no VNNI both
// are the library's, and nothing is counted.
func TestDenseGivesTheBitsOfTheLibrary(t *testing.T) {
	model := readGraph(t, "layers")
	plain := loadModel(t, model, 1, true)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, threads := range []int{1, 2} {
		own := loadModel(t, model, threads, false)
		for _, rows := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300} {
			for _, size := range []float64{1e-30, 1, 100, 1e30} {
				x := make([]float32, rows*48)
				for i := range x {
					x[i] = float32(rng.NormFloat64() * size)
				}
				for i, odd := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1)} {
					if at := i * 131; at < len(x) && rows%2 == 1 {
						x[at] = float32(odd)
					}
				}
				in := f32("x", []int64{1, int64(rows), 48}, x...)
				before := dense.Runs()
				got := outputsOf(t, own, 6, in)
				if ran := dense.Runs() - before; dense.Supported() != (ran == 5) || !dense.Supported() != (ran == 0) {
					t.Errorf("%d of our operators ran", ran)
				}
				if wrong := sameBits(outputsOf(t, plain, 6, in), got); wrong != "" {
					t.Errorf("%d threads, %d rows of size %g: %s", threads, rows, size, wrong)
				}
			}
		}
	}
}

func TestEmbeddedBundlesGiveTheBitsOfTheLibrary(t *testing.T) {
	for _, name := range []string{"default", "grounding"} {
		t.Run(name, func(t *testing.T) {
			model := readFile(t, filepath.Join("..", "models", name, "model_int8.onnx"))
			sig, err := readSignature(model)
			if err != nil {
				t.Fatal(err)
			}
			plain, own := loadModel(t, model, 1, true), loadModel(t, model, 1, false)
			for _, tokens := range []int{2, 16, 61, 128, 256} {
				in := textInput(specs(sig.inputs), tokens)
				want, got := outputsOf(t, plain, len(sig.outputs), in...), outputsOf(t, own, len(sig.outputs), in...)
				if wrong := sameBits(want, got); wrong != "" {
					t.Errorf("%d tokens: %s", tokens, wrong)
				}
			}
		})
	}
}

// A graph that brings the operator along, where the runtime does not know it, is an error of the
// model and nothing worse.
func TestModelsWithOurOperatorAreRefused(t *testing.T) {
	fused, layers, err := fuse(readGraph(t, "layers"))
	if err != nil || layers == 0 {
		t.Fatalf("%d layers, error %v", layers, err)
	}
	r := openRuntime(t, nil)
	if _, err := r.NewSession(t.Context(), fused, SessionOptions{Name: "theirs"}); err == nil || !strings.Contains(err.Error(), dense.Op) {
		t.Errorf("error %v", err)
	}
}

// One session is run by many at once, and each gets its own answer.
func TestDenseRunsSideBySide(t *testing.T) {
	own := loadModel(t, readGraph(t, "layers"), 1, false)
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 3))
			x := make([]float32, 40*48)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			in := f32("x", []int64{1, 40, 48}, x...)
			out := make([]tensor.Tensor, 6)
			if err := own.run(t.Context(), []tensor.Tensor{in}, out); err != nil {
				t.Error(err)
				return
			}
			for range 50 {
				again := make([]tensor.Tensor, 6)
				if err := own.run(t.Context(), []tensor.Tensor{in}, again); err != nil {
					t.Error(err)
					return
				}
				if wrong := sameBits(out, again); wrong != "" {
					t.Error(wrong)
					return
				}
			}
		})
	}
	wait.Wait()
}

// Sessions with the same weights read one copy of them, as long as there are two; others do not.
// Sessions come and go while one is run.
func TestSessionsShareWeights(t *testing.T) {
	model := readGraph(t, "layers")
	sig, err := readSignature(model)
	if err != nil {
		t.Fatal(err)
	}
	open := func() executor {
		exec, err := onnxRuntime{}.load(model, sig, []string{sig.outputs[0].name}, loadOptions{
			provider: &provider{name: ProviderCPU}, threads: 1, keep: 1, handles: new(atomic.Int64),
			limit: time.Minute, hung: func() { t.Error("the run hangs") },
		})
		if err != nil {
			t.Fatal(err)
		}
		return exec
	}
	shut := func(exec executor) {
		if err := exec.close(); err != nil {
			t.Error(err)
		}
	}
	openRuntime(t, nil)
	before := dense.Shared()
	first := open()
	alone := dense.Shared()
	in := f32("x", []int64{1, 20, 48}, slices.Repeat([]float32{0.5}, 20*48)...)
	want := outputsOf(t, first, 1, in)
	var runs sync.WaitGroup
	done := make(chan struct{})
	runs.Go(func() {
		out := make([]tensor.Tensor, 1)
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := first.run(t.Context(), []tensor.Tensor{in}, out); err != nil {
				t.Error(err)
				return
			}
			if wrong := sameBits(want, out); wrong != "" {
				t.Error(wrong)
				return
			}
		}
	})
	for range 20 {
		second, third := open(), open()
		if n := dense.Shared(); dense.Supported() && n <= alone {
			t.Errorf("%d layers are shared by three sessions, %d in one", n, alone)
		}
		shut(second)
		if wrong := sameBits(want, outputsOf(t, third, 1, in)); wrong != "" {
			t.Error(wrong)
		}
		shut(third)
	}
	close(done)
	runs.Wait()
	second := open()
	shut(first)
	if wrong := sameBits(want, outputsOf(t, second, 1, in)); wrong != "" {
		t.Errorf("when the first is gone: %s", wrong)
	}
	shut(second)
	if n := dense.Shared(); n != before {
		t.Errorf("%d layers are shared when all are gone, want %d", n, before)
	}
}

func TestOptionsOfTheBindingHaveAPointer(t *testing.T) {
	openRuntime(t, nil)
	o, err := newSessionOptions(1, ProviderCPU)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Destroy()
	if pointerOf(o) == nil {
		t.Error("the binding keeps its options in another way: operators cannot be registered")
	}
	if err := dense.Register("no library", nil); err == nil {
		t.Error("options that are not there are no error")
	}
}

// BenchmarkDense compares the embedded bundle with operators of our own and without, in turn.
func BenchmarkDense(b *testing.B) {
	model := readFile(b, filepath.Join("..", "models", "default", "model_int8.onnx"))
	sig, err := readSignature(model)
	if err != nil {
		b.Fatal(err)
	}
	execs := []executor{loadModel(b, model, 1, true), loadModel(b, model, 1, false)}
	for _, tokens := range []int{4, 16, 64, 128, 256} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			in, out := textInput(specs(sig.inputs), tokens), make([]tensor.Tensor, len(sig.outputs))
			took := make([][]time.Duration, len(execs))
			for b.Loop() {
				for i, exec := range execs {
					start := time.Now()
					if err := exec.run(b.Context(), in, out); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(start))
				}
			}
			median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2].Microseconds()) }
			plain, own := median(took[0]), median(took[1])
			b.ReportMetric(plain, "library-us")
			b.ReportMetric(own, "own-us")
			b.ReportMetric(own/plain, "ratio")
		})
	}
}
