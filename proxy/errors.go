package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/auth"
	"signalbox/proxy/contexts"
	"signalbox/proxy/rate"
	"signalbox/proxy/redact"
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

// statusClientGone is what logs and metrics say of a client that left; nothing is sent.
const statusClientGone = 499

// wire is the one table from errors to what a client sees, in two parts. Only what is listed shows its text.
func wire(err error, id string) *openai.Error {
	var bad *openai.Error
	if e := ofContexts(err); e != nil {
		return e
	}
	switch {
	case errors.As(err, &bad):
		return bad
	case errors.Is(err, errClientGone), errors.Is(err, errClientStalled), errors.Is(err, context.Canceled) && !isUpstream(err):
		return serverError(statusClientGone, "", "client closed the request")
	}
	if errors.Is(err, errStopped) {
		return serverError(http.StatusServiceUnavailable, "server_shutdown", "this server is being stopped, and the request took longer than it may wait for")
	}
	if e := refusal(err); e != nil {
		return e
	}
	return failure(err, id)
}

// ErrStopped is the cause with which the context of a request is cancelled when the process ends and waits for it no longer: its
// client is told, which is not done for one that has gone.
var ErrStopped = errStopped

// stopped tells a request that the process ended from one whose client has gone; both were cancelled.
func stopped(ctx context.Context, err error) error {
	if errors.Is(err, errClientGone) && errors.Is(context.Cause(ctx), errStopped) {
		return errStopped
	}
	return err
}

func serverError(status int, code, message string) *openai.Error {
	return &openai.Error{Status: status, Type: typeServer, Code: code, Message: message}
}

func invalid(status int, code, param, message string) *openai.Error {
	return &openai.Error{Status: status, Type: openai.TypeInvalidRequest, Code: code, Param: param, Message: message}
}

// refusal is the part of the table for what is found before a request is decided on, and for what is decided against it; nil for
// the rest.
func refusal(err error) *openai.Error {
	var (
		header   *headerError
		blocked  *blockedError
		unknown  *unknownModelError
		long     *tooLongError
		exceeded *rate.ExceededError
	)
	switch {
	case errors.As(err, &header):
		return invalid(http.StatusBadRequest, "", "", "the header "+header.name+" is given twice or with an underscore")
	case errors.Is(err, errBodyTooLarge):
		return invalid(http.StatusRequestEntityTooLarge, "request_too_large", "", "the request body is larger than this server accepts")
	case errors.Is(err, errBodyTimeout):
		return invalid(http.StatusRequestTimeout, "", "", "the request body did not arrive in time")
	case errors.Is(err, errMedia):
		return invalid(http.StatusUnsupportedMediaType, "", "", "the request body must be sent as it is and in UTF-8: without Content-Encoding, and with no other charset in Content-Type")
	case errors.Is(err, errBodyBroken):
		return invalid(http.StatusBadRequest, "", "", "the request body could not be read")
	case errors.Is(err, auth.ErrBadKey):
		return invalid(http.StatusUnauthorized, "invalid_api_key", "", "Incorrect API key provided.")
	case errors.Is(err, auth.ErrNoKeySet):
		return serverError(http.StatusServiceUnavailable, "auth_unavailable", "tokens cannot be verified at the moment")
	case errors.Is(err, errNoneAllowed):
		return invalid(http.StatusForbidden, "model_not_allowed", "model", "none of the models that this request could go to may be used with these credentials")
	case errors.Is(err, errForbidden):
		return invalid(http.StatusForbidden, "insufficient_permissions", "", "your role may not use this")
	case errors.Is(err, errNoRoute):
		return invalid(http.StatusNotFound, "", "", "there is nothing at this path")
	case errors.Is(err, errMethod):
		return invalid(http.StatusMethodNotAllowed, "", "", "this path does not take this method")
	case errors.As(err, &exceeded):
		return &openai.Error{Status: http.StatusTooManyRequests, Type: typeRate, Code: "rate_limit_exceeded", Message: exceeded.Error()}
	case errors.Is(err, errFull):
		return serverError(http.StatusServiceUnavailable, "overloaded", "too many bytes of requests are held at the moment")
	case errors.Is(err, errManyHeaders):
		return invalid(http.StatusRequestHeaderFieldsTooLarge, "", "", "the request has more headers than this server accepts")
	case errors.As(err, &unknown):
		return invalid(http.StatusNotFound, "model_not_found", "model", unknown.Error())
	case errors.As(err, &long):
		return long.wire()
	case errors.As(err, &blocked):
		return invalid(http.StatusBadRequest, "content_policy_violation", "", blocked.message)
	}
	return nil
}

