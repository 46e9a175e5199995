package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
	"signalbox/proxy/contexts"
	"signalbox/proxy/rate"
	"signalbox/proxy/redact"
)

// StatusClientGone is the status in logs and metrics for a client that has disconnected; nothing is
// sent.
const StatusClientGone = 499

// Wire returns the error response for err. It is the only table from errors to responses. An
// unlisted error is an internal error, whose response contains only the request id.
func Wire(err error, id string) *openai.Error {
	var bad *openai.Error
	if e := ofContexts(err); e != nil {
		return e
	}
	switch {
	case errors.As(err, &bad):
		return bad
	case errors.Is(err, ErrClientGone), errors.Is(err, ErrClientStalled), errors.Is(err, context.Canceled) && !isUpstream(err):
		return &openai.Error{
			Status: StatusClientGone, Type: openai.TypeServer, Code: "client_closed_request",
			Message: "client closed the request",
		}
	}
	if errors.Is(err, ErrStopped) {
		return openai.Refusal(http.StatusServiceUnavailable, "server_shutdown", "",
			"the server is shutting down and the request did not finish in time; send it again")
	}
	if e := refusal(err); e != nil {
		return e
	}
	return failure(err, id)
}

// Cause returns the text of err for logs, without any text of the request, which messages for the
// client may quote.
func Cause(err error) string {
	if at, ok := errors.AsType[*ContextError](err); ok {
		return "resolve context: " + Cause(at.Err)
	}
	if bad, ok := errors.AsType[*openai.Error](err); ok {
		return bad.Cause()
	}
	if _, ok := errors.AsType[*UnknownModelError](err); ok {
		return "unknown model"
	}
	if e := contexts.Wire(err); e != nil && e.Status < http.StatusInternalServerError {
		return e.Cause()
	}
	return err.Error()
}

// refusal is the part of the table for errors before the decision: those of the request, of its
// caller and of policy. It returns nil for all others.
func refusal(err error) *openai.Error {
	var (
		header    *HeaderError
		blocked   *BlockedError
		unknown   *UnknownModelError
		long      *TooLongError
		exceeded  *rate.ExceededError
		elsewhere *NoRouteError
		unserved  *UnservedError
		spent     *budget.ExceededError
		large     *BodyTooLargeError
	)
	switch {
	case errors.As(err, &header):
		return openai.Refusal(http.StatusBadRequest, "", "",
			"the header "+header.Name+" is repeated, or its name contains an underscore")
	case errors.As(err, &large):
		return openai.Refusal(http.StatusRequestEntityTooLarge, codeTooLarge, "",
			fmt.Sprintf("the request body exceeds the limit of %d bytes", large.Limit))
	case errors.Is(err, ErrBodyTimeout):
		return openai.Refusal(http.StatusRequestTimeout, "", "", "timed out while reading the request body")
	case errors.Is(err, ErrMedia):
		return openai.Refusal(http.StatusUnsupportedMediaType, "", "",
			"unsupported encoding of the request body: send UTF-8 without Content-Encoding and without another "+
				"charset in Content-Type")
	case errors.Is(err, ErrBodyBroken):
		return openai.Refusal(http.StatusBadRequest, "", "", "the request body could not be read")
	case errors.Is(err, auth.ErrNoKey):
		return openai.Refusal(http.StatusUnauthorized, "invalid_api_key", "",
			"No API key was provided. Send one in the header Authorization, as Bearer KEY.")
	case errors.Is(err, auth.ErrBadKey):
		return openai.Refusal(http.StatusUnauthorized, "invalid_api_key", "", "Incorrect API key provided.")
	case errors.Is(err, auth.ErrNoKeySet):
		return openai.Refusal(http.StatusServiceUnavailable, "auth_unavailable", "",
			"API keys and tokens cannot be verified at the moment; try again later")
	case errors.Is(err, ErrNoModelAllowed):
		return openai.Refusal(http.StatusForbidden, "model_not_allowed", "model",
			"these credentials do not permit any of the models that this request could be sent to")
	case errors.Is(err, ErrForbidden):
		return openai.Refusal(http.StatusForbidden, "insufficient_permissions", "", "your role is not allowed to use this endpoint")
	case errors.As(err, &elsewhere):
		return openai.Refusal(
			http.StatusNotFound,
			"",
			"",
			"unknown path; did you mean "+elsewhere.Meant+"? Check the base URL of the client",
		)
	case errors.As(err, &unserved):
		return openai.Refusal(
			http.StatusNotFound, "", "",
			unserved.Path+" is not supported by this proxy; send the request to the model server directly",
		)
	case errors.Is(err, ErrNoRoute):
		return openai.Refusal(http.StatusNotFound, "", "", "unknown path")
	case errors.Is(err, ErrMethod):
		return openai.Refusal(http.StatusMethodNotAllowed, "", "", "method not allowed for this path")
	case errors.As(err, &exceeded):
		return &openai.Error{
			Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded",
			Message: exceeded.Error(),
		}
	case errors.As(err, &spent):
		return &openai.Error{
			Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
			Message: spent.Error(),
		}
	case errors.Is(err, ErrTooManyBytes):
		return openai.Refusal(http.StatusServiceUnavailable, "overloaded", "",
			"the server is overloaded: too many bytes of requests in memory; try again later")
	case errors.Is(err, ErrManyHeaders):
		return openai.Refusal(http.StatusRequestHeaderFieldsTooLarge, "", "",
			"the request headers exceed the limit of this server")
	case errors.As(err, &unknown):
		return openai.Refusal(http.StatusNotFound, "model_not_found", "model", unknown.Error())
	case errors.As(err, &long):
		return long.wire()
	case errors.As(err, &blocked):
		return openai.Refusal(http.StatusBadRequest, "content_policy_violation", blocked.Param, blocked.Message)
	}
	return nil
}

