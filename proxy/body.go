package proxy

import (
	"context"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/rate"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/tools"
)

// redactRequest returns the request as it may be sent: with personal data replaced, when the route
// requires it. When the personal data cannot be determined, it returns an error and nothing is
// sent.
func (st *State) redactRequest(ctx context.Context, o *exchange.Exchange) (*openai.Request, error) {
	if o.Action.Redact == nil || len(o.Req.Text().Segments) == 0 && !o.Req.OpaquePrompt {
		return o.Req, nil
	}
	v := o.Set.Value(signal.PII)
	if v.State == signal.NotExtracted && !o.Contexts.Named() && !o.Req.OpaquePrompt {
		// the route was kept from the previous turn, so no rule has computed this signal
		text := o.Req.Text()
		read, err := st.Signals.PersonalData(ctx, &text)
		if err != nil {
			return nil, err
		}
		v = read
	}
	if o.Contexts.Named() && (v.State != signal.Known || v.Partial || len(v.Labels) > 0) {
		o.HideAll = true // a value of the request may also occur in a context
		return o.Req, nil
	}
	switch {
	case o.Req.OpaquePrompt:
		return nil, fault.Unreadable(o.Req.PromptField())
	case v.State == signal.Known && !v.Partial:
	case v.Reason == signal.ReasonTimeout:
		text := o.Req.Text()
		return nil, fault.Late(&text, st.Signals.Patience, st.Signals.Name(signal.PII))
	case v.Reason == signal.ReasonOverload:
		return nil, &fault.LateError{Signals: []string{st.Signals.Name(signal.PII)}}
	default:
		return nil, fault.ErrNotRedacted
	}
	finder, _ := st.Signals.Classifier.(redact.Finder)
	req, vault, err := redact.Hide(ctx, o.Req, v.Spans, finder, o.Action.Redact.Takes)
	o.Vault = vault
	return req, err
}

// shortenResults shortens tool results when the route has a budget for them, and reports it in a
// response header.
func (p *Proxy) shortenResults(
	ctx context.Context, st *State, w *downstream.Writer, o *exchange.Exchange, req *openai.Request, h http.Header,
) {
	want := o.Action.Results
	shortener, ok := st.Signals.Classifier.(tools.Shortener)
	if want == nil || !ok || p.resolver.Store == nil || o.HideAll {
		return
	}
	owner := resolve.Owner(o.Who, resolve.Session(o.Req, h))
	o.Results = st.results.Shorten(ctx, shortener, p.resolver.Store, owner, req, want)
	o.Results.Describe(w.Header())
}

// prepareBody selects the tools to offer and returns the changes to make to the body. The body
// itself is written for each attempt, by fit.
func (st *State) prepareBody(
	ctx context.Context, w *downstream.Writer, o *exchange.Exchange, req *openai.Request,
) rewrite.Change {
	o.Tools = st.tools.Choose(ctx, st.Signals.Classifier, req, o.Action.Tools)
	o.Tools.Describe(w.Header())
	change := o.Rewriter(st.edits, req)
	change.Counted, change.Paid = w.Lease.Bounds(rate.Tokens), len(o.Who.Budgets) > 0
	return change
}
