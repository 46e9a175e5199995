package proxy

import (
	"context"
	"errors"
	"net/http"

	"signalbox/internal/signal"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/relay"
	"signalbox/proxy/spans"
	"signalbox/rules"
)

// handle serves one request, stage by stage. Each stage uses what the one before it produced. The
// first error ends the request; the error table of package fault maps it to a response.
func (p *Proxy) handle(st *State, w *downstream.Writer, r *http.Request, s *exchange.Surface) (err error) {
	ctx, end := spans.Begin(p.tel, r, s.Operation)
	o := exchange.Exchange{Surface: s}
	err = fault.ErrPanicked // the error that record sees when a stage panics
	defer func() { err = fault.Stopped(ctx, err); p.records.Record(ctx, &st.book, w, &o, err); end(&o, err) }()

	who, body, err := st.admit(w, r)
	o.Who = who // set for refused requests as well
	if err != nil {
		return err
	}
	req, err := st.decode(w, s, r.Header, body)
	if err != nil {
		return err
	}
	o.Req = req
	if err = st.controls.Check(&who, req); err != nil {
		return err
	}
	o.Resolved, err = p.resolver.Resolve(ctx, who, req, r.Header)
	defer o.Resolved.Release()
	if err != nil {
		return err
	}
	o.Resolved.Describe(w.Header())
	if err = chargeLimits(ctx, w, &o); err != nil {
		return err
	}
	if done, err := p.recall(ctx, st, w, who, r.Header, &o); done || err != nil {
		return err
	}
	o.Decision, err = p.decide(ctx, st, r.Header, &o)
	if o.Decision != nil {
		o.Decision.Describe(w.Header())
	}
	if err != nil {
		return err
	}
	if req.Extras.Explain && !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	if o.Action.Verb == rules.Answer {
		st.StoreRuled(ctx, o.Decision, req, downstream.ResponseID(w))
		return downstream.WriteFixed(w, req, o.Action.Text)
	}
	if err = relay.Arm(ctx, st.guard, &o, w.Header()); err != nil {
		return err
	}
	if done, err := st.recallSimilar(ctx, w, &o); done || err != nil {
		return err
	}
	req, err = st.redactRequest(ctx, &o)
	if err != nil {
		return err
	}
	p.shortenResults(ctx, st, w, &o, req, r.Header)
	change := st.prepareBody(ctx, w, &o, req)
	where, err := p.orderModels(ctx, st, w, r.Header, &change, &o)
	if err != nil {
		return err
	}
	return p.forward(ctx, st, w, st.controls.Without(r.Header, who.Role), where, change, &o)
}

// decide runs the decision stage in its span and counts the signals that it computed and those that
// it skipped.
func (p *Proxy) decide(ctx context.Context, st *State, h http.Header, o *exchange.Exchange) (*decide.Decision, error) {
	ctx, span := p.tel.Tracer.Start(ctx, "decide")
	defer span.End()
	d, err := st.Decide(ctx, o.Who, o.Req, h, o.Resolved, o.Lookup)
	if d == nil || errors.Is(err, fault.ErrClientGone) {
		return d, err
	}
	d.Save(p.spending.Saving(o.Who.Tenant, o.Who.Budgets))
	spans.Decide(span, d)
	m := p.tel.Metrics
	m.Decide(d.Elapsed)
	mentioned := d.Program.Kinds()
	for k := range signal.NumKinds {
		v := d.Set.Value(k)
		switch {
		case v.State == signal.Unknown:
			m.SignalUnknown(st.Signals.Identity.Names.Of(k), string(v.Reason))
		case v.State == signal.NotExtracted && mentioned.Has(k):
			m.SignalSkipped(st.Signals.Identity.Names.Of(k))
		}
	}
	return d, err
}
