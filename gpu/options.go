package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"signalbox/internal/option"
)

// Options configures the ONNX Runtime environment that all sessions of a process share. None of it
// can be changed while the process runs: restart needed.
type Options struct {
	// Library is the absolute path of ONNX Runtime's shared library, or of the directory that holds
	// it. If the path does not work, that is an error; no other place is tried. Empty, the default:
	// the library is looked for at the path in the environment variable SIGNALBOX_ONNXRUNTIME, in
	// the cache directory, beside the program and among the system's libraries.
	Library string `yaml:"library"`
	// LibrarySHA256 is the required SHA-256 of the library, in hexadecimal. Empty, the default: a
	// library in the cache directory must have one of the built-in checksums, and libraries in
	// other places are trusted without a check.
	LibrarySHA256 string `yaml:"library_sha256"`
	// Provider is the execution provider for sessions that name none: auto, cpu, cuda, tensorrt,
	// migraphx, openvino or webgpu. auto selects migraphx if it works, else cpu. A provider that
	// does not work on this machine is replaced by cpu, and /readyz gives the reason. Default auto.
	Provider string `yaml:"provider" words:"auto cpu cuda tensorrt migraphx openvino webgpu"`
	// ProviderLibrary is the absolute path of an ONNX Runtime plugin with execution providers. It
	// is used for a provider that the core library lacks. Default none.
	ProviderLibrary string `yaml:"provider_library"`
	// Devices lists the device numbers that a provider other than cpu uses, at most 16. Every model
	// is loaded on each device, and a run goes to the device with the fewest runs. Default [0].
	Devices []int `yaml:"devices"`
	// MemoryLimit limits the device memory of each model, such as 2GiB. A run that needs more
	// fails, and its signals are unknown (overload). webgpu and openvino do not support a limit.
	// Default none.
	MemoryLimit option.Bytes `yaml:"device_memory"`
	// EngineCache is the absolute path of the folder in which tensorrt, migraphx and openvino cache
	// compiled models. Without the cache, compilation takes minutes. Default: signalbox/engines in
	// the user's cache directory.
	EngineCache string `yaml:"engine_cache"`
	// Batch configures the batching of runs of several requests.
	Batch BatchOptions `yaml:"batch"`
	// IntraOpThreads is the number of threads of one run, 1 to 256. Default 1, since models of up
	// to 22M parameters gain more from parallel runs.
	IntraOpThreads int `yaml:"intra_op_threads"`
	// MaxConcurrent is the maximum number of concurrent runs, up to 4096; on devices other than the
	// CPU it applies per device. Default 0: on the CPU the number of cores divided by
	// intra_op_threads, at least 1; on a device 2, so that one run is prepared while another
	// computes.
	MaxConcurrent int `yaml:"max_concurrent"`
	// QueueDepth is the maximum number of runs that wait for a slot, up to 65536. If the queue is
	// full, the signals of a further run are unknown (overload). -1: no run may wait. 0: the
	// default, 256.
	QueueDepth int `yaml:"queue_depth"`

	// EnvLibrary is the same as Library, from the environment. The caller reads it; this package
	// does not.
	EnvLibrary string `yaml:"-"`
	// CacheDir is the user's cache directory, such as /home/u/.cache. Empty: the result of
	// os.UserCacheDir.
	CacheDir string `yaml:"-"`
	// ProbeAll probes every provider, not only those that Provider may lead to.
	ProbeAll bool `yaml:"-"`
	// Logger receives warnings, such as about a session that was not closed. If nil, they are
	// discarded.
	Logger *slog.Logger `yaml:"-"`
	// Observer is notified of every run. If nil, nothing is notified.
	Observer Observer `yaml:"-"`

	// HangLimit is how long a run may continue after its context ended. 0: 2 minutes, and 15 for a
	// provider that may be compiling, which cannot be interrupted.
	HangLimit time.Duration `yaml:"-"`
	// Hung is called with the session of a run that exceeds HangLimit, as when a driver hangs: only
	// the end of the process frees its thread and its slot. It is called on a goroutine of its own,
	// once for each such run. If nil, an error goes to the Logger.
	Hung func(session string) `yaml:"-" json:"-"`

	deviceRuns int // MaxConcurrent of a device that is not the CPU
}

// Observer receives one call for each successful run, on the goroutine that ran. It must be safe
// for concurrent use and must not block.
type Observer interface {
	// ModelRun: session is the session's name, elapsed excludes the time in the queue, rows is the
	// first dimension of the first input.
	ModelRun(session, provider string, elapsed time.Duration, rows int)
}

const (
	defaultQueueDepth = 256
	maxThreads        = 256
	maxConcurrent     = 4096
	maxQueueDepth     = 65536
	maxDevices        = 16
	perDevice         = 2 // runs at once on a device that is not the CPU
)

