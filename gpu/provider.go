package gpu

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The names of the execution providers, as in configuration.
const (
	ProviderAuto     = "auto" // the best working one that needs no preparation
	ProviderTensorRT = "tensorrt"
	ProviderCUDA     = "cuda"
	ProviderMIGraphX = "migraphx"
	ProviderOpenVINO = "openvino"
	ProviderWebGPU   = "webgpu"
	ProviderCPU      = "cpu" // always available
)

// The precisions of graphs, of which each provider has a preferred one.
const (
	precisionInt8 = "int8"
	precisionFP16 = "fp16"
)

// provider is one row of the table of execution providers.
type provider struct {
	name string
	// ep is ONNX Runtime's name for the provider, which also identifies the devices of a plugin.
	ep string
	// file is the library that must be in the directory of the core library; empty for providers
	// that are part of the core library.
	file string
	// precision is the preferred precision of graphs.
	precision string
	// auto: the provider may be selected without being named. Not set for TensorRT, which builds
	// engines for minutes; for OpenVINO and WebGPU, which also run on devices slower than the CPU;
	// and for CUDA, on which some rows of a run are wrong and new shapes take long (docs/gpu.md).
	auto bool
	// compiles: the provider caches compiled models in Options.EngineCache.
	compiles bool
	// settings returns the provider's own options for one device.
	settings func(o *Options, device int) map[string]string
}

// providers is the table, best first. The keys of the settings are those of ONNX Runtime 1.30: its
// pages of execution providers, and migraphx_execution_provider_info.h for MIGraphX.
//
//nolint:gochecknoglobals // constant table
var providers = [...]provider{
	{ProviderTensorRT, "TensorrtExecutionProvider", "libonnxruntime_providers_tensorrt.so", precisionFP16, false, true, tensorRTSettings},
	{ProviderCUDA, "CUDAExecutionProvider", "libonnxruntime_providers_cuda.so", precisionFP16, false, false, cudaSettings},
	{ProviderMIGraphX, "MIGraphXExecutionProvider", "libonnxruntime_providers_migraphx.so", precisionFP16, true, true, migraphxSettings},
	{ProviderOpenVINO, "OpenVINOExecutionProvider", "libonnxruntime_providers_openvino.so", precisionFP16, false, true, openvinoSettings},
	{ProviderWebGPU, "WebGpuExecutionProvider", "", precisionFP16, false, false, noSettings},
	{ProviderCPU, "CPUExecutionProvider", "", precisionInt8, true, false, noSettings},
}

func cudaSettings(o *Options, device int) map[string]string {
	s := map[string]string{
		"device_id": strconv.Itoa(device),
		// Growing by the requested size leaves memory of a shared device to other programs; shapes
		// vary, so doubling would soon allocate twice of what is used.
		"arena_extend_strategy": "kSameAsRequested",
	}
	if o.MemoryLimit > 0 {
		s["gpu_mem_limit"] = strconv.FormatInt(int64(o.MemoryLimit), 10)
	}
	return s
}

func tensorRTSettings(o *Options, device int) map[string]string {
	s := map[string]string{"device_id": strconv.Itoa(device), "trt_fp16_enable": "1"}
	if o.EngineCache != "" {
		s["trt_engine_cache_enable"], s["trt_engine_cache_path"] = "1", o.EngineCache
		s["trt_timing_cache_enable"], s["trt_timing_cache_path"] = "1", o.EngineCache
	}
	if o.MemoryLimit > 0 {
		s["trt_max_workspace_size"] = strconv.FormatInt(int64(o.MemoryLimit), 10)
	}
	return s
}

// besideTensorRT returns the settings of CUDA for operators without a TensorRT kernel, derived from
// those of TensorRT: the same device and the same memory limit.
func besideTensorRT(settings map[string]string) map[string]string {
	s := map[string]string{"device_id": settings["device_id"], "arena_extend_strategy": "kSameAsRequested"}
	if limit, ok := settings["trt_max_workspace_size"]; ok {
		s["gpu_mem_limit"] = limit
	}
	return s
}

