package classify

import (
	"context"
	"errors"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// Session runs one graph. Implementations are safe for concurrent use.
type Session interface {
	// Run feeds in and returns the named outputs in order, as float32 tensors owned by the caller.
	// The tensors of in are borrowed until Run returns. An error may say why the signals are
	// unknown by implementing Reasoned; it returns soon after ctx ends.
	Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error)
	// Inputs lists what Run needs. A nil shape leaves the rank open.
	Inputs() []tensor.Spec
	// Outputs lists what Run can return.
	Outputs() []tensor.Spec
	// Provider is the execution provider, such as cpu.
	Provider() string
	// Close releases the graph once no Run is in flight.
	Close() error
}

// Reasoned is an error of a Session that knows what a signal is unknown for. Errors without it are
// a timeout or a cancellation when they wrap the context's error, and internal otherwise.
type Reasoned interface {
	error
	// Reason is the reason that the signals get. It is not ReasonNone.
	Reason() signal.Reason
}

// outputError is an answer of a session that breaks its contract.
type outputError struct{ msg string }

func (e *outputError) Error() string       { return "invalid output: " + e.msg }
func (*outputError) Reason() signal.Reason { return signal.ReasonInvalid }

// panicError is a panic below Extract. A bug in the reading of one text must cost that text its
// signals, not the process its other requests.
type panicError struct{ msg string }

func (e *panicError) Error() string       { return "panic: " + e.msg }
func (*panicError) Reason() signal.Reason { return signal.ReasonInternal }

var (
	_ Reasoned = (*outputError)(nil)
	_ Reasoned = (*panicError)(nil)
)

// reasonOf says why signals are unknown after err; ReasonNone for nil.
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
