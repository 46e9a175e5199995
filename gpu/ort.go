//go:build cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/cpu"

	"signalbox/gpu/dense"
	"signalbox/internal/tensor"
)

// loaded is the library of this process. ONNX Runtime's environment is process-wide, in the library
// as in its binding, so its guard has to be as well.
//
//nolint:gochecknoglobals // see above
var loaded struct {
	// guards the fields below; held while loading, so that two Opens do not initialise twice
	mu     sync.Mutex
	lib    *Library
	plugin string // path of the registered plugin
}

func buildSupport() error { return nil }

// loadLibrary loads the library and the plugin, unless the process already has. They are never
// unloaded. An unusable plugin is not an error here: the probe of its provider reports it.
func loadLibrary(lib Library, plugin string) (backend, error) {
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	if loaded.lib == nil {
		if err := quiet(); err != nil {
			return nil, err
		}
		ort.SetSharedLibraryPath(lib.Path)
		// Failures are returned as errors, so the library need not print them as well.
		if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
			return nil, fmt.Errorf("%w: load %s: %w", ErrUnavailable, lib.Path, err)
		}
		loaded.lib = &lib
	}
	if loaded.lib.SHA256 != lib.SHA256 {
		return nil, fmt.Errorf("%w: this process already runs %s and cannot load %s: restart needed", ErrUnavailable, loaded.lib.Path, lib.Path)
	}
	if plugin == "" || plugin == loaded.plugin {
		return onnxRuntime{}, nil
	}
	if err := register(plugin); err != nil {
		return onnxRuntime{pluginErr: fmt.Errorf("provider_library: %w", err)}, nil
	}
	loaded.plugin = plugin
	return onnxRuntime{}, nil
}

// quiet disables the telemetry that the library starts with its environment: official builds from
// 1.29 on store the command line, the machine id and the models in a database in the user's cache
// directory, to be sent to Microsoft. They also parse the command line with regular expressions
// whose stack depth grows with its length, so that a long prompt of explain ends the process
// (github.com/microsoft/onnxruntime/pull/27379). The library has no call that disables this in
// time, only an environment variable; a different value set by the user is overwritten and not
// restored.
func quiet() error {
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return fmt.Errorf("turn telemetry of the library off: %w", err)
	}
	return nil
}

// register loads a plugin with execution providers.
func register(path string) error {
	if err := notReplaceable(path); err != nil {
		return err
	}
	_, err := keepHandlers(func() error { return ort.RegisterExecutionProviderLibrary("signalbox", path) })
	return err
}

// onnxRuntime is the backend over the process's library.
type onnxRuntime struct {
	pluginErr error // why the configured plugin cannot be used
}

func (onnxRuntime) version() string { return ort.GetVersion() }

// sessions permits several sessions to be created concurrently, but none while one is closed: the
// layers of a new session compare their weights with those of others (gpu/dense), which are freed
// before the layers that use them.
var sessions sync.RWMutex //nolint:gochecknoglobals // guards a table of the native library

func (n onnxRuntime) load(model []byte, sig signature, outputs []string, cfg loadOptions) (executor, error) {
	o, err := newSessionOptions(cfg.threads, cfg.provider.name)
	if err != nil {
		return nil, err
	}
	defer o.Destroy() //nolint:errcheck // only fails when destroyed before
	if err := n.attach(o, &cfg); err != nil {
		return nil, err
	}
	inputs := make([]string, 0, len(sig.inputs)+len(cfg.caches))
	for _, v := range append(slices.Clip(sig.inputs), cfg.caches...) {
		inputs = append(inputs, v.name)
	}
	if saturates() && cfg.provider.name == ProviderCPU {
		if model, err = apart(model); err != nil {
			return nil, err
		}
		if err = o.AddSessionConfigEntry("session.x64quantprecision", "1"); err != nil {
			return nil, err
		}
	}
	fused := ownOperators(o, model, &cfg)
	before := anonymous()
	sessions.RLock()
	defer sessions.RUnlock()
	native, err := ort.NewDynamicAdvancedSessionWithONNXData(fused, inputs, outputs, o)
	if err != nil && &fused[0] != &model[0] {
		native, err = ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, o)
	}
	if err != nil {
		return nil, err
	}
	if cfg.provider.name == ProviderCPU {
		onHugePages(before)
	}
	cfg.handles.Add(1)
	elems := make([]elemType, len(sig.inputs))
	for i, v := range sig.inputs {
		elems[i] = v.elem
	}
	out := &ortSession{
		native: native, elems: elems, caches: cfg.caches, idle: make(chan *runState, cfg.keep),
		handles: cfg.handles, limit: cfg.limit, hung: cfg.hung,
	}
	if cfg.provider.name == ProviderCUDA || cfg.provider.name == ProviderTensorRT {
		out.threads = newOSThreads(max(cfg.keep, 1))
	}
	return out, nil
}

