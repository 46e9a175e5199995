//go:build cgo

package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	ort "github.com/yalue/onnxruntime_go"

	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// BenchmarkOverhead compares a run through this package with the least that the binding allows:
// tensors made once, no checks, no queue, no cancellation.
func BenchmarkOverhead(b *testing.B) {
	r := openRuntime(b, nil)
	b.Run("bare", func(b *testing.B) {
		o, err := newSessionOptions(1, ProviderCPU)
		if err != nil {
			b.Fatal(err)
		}
		defer o.Destroy()
		native, err := ort.NewDynamicAdvancedSessionWithONNXData(readGraph(b, "add"), []string{"x", "y"}, []string{"sum"}, o)
		if err != nil {
			b.Fatal(err)
		}
		defer native.Destroy()
		var values [3]ort.Value
		for i := range values {
			if values[i], err = ort.NewTensor(ort.NewShape(1, 4), make([]float32, 4)); err != nil {
				b.Fatal(err)
			}
			defer values[i].Destroy()
		}
		b.ReportAllocs()
		start := testkit.Used(b)
		for b.Loop() {
			if err := native.Run(values[:2], values[2:]); err != nil {
				b.Fatal(err)
			}
		}
		reportCPU(b, start)
	})
	b.Run("session", func(b *testing.B) {
		s := openSession(b, r, "add", nil)
		in := []tensor.Tensor{f32("x", []int64{1, 4}, 1, 2, 3, 4), f32("y", []int64{1, 4}, 1, 2, 3, 4)}
		ctx := b.Context() // can be cancelled, as a request's context can
		names := []string{"sum"}
		b.ReportAllocs()
		start := testkit.Used(b)
		for b.Loop() {
			if _, err := s.Run(ctx, in, names); err != nil {
				b.Fatal(err)
			}
		}
		reportCPU(b, start)
	})
}

// BenchmarkSessionRun runs the embedded bundle's graph, one text at a time on one thread.
func BenchmarkSessionRun(b *testing.B) {
	path := filepath.Join("..", "models", "default", "model_int8.onnx")
	model, err := os.ReadFile(path)
	if err != nil {
		b.Skipf("the bundle's graph: %v", err)
	}
	r := openRuntime(b, nil)
	s, err := r.NewSession(b.Context(), model, SessionOptions{Name: "default"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, tokens := range []int{16, 128, 256} {
		in := textInput(s.Inputs(), tokens)
		b.Run(fmt.Sprintf("%d-tokens", tokens), func(b *testing.B) {
			b.ReportAllocs()
			start := testkit.Used(b)
			for b.Loop() {
				if _, err := s.Run(b.Context(), in, nil); err != nil {
					b.Fatal(err)
				}
			}
			reportCPU(b, start)
		})
	}
}

// BenchmarkTasks compares one graph with a shared trunk and n tasks with n separate models run one
// after the other, on one thread and one text of 128 tokens. The graphs are large, so they are made
// when they are wanted, and SIGNALBOX_TASK_GRAPHS names their folder:
//
//	python training/fixtures/graphs.py bench /tmp/task-graphs
//	SIGNALBOX_TASK_GRAPHS=/tmp/task-graphs go test ./gpu -run - -bench Tasks
func BenchmarkTasks(b *testing.B) {
	folder := os.Getenv("SIGNALBOX_TASK_GRAPHS")
	if folder == "" {
		b.Skip("SIGNALBOX_TASK_GRAPHS names no folder with the graphs that training/fixtures/graphs.py bench writes")
	}
	r := openRuntime(b, nil)
	open := func(b *testing.B, name string) *Session {
		b.Helper()
		model, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			b.Fatal(err)
		}
		s, err := r.NewSession(b.Context(), model, SessionOptions{Name: name})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	run := func(b *testing.B, sessions []*Session) {
		b.Helper()
		in := textInput(sessions[0].Inputs(), 128)
		for i := range in[0].I64 { // the graphs of the benchmark know 3000 words
			in[0].I64[i] %= 3000
		}
		start := testkit.Used(b)
		for b.Loop() {
			for _, s := range sessions {
				if _, err := s.Run(b.Context(), in, nil); err != nil {
					b.Fatal(err)
				}
			}
		}
		reportCPU(b, start)
	}
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("shared-%d", n), func(b *testing.B) {
			run(b, []*Session{open(b, fmt.Sprintf("shared_%d.onnx", n))})
		})
		b.Run(fmt.Sprintf("separate-%d", n), func(b *testing.B) {
			sessions := make([]*Session, n)
			for i := range sessions {
				sessions[i] = open(b, fmt.Sprintf("merged_%d.onnx", i))
			}
			run(b, sessions)
		})
	}
}

// textInput makes one row of plausible token ids, all attended to, for whichever of the usual
// inputs a graph has.
func textInput(specs []tensor.Spec, tokens int) []tensor.Tensor {
	in := make([]tensor.Tensor, len(specs))
	for i, spec := range specs {
		in[i] = tensor.Tensor{Name: spec.Name, Shape: []int64{1, int64(tokens)}, I64: make([]int64, tokens)}
		for j := range tokens {
			switch spec.Name {
			case "input_ids":
				in[i].I64[j] = int64(1000 + 37*j%20000)
			case "attention_mask":
				in[i].I64[j] = 1
			}
		}
	}
	return in
}

// BenchmarkLoad measures opening and closing a session of the embedded bundle.
func BenchmarkLoad(b *testing.B) {
	model, err := os.ReadFile(filepath.Join("..", "models", "default", "model_int8.onnx"))
	if err != nil {
		b.Skipf("the bundle's graph: %v", err)
	}
	r := openRuntime(b, nil)
	for b.Loop() {
		s, err := r.NewSession(b.Context(), model, SessionOptions{Name: "default"})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func reportCPU(b *testing.B, start time.Duration) {
	b.Helper()
	b.ReportMetric(float64(testkit.Used(b)-start)/float64(b.N), "cpu-ns/op")
}
