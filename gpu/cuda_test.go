//go:build cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// openCUDA opens a runtime on CUDA. Without a device the test is skipped, unless SIGNALBOX_CUDA
// says that there has to be one, as tools/gpu-check does.
func openCUDA(t *testing.T, change func(*Options)) *Runtime {
	t.Helper()
	r := openRuntime(t, func(o *Options) {
		o.Provider, o.EnvLibrary = ProviderCUDA, os.Getenv("SIGNALBOX_ONNXRUNTIME")
		if change != nil {
			change(o)
		}
	})
	if name, why := r.Provider(); name != ProviderCUDA {
		if os.Getenv("SIGNALBOX_CUDA") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return r
}

func TestCUDARunsWhatTheCPURuns(t *testing.T) {
	r := openCUDA(t, nil)
	for _, graph := range []string{"add", "half"} {
		onGPU := openSession(t, r, graph, nil)
		onCPU := openSession(t, r, graph, func(o *SessionOptions) { o.Provider = ProviderCPU })
		if onGPU.Provider() != ProviderCUDA || onGPU.Fallback() != "" {
			t.Fatalf("%s runs on %q: %s", graph, onGPU.Provider(), onGPU.Fallback())
		}
		in := []tensor.Tensor{f32("x", []int64{2, 3}, 1, -2, 1.0/3, 4, 5, 6)}
		if graph == "add" {
			in = append(in, f32("y", []int64{2, 3}, 1, 2, 3, 4, 5, 6))
		}
		want, err := onCPU.Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := onGPU.Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !slices.Equal(got[i].F32, want[i].F32) {
				t.Errorf("%s: %s is %v, on the CPU %v", graph, want[i].Name, got[i].F32, want[i].F32)
			}
		}
	}
}

// The graph of half precision of the embedded bundle, in the folder that SIGNALBOX_GPU_GRAPHS
// names, gives on the GPU what it gives on the CPU.
func TestCUDAAgreesWithTheCPUOnTheBundle(t *testing.T) {
	folder := os.Getenv("SIGNALBOX_GPU_GRAPHS")
	if folder == "" {
		t.Skip("SIGNALBOX_GPU_GRAPHS names no folder of tools/gpu-check")
	}
	model := readFile(t, filepath.Join(folder, "embedded_fp16.onnx"))
	r := openCUDA(t, nil)
	var sessions [2]*Session
	for i, provider := range []string{ProviderCUDA, ProviderCPU} {
		sessions[i] = modelSession(t, r, model, "bundle", provider)
	}
	for _, tokens := range []int{2, 16, 128, 256} {
		var out [2][]tensor.Tensor
		for i, s := range sessions {
			var err error
			if out[i], err = s.Run(t.Context(), textInput(s.Inputs(), tokens), nil); err != nil {
				t.Fatal(err)
			}
		}
		for k := range out[0] {
			worst := apartAtMost(out[0][k].F32, out[1][k].F32)
			if t.Logf("%d tokens, %s: %.4f", tokens, out[0][k].Name, worst); worst > halfPrecision {
				t.Errorf("%d tokens, %s: GPU and CPU differ by %v", tokens, out[0][k].Name, worst)
			}
		}
	}
}

// Rows of several lengths that share a run on the GPU give what each gives alone on the CPU: what
// fills the shorter ones up is not looked at.
func TestCUDAKeepsRowsOfARunApart(t *testing.T) {
	folder := os.Getenv("SIGNALBOX_GPU_GRAPHS")
	if folder == "" {
		t.Skip("SIGNALBOX_GPU_GRAPHS names no folder of tools/gpu-check")
	}
	r := openCUDA(t, nil)
	model := readFile(t, filepath.Join(folder, "embedded_fp16.onnx"))
	onGPU := modelSession(t, r, model, "bundle", ProviderCUDA)
	onCPU := modelSession(t, r, model, "bundle", ProviderCPU)
	lengths := []int{3, 128, 40, 100, 16, 127, 64, 2}
	got, err := onGPU.Run(t.Context(), paddedInput(onGPU.Inputs(), lengths), nil)
	if err != nil {
		t.Fatal(err)
	}
	for row, tokens := range lengths {
		want, err := onCPU.Run(t.Context(), textInput(onCPU.Inputs(), tokens), nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			each := len(got[k].F32) / len(lengths) // of a row; padding comes last in those that have an answer a token
			worst := apartAtMost(got[k].F32[row*each:], want[k].F32)
			if t.Logf("%d tokens, %s: %.4f", tokens, want[k].Name, worst); worst > halfPrecision {
				t.Errorf("%d tokens, %s: GPU and CPU differ by %v", tokens, want[k].Name, worst)
			}
		}
	}
}

