package gpu

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// probedRuntime is a runtime over a fake library that lies in a folder with the given provider
// libraries, after its probes.
func probedRuntime(t *testing.T, lib *fakeLibrary, o Options, files ...string) *Runtime {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRuntime(o, Library{Path: filepath.Join(dir, "libonnxruntime.so")}, lib)
	r.probeTimeout = testkit.Patience
	if lib.hangs {
		r.probeTimeout = 200 * time.Millisecond
	}
	if err := r.probe(); err != nil {
		t.Fatal(err)
	}
	return r
}

const cudaFile = "libonnxruntime_providers_cuda.so"

// on returns an error for one provider.
func on(name string, err error) func(loadOptions) error {
	return func(cfg loadOptions) error {
		if cfg.provider.name == name {
			return err
		}
		return nil
	}
}

func TestAProbeHasThreeAnswers(t *testing.T) {
	hang, left := make(chan struct{}), make(chan struct{})
	defer func() { <-left }()
	defer close(hang)
	for _, c := range []struct {
		name   string
		lib    fakeLibrary
		files  []string
		state  Support
		detail string // its beginning
	}{
		{"a graph runs: yes", fakeLibrary{}, []string{cudaFile}, SupportYes, "device 0, answered after "},
		{"no provider library: no", fakeLibrary{}, nil, SupportNo, "no " + cudaFile + " beside the library"},
		{"no device: no", fakeLibrary{loads: on(ProviderCUDA, errors.New("CUDA failure 100: no CUDA-capable device is detected"))}, []string{cudaFile}, SupportNo, "CUDA failure 100"},
		{"a library of another version: no", fakeLibrary{loads: on(ProviderCUDA, errors.New("libcudnn.so.9: cannot open shared object file"))}, []string{cudaFile}, SupportNo, "libcudnn.so.9"},
		{"its memory is full: could not tell", fakeLibrary{loads: on(ProviderCUDA, errors.New("CUDA failure 2: out of memory"))}, []string{cudaFile}, SupportUnknown, "CUDA failure 2: out of memory"},
		{"it does not answer: could not tell", fakeLibrary{hangs: true, loads: func(cfg loadOptions) error {
			if cfg.provider.name == ProviderCUDA {
				defer close(left)
				<-hang
			}
			return nil
		}}, []string{cudaFile}, SupportUnknown, "no answer within 200ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := probedRuntime(t, &c.lib, Options{Provider: ProviderCUDA}, c.files...)
			got := find(t, r, ProviderCUDA)
			if got.State != c.state || !strings.HasPrefix(got.Detail, c.detail) {
				t.Errorf("got %+v, want %v: %s", got, c.state, c.detail)
			}
			name, why := r.Provider()
			want := ProviderCPU
			if c.state == SupportYes {
				want = ProviderCUDA
			}
			if name != want || (why == "") != (c.state == SupportYes) {
				t.Errorf("the provider is %q (%s), want %q", name, why, want)
			}
			if choices := r.Choices(); choices[0].Provider != want || choices[len(choices)-1] != (Choice{ProviderCPU, "int8"}) {
				t.Errorf("choices %v", choices)
			}
		})
	}
}

func find(t *testing.T, r *Runtime, name string) Provider {
	t.Helper()
	for _, p := range r.Providers() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no provider %q in %v", name, r.Providers())
	return Provider{}
}

func TestTheEngineCacheIsThereBeforeItsProvider(t *testing.T) {
	const file = "libonnxruntime_providers_tensorrt.so"
	cache := filepath.Join(t.TempDir(), "a", "engines")
	lib := &fakeLibrary{loads: func(cfg loadOptions) error {
		if cfg.provider.name != ProviderTensorRT {
			return nil
		}
		_, err := os.Stat(cfg.settings["trt_engine_cache_path"])
		return err
	}}
	if got := find(t, probedRuntime(t, lib, Options{Provider: ProviderTensorRT, EngineCache: cache}, file), ProviderTensorRT); got.State != SupportYes {
		t.Errorf("got %+v", got)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Provider: ProviderTensorRT, EngineCache: filepath.Join(blocked, "engines")}
	if got := find(t, probedRuntime(t, lib, o, file), ProviderTensorRT); got.State != SupportNo || !strings.HasPrefix(got.Detail, "engine_cache: ") {
		t.Errorf("got %+v", got)
	}
}

