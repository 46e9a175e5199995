package proxy

import (
	"context"

	"signalbox/internal/signal"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

// Redecide decides a logged request with the current rules; see decisionlog.Redecide. It is safe
// for concurrent use.
func (p *Proxy) Redecide(ctx context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error) {
	st := p.acquire()
	defer st.release()
	program, model, ok := st.ProgramFor(l.Request.Model)
	if !ok {
		return decisionlog.NotFound(), nil
	}
	c := decisionlog.Configuration{
		Identity: &st.Signals.Identity, Program: program, Named: model, Prompts: st.edits.Prompts,
		Able: st.Signals.Signals(), Extract: st.Signals.Extract, Unread: decide.Unread,
		First: func(a *rules.Action, set *signal.Set) string {
			who, known := st.auth.Logged(Principal{Name: l.Key, Tenant: l.Request.Tenant, Role: l.Request.Role})
			if !known {
				return ""
			}
			return st.First(choose.Request{Action: a, Set: set, Named: model}, &who)
		},
	}
	if all, able := st.Signals.Classifier.(signals.Thorough); able {
		c.ExtractAll = all.ExtractAll
	}
	return decisionlog.Redecide(ctx, c, l)
}