// ownOperators adds the operators of package dense to the model where they can run. Otherwise, or
// if the model cannot be parsed, it returns the model unchanged: the operators are an optimisation,
// and the library reports faults in a model.
func ownOperators(o *ort.SessionOptions, model []byte, cfg *loadOptions) []byte {
	if cfg.plain || cfg.provider.name != ProviderCPU || !dense.Supported() {
		return model
	}
	fused, layers, err := fuse(model)
	if err != nil || layers == 0 {
		return model
	}
	loaded.mu.Lock()
	path := loaded.lib.Path
	loaded.mu.Unlock()
	if err := dense.Register(path, pointerOf(o)); err != nil {
		return model
	}
	return fused
}

// pointerOf returns the OrtSessionOptions of o, or nil if the binding stores it differently than
// version 1.35 does. The binding has no way to register operators that are not in a shared library
// of their own.
func pointerOf(o *ort.SessionOptions) unsafe.Pointer {
	field := reflect.ValueOf(o).Elem().FieldByName("o")
	if field.Kind() != reflect.Pointer {
		return nil
	}
	return field.UnsafePointer()
}

// saturates reports whether sums of 8-bit products may overflow on this processor: see apart. A
// false must be certain. Only if true is ONNX Runtime told to be exact: that makes weights unsigned
// even on processors with VNNI, where nothing overflows, and fails for weights that are used twice.
func saturates() bool { return runtime.GOARCH == "amd64" && !cpu.X86.HasAVX512VNNI }

// noWeightsFolder is the directory where the library may look for external weights: none. By
// default it would use the working directory, whose files have not been checked.
const noWeightsFolder = os.DevNull

// newSessionOptions returns options for many small parallel runs: few threads each and no busy
// waiting. The memory pattern is disabled because it keeps a plan for each shape, and shapes vary;
// on the embedded 22M int8 graph it gains nothing at 128 tokens and nothing over eight lengths from
// 16 to 256 (CPU time within 3 %, ONNX Runtime 1.30, 2 vCPU of an AMD EPYC). The arena stays
// enabled: it saves 3 to 6 % of CPU time on batches of 8 there, and nothing on single texts.
//
// An addition and the layer norm after it are not fused on the CPU: its kernel for the fused
// operator takes five times as long as both (248 against 36 us on 128 x 384 numbers, same version
// and machine), and every BERT has two per layer. Other providers have good kernels for it and keep
// the fusion.
func newSessionOptions(threads int, provider string) (*ort.SessionOptions, error) {
	o, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		o.SetIntraOpNumThreads(threads),
		o.SetInterOpNumThreads(1),
		o.SetExecutionMode(ort.ExecutionModeSequential),
		o.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll),
		o.SetMemPattern(false),
		o.SetLogSeverityLevel(ort.LoggingLevelFatal),
		o.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		o.AddSessionConfigEntry("session.inter_op.allow_spinning", "0"),
		o.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", noWeightsFolder),
	)
	if provider == ProviderCPU {
		err = errors.Join(err, o.AddSessionConfigEntry("optimization.disable_specified_optimizers", "SkipLayerNormFusion"))
	}
	if err != nil {
		return nil, errors.Join(err, o.Destroy())
	}
	return o, nil
}

