package gpu

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/tensor"
)

// probeGraph adds two float32 matrices; running it proves a provider. Made by testdata/make_graphs.py.
//
//go:embed probe.onnx
var probeGraph []byte

// backend is a loaded library. It is implemented over ONNX Runtime, and by a fake in tests.
type backend interface {
	version() string
	// load makes a session. outputs are the names under which model knows what runs return.
	load(model []byte, sig signature, outputs []string, cfg loadOptions) (executor, error)
}

// loadOptions is what a backend needs to know to make a session.
type loadOptions struct {
	provider string
	threads  int
	keep     int           // run options kept for reuse: the number of runs at once
	handles  *atomic.Int64 // native objects alive
	caches   []value       // inputs behind those of the signature, empty in every run
}

// executor is one session of the library.
type executor interface {
	// run computes all outputs into out. The inputs have been checked; their slices are only read, and
	// not after the return. It stops early when ctx ends and returns an error then. Safe for
	// concurrent use.
	run(ctx context.Context, in, out []tensor.Tensor) error
	// close releases the native session. No run is in flight, and it is called once.
	close() error
}

// Runtime is a handle on the loaded library: its sessions share one limit on concurrent runs. It is
// safe for concurrent use.
type Runtime struct {
	opts      Options
	library   Library
	native    backend
	gate      *gate
	providers []Provider
	handles   atomic.Int64

	mu       sync.Mutex // guards closed, sessions
	closed   bool
	sessions map[*core]struct{}
}

// Open locates and loads the library and proves the providers. A process can load one library: a
// second Open shares it, and returns an error if its options lead to another file. The error wraps
// ErrUnavailable whenever the cause is the library and not the options.
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
	native, err := loadLibrary(lib)
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
	return &Runtime{
		opts:     o,
		library:  lib,
		native:   native,
		gate:     newGate(o.MaxConcurrent*o.IntraOpThreads, o.QueueDepth),
		sessions: map[*core]struct{}{},
	}
}

// Version is the library's own version, such as 1.30.0.
func (r *Runtime) Version() string { return r.native.version() }

// Library is the absolute path of the loaded library.
func (r *Runtime) Library() string { return r.library.Path }

// Located tells where the library was found and whether its checksum was compared.
func (r *Runtime) Located() Library { return r.library }

// Providers lists every provider that configuration can name, best first, with what its probe found.
func (r *Runtime) Providers() []Provider { return slices.Clone(r.providers) }

// Provider is the provider of sessions that ask for none; fallback says why it is not the configured
// one and is empty when it is.
func (r *Runtime) Provider() (name, fallback string) { return choose(r.providers, r.opts.Provider) }

// Precision is the precision of graphs that the default provider runs best: int8 for the CPU.
func (r *Runtime) Precision() string {
	if name, _ := r.Provider(); name == ProviderCPU {
		return "int8"
	}
	return "fp16"
}

// Handles is the number of native objects alive: sessions, tensors and run options. It is zero
// after Close.
func (r *Runtime) Handles() int64 { return r.handles.Load() }

// Waiting is the number of runs in the queue.
func (r *Runtime) Waiting() int { return int(r.gate.waiting.Load()) }

// probe proves each provider by running a graph on it. Only the CPU is built in so far.
func (r *Runtime) probe() error {
	var failed error
	for _, name := range knownProviders {
		p := Provider{Name: name, State: SupportNo, Detail: "not built into this version of signalbox"}
		if name == ProviderCPU {
			p.State, p.Detail = SupportYes, runtime.GOARCH
			if err := r.runProbe(name); err != nil {
				p.State, p.Detail = SupportNo, err.Error()
				failed = fmt.Errorf("%w: %s: probe: %w", ErrUnavailable, r.library.Path, err)
			}
		}
		r.providers = append(r.providers, p)
	}
	return failed
}

func (r *Runtime) runProbe(provider string) error {
	sig, err := readSignature(probeGraph)
	if err != nil {
		return err
	}
	cfg := loadOptions{provider: provider, threads: 1, keep: 1, handles: &r.handles}
	x, err := r.native.load(probeGraph, sig, []string{"sum"}, cfg)
	if err != nil {
		return err
	}
	shape := []int64{1, 2}
	out := make([]tensor.Tensor, 1)
	err = x.run(context.Background(), []tensor.Tensor{
		{Name: "x", Shape: shape, F32: []float32{1, 2}},
		{Name: "y", Shape: shape, F32: []float32{3, 4}},
	}, out)
	if err == nil && !slices.Equal(out[0].F32, []float32{4, 6}) {
		err = fmt.Errorf("1+3 and 2+4 are %v", out[0].F32)
	}
	return errors.Join(err, x.close())
}

// NewSession reads a serialised ONNX model and makes it ready to run. model is not kept or modified; it
// must hold all weights, none are taken from files.
// Loading cannot be interrupted: ctx is looked at before and after. Errors: *ModelError for bytes
// that are no usable graph, ErrClosed, ctx's error. A provider that does not work is replaced by the
// CPU; see Session.Fallback.
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
	want := o.Provider
	if want == "" {
		want = r.opts.Provider
	}
	c := &core{rt: r, name: o.Name, sig: sig, drained: make(chan struct{}), destroyed: make(chan struct{})}
	c.provider, c.fallback = choose(r.providers, want)
	c.threads = o.IntraOpThreads
	if c.threads == 0 {
		c.threads = r.opts.IntraOpThreads
	}
	c.inputs, c.outputs = specs(sig.inputs), specs(sig.outputs)
	wide, names := widen(model, sig.outputs)
	cfg := loadOptions{provider: c.provider, threads: c.threads, keep: r.opts.MaxConcurrent, handles: &r.handles, caches: caches}
	if c.exec, err = r.native.load(wide, sig, names, cfg); err != nil {
		return nil, &ModelError{Session: o.Name, Msg: err.Error()}
	}
	if err := errors.Join(ctx.Err(), r.register(c)); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %q: %w", o.Name, err), c.close())
	}
	if c.fallback != "" {
		r.opts.Logger.WarnContext(ctx, "execution provider replaced by the cpu",
			slog.String("session", c.name), slog.String("cause", c.fallback))
	}
	return newSession(c), nil
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

// Close closes every session, after its runs in flight have ended. Further sessions get ErrClosed.
// The library stays loaded. Closing again does nothing.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	open := make([]*core, 0, len(r.sessions))
	for c := range r.sessions {
		open = append(open, c)
	}
	r.mu.Unlock()
	var errs []error
	for _, c := range open {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// observe tells the observer of one successful run.
func (r *Runtime) observe(c *core, elapsed time.Duration, rows int64) {
	if r.opts.Observer != nil {
		r.opts.Observer.ModelRun(c.name, c.provider, elapsed, int(rows))
	}
}
