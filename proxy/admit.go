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

// Principal is who makes a request.
type Principal = auth.Principal

// admit lets a request in: headers that can be read in one way only, a caller that is known and
// within its limits, and a body within bounds, read to its end. The body is the caller's to keep. Who
// calls is told of a request that is refused, too, once it is known.
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

// checkMedia refuses a body that is not UTF-8 as it stands, or said not to be: a model server that
// unpacks it, or reads it in the character set that the client names, would read another text than
// is checked here. Nothing is unpacked here.
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
	if err != nil && strings.Contains(strings.ToLower(kind), "charset") { // what names none is read as it is; a form says what it lacks
		return fault.ErrMedia
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil
	}
	return fault.ErrMedia
}

// identify finds who makes a request, and counts it.
func (st *State) identify(w *downstream.Writer, r *http.Request) (Principal, error) {
	who, err := st.caller(r)
	if err != nil {
		return Principal{}, err
	}
	return who, w.Count(r, &who)
}

// caller finds who makes a request, from headers that can be read in one way only.
func (st *State) caller(r *http.Request) (Principal, error) {
	if err := st.checkHeaders(r.Header); err != nil {
		return Principal{}, err
	}
	adoptKey(r.Header)
	return st.auth.Identify(r.Context(), r.Header)
}

// ownPrefix starts the headers that only the proxy writes, two that clients may send aside.
const ownPrefix = headers.OwnPrefix

// checkHeaders refuses what a reader behind us could take for another header: many servers fold an
// underscore into a dash, and which of two values counts differs from server to server.
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

// adoptKey takes the key that clients of this API show for the bearer token that others show. A
// client that shows both is known by the token.
func adoptKey(h http.Header) {
	if key := h["X-Api-Key"]; len(key) == 1 && len(h["Authorization"]) == 0 {
		h["Authorization"] = []string{"Bearer " + key[0]}
	}
}

// maxHeaders is how many header lines a request may have: no client sends half as many, and each
// costs every hop.
const maxHeaders = 128

// decode reads the body of a request.
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
			kind = []string{""} // refused: of two, another reader may take the other
		}
		return openai.ParseForm(kind[0], body, l)
	}
	req, err := openai.Parse(s.API, body, l)
	if err == nil && s.API == openai.Response && string(req.Field("background")) == "true" {
		return nil, openai.Refusal(
			http.StatusBadRequest, "unsupported_parameter", "background",
			"a response in the background is not served: this proxy has no /v1/responses/{id} to fetch or cancel it at",
		)
	}
	return req, err
}

// translate reads a request as the chat completion that it amounts to.
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

// bodyLimits bound the body of a request.
func (st *State) bodyLimits() downstream.BodyLimits {
	return downstream.BodyLimits{
		Bytes: int64(st.opts.MaxBodyBytes), InFlight: st.limits.MaxBytesInFlight,
		Pause: time.Duration(st.opts.BodyTimeout), Rate: int(st.limits.MinBodyRate),
	}
}

// chargeLimits counts what a request may use in the limits of its caller: its prompt, estimated,
// and the most that it allows for the response.
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
