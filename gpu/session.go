package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/tensor"
)

// Session is one loaded graph. It is safe for concurrent use. It owns native memory: Close it. A
// Session that becomes unreachable without Close is reported to the logger, not released.
type Session struct {
	*core

	cleanup runtime.Cleanup
}

// core is shared by a Session and its Runtime. Only the caller references the Session itself, so
// that a leak can be detected.
type core struct {
	rt              *Runtime
	devices         []*device // one for the CPU, one or more for other providers
	name            string
	provider        string
	fallback        string
	threads         int
	sig             signature
	inputs, outputs []tensor.Spec
	batch           *batcher // nil: runs are not batched

	drained   chan struct{} // closed when closed is set and running is zero
	destroyed chan struct{} // closed when closeErr is set

	mu       sync.Mutex // guards closed and running
	closed   bool
	running  int
	closeErr error // written before destroyed is closed
}

// device is the graph on one device.
type device struct {
	exec executor
	gate *gate
	load atomic.Int64 // number of runs that use it or wait for it
}

// slot is the permission to run on a device.
type slot struct {
	on     *device
	places int64
}

// enter waits for a slot on the device with the fewest runs.
func (c *core) enter(ctx context.Context) (slot, error) {
	best := c.devices[0]
	for _, d := range c.devices[1:] {
		if d.load.Load() < best.load.Load() {
			best = d
		}
	}
	best.load.Add(1)
	n, err := best.gate.enter(ctx, c.threads)
	if err != nil {
		best.load.Add(-1)
		return slot{}, err
	}
	return slot{best, n}, nil
}

func (p slot) leave() {
	p.on.gate.leave(p.places)
	p.on.load.Add(-1)
}

func newSession(c *core) *Session {
	s := &Session{core: c}
	s.cleanup = runtime.AddCleanup(s, reportLeak, c)
	return s
}

// reportLeak runs when the garbage collector finds a Session that was not closed.
func reportLeak(c *core) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if !closed {
		c.rt.opts.Logger.Error("model session was dropped without Close",
			slog.String("session", c.name))
	}
}

// Name returns the session's name, as in SessionOptions.
func (s *Session) Name() string { return s.name }

// Provider returns the execution provider that runs the graph.
func (s *Session) Provider() string { return s.provider }

// Fallback returns why Provider is not the requested one; empty if it is.
func (s *Session) Fallback() string { return s.fallback }

// Devices returns the number of devices that hold the graph.
func (s *Session) Devices() int { return len(s.devices) }

// Inputs lists the inputs of Run, with the types that Run accepts: float32 for a float16 input of
// the graph, int64 for int32. Caches of a decoder (past_key_values.*) are not included: they are
// empty in every run. A dimension that the graph leaves open is tensor.Dynamic; a nil shape leaves
// the rank open too.
func (s *Session) Inputs() []tensor.Spec { return cloneSpecs(s.inputs) }

// Outputs lists the outputs of Run, with the types that Run returns.
func (s *Session) Outputs() []tensor.Spec { return cloneSpecs(s.outputs) }

func cloneSpecs(in []tensor.Spec) []tensor.Spec {
	out := slices.Clone(in)
	for i := range out {
		out[i].Shape = slices.Clone(out[i].Shape)
	}
	return out
}