// failure is the part of the table for what goes wrong behind that.
func failure(err error, id string) *openai.Error {
	var (
		timeout net.Error
		lacking *unavailableError
		refused *refusedError
	)
	switch {
	case errors.As(err, &lacking):
		return serverError(http.StatusServiceUnavailable, "signal_unavailable", lacking.message())
	case errors.Is(err, errUnavailable):
		return serverError(http.StatusServiceUnavailable, "signal_unavailable", "a signal that this request's route depends on is not available")
	case errors.Is(err, errUnredacted), errors.Is(err, redact.ErrIncomplete):
		return serverError(http.StatusServiceUnavailable, "signal_unavailable", "this request's route replaces personal data, which could not be done; nothing was sent to a model")
	case errors.Is(err, errOverloaded):
		return serverError(http.StatusServiceUnavailable, "overloaded", "this request could not be classified in time")
	case errors.Is(err, errUncheckable):
		return serverError(http.StatusBadGateway, "upstream_error", "the model server's answer cannot be checked, and unchecked ones are withheld here")
	case errors.Is(err, errCrowded):
		return serverError(http.StatusServiceUnavailable, "overloaded", "every endpoint of this model has as many requests as it may have")
	case errors.Is(err, errAsleep):
		return serverError(http.StatusServiceUnavailable, "model_asleep",
			"the servers of this model sleep or are paused, and answer nothing until they are woken up")
	case errors.Is(err, errNoEndpoint):
		return serverError(http.StatusServiceUnavailable, "no_endpoint", "no healthy endpoint serves this model")
	case errors.As(err, &refused):
		return refused.wire()
	case isUpstream(err) && (errors.Is(err, errNoProgress) || errors.As(err, &timeout) && timeout.Timeout()):
		return serverError(http.StatusGatewayTimeout, "upstream_timeout", "the model server did not answer in time")
	case isUpstream(err):
		return serverError(http.StatusBadGateway, "upstream_error", "the model server could not be reached or broke off")
	}
	return serverError(http.StatusInternalServerError, "internal_error", "internal error, request "+id)
}

// isUpstream reports whether err is a fault of an endpoint.
func isUpstream(err error) bool {
	var (
		unreached  *unreachedError
		unanswered *unansweredError
		misfit     *misfitError
		cut        *cutError
		refused    *refusedError
	)
	return errors.As(err, &refused) || errors.As(err, &unreached) || errors.As(err, &unanswered) ||
		errors.As(err, &misfit) || errors.As(err, &cut)
}

// fail answers with err. It writes nothing for a client that is gone.
func fail(w *reply, err error) {
	e := wire(err, w.id)
	if e.Status == statusClientGone {
		return
	}
	h := w.Header()
	if lacking, ok := errors.AsType[*unavailableError](err); ok && lacking.lasting() {
		h.Set("X-Should-Retry", "false")
	}
	if wait := contexts.RetryAfter(err); wait > 0 {
		h.Set("Retry-After", strconv.Itoa(wait))
	}
	describeLimits(h, w.lease, err)
	switch {
	case e.Status == http.StatusUnauthorized:
		h.Set("Www-Authenticate", "Bearer")
	case errors.Is(err, errNoEndpoint), errors.Is(err, errAsleep):
		h.Set("Retry-After", retryAfterNoEndpoint)
	case errors.Is(err, errStopped):
		h.Set("Retry-After", retryAfterOverload) // another replica, or the next process, takes it
	case errors.Is(err, errOverloaded), errors.Is(err, errCrowded), errors.Is(err, errBusy), errors.Is(err, errFull), errors.Is(err, auth.ErrNoKeySet):
		h.Set("Retry-After", retryAfterOverload)
	case isUpstream(err):
		// Retries are spent here; a client that repeats at once adds load to a failing pool.
		h.Set("X-Should-Retry", "false")
	case errors.Is(err, errBodyTooLarge), errors.Is(err, errBodyTimeout), errors.Is(err, errBodyBroken), errors.Is(err, errManyHeaders), errors.Is(err, errMedia):
		h.Set("Connection", "close") // the rest of the body is not worth reading
	}
	openai.WriteError(w, e)
}

// retryAfterOverload, in seconds: a queue of passes of some 10 ms each has moved on by then.
const retryAfterOverload = "1"

// retryAfterNoEndpoint, in seconds, is one round of health checks at the default interval.
const retryAfterNoEndpoint = "5"
