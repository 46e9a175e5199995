package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/tensor"
)

// backend is a loaded library. It is implemented with ONNX Runtime, and by a fake in tests.
type backend interface {
	version() string
	// load makes a session. outputs are the names in model of the values that runs return.
	load(model []byte, sig signature, outputs []string, cfg loadOptions) (executor, error)
}

// loadOptions are the parameters of a new session for a backend.
type loadOptions struct {
	provider *provider
	settings map[string]string // the provider's own options
	device   int
	strict   bool // operators must not fall back to the CPU
	plain    bool // no operators of package dense
	threads  int
	keep     int           // number of run options kept for reuse: the number of concurrent runs
	handles  *atomic.Int64 // number of live native objects
	caches   []value       // inputs after those of the signature, empty in every run
	limit    time.Duration // maximum time between the termination of a run and its end
	hung     func()        // called if a run exceeds limit
}

// executor is one session of the library.
type executor interface {
	// run computes all outputs into out. The inputs have been checked; their slices are only read,
	// and not after run returns. If ctx ends, it stops early and returns an error. Safe for
	// concurrent use.
	run(ctx context.Context, in, out []tensor.Tensor) error
	// close releases the native session. It is called once, with no run in flight.
	close() error
}

// Runtime is a handle on the loaded library; its sessions share one limit on concurrent runs. It is
// safe for concurrent use.
type Runtime struct {
	opts      Options
	library   Library
	native    backend
	gate      *gate         // of the CPU
	gates     map[int]*gate // of other devices, by number
	providers []Provider
	handles   atomic.Int64

	probeTimeout time.Duration

	mu       sync.Mutex // guards closed, sessions
	closed   bool
	sessions map[*core]struct{}
}

// Open locates and loads the library and probes the providers. A process can load one library: a
// second Open shares it, and returns an error if its options select another file. The error wraps
// ErrUnavailable if the cause is the library and not the options.
func Open(o Options) (*Runtime, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := buildSupport(); err != nil {
		return nil, err
	}
	lib, err := Locate(o)
	if err != nil {
		return nil, err
	}
	native, err := loadLibrary(lib, o.ProviderLibrary)
	if err != nil {
		return nil, err
	}
	r := newRuntime(o, lib, native)
	if err := r.probe(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func newRuntime(o Options, lib Library, native backend) *Runtime {
	o = o.resolved()
	gates := make(map[int]*gate, len(o.Devices))
	for _, d := range o.Devices {
		gates[d] = newGate(o.deviceRuns*o.IntraOpThreads, o.QueueDepth)
	}
	return &Runtime{
		opts:     o,
		library:  lib,
		native:   native,
		gate:     newGate(o.MaxConcurrent*o.IntraOpThreads, o.QueueDepth),
		gates:    gates,
		sessions: map[*core]struct{}{},

		probeTimeout: probeTimeout,
	}
}

// Version returns the library's version, such as 1.30.0.
func (r *Runtime) Version() string { return r.native.version() }

// Library returns the absolute path of the loaded library.
func (r *Runtime) Library() string { return r.library.Path }

// Providers lists every provider that can be configured, best first, with the result of its probe.
func (r *Runtime) Providers() []Provider { return slices.Clone(r.providers) }

// Provider returns the provider of sessions that request none. fallback says why it is not the
// configured one; empty if it is.
func (r *Runtime) Provider() (name, fallback string) { return choose(r.providers, r.opts.Provider) }

// Precision returns the preferred precision of the default provider: int8 for the CPU.
func (r *Runtime) Precision() string { return r.Choices()[0].Precision }

// Choices returns the providers for sessions that request none, the default one first. The CPU is
// the last, and often the only one.
func (r *Runtime) Choices() []Choice {
	name, _ := r.Provider()
	out := []Choice{{name, providerNamed(name).precision}}
	if name != ProviderCPU {
		out = append(out, Choice{ProviderCPU, providerNamed(ProviderCPU).precision})
	}
	return out
}

// Handles returns the number of live native objects: sessions, tensors and run options. It is zero
// after Close.
func (r *Runtime) Handles() int64 { return r.handles.Load() }

// Waiting returns the number of runs in the queues.
func (r *Runtime) Waiting() int {
	n := r.gate.waiting.Load()
	for _, g := range r.gates {
		n += g.waiting.Load()
	}
	return int(n)
}

// NewSession loads a serialised ONNX model. model is neither retained nor modified; it must contain
// all weights, none are read from files. Loading cannot be interrupted: ctx is checked before and
// after. Errors: *ModelError for bytes that are not a usable graph, *ProviderError if a working
// provider cannot load this graph, ErrClosed, ctx's error. A provider that does not work is
// replaced by the CPU; see Session.Fallback. A warning is logged for half-precision weights on the
// CPU, which take ten times as long.
func (r *Runtime) NewSession(ctx context.Context, model []byte, o SessionOptions) (*Session, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open session %q: %w", o.Name, err)
	}
	sig, err := readSignature(model)
	var caches []value
	if err == nil {
		sig.inputs, caches = splitCaches(sig.inputs)
		err = checkInputs(sig.inputs)
	}
	if err == nil {
		sig.outputs, err = pickOutputs(sig.outputs, o.Outputs)
	}
	if err != nil {
		return nil, &ModelError{Session: o.Name, Msg: err.Error()}
	}
	want := cmp.Or(o.Provider, r.opts.Provider)
	c := &core{rt: r, name: o.Name, sig: sig, drained: make(chan struct{}), destroyed: make(chan struct{})}
	c.provider, c.fallback = choose(r.providers, want)
	c.threads = o.IntraOpThreads
	c.threads = cmp.Or(c.threads, r.opts.IntraOpThreads)
	c.inputs, c.outputs = specs(sig.inputs), specs(sig.outputs)
	c.batch = newBatcher(c, &r.opts.Batch, o.Pad)
	if err := r.loadOn(c, model, caches); err != nil {
		return nil, err
	}
	if err := errors.Join(ctx.Err(), r.register(c)); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %q: %w", o.Name, err), c.close())
	}
	if c.fallback != "" {
		r.opts.Logger.WarnContext(ctx, "execution provider replaced by the cpu",
			slog.String("session", c.name), slog.String("cause", c.fallback))
	}
	if c.provider == ProviderCPU && sig.half {
		r.opts.Logger.WarnContext(ctx, "a graph of half precision runs on the cpu, which takes ten times as long as for int8 or fp32",
			slog.String("session", c.name))
	}
	return newSession(c), nil
}

