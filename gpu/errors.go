package gpu

import (
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// fault is an error with the reason that signals get from it.
type fault struct {
	msg    string
	reason signal.Reason
}

func (f *fault) Error() string         { return f.msg }
func (f *fault) Reason() signal.Reason { return f.reason }

// The errors to test for with errors.Is. Each has a method Reason() signal.Reason that returns why
// a signal that needed the run is unknown.
var (
	// ErrUnavailable: there is no usable library, provider or cgo. Reason no_model.
	ErrUnavailable error = &fault{"ONNX Runtime is not available", signal.ReasonNoModel}
	// ErrOverloaded: the queue of runs is full. Reason overload.
	ErrOverloaded error = &fault{"too many model runs are waiting", signal.ReasonOverload}
	// ErrClosed: the session or its runtime is closed. Reason no_model.
	ErrClosed error = &fault{"session is closed", signal.ReasonNoModel}
	// ErrNotFinite: an output contains NaN or an infinity. Reason invalid_output.
	ErrNotFinite error = &fault{"output is not finite", signal.ReasonInvalid}
)

// ModelError reports bytes that are not a graph that a session can run: corrupt, or with inputs or
// outputs of unsupported types.
type ModelError struct {
	Session string // name of the session
	Msg     string
}

// Error returns the session and the problem of its graph.
func (e *ModelError) Error() string { return fmt.Sprintf("model %q: %s", e.Session, e.Msg) }

// Reason returns no_model: nothing can be computed with this graph.
func (*ModelError) Reason() signal.Reason { return signal.ReasonNoModel }

// InputError reports tensors or output names of a run that do not fit the graph. It is returned
// before the library is called.
type InputError struct {
	Session string // name of the session
	Tensor  string // name of the tensor at fault
	Msg     string
}

// Error returns the session, the tensor and the problem.
func (e *InputError) Error() string {
	return fmt.Sprintf("session %q: tensor %q: %s", e.Session, e.Tensor, e.Msg)
}

// Reason returns internal: the caller built a wrong tensor.
func (*InputError) Reason() signal.Reason { return signal.ReasonInternal }

// RunError reports a run that the library refused or that failed.
type RunError struct {
	Session string // name of the session
	Msg     string // the library's message
}

// Error returns the session and the library's message.
func (e *RunError) Error() string { return fmt.Sprintf("run session %q: %s", e.Session, e.Msg) }

// Reason returns overload if the device ran out of memory, and internal otherwise.
func (e *RunError) Reason() signal.Reason {
	if outOfMemory(e.Msg) {
		return signal.ReasonOverload
	}
	return signal.ReasonInternal
}

// outOfMemory recognises the messages of ONNX Runtime 1.30, its arena and CUDA about insufficient
// memory.
func outOfMemory(msg string) bool {
	return slices.ContainsFunc([]string{
		"out of memory", "Failed to allocate memory", "is smaller than requested bytes", "bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED",
	}, func(words string) bool { return strings.Contains(msg, words) })
}

// ProviderError reports that a provider other than the CPU, which worked in its probe, could not
// load a graph: its memory may be full, or an operator unsupported. The CPU may be able to load the
// same model.
type ProviderError struct {
	Session  string // name of the session
	Provider string
	Msg      string // the library's message
}

// Error returns the session, the provider and the library's message.
func (e *ProviderError) Error() string {
	return fmt.Sprintf("model %q on %s: %s", e.Session, e.Provider, e.Msg)
}

// Reason returns no_model.
func (*ProviderError) Reason() signal.Reason { return signal.ReasonNoModel }