// failure is the part of the table for errors from the decision on.
func failure(err error, id string) *openai.Error {
	var (
		timeout net.Error
		lacking *SignalError
		refused *WarmRefusedError
		barred  *CredentialsError
		late    *LateError
		misfit  *UnusableError
	)
	switch {
	case errors.As(err, &late):
		return openai.Refusal(http.StatusServiceUnavailable, "overloaded", "", late.message())
	case errors.As(err, &lacking):
		return openai.Refusal(http.StatusServiceUnavailable, "signal_unavailable", "", lacking.message())
	case errors.Is(err, ErrSignalUnavailable):
		return openai.Refusal(http.StatusServiceUnavailable, "signal_unavailable", "",
			"a signal that the route of this request requires is not available")
	case errors.Is(err, ErrNotRedacted), errors.Is(err, redact.ErrIncomplete):
		return openai.Refusal(http.StatusServiceUnavailable, "signal_unavailable", "",
			"the route of this request redacts personal data, but redaction failed; nothing was sent to a model")
	case errors.Is(err, ErrOverloaded):
		return openai.Refusal(http.StatusServiceUnavailable, "overloaded", "",
			"the request could not be classified in time; try again later")
	case errors.Is(err, ErrUncheckable):
		return openai.Refusal(http.StatusBadGateway, CodeUpstream, "",
			"the guard cannot check the response of the model server, and unchecked responses are withheld")
	case errors.Is(err, ErrEndpointsFull):
		return openai.Refusal(http.StatusServiceUnavailable, "overloaded", "",
			"all endpoints of this model are at their concurrency limit; try again later")
	case errors.Is(err, ErrAsleep):
		return openai.Refusal(http.StatusServiceUnavailable, "model_asleep", "",
			"all servers of this model are asleep or paused; they do not respond until they are woken up")
	case errors.Is(err, ErrNoEndpoint):
		return openai.Refusal(http.StatusServiceUnavailable, "no_endpoint", "", "no healthy endpoint serves this model")
	case errors.As(err, &refused):
		return refused.wire()
	case errors.As(err, &barred):
		return openai.Refusal(http.StatusBadGateway, "upstream_auth_failed", "",
			"the model server rejected the credentials of this proxy; the proxy's log names the endpoint")
	case isUpstream(err) && (errors.Is(err, ErrNoProgress) || errors.As(err, &timeout) && timeout.Timeout()):
		return openai.Refusal(http.StatusGatewayTimeout, "upstream_timeout", "",
			"the model server did not respond in time")
	case errors.As(err, &misfit):
		return openai.Refusal(http.StatusBadGateway, CodeUpstream, "",
			"the model server sent an unusable response")
	case isUpstream(err):
		return openai.Refusal(http.StatusBadGateway, CodeUpstream, "",
			"the model server could not be reached or closed the connection early")
	}
	return openai.Refusal(http.StatusInternalServerError, "internal_error", "", "internal error, request "+id)
}

// isUpstream reports whether err is a failure of an endpoint.
func isUpstream(err error) bool {
	var (
		unreached  *ConnectError
		unanswered *NoResponseError
		misfit     *UnusableError
		cut        *InterruptedError
		refused    *WarmRefusedError
		barred     *CredentialsError
	)
	return errors.As(err, &refused) || errors.As(err, &barred) || errors.As(err, &unreached) ||
		errors.As(err, &unanswered) || errors.As(err, &misfit) || errors.As(err, &cut)
}

// ofContexts returns the error response for an error of stored contexts; nil for any other error,
// and for one that clients must not see.
func ofContexts(err error) *openai.Error {
	out := contexts.Wire(err)
	if at, ok := errors.AsType[*ContextError](err); ok && out != nil {
		out.Param, out.Message = at.Param, out.Message+": "+strconv.Quote(at.ContextID)
	}
	return out
}

