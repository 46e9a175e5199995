// Package fault holds the errors of the request path and the one table that maps them to responses.
// Stages return these errors; only Wire assigns a status, and only Describe sets headers. The
// package writes no response.
package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// ErrStopped is the cause with which a request's context is cancelled when the process ends and no
// longer waits for the request. Unlike a client that has disconnected, this client gets an error.
var ErrStopped = errors.New("the process is shutting down")

// Errors without details. Wire has their statuses.
var (
	ErrClientGone        = errors.New("client disconnected")
	ErrClientStalled     = errors.New("client stopped reading the response")
	ErrBodyTooLarge      = errors.New("request body too large")
	ErrBodyTimeout       = errors.New("request body did not arrive in time")
	ErrBodyBroken        = errors.New("request body is malformed")
	ErrNoModelAllowed    = errors.New("no model is allowed for the caller")
	ErrForbidden         = errors.New("role is not allowed to do this")
	ErrTooManyBytes      = errors.New("too many bytes in flight")
	ErrManyHeaders       = errors.New("too many headers")
	ErrMedia             = errors.New("unsupported content encoding or charset")
	ErrNoRoute           = errors.New("no such path")
	ErrMethod            = errors.New("method not allowed")
	ErrNoEndpoint        = errors.New("no healthy endpoint")
	ErrEndpointsFull     = errors.New("every endpoint is full")
	ErrAsleep            = errors.New("every endpoint that is up is asleep or paused")
	ErrSignalUnavailable = errors.New("a required signal is unknown")
	ErrOverloaded        = errors.New("signals were not ready in time")
	ErrNotRedacted       = errors.New("personal data could not be detected")
	ErrPanicked          = errors.New("panic")
	ErrNoProgress        = errors.New("no progress in time")
	// ErrUncheckable means that the guard must check the response and cannot.
	ErrUncheckable = &UnusableError{"the guard cannot check this body"}
)

// NoRouteError is an ErrNoRoute for which the intended path is known.
type NoRouteError struct{ Meant string }

// Error suggests the intended path.
func (e *NoRouteError) Error() string { return "no such path, did you mean " + e.Meant }

// Is matches ErrNoRoute.
func (*NoRouteError) Is(target error) bool { return target == ErrNoRoute }

// UnservedError reports a path of OpenAI's API that this proxy does not serve.
type UnservedError struct{ Path string }

// Error names the path.
func (e *UnservedError) Error() string { return "not served: " + e.Path }

// Is matches ErrNoRoute.
func (*UnservedError) Is(target error) bool { return target == ErrNoRoute }

// HeaderError reports an ambiguous request header, which two readers could interpret differently.
type HeaderError struct{ Name string }

// Error names the header.
func (e *HeaderError) Error() string { return "ambiguous header " + e.Name }

// BlockedError carries the message of a route that blocks.
type BlockedError struct {
	Message string
	Param   string // position of the refused message, such as messages[7]; may be empty
}

// Error contains neither text of the request nor the message.
func (*BlockedError) Error() string { return "blocked by policy" }

// SignalError names the unknown signals without which a request is refused, and the reason.
type SignalError struct {
	Signals []string      // at least one
	Reason  signal.Reason // empty if the signals are known for a part of the request only
	Away    bool          // with no_model: a model is configured but unavailable
}

// Error names the signals.
func (e *SignalError) Error() string { return "unknown: " + strings.Join(e.Signals, ", ") }

// Unwrap returns ErrSignalUnavailable.
func (*SignalError) Unwrap() error { return ErrSignalUnavailable }

// passing reports whether the signals were merely too late, so that a retry may succeed.
func (e *SignalError) passing() bool {
	return e.Reason == signal.ReasonTimeout || e.Reason == signal.ReasonOverload || e.Away
}

// Lasting reports whether a retry of the same request would fail as well.
func (e *SignalError) Lasting() bool {
	return e.Reason == signal.ReasonNoModel && !e.Away || e.Reason == signal.ReasonNoText
}

