package proxy

import (
	"bytes"
	"context"
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
	"signalbox/proxy/resolve"
	"signalbox/proxy/tools"
	"signalbox/proxy/upstream"
)

// redactRequest returns the request as it may be sent: with personal data replaced, when the route
// asks for it. Without knowing what personal data there is, nothing is sent.
func (o *exchange) redactRequest(ctx context.Context) (*openai.Request, error) {
	if !o.Action.Redact || len(o.req.Text().Segments) == 0 && !o.req.OpaquePrompt {
		return o.req, nil
	}
	v := o.Set.Value(signal.PII)
	if o.Contexts.Named() && (v.State != signal.Known || v.Partial || len(v.Labels) > 0) {
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
	finder, _ := o.state.Signals.Classifier.(redact.Finder)
	req, vault, err := redact.Hide(ctx, o.req, v.Spans, finder)
	o.vault = vault
	return req, err
}

// copyRestored passes on a JSON body with the hidden values put back. A body that was read whole
// keeps a length, its new one; a longer one is sent as it comes.
func copyRestored(w *downstream.Writer, u *upstream.Response, o *exchange, t *meter) error {
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

// shortenResults makes the results of tools short where the route has a budget for them, and tells
// the client of it.
func (p *Proxy) shortenResults(
	ctx context.Context, w *downstream.Writer, o *exchange, req *openai.Request, h http.Header,
) {
	want := o.Action.Results
	shortener, ok := o.state.Signals.Classifier.(tools.Shortener)
	if want == nil || !ok || p.resolver.Store == nil || o.hideAll {
		return
	}
	owner := resolve.Owner(o.who, resolve.Session(o.req, h))
	o.results = o.state.results.Shorten(ctx, shortener, p.resolver.Store, owner, req, want)
	o.results.Describe(w.Header())
}