// loadOn loads a graph on every device of the provider of c.
func (r *Runtime) loadOn(c *core, model []byte, caches []value) error {
	p := providerNamed(c.provider)
	wide, names := widen(model, c.sig.outputs)
	devices, keep := []int{0}, r.opts.MaxConcurrent
	if c.provider != ProviderCPU {
		devices, keep = r.opts.Devices, r.opts.deviceRuns
	}
	for _, number := range devices {
		d := &device{gate: r.gate}
		if c.provider != ProviderCPU {
			d.gate = r.gates[number]
		}
		cfg := loadOptions{
			provider: p, settings: p.settings(&r.opts, number), device: number,
			threads: c.threads, keep: keep, handles: &r.handles, caches: caches,
			limit: r.opts.hangLimit(p), hung: func() { r.opts.Hung(c.name) },
		}
		err := r.guarded(p, func() (err error) {
			d.exec, err = r.native.load(wide, c.sig, names, cfg)
			return err
		})
		if err != nil {
			for _, d := range c.devices {
				err = errors.Join(err, d.exec.close())
			}
			if c.provider != ProviderCPU {
				return &ProviderError{Session: c.name, Provider: c.provider, Msg: brief(err)}
			}
			return &ModelError{Session: c.name, Msg: refused(err)}
		}
		c.devices = append(c.devices, d)
	}
	return nil
}

func (r *Runtime) register(c *core) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.sessions[c] = struct{}{}
	return nil
}

func (r *Runtime) forget(c *core) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, c)
}

// Close closes every session, after its runs in flight have ended. New sessions get ErrClosed. The
// library stays loaded. Closing again has no effect.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	open := slices.Collect(maps.Keys(r.sessions))
	r.mu.Unlock()
	var errs []error
	for _, c := range open {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// observe calls the observer for one successful run.
func (r *Runtime) observe(c *core, elapsed time.Duration, rows int64) {
	if r.opts.Observer != nil {
		r.opts.Observer.ModelRun(c.name, c.provider, elapsed, int(rows))
	}
}