// ortSession is one session of ONNX Runtime. Its native object is safe for concurrent runs.
type ortSession struct {
	native  *ort.DynamicAdvancedSession
	threads *osThreads // the threads that run it; nil for any thread
	elems   []elemType // element types of the inputs in the graph
	caches  []value    // inputs after those, empty in every run
	// states for the permitted number of concurrent runs; further runs create a state and drop it
	idle    chan *runState
	handles *atomic.Int64
	limit   time.Duration // maximum time between the termination of a run and its end
	hung    func()        // called if a run exceeds limit
}

// runState is what one run needs besides its tensors; it is reused.
type runState struct {
	opts   *ort.RunOptions
	values []ort.Value // inputs, then outputs
	// for each input that the graph needs in a narrower type, its numbers in that type
	narrow [][]byte
	pin    runtime.Pinner
	// receives the result of terminate; capacity 1, so that terminate never blocks
	told      chan error
	terminate func()      // tells the run in flight to stop
	late      *time.Timer // fires if it has not stopped; set by terminate
}

func (s *ortSession) run(ctx context.Context, in, out []tensor.Tensor) error {
	given := len(in) + len(s.caches)
	st, err := s.acquire(given + len(out))
	if err != nil {
		return err
	}
	inputs, outputs := st.values[:given], st.values[given:]
	for i := range in {
		if inputs[i], err = s.wrap(&in[i], s.elems[i], &st.narrow[i], &st.pin); err != nil {
			s.release(st)
			return fmt.Errorf("input %q: %w", in[i].Name, err)
		}
	}
	for i := range s.caches {
		if inputs[len(in)+i], err = s.empty(&s.caches[i], in[0].Shape[0], &st.pin); err != nil {
			s.release(st)
			return fmt.Errorf("input %q: %w", s.caches[i].name, err)
		}
	}
	stop := context.AfterFunc(ctx, st.terminate)
	err = s.call(inputs, outputs, st.opts)
	s.count(outputs)
	if err == nil {
		err = unwrap(outputs, out)
	}
	if !stop() { // terminate has started: st must outlive it, and its options stay terminated
		err = errors.Join(err, <-st.told)
		st.late.Stop()
		s.drop(st)
		return err
	}
	s.release(st)
	return err
}

// call runs the native session, on one of its own threads if it has any.
func (s *ortSession) call(inputs, outputs []ort.Value, opts *ort.RunOptions) error {
	if s.threads == nil {
		return s.native.RunWithOptions(inputs, outputs, opts)
	}
	var err error
	s.threads.do(func() { err = s.native.RunWithOptions(inputs, outputs, opts) })
	return err
}

// acquire returns an idle state for n values, or a new one.
func (s *ortSession) acquire(n int) (*runState, error) {
	select {
	case st := <-s.idle:
		return st, nil
	default:
	}
	opts, err := ort.NewRunOptions()
	if err != nil {
		return nil, fmt.Errorf("run options: %w", err)
	}
	s.handles.Add(1)
	st := &runState{opts: opts, values: make([]ort.Value, n), narrow: make([][]byte, len(s.elems)), told: make(chan error, 1)}
	st.terminate = func() {
		st.late = time.AfterFunc(s.limit, s.hung)
		st.told <- opts.Terminate()
	}
	return st, nil
}

// release frees the values of a run and keeps the rest for the next run, or drops it.
func (s *ortSession) release(st *runState) {
	s.clear(st)
	select {
	case s.idle <- st:
	default:
		s.drop(st)
	}
}

// drop frees the whole state.
func (s *ortSession) drop(st *runState) {
	s.clear(st)
	s.handles.Add(-1)
	_ = st.opts.Destroy() // always nil
}