func TestDetailsLeaveOutPlacesInTheSource(t *testing.T) {
	for _, c := range []struct{ said, want string }{
		{"no device", "no device"},
		{
			"/onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:1988 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library\nlibcublasLt.so.13",
			"Failed to load library libcublasLt.so.13",
		},
		{
			`provider_options_utils.h:187 Parse Failed to parse provider option "device_id": CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=vm ; file=/onnxruntime_src/x.cc ; line=69 ; expr=cudaGetDeviceCount(&num_devices);`,
			`provider_options_utils.h:187 Parse Failed to parse provider option "device_id": CUDA failure 100: no CUDA-capable device is detected`,
		},
		{
			"/onnxruntime_src/onnxruntime/core/providers/webgpu/webgpu_context.cc:136 onnxruntime::webgpu::WebGpuContext::Initialize(const onnxruntime::webgpu::WebGpuContextConfig&)::<lambda()> adapter_result.status == wgpu::RequestAdapterStatus::Success was false. Failed to get a WebGPU adapter: No supported adapters",
			"Failed to get a WebGPU adapter: No supported adapters",
		},
		{"[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : out of memory", "out of memory"},
		{strings.Repeat("é", longestDetail), strings.Repeat("é", longestDetail/2) + " ..."},
	} {
		if got := brief(errors.New(c.said)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestAWrongSumIsNoProof(t *testing.T) {
	lib := &fakeLibrary{during: func(context.Context) error { return errors.New("illegal memory access") }}
	r := newRuntime(Options{}, Library{Path: "/nowhere/libonnxruntime.so"}, lib)
	if err := r.probe(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a CPU that cannot add was accepted: %v", err)
	}
}

func TestOnlyWhatIsAskedForIsProbed(t *testing.T) {
	all := []string{cudaFile, "libonnxruntime_providers_tensorrt.so", "libonnxruntime_providers_migraphx.so", "libonnxruntime_providers_openvino.so"}
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{Provider: ProviderCPU}, []string{"cpu"}},
		{Options{}, []string{"migraphx", "cpu"}},
		{Options{Provider: ProviderTensorRT}, []string{"tensorrt", "cpu"}},
		{Options{Provider: ProviderCPU, ProbeAll: true}, []string{"tensorrt", "cuda", "migraphx", "openvino", "webgpu", "cpu"}},
	} {
		r := probedRuntime(t, &fakeLibrary{}, c.o, all...)
		var got []string
		for _, p := range r.Providers() {
			if p.State == SupportYes {
				got = append(got, p.Name)
			} else if p.Detail != "not asked for" {
				t.Errorf("%v: %+v", c.o.Provider, p)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.o.Provider, diff)
		}
	}
}

func TestSettingsOfProviders(t *testing.T) {
	o := Options{MemoryLimit: 2 << 30, EngineCache: "/cache/engines"}
	want := map[string]map[string]string{
		"tensorrt": {
			"device_id": "1", "trt_fp16_enable": "1", "trt_engine_cache_enable": "1", "trt_engine_cache_path": "/cache/engines",
			"trt_timing_cache_enable": "1", "trt_timing_cache_path": "/cache/engines", "trt_max_workspace_size": "2147483648",
		},
		"cuda":     {"device_id": "1", "arena_extend_strategy": "kSameAsRequested", "gpu_mem_limit": "2147483648"},
		"migraphx": {"device_id": "1", "migraphx_model_cache_dir": "/cache/engines", "migraphx_mem_limit": "2147483648"},
		"openvino": {"device_type": "GPU.1", "cache_dir": "/cache/engines"},
		"webgpu":   nil,
		"cpu":      nil,
	}
	for _, p := range providers {
		if diff := cmp.Diff(want[p.name], p.settings(&o, 1)); diff != "" {
			t.Errorf("%s: %s", p.name, diff)
		}
	}
	if got := cudaSettings(&Options{}, 0); got["gpu_mem_limit"] != "" {
		t.Errorf("a limit that nobody set: %v", got)
	}
	for _, limit := range []option.Bytes{0, 1 << 30} { // what TensorRT leaves to CUDA has the same bounds
		o := Options{MemoryLimit: limit}
		if diff := cmp.Diff(cudaSettings(&o, 1), besideTensorRT(tensorRTSettings(&o, 1))); diff != "" {
			t.Errorf("settings of CUDA beside TensorRT (-want +got):\n%s", diff)
		}
	}
}

// The device fills up between the probe and the model: the caller learns that the CPU may still do.
func TestAGraphThatADeviceCannotLoadIsAProviderError(t *testing.T) {
	lib := &fakeLibrary{loads: func(cfg loadOptions) error {
		if cfg.provider.name == ProviderCUDA && !cfg.strict && cfg.device == 1 {
			return errors.New("BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 100")
		}
		return nil
	}}
	r := probedRuntime(t, lib, Options{Provider: ProviderCUDA, Devices: []int{0, 1}}, cudaFile)
	add := readFile(t, "testdata/add.onnx")
	_, err := r.NewSession(t.Context(), add, SessionOptions{Name: "add"})
	var failed *ProviderError
	if !errors.As(err, &failed) || failed.Provider != ProviderCUDA || failed.Reason() != signal.ReasonNoModel {
		t.Fatalf("got %v", err)
	}
	s, err := r.NewSession(t.Context(), add, SessionOptions{Name: "add", Provider: ProviderCPU})
	if err != nil {
		t.Fatal(err)
	}
	if s.Provider() != ProviderCPU || s.Devices() != 1 {
		t.Errorf("runs on %d devices of %s", s.Devices(), s.Provider())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := r.Handles(); n != 0 {
		t.Errorf("%d handles are left", n)
	}
}

func TestRunsAreSpreadOverDevices(t *testing.T) {
	arrived, release := make(chan int), make(chan struct{})
	lib := &fakeLibrary{compute: func(device int, _, out []tensor.Tensor) error {
		arrived <- device
		<-release
		out[0] = tensor.Tensor{Shape: []int64{1, 1}, F32: []float32{1}}
		return nil
	}}
	r := probedRuntime(t, lib, Options{Provider: ProviderCUDA, Devices: []int{2, 5}, QueueDepth: -1}, cudaFile)
	s := fakeSessionOn(t, r, "add")
	if s.Devices() != 2 || s.Provider() != ProviderCUDA {
		t.Fatalf("%d devices of %s", s.Devices(), s.Provider())
	}
	done, count := make(chan error, 4), map[int]int{}
	for range 4 {
		go func() {
			_, err := s.Run(t.Context(), addInput(), nil)
			done <- err
		}()
		count[<-arrived]++
	}
	if diff := cmp.Diff(map[int]int{2: 2, 5: 2}, count); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Run(t.Context(), addInput(), nil); !errors.Is(err, ErrOverloaded) {
		t.Errorf("a fifth run where each device takes two: %v", err)
	}
	close(release)
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemoryThatDoesNotSufficeIsOverload(t *testing.T) {
	lib := &fakeLibrary{compute: func(int, []tensor.Tensor, []tensor.Tensor) error {
		return errors.New("Available memory of 100 is smaller than requested bytes of 200")
	}}
	r := probedRuntime(t, lib, Options{Provider: ProviderCUDA}, cudaFile)
	s := fakeSessionOn(t, r, "add")
	_, err := s.Run(t.Context(), addInput(), nil)
	if got := reasonOf(t, err); got != signal.ReasonOverload {
		t.Errorf("reason %q of %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestHalfPrecisionOnTheCPUIsWarnedOf(t *testing.T) {
	for graph, want := range map[string]bool{"weights_float16": true, "add": false, "bytes": false} {
		var log bytes.Buffer
		r := fakeRuntime(&fakeLibrary{}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Provider: ProviderCPU})
		s := fakeSessionOn(t, r, graph)
		if got := strings.Contains(log.String(), "half precision"); got != want {
			t.Errorf("%s: log %q", graph, log.String())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAProviderLibraryThatIsCutShortIsNotLoaded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the libraries of providers are ELF files on Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self) // an ELF file with segments and a table of sections
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		want    Support
		detail  string
	}{
		"whole":         {whole, SupportYes, "device 0"},
		"half":          {whole[:len(whole)/2], SupportNo, cudaFile + ": the file ends too soon, after "},
		"its first KiB": {whole[:1024], SupportNo, cudaFile + ": the file ends too soon, after 1024 bytes: copy it again"},
		"no ELF file":   {[]byte("not a library"), SupportYes, "device 0"}, // the loader, here a fake, says what it thinks of it
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, cudaFile), c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			o := Options{Provider: ProviderCUDA, Devices: []int{0}}
			r := newRuntime(o, Library{Path: filepath.Join(dir, "libonnxruntime.so")}, &fakeLibrary{})
			r.probeTimeout = testkit.Patience
			got := r.probed(providerNamed(ProviderCUDA))
			if got.State != c.want || !strings.HasPrefix(got.Detail, c.detail) {
				t.Errorf("probe: %v, %q, want %v, %q", got.State, got.Detail, c.want, c.detail)
			}
		})
	}
}