// message returns the text for the client: the missing signals and what to do about them.
func (e *SignalError) message() string {
	what := "the signal " + e.Signals[0] + " is"
	if len(e.Signals) > 1 {
		what = "the signals " + strings.Join(e.Signals, ", ") + " are"
	}
	what += " not available"
	const ending = "; the route of this request fails closed, so nothing was sent to a model"
	switch e.Reason { //nolint:exhaustive // the other reasons are temporary
	case signal.ReasonNoModel:
		if e.Away {
			return what + ": the model that computes it does not respond" + ending + ". Try again later"
		}
		return what + ": no model that computes it is loaded" + ending +
			". The server's log and /readyz name the cause"
	case signal.ReasonNoText:
		return what + ": the request contains no readable text" + ending
	case signal.ReasonNone:
		return what + ": part of the request could not be read" + ending + ". Try again later"
	}
	return what + " at the moment (" + string(e.Reason) + ")" + ending + ". Try again later"
}

// LateError is an ErrOverloaded that names the signals that were not ready in time.
type LateError struct {
	Signals []string // at least one, as named in the configuration
	Bytes   int      // size of the text that was not read completely; 0 if reading had not begun
}

// Error names the signals.
func (e *LateError) Error() string {
	return ErrOverloaded.Error() + ": " + strings.Join(e.Signals, ", ")
}

// Unwrap returns ErrOverloaded.
func (*LateError) Unwrap() error { return ErrOverloaded }

// retryAfter returns the seconds that a client should wait. What was read is remembered, so another
// attempt continues from there; the wait is the time that one idle core needs for the whole text.
func (e *LateError) retryAfter() int {
	return min(1+e.Bytes/readPace, retryAfterLate)
}

// message returns the text for the client: the signals, why they are missing, and when to retry.
func (e *LateError) message() string {
	what := "the signal " + e.Signals[0] + " was"
	if len(e.Signals) > 1 {
		what = "the signals " + strings.Join(e.Signals, ", ") + " were"
	}
	why := "the server is overloaded"
	if e.Bytes > 0 {
		why = fmt.Sprintf("the server was too busy to read all %d bytes of text", e.Bytes)
	}
	return fmt.Sprintf("%s not ready in time: %s; the route of this request fails closed, so nothing was sent "+
		"to a model. Try again in %d s", what, why, e.retryAfter())
}

// UnknownModelError names a model that is not configured.
type UnknownModelError struct {
	Model string
	Known []string // names that the caller may ask for
}

// Error quotes at most 200 bytes of the name and suggests the probable one.
func (e *UnknownModelError) Error() string {
	text := fmt.Sprintf("unknown model %.200q", e.Model)
	if best := nearest(e.Model, e.Known); best != "" {
		return text + fmt.Sprintf("; did you mean %q?", best)
	}
	if len(e.Known) > 0 {
		text += "; GET /v1/models lists the available models"
	}
	return text
}

// maxName limits the names that are compared, since edit distance is quadratic and the client
// chooses the name.
const maxName = 64

// nearest returns the known name that a name is probably a typo of, with at most one edit per three
// characters plus one; empty if there is none.
func nearest(name string, known []string) string {
	best, least := "", len(name)/3+2
	if len(name) > maxName {
		return ""
	}
	for _, k := range known {
		if len(k) > maxName {
			continue
		}
		if n := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k)); n < least {
			best, least = k, n
		}
	}
	return best
}

// ConnectError reports a failed connection: the endpoint has not seen the request.
type ConnectError struct{ Err error }