// paddedInput makes a row of each length, as textInput does, filled up to the longest.
func paddedInput(specs []tensor.Spec, lengths []int) []tensor.Tensor {
	longest := slices.Max(lengths)
	in := make([]tensor.Tensor, len(specs))
	for i, spec := range specs {
		in[i] = tensor.Tensor{Name: spec.Name, Shape: []int64{int64(len(lengths)), int64(longest)}}
		for _, tokens := range lengths {
			in[i].I64 = append(in[i].I64, textInput(specs[i:i+1], tokens)[0].I64...)
			in[i].I64 = append(in[i].I64, make([]int64, longest-tokens)...)
		}
	}
	return in
}

// halfPrecision is by how much numbers may differ that two devices computed in half precision: 11
// bits, over six layers.
const halfPrecision = 0.05

// apartAtMost is the largest difference of what was got to what was wanted, number by number.
func apartAtMost(got, want []float32) float64 {
	worst := 0.0
	for i, v := range want {
		if d := math.Abs(float64(got[i] - v)); d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	if math.IsNaN(worst) {
		return math.Inf(1)
	}
	return worst
}

// CUDA replaces Go's signal handlers when it starts.
func TestCUDALeavesSignalHandlersAlone(t *testing.T) {
	openSession(t, openCUDA(t, nil), "add", nil)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		c := make(chan os.Signal, 1)
		signal.Notify(c, sig)
		if !arrives(t, c, sig, testkit.Patience) {
			t.Errorf("%v did not arrive", sig)
		}
		signal.Stop(c)
	}
}

