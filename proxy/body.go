package proxy

import (
	"context"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/rate"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/tools"
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
	case o.req.OpaquePrompt:
		return nil, fault.Unreadable(o.req.PromptField())
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

// prepareBody is rewrite for a request that is served: with the tools that are offered. The body is
// written for each attempt, by fit.
func (o *exchange) prepareBody(ctx context.Context, w *downstream.Writer, req *openai.Request) rewrite.Change {
	o.tools = o.state.tools.Choose(ctx, o.state.Signals.Classifier, req, o.Action.Tools)
	o.tools.Describe(w.Header())
	change := o.rewriter(req)
	change.Counted, change.Paid = w.Lease.Bounds(rate.Tokens), len(o.who.Budgets) > 0
	return change
}

// rewrite prepares the changes that a decision asks for.
func (st *State) rewrite(req *openai.Request, d *decision) rewrite.Change {
	return rewrite.New(st.edits, req, d)
}

// rewriter is rewrite with what was chosen for the request that is served.
func (o *exchange) rewriter(req *openai.Request) rewrite.Change {
	rw := o.state.rewrite(req, o.decision)
	rw.Tools, rw.Results, rw.HideAll = o.tools, o.results, o.hideAll
	return rw
}