// Run computes the named outputs, or all for nil, and returns them in that order. in holds each
// input once, in any order; its slices are borrowed until Run returns. The results are owned by the
// caller: float32 (half precision widened) or int64, row-major, finite.
//
// Run waits for a place among the concurrent runs, and blocks a thread while it computes; it may
// become one with runs of other callers (BatchOptions). It returns *InputError for tensors that do
// not fit the graph, ErrOverloaded when too many wait, an error that wraps ctx.Err() when ctx ends
// while waiting or computing, ErrClosed, ErrNotFinite, or *RunError.
func (s *Session) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	defer runtime.KeepAlive(s)
	picked, err := s.pick(outputs)
	if err != nil {
		return nil, err
	}
	ordered := make([]tensor.Tensor, len(s.inputs))
	if err := s.arrange(in, ordered); err != nil {
		return nil, err
	}
	var all []tensor.Tensor
	var took time.Duration
	if s.batch.takes(ordered) {
		all, took, err = s.batch.run(ctx, ordered)
	} else {
		all, took, err = s.alone(ctx, ordered)
	}
	if err != nil {
		if _, ok := errors.AsType[*RunError](err); ok {
			return nil, err
		}
		return nil, fmt.Errorf("run session %q: %w", s.name, err)
	}
	out := all
	if picked != nil {
		out = make([]tensor.Tensor, len(picked))
		for i, at := range picked {
			out[i] = all[at]
			out[i].Name = s.outputs[at].Name
		}
	} else {
		for i := range out {
			out[i].Name = s.outputs[i].Name
		}
	}
	if err := checkFinite(out); err != nil {
		return nil, fmt.Errorf("run session %q: %w", s.name, err)
	}
	if took > 0 {
		s.rt.observe(s.core, took, ordered[0].Shape[0])
	}
	return out, nil
}

// alone computes all outputs of one run, and returns its duration, which is more than 0.
func (c *core) alone(ctx context.Context, in []tensor.Tensor) ([]tensor.Tensor, time.Duration, error) {
	p, err := c.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer p.leave()
	return c.runOn(ctx, p, in)
}

// runOn computes all outputs on the device of a slot. Errors are ErrClosed, ctx's, or *RunError.
func (c *core) runOn(ctx context.Context, p slot, in []tensor.Tensor) ([]tensor.Tensor, time.Duration, error) {
	if !c.begin() {
		return nil, 0, ErrClosed
	}
	defer c.end()
	all := make([]tensor.Tensor, len(c.outputs))
	start := time.Now()
	if err := p.on.exec.run(ctx, in, all); err != nil {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		return nil, 0, &RunError{Session: c.name, Msg: err.Error()}
	}
	return all, max(time.Since(start), 1), nil
}

// Close waits for the runs in flight and releases the native session. Runs that wait for a slot,
// and later ones, get ErrClosed. Closing again waits for the first Close and returns its result.
func (s *Session) Close() error {
	s.cleanup.Stop()
	return s.close()
}

func (c *core) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running++
	return true
}

func (c *core) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.closed && c.running == 0 {
		close(c.drained)
	}
}

func (c *core) close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if first && c.running == 0 {
		close(c.drained)
	}
	c.mu.Unlock()
	if !first {
		<-c.destroyed
		return c.closeErr
	}
	<-c.drained
	var errs []error
	for _, d := range c.devices {
		errs = append(errs, d.exec.close())
	}
	if err := errors.Join(errs...); err != nil {
		c.closeErr = fmt.Errorf("close session %q: %w", c.name, err)
	}
	close(c.destroyed)
	c.rt.forget(c)
	return c.closeErr
}

// pick translates names of outputs to indices; nil selects all.
func (c *core) pick(names []string) ([]int, error) {
	if names == nil {
		return nil, nil
	}
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.IndexFunc(c.outputs, func(s tensor.Spec) bool { return s.Name == name })
		if at[i] < 0 {
			return nil, &InputError{Session: c.name, Tensor: name, Msg: "no such output"}
		}
	}
	return at, nil
}

// arrange puts the tensors into the order of the graph's inputs and checks each against its spec.
func (c *core) arrange(in, ordered []tensor.Tensor) error {
	for i := range in {
		at := slices.IndexFunc(c.inputs, func(s tensor.Spec) bool { return s.Name == in[i].Name })
		if at < 0 {
			return &InputError{Session: c.name, Tensor: in[i].Name, Msg: "no such input"}
		}
		if ordered[at].Shape != nil {
			return &InputError{Session: c.name, Tensor: in[i].Name, Msg: "given twice"}
		}
		msg := mismatch(&in[i], &c.inputs[at])
		if msg == "" {
			msg = c.sig.inputs[at].elem.overflow(&in[i])
		}
		if msg != "" {
			return &InputError{Session: c.name, Tensor: in[i].Name, Msg: msg}
		}
		ordered[at] = in[i]
	}
	for i := range ordered {
		if ordered[i].Shape == nil {
			return &InputError{Session: c.name, Tensor: c.inputs[i].Name, Msg: "missing"}
		}
	}
	return nil
}

