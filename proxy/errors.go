package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"signalbox/internal/signal"
)

// The error types of the API that are not the client's fault.
const (
	typeServer = "server_error"
	typeRate   = "rate_limit_error"
)

// Faults that the edge itself detects. Their place on the wire is in wire.
var (
	errClientGone    = errors.New("client went away")
	errStopped       = errors.New("the process ends")
	errClientStalled = errors.New("client did not read its answer")
	errBodyTooLarge  = errors.New("request body too large")
	errBodyTimeout   = errors.New("request body did not arrive in time")
	errBodyBroken    = errors.New("request body is malformed")
	errNoneAllowed   = errors.New("no model that the caller may use")
	errForbidden     = errors.New("role may not do this")
	errFull          = errors.New("too many bytes in flight")
	errManyHeaders   = errors.New("too many headers")
	errMedia         = errors.New("a coding or a character set that is not read")
	errNoRoute       = errors.New("no such path")
	errMethod        = errors.New("method not allowed")
	errNoEndpoint    = errors.New("no healthy endpoint")
	errCrowded       = errors.New("every endpoint is full")
	errAsleep        = errors.New("every endpoint that is up is asleep")
	errUnavailable   = errors.New("a needed signal is unknown")
	errOverloaded    = errors.New("signals were not ready in time")
	errUnredacted    = errors.New("personal data is not known")
	errPanicked      = errors.New("panic")
	errNoProgress    = errors.New("no progress in time")
	errUncheckable   = &misfitError{"a body that cannot be checked"} // and must not pass unchecked
)

// headerError reports a request header that could be read in two ways.
type headerError struct{ name string }

func (e *headerError) Error() string { return "ambiguous header " + e.name }

// blockedError carries the message of a route that blocks.
type blockedError struct{ message string }

func (*blockedError) Error() string { return "blocked by policy" }

// unavailableError names the signals without which a request is refused, and why they are unknown.
type unavailableError struct {
	signals []string      // at least one
	why     signal.Reason // empty where they are known of a part of the request only
}

func (e *unavailableError) Error() string { return "unknown: " + strings.Join(e.signals, ", ") }

// Unwrap makes it one of errUnavailable.
func (*unavailableError) Unwrap() error { return errUnavailable }

// lasting reports that the same request will fare no better soon.
func (e *unavailableError) lasting() bool {
	return e.why == signal.ReasonNoModel || e.why == signal.ReasonNoText
}

// message says to a client what is missing and what to do.
func (e *unavailableError) message() string {
	what := "the signal " + e.signals[0] + " is"
	if len(e.signals) > 1 {
		what = "the signals " + strings.Join(e.signals, ", ") + " are"
	}
	what += " not available"
	const ending = "; this request's route lets nothing pass without, and nothing was sent to a model"
	switch e.why { //nolint:exhaustive // the rest may pass
	case signal.ReasonNoModel:
		return what + ": no model computes it here" + ending +
			". The operator of this server finds what is missing in its log and under /readyz"
	case signal.ReasonNoText:
		return what + ": the request holds nothing that can be read as text" + ending
	case signal.ReasonNone:
		return what + ": a part of the request could not be read" + ending + ". Try again later"
	}
	return what + " at the moment (" + string(e.why) + ")" + ending + ". Try again later"
}

// unknownModelError names a model that is not configured.
type unknownModelError struct{ model string }

// Error names the model as far as a name can be long.
func (e *unknownModelError) Error() string { return fmt.Sprintf("unknown model %.200q", e.model) }

// unreachedError: no connection, so the upstream has not seen the request.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string { return "connect: " + e.err.Error() }
func (e *unreachedError) Unwrap() error { return e.err }

// unansweredError: the upstream has the request, and the client has seen nothing.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return "no answer: " + e.err.Error() }
func (e *unansweredError) Unwrap() error { return e.err }

// misfitError: the upstream answered with what no client of this API expects.
type misfitError struct{ what string }

func (e *misfitError) Error() string { return "unusable answer: " + e.what }

// cutError: the answer broke off after the client had seen a part.
type cutError struct{ err error }

func (e *cutError) Error() string { return "answer cut: " + e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// ErrStopped is the cause with which the context of a request is cancelled when the process ends
// and waits for it no longer: its client is told, which is not done for one that has gone.
var ErrStopped = errStopped

// stopped tells a request that the process ended from one whose client has gone; both were
// cancelled.
func stopped(ctx context.Context, err error) error {
	if errors.Is(err, errClientGone) && errors.Is(context.Cause(ctx), errStopped) {
		return errStopped
	}
	return err
}