// clear destroys the native tensors, and only then releases the memory under them.
func (s *ortSession) clear(st *runState) {
	for i, v := range st.values {
		if v == nil {
			continue
		}
		s.handles.Add(-1)
		_ = v.Destroy() // always nil for tensors
		st.values[i] = nil
	}
	st.pin.Unpin()
}

// count counts the outputs that a run made, even if it made only some of them.
func (s *ortSession) count(out []ort.Value) {
	for _, v := range out {
		if v != nil {
			s.handles.Add(1)
		}
	}
}

func (s *ortSession) close() error {
	close(s.idle)
	for st := range s.idle {
		s.drop(st)
	}
	s.handles.Add(-1)
	defer s.threads.close()
	sessions.Lock()
	defer sessions.Unlock()
	return s.native.Destroy()
}

// wrap makes a native tensor over the caller's slice, without a copy, or, if the graph needs
// another type, over narrow, which it fills. The library keeps the address until the tensor is
// destroyed, which is after the call returns, so the rules of cgo require pinned memory.
func (s *ortSession) wrap(t *tensor.Tensor, elem elemType, narrow *[]byte, pin *runtime.Pinner) (ort.Value, error) {
	shape := ort.Shape(t.Shape)
	switch elem {
	case elemInt32:
		*narrow = appendInt32((*narrow)[:0], t.I64)
		pin.Pin(&(*narrow)[0])
		v, err := ort.NewCustomDataTensor(shape, *narrow, ort.TensorElementDataTypeInt32)
		return s.custom(v, err)
	case elemFloat16:
		*narrow = appendFloat16((*narrow)[:0], t.F32)
		pin.Pin(&(*narrow)[0])
		v, err := ort.NewCustomDataTensor(shape, *narrow, ort.TensorElementDataTypeFloat16)
		return s.custom(v, err)
	case elemFloat:
		pin.Pin(&t.F32[0])
		v, err := ort.NewTensor(shape, t.F32)
		return wrapped(s, v, err)
	case elemInt64:
		pin.Pin(&t.I64[0])
		v, err := ort.NewTensor(shape, t.I64)
		return wrapped(s, v, err)
	case elemUint8, elemInt8, elemUint16, elemInt16, elemBool, elemDouble, elemUint32, elemBFloat16:
	}
	return nil, fmt.Errorf("element type %d cannot be given", elem) // checkInputs has refused it
}

// empty makes the tensor of a cache without tokens.
func (s *ortSession) empty(v *value, batch int64, pin *runtime.Pinner) (ort.Value, error) {
	elem := ort.TensorElementDataType(ort.TensorElementDataTypeFloat)
	if v.elem == elemFloat16 {
		elem = ort.TensorElementDataTypeFloat16
	}
	nothing := new([8]byte) // the binding requires memory even though none is used
	pin.Pin(nothing)
	t, err := ort.NewCustomDataTensor(ort.NewShape(batch, v.shape[1], 0, v.shape[3]), nothing[:], elem)
	return s.custom(t, err)
}

// custom is wrapped for tensors of a type that Go lacks.
func (s *ortSession) custom(v *ort.CustomDataTensor, err error) (ort.Value, error) {
	if err != nil {
		return nil, err
	}
	s.handles.Add(1)
	return v, nil
}

// wrapped prevents a nil *ort.Tensor from becoming a non-nil interface value.
func wrapped[T ort.TensorData](s *ortSession, v *ort.Tensor[T], err error) (ort.Value, error) {
	if err != nil {
		return nil, err
	}
	s.handles.Add(1)
	return v, nil
}

// unwrap returns the Go slices into which the binding copied the outputs.
func unwrap(values []ort.Value, out []tensor.Tensor) error {
	for i, v := range values {
		switch v := v.(type) {
		case *ort.Tensor[float32]:
			out[i] = tensor.Tensor{Shape: v.GetShape(), F32: v.GetData()}
		case *ort.Tensor[int64]:
			out[i] = tensor.Tensor{Shape: v.GetShape(), I64: v.GetData()}
		default:
			return fmt.Errorf("output %d has unexpected type %T", i, v)
		}
	}
	return nil
}