// DefaultOptions returns the defaults, which work wherever the library was fetched.
func DefaultOptions() Options {
	return Options{Provider: ProviderAuto, IntraOpThreads: 1, QueueDepth: defaultQueueDepth, Batch: DefaultBatchOptions()}
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Validate returns all problems joined, each prefixed with its YAML key, or nil. The zero value is
// valid.
func (o Options) Validate() error {
	var errs []error
	for _, p := range []struct{ key, path string }{
		{"library", o.Library},
		{"library (environment)", o.EnvLibrary},
		{"provider_library", o.ProviderLibrary},
		{"engine_cache", o.EngineCache},
	} {
		if p.path != "" && !filepath.IsAbs(p.path) {
			errs = append(errs, fmt.Errorf("%s: %q is not an absolute path", p.key, p.path))
		}
	}
	if o.LibrarySHA256 != "" && !hexSHA256.MatchString(o.LibrarySHA256) {
		errs = append(errs, fmt.Errorf("library_sha256: want 64 lower-case hexadecimal digits, have %q", o.LibrarySHA256))
	}
	if err := checkProvider(o.Provider); err != nil {
		errs = append(errs, fmt.Errorf("provider: %w", err))
	}
	for _, n := range []struct {
		key            string
		have, low, top int
	}{
		{"intra_op_threads", o.IntraOpThreads, 0, maxThreads},
		{"max_concurrent", o.MaxConcurrent, 0, maxConcurrent},
		{"queue_depth", o.QueueDepth, -1, maxQueueDepth},
	} {
		if n.have < n.low || n.have > n.top {
			errs = append(errs, fmt.Errorf("%s: %d is outside %d to %d", n.key, n.have, n.low, n.top))
		}
	}
	if len(o.Devices) > maxDevices {
		errs = append(errs, fmt.Errorf("devices: %d devices, at most %d", len(o.Devices), maxDevices))
	}
	for i, d := range o.Devices {
		if d < 0 || slices.Contains(o.Devices[:i], d) {
			errs = append(errs, fmt.Errorf("devices: %d is negative or there twice", d))
		}
	}
	if o.MemoryLimit < 0 {
		errs = append(errs, fmt.Errorf("device_memory: %d is negative", o.MemoryLimit))
	}
	errs = append(errs, o.Batch.problems()...)
	return errors.Join(errs...)
}

// resolved replaces every zero value that means "default".
func (o Options) resolved() Options {
	o.Provider = cmp.Or(o.Provider, ProviderAuto)
	o.IntraOpThreads = cmp.Or(o.IntraOpThreads, 1)
	if o.deviceRuns = o.MaxConcurrent; o.deviceRuns == 0 {
		o.deviceRuns = perDevice
	}
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, max(1, runtime.GOMAXPROCS(0)/o.IntraOpThreads))
	if len(o.Devices) == 0 {
		o.Devices = []int{0}
	}
	o.Batch = o.Batch.resolved()
	switch {
	case o.QueueDepth == 0:
		o.QueueDepth = defaultQueueDepth
	case o.QueueDepth < 0:
		o.QueueDepth = 0
	}
	if o.EngineCache == "" && o.CacheDir != "" {
		o.EngineCache = filepath.Join(o.CacheDir, "signalbox", "engines")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Hung == nil {
		o.Hung = func(session string) {
			o.Logger.Error("a model run does not end: it keeps a thread and a place until the process is started again", slog.String("session", session))
		}
	}
	return o
}

// hangLimit returns HangLimit for a provider.
func (o Options) hangLimit(p *provider) time.Duration {
	switch {
	case o.HangLimit > 0:
		return o.HangLimit
	case p.compiles:
		return 15 * time.Minute
	}
	return 2 * time.Minute
}

// SessionOptions configures one session.
type SessionOptions struct {
	// Name is used in errors, logs and metrics, such as the bundle's name. Required.
	Name string
	// Provider is the execution provider; empty: the runtime's.
	Provider string
	// IntraOpThreads is the number of threads of one run, up to 256; 0: the runtime's. A run with
	// more threads than the runtime's setting takes that many more of the places for runs.
	IntraOpThreads int
	// Pad gives the value that fills rows of the inputs by name when runs are put together: 0 for
	// those that are not named. Nil: runs of this session stay alone. See BatchOptions.
	Pad map[string]int64
	// Outputs are the outputs that runs may ask for, by name. Empty: all of the graph. Naming fewer
	// saves copying the others out of the library; the library computes the whole graph either way.
	Outputs []string
}

func (o SessionOptions) validate() error {
	if o.Name == "" {
		return errors.New("session without a name")
	}
	if err := checkProvider(o.Provider); err != nil {
		return fmt.Errorf("session %q: %w", o.Name, err)
	}
	if o.IntraOpThreads < 0 || o.IntraOpThreads > maxThreads {
		return fmt.Errorf("session %q: %d threads are outside 0 to %d", o.Name, o.IntraOpThreads, maxThreads)
	}
	return nil
}