// mismatch returns why t cannot be the input that spec describes, or an empty string.
func mismatch(t *tensor.Tensor, spec *tensor.Spec) string {
	if t.F32 != nil && t.I64 != nil {
		return "holds both float32 and int64 data"
	}
	if t.DType() != spec.DType {
		return fmt.Sprintf("is %s, the graph takes %s", t.DType(), spec.DType)
	}
	if len(t.Shape) == 0 {
		return "has no shape"
	}
	if spec.Shape != nil && len(t.Shape) != len(spec.Shape) {
		return fmt.Sprintf("has shape %v, the graph takes %v", t.Shape, spec.Shape)
	}
	have := int64(len(t.F32) + len(t.I64))
	product := int64(1)
	for i, d := range t.Shape {
		// Dividing prevents an overflow of the product to a number that happens to fit.
		if d < 1 || d > have/product {
			return fmt.Sprintf("has shape %v and %d elements", t.Shape, have)
		}
		product *= d
		if spec.Shape != nil && spec.Shape[i] != tensor.Dynamic && spec.Shape[i] != d {
			return fmt.Sprintf("has shape %v, the graph takes %v", t.Shape, spec.Shape)
		}
	}
	if product != have {
		return fmt.Sprintf("has shape %v and %d elements", t.Shape, have)
	}
	return ""
}

const exponentBits = 0x7f800000 // all set: NaN or infinity (IEEE 754 binary32)

func checkFinite(out []tensor.Tensor) error {
	for i := range out {
		for _, f := range out[i].F32 {
			if math.Float32bits(f)&exponentBits == exponentBits {
				return fmt.Errorf("%w: %q holds %v", ErrNotFinite, out[i].Name, f)
			}
		}
	}
	return nil
}

// checkInputs refuses graphs with inputs that callers cannot provide.
func checkInputs(inputs []value) error {
	var errs []error
	for _, v := range inputs {
		if !v.elem.givable() {
			errs = append(errs, fmt.Errorf("input %q has element type %d, only float32, float16, int64 and int32 can be given", v.name, v.elem))
		}
		if v.shape != nil && len(v.shape) == 0 {
			errs = append(errs, fmt.Errorf("input %q is a scalar, which cannot be given", v.name))
		}
	}
	if len(inputs) == 0 {
		errs = append(errs, errors.New("no inputs but caches"))
	}
	return errors.Join(errs...)
}

// pickOutputs returns the named outputs, or all if none is named. It refuses outputs that cannot be
// returned, such as scalars: the binding has no tensors without dimensions.
func pickOutputs(outputs []value, names []string) ([]value, error) {
	picked := outputs
	if len(names) > 0 {
		picked = make([]value, 0, len(names))
		for _, name := range names {
			i := slices.IndexFunc(outputs, func(v value) bool { return v.name == name })
			if i < 0 {
				return nil, fmt.Errorf("no output %q", name)
			}
			picked = append(picked, outputs[i])
		}
	}
	var errs []error
	for _, v := range picked {
		if _, ok := v.elem.widened(); !ok {
			errs = append(errs, fmt.Errorf("output %q has element type %d, which cannot be returned", v.name, v.elem))
		}
		if v.shape != nil && len(v.shape) == 0 {
			errs = append(errs, fmt.Errorf("output %q is a scalar, which cannot be returned", v.name))
		}
	}
	return picked, errors.Join(errs...)
}
