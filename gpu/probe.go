package gpu

import (
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"signalbox/internal/tensor"
)

// probeGraph adds two float32 matrices; running it proves a provider. Made by
// testdata/make_graphs.py.
//
//go:embed probe.onnx
var probeGraph []byte

// probeTimeout limits the probe of a provider other than the CPU. A driver may take many seconds to
// start and may never answer.
const probeTimeout = 60 * time.Second

// probe tests providers by running a graph on them: the CPU, and those that the options may select.
// Its error is that of the CPU, without which nothing runs.
func (r *Runtime) probe() error {
	var failed error
	for i := range providers {
		p := &providers[i]
		switch {
		case p.name == ProviderCPU:
			found := Provider{Name: p.name, State: SupportYes, Detail: runtime.GOARCH}
			if err := r.runProbe(p); err != nil {
				found.State, found.Detail = SupportNo, err.Error()
				failed = fmt.Errorf("%w: %s: probe: %w", ErrUnavailable, r.library.Path, err)
			}
			r.providers = append(r.providers, found)
		case r.opts.ProbeAll || r.opts.Provider == p.name || r.opts.Provider == ProviderAuto && p.auto:
			r.providers = append(r.providers, r.probed(p))
		default:
			r.providers = append(r.providers, Provider{Name: p.name, Detail: "not asked for"})
		}
	}
	return failed
}

// probed tests a provider other than the CPU. It works (a graph ran on it), or is missing or
// failed, or this cannot be determined because it does not answer or its memory is full.
func (r *Runtime) probed(p *provider) Provider {
	found := Provider{Name: p.name}
	if file := p.beside(r.library); file != "" && r.opts.ProviderLibrary == "" {
		if _, err := os.Stat(file); err != nil {
			found.State, found.Detail = SupportNo, "no "+p.file+" beside the library"
			return found
		}
		found.Installed = true
		if err := wholeLibrary(file); err != nil {
			found.State, found.Detail = SupportNo, p.file+": "+err.Error()
			return found
		}
	}
	if p.compiles && r.opts.EngineCache != "" {
		if err := os.MkdirAll(r.opts.EngineCache, 0o700); err != nil {
			found.State, found.Detail = SupportNo, "engine_cache: "+brief(err)
			return found
		}
	}
	start, done := time.Now(), make(chan error, 1)
	go func() { done <- r.runProbe(p) }()
	select {
	case err := <-done:
		found.State, found.Detail = verdict(err)
		// /readyz must not show paths
		found.Detail = strings.ReplaceAll(found.Detail, filepath.Dir(r.library.Path)+"/", "")
		if err == nil {
			found.Detail = fmt.Sprintf("%s, answered after %d ms", deviceNames(r.opts.Devices), time.Since(start).Milliseconds())
		}
	case <-time.After(r.probeTimeout):
		found.Detail = fmt.Sprintf("no answer within %v", r.probeTimeout)
	}
	return found
}

// wholeLibrary returns an error if an ELF file ends before the segments that a loader would map.
// Reading a mapped page beyond the end of a file, as after an incomplete copy, ends the process
// with SIGBUS. Files that are not ELF are left to the loader, which reports them.
func wholeLibrary(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return errors.New("cannot be read")
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return errors.New("cannot be read")
	}
	var magic [len(elf.ELFMAG)]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil || string(magic[:]) != elf.ELFMAG {
		return nil
	}
	cut := fmt.Errorf("the file ends too soon, after %d bytes: copy it again", info.Size())
	lib, err := elf.NewFile(f) // reads the section table, which is at the end
	if err != nil {
		return cut
	}
	for _, segment := range lib.Progs {
		if segment.Type == elf.PT_LOAD && segment.Off+segment.Filesz > uint64(info.Size()) {
			return cut
		}
	}
	return nil
}

// verdict returns the result of a probe from its error.
func verdict(err error) (Support, string) {
	switch {
	case err == nil:
		return SupportYes, ""
	case outOfMemory(err.Error()):
		return SupportUnknown, brief(err)
	}
	return SupportNo, brief(err)
}

func deviceNames(devices []int) string {
	if len(devices) == 1 {
		return fmt.Sprintf("device %d", devices[0])
	}
	return fmt.Sprintf("devices %v", devices)
}

// longestDetail is the maximum length of a library message in bytes: some contain whole tables.
const longestDetail = 400

// whereInC matches the beginning of many messages of ONNX Runtime: the position in its source and
// the kind of error, or the failed condition.
var whereInC = regexp.MustCompile(`(/\S+\.(cc|h):\d+ .*?)?\[ONNXRuntimeError\] : \d+ : \w+ : |/\S+\.(cc|h):\d+ .*? was false\. `)

// brief returns an error's text on one line, without positions in the library's source and the
// machine's name.
func brief(err error) string {
	s := whereInC.ReplaceAllString(strings.Join(strings.Fields(err.Error()), " "), "")
	s, _, _ = strings.Cut(s, " ; GPU=") // CUDA's errors end with the name of the machine
	if len(s) > longestDetail {
		s = strings.ToValidUTF8(s[:longestDetail], "") + " ..."
	}
	return s
}

// runProbe runs the graph on every device of a provider.
func (r *Runtime) runProbe(p *provider) error {
	devices := r.opts.Devices
	if p.name == ProviderCPU {
		devices = []int{0}
	}
	for _, device := range devices {
		if err := r.runProbeOn(p, device); err != nil {
			if len(devices) > 1 {
				return fmt.Errorf("device %d: %w", device, err)
			}
			return err
		}
	}
	return nil
}

func (r *Runtime) runProbeOn(p *provider, device int) error {
	sig, err := readSignature(probeGraph)
	if err != nil {
		return err
	}
	cfg := loadOptions{
		provider: p, settings: p.settings(&r.opts, device), device: device, strict: true, threads: 1, keep: 1, handles: &r.handles,
		limit: r.opts.hangLimit(p), hung: func() {}, // a probe has its own limit
	}
	var x executor
	out := make([]tensor.Tensor, 1)
	err = r.guarded(p, func() error {
		x, err = r.native.load(probeGraph, sig, []string{"sum"}, cfg)
		if err != nil {
			return err
		}
		shape := []int64{1, 2}
		return x.run(context.Background(), []tensor.Tensor{
			{Name: "x", Shape: shape, F32: []float32{1, 2}},
			{Name: "y", Shape: shape, F32: []float32{3, 4}},
		}, out)
	})
	if err == nil && !slices.Equal(out[0].F32, []float32{4, 6}) {
		err = fmt.Errorf("1+3 and 2+4 are %v", out[0].F32)
	}
	if x != nil {
		err = errors.Join(err, x.close())
	}
	return err
}

// guarded calls f, which may start a provider, and restores the process's signal handlers: see
// keepHandlers.
func (r *Runtime) guarded(p *provider, f func() error) error {
	if p.name == ProviderCPU {
		return f()
	}
	changed, err := keepHandlers(f)
	if len(changed) > 0 {
		r.opts.Logger.Info("signal handlers given back that an execution provider had replaced",
			slog.String("provider", p.name), slog.Any("signals", changed))
	}
	return err
}
