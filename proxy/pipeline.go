package proxy

import (
	"net/http"

	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/rules"
)

// handle is the life of a request, one stage after the other. Each takes what the one before it
// made; the first error ends it, and the error table of package fault says how.
func (p *Proxy) handle(st *State, w *downstream.Writer, r *http.Request, s *surface) (err error) {
	ctx, end := p.trace(r, s.operation)
	o := exchange{surface: s}
	err = fault.ErrPanicked // what record sees when a stage panics
	defer func() { err = fault.Stopped(ctx, err); p.record(ctx, st, w, &o, err); end(&o, err) }()

	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	o.who = who
	req, err := st.decode(w, s, r.Header, body)
	if err != nil {
		return err
	}
	o.req = req
	if err = st.controls.Check(&who, req); err != nil {
		return err
	}
	o.resolved, err = p.resolver.Resolve(ctx, who, req, r.Header)
	defer o.resolved.Release()
	if err != nil {
		return err
	}
	o.resolved.Describe(w.Header())
	if err = chargeLimits(ctx, w, req, o.resolved); err != nil {
		return err
	}
	if done, err := p.recall(ctx, st, w, who, r.Header, &o); done || err != nil {
		return err
	}
	o.decision, err = p.decide(ctx, st, who, r.Header, &o)
	if o.decision != nil {
		o.decision.describe(w.Header())
	}
	if err != nil {
		return err
	}
	if req.Extras.Explain && !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	if o.Action.Verb == rules.Answer {
		return downstream.WriteFixed(w, req, o.Action.Text)
	}
	if err = o.armGuard(ctx, w.Header()); err != nil {
		return err
	}
	if done, err := p.recallSimilar(ctx, w, &o); done || err != nil {
		return err
	}
	req, err = o.redactRequest(ctx)
	if err != nil {
		return err
	}
	p.shortenResults(ctx, w, &o, req, r.Header)
	change := o.prepareBody(ctx, w, req)
	where, err := p.orderModels(ctx, st, w, r.Header, &change, &o)
	if err != nil {
		return err
	}
	return p.forward(ctx, st, w, st.controls.Without(r.Header, who.Role), where, change, &o)
}