func TestCUDAStopsARun(t *testing.T) {
	s := openSession(t, openCUDA(t, nil), "slow", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := s.Run(ctx, slowInput(forever), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); testkit.Timed() && took > 2*time.Second {
		t.Errorf("stopped after %v", took)
	}
}

// A run that needs more memory than it may have fails, and the session goes on.
func TestCUDAKeepsItsMemoryLimit(t *testing.T) {
	s := openSession(t, openCUDA(t, func(o *Options) { o.MemoryLimit = 64 << 20 }), "add", nil)
	const rows, width = 1 << 12, 1 << 13 // three times 128 MiB
	x := tensor.Tensor{Name: "x", Shape: []int64{rows, width}, F32: make([]float32, rows*width)}
	y := x
	y.Name = "y"
	_, err := s.Run(t.Context(), []tensor.Tensor{x, y}, nil)
	if err == nil || string(reasonOf(t, err)) != "overload" {
		t.Errorf("got %v", err)
	}
	if _, err := s.Run(t.Context(), addInput(), nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestGPUTable prints latency and throughput of the graphs in the folder that SIGNALBOX_GPU_GRAPHS
// names, NAME_cpu.onnx on the CPU and, unless that is the provider that SIGNALBOX_GPU_PROVIDER
// names, NAME_fp16.onnx on the provider, as a Markdown table. It measures; it proves nothing. The
// CPU's milliseconds are CPU time, which others on the machine change less than that on the clock:
// a run has one thread. SIGNALBOX_GPU_ALONE leaves the CPU out, SIGNALBOX_GPU_TOKENS and
// SIGNALBOX_GPU_BATCHES name other lengths and batches. tools/gpu-check runs it.
func TestGPUTable(t *testing.T) {
	folder, provider := os.Getenv("SIGNALBOX_GPU_GRAPHS"), os.Getenv("SIGNALBOX_GPU_PROVIDER")
	if folder == "" || provider == "" {
		t.Skip("SIGNALBOX_GPU_GRAPHS and SIGNALBOX_GPU_PROVIDER are not set: tools/gpu-check does it")
	}
	r := openRuntime(t, func(o *Options) {
		o.Provider, o.EnvLibrary, o.IntraOpThreads = provider, os.Getenv("SIGNALBOX_ONNXRUNTIME"), 1
	})
	if name, why := r.Provider(); name != provider {
		t.Fatal(why)
	}
	lengths, batches := numbers(t, "SIGNALBOX_GPU_TOKENS", 128, 512, 2048), numbers(t, "SIGNALBOX_GPU_BATCHES", 1, 8, 32)
	graphs, err := filepath.Glob(filepath.Join(folder, "*_cpu.onnx"))
	if err != nil || len(graphs) == 0 {
		t.Fatalf("no graphs in %s: %v", folder, err)
	}
	columns := tableColumns(provider)
	head, rule := "| model | tokens | batch |", "|---|---|---|"
	for _, c := range columns {
		head, rule = head+fmt.Sprintf(" %s ms | %s rows/s |", c, c), rule+"---|---|"
	}
	fmt.Printf("%s\n%s\n", head, rule)
	for _, graph := range graphs {
		name := strings.TrimSuffix(filepath.Base(graph), "_cpu.onnx")
		var sessions []*Session
		for _, c := range columns {
			file := name + "_fp16.onnx"
			if c == ProviderCPU {
				file = name + "_cpu.onnx"
			}
			sessions = append(sessions, tableSession(t, r, filepath.Join(folder, file), c))
		}
		for _, tokens := range lengths {
			for _, batch := range batches {
				row := fmt.Sprintf("| %s | %d | %d |", name, tokens, batch)
				for _, s := range sessions {
					row += fmt.Sprintf(" %s |", cell(t, s, tokens, batch))
				}
				fmt.Println(row)
			}
		}
		for _, s := range sessions {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// tableColumns are the providers that the table is about.
func tableColumns(provider string) []string {
	if provider == ProviderCPU || os.Getenv("SIGNALBOX_GPU_ALONE") != "" {
		return []string{provider}
	}
	return []string{ProviderCPU, provider}
}

// numbers reads a list such as 16,32 from the environment, where it is set.
func numbers(t *testing.T, variable string, otherwise ...int) []int {
	t.Helper()
	list := os.Getenv(variable)
	if list == "" {
		return otherwise
	}
	var out []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			t.Fatalf("%s: %q is no number of at least 1", variable, word)
		}
		out = append(out, n)
	}
	return out
}

func modelSession(t *testing.T, r *Runtime, model []byte, name, provider string) *Session {
	t.Helper()
	s, err := r.NewSession(t.Context(), model, SessionOptions{Name: name, Provider: provider})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func tableSession(t *testing.T, r *Runtime, path, provider string) *Session {
	t.Helper()
	return modelSession(t, r, readFile(t, path), filepath.Base(path), provider)
}

// cell is the median time of a run and the rows that it makes a second, or a dash for rows that the
// model cannot read or that memory does not suffice for; the log tells which. The first run counts
// only where it takes so long that what it pays for starting is nothing.
func cell(t *testing.T, s *Session, tokens, batch int) string {
	t.Helper()
	const long = 10 * time.Second
	in := textInput(s.Inputs(), tokens)
	for i := range in {
		in[i].Shape = []int64{int64(batch), int64(tokens)}
		in[i].I64 = slices.Repeat(in[i].I64, batch)
		for j := range in[i].I64 { // the smallest vocabulary of the graphs
			in[i].I64[j] %= 3000
		}
	}
	clock := wallTime
	if s.Provider() == ProviderCPU {
		clock = testkit.Used
	}
	first := clock(t)
	if _, err := s.Run(t.Context(), in, nil); err != nil {
		t.Logf("%s, %d tokens, batch of %d: %s", s.Name(), tokens, batch, brief(err))
		return "- | -"
	}
	var took []time.Duration
	if d := clock(t) - first; d > long {
		took = append(took, d)
	}
	for from := time.Now(); len(took) == 0 || took[0] < long && (len(took) < 5 || len(took) < 50 && time.Since(from) < 5*time.Second); {
		start := clock(t)
		if _, err := s.Run(t.Context(), in, nil); err != nil {
			t.Fatal(err)
		}
		took = append(took, clock(t)-start)
	}
	slices.Sort(took)
	median := took[len(took)/2]
	return fmt.Sprintf("%.2f | %.1f", float64(median.Microseconds())/1000, float64(batch)/median.Seconds())
}

// wallTime is the time on the clock, from some moment on.
func wallTime(testing.TB) time.Duration { return time.Since(begun) }

var begun = time.Now()
