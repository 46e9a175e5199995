package gpu

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsReportEveryProblemAtOnce(t *testing.T) {
	o := Options{
		Library: "lib/onnx.so", EnvLibrary: "onnx.so", LibrarySHA256: "abc", Provider: "gpu",
		IntraOpThreads: -1, MaxConcurrent: maxConcurrent + 1, QueueDepth: -2,
	}
	want := []string{
		`library: "lib/onnx.so" is not an absolute path`,
		`library (environment): "onnx.so" is not an absolute path`,
		`library_sha256: want 64 lower-case hexadecimal digits, have "abc"`,
		`provider: unknown execution provider "gpu" (known: auto, tensorrt, cuda, migraphx, openvino, webgpu, cpu)`,
		`intra_op_threads: -1 is outside 0 to 256`,
		`max_concurrent: 4097 is outside 0 to 4096`,
		`queue_depth: -2 is outside -1 to 65536`,
	}
	err := o.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(o); err == nil {
		t.Error("Open accepts them")
	}
	if _, err := Locate(o); err == nil {
		t.Error("Locate accepts them")
	}
}

func TestZeroOptionsMeanTheDefaults(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Error(err)
	}
	if err := DefaultOptions().Validate(); err != nil {
		t.Error(err)
	}
	type limits struct {
		provider                        string
		threads, concurrent, queueDepth int
	}
	procs := runtime.GOMAXPROCS(0)
	for _, c := range []struct {
		name string
		in   Options
		want limits
	}{
		{"nothing set", Options{}, limits{ProviderAuto, 1, procs, defaultQueueDepth}},
		{"the default options", DefaultOptions(), limits{ProviderAuto, 1, procs, defaultQueueDepth}},
		{"more threads than cores still run one at a time", Options{IntraOpThreads: 2 * procs}, limits{ProviderAuto, 2 * procs, 1, defaultQueueDepth}},
		{"nobody may wait", Options{QueueDepth: -1, MaxConcurrent: 3}, limits{ProviderAuto, 1, 3, 0}},
	} {
		o := c.in.resolved()
		got := limits{o.Provider, o.IntraOpThreads, o.MaxConcurrent, o.QueueDepth}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(limits{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestChoiceOfAProvider(t *testing.T) {
	found := []Provider{
		{"tensorrt", SupportNo, "no library", false},
		{"cuda", SupportYes, "H200", true},
		{"migraphx", SupportYes, "MI300", true},
		{"webgpu", SupportUnknown, "no answer", false},
		{"cpu", SupportYes, "", false},
	}
	for _, c := range []struct{ want, name, fallback string }{
		{"", "migraphx", ""},
		{"auto", "migraphx", ""},
		{"cuda", "cuda", ""},
		{"cpu", "cpu", ""},
		{"tensorrt", "cpu", "tensorrt: no: no library"},
		{"webgpu", "cpu", "webgpu: unknown: no answer"},
		{"openvino", "cpu", "openvino: not known to this build"},
	} {
		name, fallback := choose(found, c.want)
		if name != c.name || fallback != c.fallback {
			t.Errorf("%q: got %q, %q", c.want, name, fallback)
		}
	}
	if name, _ := choose(found[:1], ProviderAuto); name != ProviderCPU {
		t.Errorf("with nothing that works: %q", name)
	}
	found[2].State, found[2].Detail = SupportNo, "no device"
	if name, fallback := choose(found, ProviderAuto); name != ProviderCPU || fallback != "migraphx: no: no device" {
		t.Errorf("auto with a library that fails, and CUDA: got %q, %q", name, fallback)
	}
	found[2].Installed = false
	if name, fallback := choose(found, ProviderAuto); name != ProviderCPU || fallback != "" {
		t.Errorf("auto without its library: got %q, %q", name, fallback)
	}
}

func TestProvidersReadWellInJSON(t *testing.T) {
	got, err := json.Marshal([]Provider{{Name: "cuda", Detail: "no answer"}, {Name: "webgpu", State: SupportNo}, {Name: "cpu", State: SupportYes}})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"cuda","state":"unknown","detail":"no answer"},{"name":"webgpu","state":"no"},{"name":"cpu","state":"yes"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