func migraphxSettings(o *Options, device int) map[string]string {
	s := map[string]string{"device_id": strconv.Itoa(device)}
	if o.EngineCache != "" {
		s["migraphx_model_cache_dir"] = o.EngineCache
	}
	if o.MemoryLimit > 0 {
		s["migraphx_mem_limit"] = strconv.FormatInt(int64(o.MemoryLimit), 10)
	}
	return s
}

func openvinoSettings(o *Options, device int) map[string]string {
	s := map[string]string{"device_type": "GPU." + strconv.Itoa(device)}
	if o.EngineCache != "" {
		s["cache_dir"] = o.EngineCache
	}
	return s
}

func noSettings(*Options, int) map[string]string { return nil }

// providerNamed returns a row of the table, or nil for an unknown name.
func providerNamed(name string) *provider {
	i := slices.IndexFunc(providers[:], func(p provider) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &providers[i]
}

// beside returns the required path of the provider's library, empty if it needs none.
func (p *provider) beside(lib Library) string {
	if p.file == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(lib.Path), p.file)
}

// Support is whether a provider works here. "Could not be determined" is a value of its own.
type Support uint8

// The values of Support.
const (
	SupportUnknown Support = iota // the probe was not decisive, or there was none
	SupportYes                    // a graph ran on it
	SupportNo                     // it is missing or failed
)

// String returns unknown, yes or no.
func (s Support) String() string {
	switch s {
	case SupportYes:
		return "yes"
	case SupportNo:
		return "no"
	case SupportUnknown:
	}
	return "unknown"
}

// MarshalText makes the answer readable in JSON.
func (s Support) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText; other words mean unknown.
func (s *Support) UnmarshalText(b []byte) error {
	switch string(b) {
	case "yes":
		*s = SupportYes
	case "no":
		*s = SupportNo
	default:
		*s = SupportUnknown
	}
	return nil
}

// Provider is the result of probing one execution provider.
type Provider struct {
	Name   string  `json:"name"`
	State  Support `json:"state"`
	Detail string  `json:"detail,omitempty"` // why it does not work, or the device it uses
	// its library is present, so it was probably installed for use
	Installed bool `json:"-"`
}

// Device returns a short name of the provider's device, for use as a metric label.
func (p *Provider) Device() string {
	device, _, _ := strings.Cut(p.Detail, ",")
	return device
}

// Choice is a provider that a session may use, with its preferred precision of graphs: int8 or
// fp16. A bundle without such a graph may have one in fp32, which every provider runs.
type Choice struct {
	Provider  string
	Precision string
}

func checkProvider(name string) error {
	if name == "" || name == ProviderAuto || providerNamed(name) != nil {
		return nil
	}
	return fmt.Errorf("unknown execution provider %q (known: %s, %s)", name, ProviderAuto, strings.Join(providerNames(), ", "))
}

func providerNames() []string {
	out := make([]string, len(providers))
	for i := range providers {
		out[i] = providers[i].name
	}
	return out
}

// choose returns the provider for a session that wants want. fallback says why, if it is not the
// one requested by name, or if it is the CPU although another provider is installed. found is in
// order of preference.
func choose(found []Provider, want string) (name, fallback string) {
	if want == "" || want == ProviderAuto {
		spoilt := ""
		for _, p := range found {
			row := providerNamed(p.Name)
			switch {
			case row == nil || !row.auto:
			case p.State == SupportYes && p.Name == ProviderCPU:
				return p.Name, spoilt
			case p.State == SupportYes:
				return p.Name, ""
			case p.Installed && spoilt == "":
				spoilt = fmt.Sprintf("%s: %s: %s", p.Name, p.State, p.Detail)
			}
		}
		return ProviderCPU, spoilt
	}
	for _, p := range found {
		if p.Name != want {
			continue
		}
		if p.State == SupportYes {
			return want, ""
		}
		return ProviderCPU, fmt.Sprintf("%s: %s: %s", want, p.State, p.Detail)
	}
	return ProviderCPU, want + ": not known to this build"
}
