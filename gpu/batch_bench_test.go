//go:build cgo

package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// BenchmarkBatching compares what a row of the embedded bundle costs, in CPU time, without batching
// and with it where it pays, for callers at once and for one caller alone. The modes take turns
// within one run, and what is told is the median over the turns: the machine may be shared.
//
//	go test ./gpu -run - -bench Batching -benchtime 20x
//
// Where SIGNALBOX_GPU_PROVIDER names a provider it runs there, by the clock on the wall, with the
// graph of half precision in the folder that SIGNALBOX_GPU_GRAPHS names: see tools/gpu-check.
func BenchmarkBatching(b *testing.B) {
	model, provider, clock, unit := batchBenchOn(b)
	modes := []string{BatchOff, BatchAuto}
	for _, c := range []struct{ tokens, callers, rows int }{
		{16, 16, 128}, {32, 16, 64}, {128, 16, 32}, {128, 64, 128}, {16, 1, 64}, {128, 1, 16},
	} {
		b.Run(fmt.Sprintf("%d-tokens-%d-callers", c.tokens, c.callers), func(b *testing.B) {
			sessions := make([]*Session, len(modes))
			for i, mode := range modes {
				r := openRuntime(b, func(o *Options) {
					o.Provider, o.Batch.Mode, o.EnvLibrary = provider, mode, os.Getenv("SIGNALBOX_ONNXRUNTIME")
				})
				if name, why := r.Provider(); name != provider {
					b.Fatal(why)
				}
				s, err := r.NewSession(b.Context(), model, SessionOptions{Name: "default", Pad: map[string]int64{}})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				sessions[i] = s
				rowsAtOnce(b, s, c.tokens, c.callers, c.rows) // the first runs are slower, and auto learns
			}
			took := make([][]time.Duration, len(modes))
			for n := 0; b.Loop(); n++ {
				for i := range modes {
					i = (i + n) % len(modes) // who begins changes
					start := clock(b)
					rowsAtOnce(b, sessions[i], c.tokens, c.callers, c.rows)
					took[i] = append(took[i], clock(b)-start)
				}
			}
			var ms [2]float64
			for i, mode := range modes {
				slices.Sort(took[i])
				ms[i] = float64(took[i][len(took[i])/2].Microseconds()) / 1000 / float64(c.rows)
				b.ReportMetric(ms[i], mode+unit)
			}
			b.ReportMetric(ms[0]/ms[1], "gain")
		})
	}
}

// batchBenchOn says what BenchmarkBatching runs, where, and how it measures.
func batchBenchOn(b *testing.B) (model []byte, provider string, clock func(testing.TB) time.Duration, unit string) {
	b.Helper()
	file := filepath.Join("..", "models", "default", "model_int8.onnx")
	provider, clock, unit = ProviderCPU, testkit.Used, "-cpu-ms/row"
	if other := os.Getenv("SIGNALBOX_GPU_PROVIDER"); other != "" && other != ProviderCPU {
		file, provider = filepath.Join(os.Getenv("SIGNALBOX_GPU_GRAPHS"), "embedded_fp16.onnx"), other
		clock, unit = wallTime, "-ms/row"
	}
	model, err := os.ReadFile(file)
	if err != nil {
		b.Skipf("the bundle's graph: %v", err)
	}
	return model, provider, clock, unit
}

// rowsAtOnce runs so many rows, one a run, from so many callers.
func rowsAtOnce(b *testing.B, s *Session, tokens, callers, rows int) {
	b.Helper()
	in := textInput(s.Inputs(), tokens)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := i; n < rows; n += callers {
				if _, err := s.Run(b.Context(), slices.Clone[[]tensor.Tensor](in), nil); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
