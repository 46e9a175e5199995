package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory"
	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
	"signalbox/proxy/rate"
)

// settledHeader is the header of an error that no retry can change.
const settledHeader = "X-Should-Retry=false"

func TestWire(t *testing.T) {
	t.Parallel()
	timeout := &NoResponseError{ErrNoProgress}
	tests := []struct {
		err    error
		status int
		code   string
		header string // one that Describe sets, as name=value; empty for none
	}{
		{ErrClientGone, StatusClientGone, "client_closed_request", ""},
		{context.Canceled, StatusClientGone, "client_closed_request", ""},
		{&NoResponseError{context.Canceled}, http.StatusBadGateway, "upstream_error", "X-Should-Retry=false"},
		{ErrStopped, http.StatusServiceUnavailable, "server_shutdown", "Retry-After=1"},
		{&BodyTooLargeError{Limit: 9}, http.StatusRequestEntityTooLarge, "request_too_large", "Connection=close"},
		{&BodyTooLargeError{Limit: 9}, http.StatusRequestEntityTooLarge, "request_too_large", settledHeader},
		{auth.ErrBadKey, http.StatusUnauthorized, "invalid_api_key", "Www-Authenticate=Bearer"},
		{auth.ErrBadKey, http.StatusUnauthorized, "invalid_api_key", settledHeader},
		{auth.ErrNoKey, http.StatusUnauthorized, "invalid_api_key", settledHeader},
		{ErrForbidden, http.StatusForbidden, "insufficient_permissions", settledHeader},
		{ErrNoModelAllowed, http.StatusForbidden, "model_not_allowed", settledHeader},
		{&NoRouteError{Meant: "/v1/models"}, http.StatusNotFound, "", settledHeader},
		{ErrMethod, http.StatusMethodNotAllowed, "", settledHeader},
		{ErrMedia, http.StatusUnsupportedMediaType, "", settledHeader},
		{ErrManyHeaders, http.StatusRequestHeaderFieldsTooLarge, "", settledHeader},
		{TooLarge("input", "too long"), http.StatusRequestEntityTooLarge, "request_too_large", settledHeader},
		{openai.Invalid("stream", "must be a boolean"), http.StatusBadRequest, "", settledHeader},
		{
			openai.Refusal(http.StatusNotImplemented, "warm_not_supported", "", "no such server"),
			http.StatusNotImplemented, "warm_not_supported", settledHeader,
		},
		{memory.ErrNotFound, http.StatusNotFound, "context_not_found", ""},
		{&memory.ConflictError{}, http.StatusConflict, "context_version_conflict", ""},
		{&memory.QuotaError{}, http.StatusRequestEntityTooLarge, "context_quota", ""},
		{
			&rate.ExceededError{Kind: rate.Tokens, Limit: 10, Used: 9, Asked: 5, Wait: 1500 * time.Millisecond},
			http.StatusTooManyRequests, "rate_limit_exceeded", "Retry-After=2",
		},
		{&rate.ExceededError{Kind: rate.Tokens}, http.StatusTooManyRequests, "rate_limit_exceeded", "X-Should-Retry=false"},
		{&budget.ExceededError{Wait: time.Minute}, http.StatusTooManyRequests, "insufficient_quota", "Retry-After=60"},
		{&UnknownModelError{Model: "nobody"}, http.StatusNotFound, "model_not_found", settledHeader},
		{&BlockedError{Message: "no"}, http.StatusBadRequest, "content_policy_violation", settledHeader},
		{&TooLongError{}, http.StatusBadRequest, CodeTooLong, settledHeader},
		{ErrNoEndpoint, http.StatusServiceUnavailable, "no_endpoint", "Retry-After=5"},
		{timeout, http.StatusGatewayTimeout, "upstream_timeout", "X-Should-Retry=false"},
		{&InterruptedError{errors.New("reset")}, http.StatusBadGateway, "upstream_error", "X-Should-Retry=false"},
		{&CredentialsError{}, http.StatusBadGateway, "upstream_auth_failed", "X-Should-Retry=false"},
		{&WarmRefusedError{Status: 500}, http.StatusBadGateway, "upstream_error", "X-Should-Retry=false"},
		{
			&SignalError{Signals: []string{"pii"}, Reason: signal.ReasonNoModel},
			http.StatusServiceUnavailable, "signal_unavailable", "X-Should-Retry=false",
		},
		{
			&SignalError{Signals: []string{"pii"}, Reason: signal.ReasonTimeout},
			http.StatusServiceUnavailable, "signal_unavailable", "Retry-After=5",
		},
		{&LateError{Signals: []string{"a queue"}}, http.StatusServiceUnavailable, "overloaded", "Retry-After=1"},
		{
			&LateError{Signals: []string{"some text"}, Bytes: 100_000},
			http.StatusServiceUnavailable, "overloaded", "Retry-After=3",
		},
		{
			&LateError{Signals: []string{"much text"}, Bytes: 100_000_000},
			http.StatusServiceUnavailable, "overloaded", "Retry-After=30",
		},
	}
	for _, tt := range tests {
		t.Run(tt.err.Error(), func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("stage: %w", tt.err)
			e := Wire(err, "req_1")
			if e.Status != tt.status || e.Code != tt.code {
				t.Errorf("got %d %q, want %d %q", e.Status, e.Code, tt.status, tt.code)
			}
			h := http.Header{}
			Describe(h, err)
			if name, want, ok := strings.Cut(tt.header, "="); ok && h.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, h.Get(name), want)
			} else if !ok && len(h) > 0 {
				t.Errorf("headers %v, want none", h)
			}
		})
	}
}

func TestABodyThatDidNotArriveMayBeSentAgain(t *testing.T) {
	t.Parallel()
	for _, err := range []error{ErrBodyBroken, ErrBodyTimeout} {
		h := http.Header{}
		Describe(h, err)
		if h.Get("X-Should-Retry") != "" || h.Get("Connection") != "close" {
			t.Errorf("%v: headers %v", err, h)
		}
	}
}

func TestWhatWasLateIsNamedWithTheWait(t *testing.T) {
	t.Parallel()
	const ending = "; the route of this request fails closed, so nothing was sent to a model. Try again in "
	for want, late := range map[string]*LateError{
		"the signal pii was not ready in time: the server is overloaded" + ending + "1 s": {
			Signals: []string{"pii"},
		},
		"the signals pii, jailbreak were not ready in time: the server was too busy to read all 100000 bytes of text" +
			ending + "3 s": {Signals: []string{"pii", "jailbreak"}, Bytes: 100_000},
	} {
		if got := Wire(late, "").Message; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWireHidesErrorsThatItDoesNotList(t *testing.T) {
	t.Parallel()
	e := Wire(errors.New("secret of the backend"), "req_1")
	want := openai.Error{
		Status: http.StatusInternalServerError, Type: "server_error", Code: "internal_error",
		Message: "internal error, request req_1",
	}
	if *e != want {
		t.Errorf("got %+v, want %+v", *e, want)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := Stopped(ctx, ErrClientGone); !errors.Is(err, ErrClientGone) {
		t.Errorf("before the end of the process: %v", err)
	}
	cancel(ErrStopped)
	if err := Stopped(ctx, ErrClientGone); !errors.Is(err, ErrStopped) {
		t.Errorf("at the end of the process: %v", err)
	}
	if err := Stopped(ctx, ErrNoRoute); !errors.Is(err, ErrNoRoute) {
		t.Errorf("another error became %v", err)
	}
}
