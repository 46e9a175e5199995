package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
	"signalbox/proxy/contexts"
	"signalbox/proxy/rate"
	"signalbox/proxy/redact"
)

// statusClientGone is what logs and metrics say of a client that left; nothing is sent.
const statusClientGone = 499

// wire is the one table from errors to what a client sees, in two parts. Only what is listed shows
// its text.
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

func serverError(status int, code, message string) *openai.Error {
	return &openai.Error{Status: status, Type: typeServer, Code: code, Message: message}
}

func invalid(status int, code, param, message string) *openai.Error {
	return &openai.Error{Status: status, Type: openai.TypeInvalidRequest, Code: code, Param: param, Message: message}
}

// refusal is the part of the table for what is found before a request is decided on, and for what
// is decided against it; nil for the rest.
func refusal(err error) *openai.Error {
	var (
		header   *headerError
		blocked  *blockedError
		unknown  *unknownModelError
		long     *tooLongError
		exceeded *rate.ExceededError
		spent    *budget.ExceededError
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
		return serverError(http.StatusServiceUnavailable, "auth_unavailable", "keys and tokens cannot be verified at the moment")
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
	case errors.As(err, &spent):
		return &openai.Error{
			Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
			Message: spent.Error(),
		}
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
	if over, ok := errors.AsType[*budget.ExceededError](err); ok {
		describeBudget(h, over)
	}
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
	if w.messages != nil {
		w.messages.fail(w, e)
		return
	}
	openai.WriteError(w, e)
}

// retryAfterOverload, in seconds: a queue of passes of some 10 ms each has moved on by then.
const retryAfterOverload = "1"

// retryAfterNoEndpoint, in seconds, is one round of health checks at the default interval.
const retryAfterNoEndpoint = "5"
