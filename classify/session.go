package classify

import (
	"context"
	"errors"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// Session runs one graph. Implementations must be safe for concurrent use.
type Session interface {
	// Run computes the named outputs for the inputs in, and returns them in order as float32
	// tensors that the caller owns. The tensors of in are borrowed until Run returns. Run returns
	// soon after ctx ends. An error may implement Reasoned to say why the signals are unknown.
	Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error)
	// Inputs lists the inputs of Run. A nil shape leaves the rank open.
	Inputs() []tensor.Spec
	// Outputs lists the outputs that Run can return.
	Outputs() []tensor.Spec
	// Provider returns the execution provider, such as cpu.
	Provider() string
	// Close releases the graph. No Run may be in flight.
	Close() error
}

// Reasoned is an error of a Session that provides the reason why a signal is unknown. Other errors
// count as a timeout or a cancellation if they wrap the context's error, and as internal otherwise.
type Reasoned interface {
	error
	// Reason returns the reason for the signals, never ReasonNone.
	Reason() signal.Reason
}

// outputError reports an output of a session that breaks its contract.
type outputError struct{ msg string }

func (e *outputError) Error() string       { return "invalid output: " + e.msg }
func (*outputError) Reason() signal.Reason { return signal.ReasonInvalid }

// panicError reports a panic inside Extract. A bug triggered by one text must cost that text its
// signals, and must not end the process with its other requests.
type panicError struct{ msg string }

func (e *panicError) Error() string       { return "panic: " + e.msg }
func (*panicError) Reason() signal.Reason { return signal.ReasonInternal }

var (
	_ Reasoned = (*outputError)(nil)
	_ Reasoned = (*panicError)(nil)
)

// reasonOf returns the reason why signals are unknown after err, or ReasonNone for nil.
func reasonOf(ctx context.Context, err error) signal.Reason {
	var r Reasoned
	switch {
	case err == nil:
		return signal.ReasonNone
	case errors.As(err, &r):
		return r.Reason()
	case errors.Is(err, context.DeadlineExceeded):
		return signal.ReasonTimeout
	case errors.Is(err, context.Canceled):
		return signal.ReasonCanceled
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return signal.ReasonTimeout
	case ctx.Err() != nil:
		return signal.ReasonCanceled
	}
	return signal.ReasonInternal
}
