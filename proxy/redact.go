package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
	"signalbox/proxy/redact"
	"signalbox/proxy/upstream"
)

// redactRequest returns the request as it may be sent: with personal data replaced, when the route asks for
// it. Without knowing what personal data there is, nothing is sent.
func (o *exchange) redactRequest() (*openai.Request, error) {
	if !o.Action.Redact || len(o.req.Text().Segments) == 0 && !o.req.OpaquePrompt {
		return o.req, nil
	}
	v := &o.set.Values[signal.PII]
	if o.contexts.Named() && (v.State != signal.Known || v.Partial || len(v.Labels) > 0) {
		o.hideAll = true // a value of the request may stand in a context, too
		return o.req, nil
	}
	switch {
	case v.State == signal.Known && !v.Partial:
	case v.Reason == signal.ReasonTimeout, v.Reason == signal.ReasonOverload:
		return nil, fault.ErrOverloaded
	default:
		return nil, fault.ErrNotRedacted
	}
	req, vault, err := redact.Hide(o.req, v.Spans)
	o.vault = vault
	return req, err
}

// headersFor returns the client's headers without those that mention a value that was hidden. A
// vault of the body becomes that of the request.
func (o *exchange) headersFor(in http.Header, body *redact.Vault) http.Header {
	if o.hideAll {
		o.vault = body
	}
	if o.vault == nil {
		return in
	}
	out := make(http.Header, len(in))
	for name, values := range in {
		clean := true
		for _, value := range values {
			clean = clean && !o.vault.Mentions(value)
		}
		if clean {
			out[name] = values
		}
	}
	return out
}

// copyRestored passes on a JSON body with the hidden values put back. A body that was read whole
// keeps a length, its new one; a longer one is sent as it comes.
func copyRestored(w *downstream.Response, u *upstream.Response, o *exchange, t *meter) error {
	b := o.vault.Body()
	h := w.Header()
	headers.DropStale(h)
	if errors.Is(u.Err(), io.EOF) {
		all := u.Piece()
		t.Body(nil, all)
		all = append(bytes.Clone(b.Feed(all)), b.Rest()...)
		h["Content-Length"] = []string{strconv.Itoa(len(all))}
		w.WriteHeader(u.Status)
		return downstream.WritePart(w, all)
	}
	w.WriteHeader(u.Status)
	return downstream.CopyBody(w, u, &t.Tally, b)
}