// Error includes the cause.
func (e *ConnectError) Error() string { return "connect: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// NoResponseError reports an endpoint that received the request and failed before the client got a
// byte.
type NoResponseError struct{ Err error }

// Error includes the cause.
func (e *NoResponseError) Error() string { return "no response: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *NoResponseError) Unwrap() error { return e.Err }

// BodyTooLargeError reports a request body above the limit.
type BodyTooLargeError struct{ Limit int64 } // bytes

// Error includes the limit.
func (e *BodyTooLargeError) Error() string {
	return ErrBodyTooLarge.Error() + ": more than " + strconv.FormatInt(e.Limit, 10) + " bytes"
}

// Unwrap returns ErrBodyTooLarge.
func (*BodyTooLargeError) Unwrap() error { return ErrBodyTooLarge }

// UnusableError reports a response that no client of the API expects.
type UnusableError struct{ Problem string }

// Error includes the problem.
func (e *UnusableError) Error() string { return "unusable response: " + e.Problem }

// CredentialsError reports an endpoint that refuses the credentials configured for it.
type CredentialsError struct{ Model, Endpoint string }

// Error omits the server's message, which may quote the credentials.
func (e *CredentialsError) Error() string {
	return "endpoint " + strconv.Quote(e.Endpoint) + " of model " + strconv.Quote(e.Model) +
		" rejected the proxy's credentials"
}

// InterruptedError reports a response that broke off after the client had received a part of it.
type InterruptedError struct{ Err error }

// Error includes the cause.
func (e *InterruptedError) Error() string { return "response interrupted: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *InterruptedError) Unwrap() error { return e.Err }

// ContextError reports a stored context that a request names but cannot use.
type ContextError struct {
	ContextID string
	Param     string // the request field that names it
	Err       error
}

// Error includes the context and the cause.
func (e *ContextError) Error() string { return "resolve context " + e.ContextID + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ContextError) Unwrap() error { return e.Err }

// CodeTooLong is the API's error code for a prompt that does not fit into a context window, whether
// the proxy or a model server refuses it.
const CodeTooLong = "context_length_exceeded"

// CodeUpstream is the error code for a missing or unusable response of a model server.
const CodeUpstream = "upstream_error"

// codeTooLarge is the error code for a body, or a text, that exceeds the size limit.
const codeTooLarge = "request_too_large"

// Unreadable returns the error of a prompt of token ids or vectors, in the field param, on a route
// that needs its text. A retry cannot succeed.
func Unreadable(param string) error {
	return openai.Invalid(param,
		param+" contains token ids or vectors, but the route of this request needs text: send text")
}

// TooLongError reports a prompt that does not fit into the context window of any candidate model.
type TooLongError struct {
	Param   string // the field with the prompt; empty if unknown
	Message string // for the client; empty for one without figures
}

// Error is constant; Message is for the client.
func (*TooLongError) Error() string { return "prompt longer than any context window" }

// wire returns the API error.
func (e *TooLongError) wire() *openai.Error {
	message := cmp.Or(e.Message, "the prompt exceeds the context window of every model that it could be sent to")
	return openai.Refusal(http.StatusBadRequest, CodeTooLong, e.Param, message)
}

// ErrBusy refuses to warm a context when other requests would have to wait for it.
var ErrBusy = openai.Refusal(http.StatusServiceUnavailable, "overloaded", "",
	"the model servers are busy; a context is warmed only while no other request waits")

// WarmRefusedError reports a model server that refused a request to warm a context.
type WarmRefusedError struct {
	Model   string
	Status  int    // status of the server's response, 400 or above
	Message string // the server's message, shortened; may be empty
}

// Error omits the server's message, which may quote the context.
func (e *WarmRefusedError) Error() string {
	return "context refused by the server of model " + strconv.Quote(e.Model) +
		" with status " + strconv.Itoa(e.Status)
}

// Secret reports whether the server's message may quote the endpoint's credentials.
func (e *WarmRefusedError) Secret() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// wire returns the API error.
func (e *WarmRefusedError) wire() *openai.Error {
	code := "upstream_refused"
	if e.Status >= http.StatusInternalServerError {
		code = CodeUpstream
	}
	says := "the server of model " + strconv.Quote(e.Model) +
		" rejected the context with status " + strconv.Itoa(e.Status)
	if e.Message != "" {
		says += ": " + strconv.Quote(e.Message)
	}
	return openai.Refusal(http.StatusBadGateway, code, "", says)
}

// Stopped returns ErrStopped for an ErrClientGone caused by the end of the process, and any other
// error unchanged.
func Stopped(ctx context.Context, err error) error {
	if errors.Is(err, ErrClientGone) && errors.Is(context.Cause(ctx), ErrStopped) {
		return ErrStopped
	}
	return err
}