// TooLarge returns the error, with status 413, for a field that exceeds the size limit.
func TooLarge(param, message string) error {
	return openai.Refusal(http.StatusRequestEntityTooLarge, codeTooLarge, param, message)
}

// readPace is the number of bytes of prose per second that one idle core of the reference machine
// searches for personal data, rounded down (docs/security.md). A text that takes longer than the
// available time at this pace is too long.
const readPace = 40_000

// Late returns the error for a text that was not searched for personal data within patience; name
// is the name of the signal. If patience is too short for the length, so that a retry is pointless,
// the error has status 413. Otherwise, or if patience is 0 (unknown), it is a LateError.
func Late(text *signal.Text, patience time.Duration, name string) error {
	bytes := Length(text)
	most := int(patience.Seconds() * readPace)
	if patience <= 0 || bytes <= most {
		return &LateError{Signals: []string{name}, Bytes: bytes}
	}
	return TooLarge("", fmt.Sprintf("the route of this request scans all of its text for personal data, and %d bytes are "+
		"too many to scan in time: about %d are possible. Nothing was sent to a model", bytes, most))
}

// Length returns the size of a text in bytes.
func Length(text *signal.Text) int {
	n := 0
	for i := range text.Segments {
		n += len(text.Segments[i].Text)
	}
	return n
}

// Describe sets the headers of an error response: when to retry or that a retry is pointless, and
// whether the connection is closed.
func Describe(h http.Header, err error) {
	if settled(err) {
		h.Set("X-Should-Retry", "false")
	}
	if lacking, ok := errors.AsType[*SignalError](err); ok {
		switch {
		case lacking.Lasting():
			h.Set("X-Should-Retry", "false")
		case lacking.passing():
			h.Set("Retry-After", retryAfterNoEndpoint)
		}
	}
	if wait := contexts.RetryAfter(err); wait > 0 {
		h.Set("Retry-After", strconv.Itoa(wait))
	}
	if over, ok := errors.AsType[*rate.ExceededError](err); ok {
		over.Describe(h)
	}
	if over, ok := errors.AsType[*budget.ExceededError](err); ok {
		over.Describe(h)
	}
	switch {
	case errors.Is(err, auth.ErrBadKey):
		h.Set("Www-Authenticate", "Bearer")
	case errors.Is(err, ErrNoEndpoint), errors.Is(err, ErrAsleep):
		h.Set("Retry-After", retryAfterNoEndpoint)
	case errors.Is(err, ErrStopped):
		// another replica, or the next process, will serve it
		h.Set("Retry-After", retryAfterOverload)
	case errors.Is(err, ErrOverloaded), errors.Is(err, ErrEndpointsFull), errors.Is(err, ErrBusy), errors.Is(err, ErrTooManyBytes), errors.Is(err, auth.ErrNoKeySet):
		h.Set("Retry-After", retryAfterOverload)
		if late, ok := errors.AsType[*LateError](err); ok {
			h.Set("Retry-After", strconv.Itoa(late.retryAfter()))
		}
	case isUpstream(err):
		// The proxy has already retried; a client that retries immediately adds load to a failing
		// pool.
		h.Set("X-Should-Retry", "false")
	case errors.Is(err, ErrBodyTooLarge), errors.Is(err, ErrBodyTimeout), errors.Is(err, ErrBodyBroken), errors.Is(err, ErrManyHeaders), errors.Is(err, ErrMedia):
		h.Set("Connection", "close") // the rest of the body is not worth reading
	}
}

// settled reports whether the request itself is wrong, so that an identical retry would be refused
// again. Some clients retry a 401 (Claude Code, for a minute), and SDKs a 501. Of the not-found
// errors only those for models and paths count, since stored objects may appear later. A body that
// broke off may arrive next time, and a version conflict may be over.
func settled(err error) bool {
	if errors.Is(err, ErrBodyBroken) {
		return false
	}
	switch e := Wire(err, ""); e.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType,
		http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented:
		return true
	case http.StatusNotFound:
		_, unknown := errors.AsType[*UnknownModelError](err)
		return unknown || errors.Is(err, ErrNoRoute)
	case http.StatusRequestEntityTooLarge:
		return e.Code == codeTooLarge // room for contexts may become available
	}
	return false
}

// retryAfterOverload is in seconds. Within that time a queue of passes of about 10 ms each has
// advanced.
const retryAfterOverload = "1"

// retryAfterLate is the longest wait, in seconds, requested because of reading time. SDKs accept at
// most a minute.
const retryAfterLate = 30

// retryAfterNoEndpoint is one round of health checks at the default interval, in seconds.
const retryAfterNoEndpoint = "5"
