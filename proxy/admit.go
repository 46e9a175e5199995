package proxy

import (
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/proxy/auth"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
)

// Principal identifies the caller of a request.
type Principal = auth.Principal

// admit checks the headers, authenticates the caller, applies the caller's limits and reads the
// body to its end, within its bounds. The returned body belongs to the caller of admit. The
// Principal is returned with an error too, once it is known.
func (st *State) admit(w *downstream.Writer, r *http.Request) (Principal, []byte, error) {
	who, err := st.identify(w, r)
	if err != nil {
		return who, nil, err
	}
	if err := checkMedia(r.Header); err != nil {
		return who, nil, err
	}
	body, err := downstream.ReadBody(w, r, st.bodyLimits())
	return who, body, err
}

// checkMedia refuses a body that is compressed or declared in a character set other than UTF-8. A
// model server that decompresses the body, or decodes it in the declared character set, would read
// a text other than the one checked here. The proxy decompresses nothing.
func checkMedia(h http.Header) error {
	for coding := range strings.SplitSeq(strings.Join(h["Content-Encoding"], ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return fault.ErrMedia
		}
	}
	kind := h.Get("Content-Type")
	if kind == "" || kind == "application/json" {
		return nil
	}
	_, params, err := mime.ParseMediaType(kind)
	if err != nil && strings.Contains(strings.ToLower(kind), "charset") {
		// without a charset the body is read as is; ParseForm reports a malformed form type
		return fault.ErrMedia
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil
	}
	return fault.ErrMedia
}

// identify authenticates the caller of a request and counts the request in the caller's limits.
func (st *State) identify(w *downstream.Writer, r *http.Request) (Principal, error) {
	who, err := st.caller(r)
	if err != nil {
		return Principal{}, err
	}
	return who, w.Count(r, &who)
}

// caller checks the headers of a request and authenticates its caller. It counts nothing.
func (st *State) caller(r *http.Request) (Principal, error) {
	if err := st.checkHeaders(r.Header); err != nil {
		return Principal{}, err
	}
	adoptKey(r.Header)
	return st.auth.Identify(r.Context(), r.Header)
}

// ownPrefix is the prefix of the headers that only the proxy writes, except for two that clients
// may send.
const ownPrefix = headers.OwnPrefix

// checkHeaders refuses headers that a server behind the proxy could read differently: repeated
// headers, since servers differ in which value counts, and names with an underscore that become a
// header read here when the underscore is folded into a dash, as many servers do.
func (st *State) checkHeaders(h http.Header) error {
	for _, name := range []string{
		"Authorization", "X-Api-Key", "Content-Type", "X-Signalbox-Session", "X-Signalbox-Context",
	} {
		if len(h[name]) > 1 {
			return &fault.HeaderError{Name: name}
		}
	}
	lines := 0
	for name, values := range h {
		if lines += len(values); lines > maxHeaders {
			return fault.ErrManyHeaders
		}
		if !strings.Contains(name, "_") {
			continue
		}
		twin := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(twin, ownPrefix) || slices.Contains(st.ReadHeaders, twin) {
			return &fault.HeaderError{Name: twin}
		}
	}
	return nil
}

// adoptKey uses the X-Api-Key header, which Anthropic's clients send, as the bearer token. The
// Authorization header takes precedence when both are present.
func adoptKey(h http.Header) {
	if key := h["X-Api-Key"]; len(key) == 1 && len(h["Authorization"]) == 0 {
		h["Authorization"] = []string{"Bearer " + key[0]}
	}
}

// maxHeaders is the maximum number of header lines in a request. No known client sends half as
// many, and each line costs time at every hop.
const maxHeaders = 128

// decode parses the body of a request to the surface s.
func (st *State) decode(
	w *downstream.Writer, s *exchange.Surface, h http.Header, body []byte,
) (*openai.Request, error) {
	l := st.limits.OfBody()
	if s.Messages {
		return st.translate(w, body, anthropic.Options{Limits: l})
	}
	if s.Form {
		kind := h["Content-Type"]
		if len(kind) != 1 {
			// refused: given two Content-Type headers, another reader may use the other one
			kind = []string{""}
		}
		return openai.ParseForm(kind[0], body, l)
	}
	req, err := openai.Parse(s.API, body, l)
	if err == nil && s.API == openai.Response && string(req.Field("background")) == "true" {
		return nil, openai.Refusal(
			http.StatusBadRequest, "unsupported_parameter", "background",
			"background responses are not supported: this proxy does not serve /v1/responses/{id}",
		)
	}
	return req, err
}

// translate converts a request to the Messages API into the equivalent chat completion.
func (st *State) translate(w *downstream.Writer, body []byte, o anthropic.Options) (*openai.Request, error) {
	t, err := anthropic.ToChat(body, o)
	if err != nil {
		return nil, err
	}
	if !w.Hold(int64(len(body)+len(t.Chat)), st.limits.MaxBytesInFlight) {
		return nil, fault.ErrTooManyBytes
	}
	req, err := openai.ParseChat(t.Chat, o.Limits)
	if err != nil {
		return nil, t.Blame(err)
	}
	req.Translated, req.ThinkingBudget, req.Places = true, t.Budget, t.Places
	w.Messages.Thinking, w.Messages.Prompt = t.Thinking, req.PromptTokens()
	if len(t.LeftOut) > 0 {
		w.Header()["X-Signalbox-Left-Out"] = []string{strings.Join(t.LeftOut, ",")}
	}
	if t.Exact {
		w.Messages.Raw, w.Messages.Model = body, t.Model
	}
	return req, nil
}

// bodyLimits returns the limits for reading a request body.
func (st *State) bodyLimits() downstream.BodyLimits {
	return downstream.BodyLimits{
		Bytes: int64(st.opts.MaxBodyBytes), InFlight: st.limits.MaxBytesInFlight,
		Pause: time.Duration(st.opts.BodyTimeout), Rate: int(st.limits.MinBodyRate),
	}
}

// chargeLimits charges the estimated prompt tokens and the maximum response tokens of a request to
// the limits of its caller.
func chargeLimits(ctx context.Context, w *downstream.Writer, o *exchange.Exchange) error {
	if w.Lease == nil {
		return nil
	}
	n := o.PromptTokens()
	if o.Req.API != openai.Other {
		n += o.Req.MaxOutputTokens()
	}
	err := w.Lease.Tokens(ctx, n)
	if err == nil {
		w.Lease.Describe(w.Header())
	}
	return err
}
