package proxy

import (
	"context"

	"signalbox/internal/signal"
	"signalbox/proxy/choose"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

// Redecide decides a logged request by the rules that p serves now; see decisionlog.Redecide. It is
// safe for concurrent use.
func (p *Proxy) Redecide(ctx context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error) {
	st := p.acquire()
	defer st.release()
	program, model, ok := st.programFor(l.Request.Model)
	if !ok {
		return decisionlog.NotFound(), nil
	}
	c := decisionlog.Configuration{
		Identity: &st.signals.Identity, Program: program, Named: model, Prompts: st.prompts,
		Able: st.signals.Signals(), Extract: st.signals.Extract, Unread: unread,
		First: func(a *rules.Action, set *signal.Set) string {
			return st.first(choose.Request{Action: a, Set: set, Named: model})
		},
	}
	if all, able := st.signals.Classifier.(signals.Thorough); able {
		c.ExtractAll = all.ExtractAll
	}
	return decisionlog.Redecide(ctx, c, l)
}

// programFor picks the program for what a client asked for, and the model that it names, if any; ok
// is false when nothing has the name.
func (st *State) programFor(asked string) (program *rules.Program, model string, ok bool) {
	name, configured := st.modelNamed(asked)
	switch {
	case configured && !st.opts.RouteNamedModels:
		return st.program.Named(), name, true
	case configured:
		return st.program, name, true
	}
	return st.program, "", st.isAuto(name)
}

// first is the model that is tried first; empty when there is none.
func (st *State) first(r choose.Request) string {
	for _, c := range st.chooser.Rank(r) {
		if !c.Out {
			return c.Name
		}
	}
	return ""
}
