//go:build cgo

package gpu

import (
	"errors"
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"
)

// attach makes a session use a provider: with the functions built into the library or, if they
// fail, with the devices of a plugin. A strict session fails on operators that the provider does
// not support; other sessions run them on the CPU.
func (n onnxRuntime) attach(o *ort.SessionOptions, cfg *loadOptions) error {
	if cfg.provider.name == ProviderCPU {
		return nil
	}
	if cfg.strict {
		if err := o.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"); err != nil {
			return err
		}
	}
	builtIn := attachBuiltIn(o, cfg)
	if builtIn == nil {
		return nil
	}
	plugin := attachPlugin(o, cfg)
	if plugin == nil {
		return nil
	}
	if errors.Is(plugin, errNoPlugin) {
		plugin = n.pluginErr
	}
	if plugin == nil {
		return builtIn
	}
	return fmt.Errorf("%w; as a plugin: %w", builtIn, plugin)
}

// attachBuiltIn uses the library's functions for its own providers.
func attachBuiltIn(o *ort.SessionOptions, cfg *loadOptions) error {
	switch cfg.provider.name {
	case ProviderCUDA:
		return attachCUDA(o, cfg.settings)
	case ProviderTensorRT:
		t, err := ort.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		defer t.Destroy() //nolint:errcheck // only fails when destroyed before
		if err := errors.Join(t.Update(cfg.settings), o.AppendExecutionProviderTensorRT(t)); err != nil {
			return err
		}
		if cfg.strict {
			return nil
		}
		// Operators without a TensorRT kernel are still faster on the device than on the CPU.
		return attachCUDA(o, besideTensorRT(cfg.settings))
	case ProviderMIGraphX:
		return o.AppendExecutionProvider("MIGraphX", cfg.settings)
	case ProviderOpenVINO:
		return o.AppendExecutionProviderOpenVINO(cfg.settings)
	case ProviderWebGPU:
		return o.AppendExecutionProvider("WebGPU", cfg.settings)
	}
	return fmt.Errorf("execution provider %q is not known", cfg.provider.name)
}

func attachCUDA(o *ort.SessionOptions, settings map[string]string) error {
	c, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer c.Destroy() //nolint:errcheck // only fails when destroyed before
	if err := c.Update(settings); err != nil {
		return err
	}
	return o.AppendExecutionProviderCUDA(c)
}

// errNoPlugin reports that no plugin has a device of the provider.
var errNoPlugin = errors.New("no device")

// attachPlugin uses the devices of plugins. The index of a device in their list is its number.
func attachPlugin(o *ort.SessionOptions, cfg *loadOptions) error {
	all, err := ort.GetEpDevices()
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(all, func(d ort.EpDevice) bool { return d.EpName() != cfg.provider.ep })
	if len(own) == 0 {
		return errNoPlugin
	}
	if cfg.device >= len(own) {
		return fmt.Errorf("no device %d, there are %d", cfg.device, len(own))
	}
	// Plugins have their own options and may refuse those of the built-in provider.
	return o.AppendExecutionProviderV2(own[cfg.device:cfg.device+1], nil)
}
