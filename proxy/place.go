package proxy

import (
	"net/http"
	"time"

	"signalbox/proxy/choose"
	"signalbox/proxy/pool"
)

// plan is the order in which a request meets models and endpoints: every endpoint of the first
// model, then those of the next. It belongs to one request.
type plan struct {
	models []*model
	tried  []*pool.Endpoint
	intn   func(n int) int
	placing
}

// place lists the models that a decision leads to, in the order to try them. change is how the request is put to them,
// h the client's headers.
func (st *State) place(change *rewriter, h http.Header) (*plan, error) {
	d := change.d
	cs := st.chooser.Choose(d.wants())
	p := &plan{models: make([]*model, 0, len(cs)), intn: st.chooser.Intn}
	for i := range cs {
		switch m, ok := st.byName[cs[i].Name]; {
		case !ok:
			return nil, &unknownModelError{cs[i].Name}
		case !cs[i].Out:
			p.models = append(p.models, m)
		}
	}
	if len(p.models) == 0 {
		return nil, d.tooLong()
	}
	p.placing = st.placing(change, h)
	return p, nil
}

// tooLong is the error of a prompt that fits no model.
func (d *decision) tooLong() error {
	if d.request == nil {
		return &tooLongError{}
	}
	return &tooLongError{d.request.PromptField()}
}

// wants is what the choice among models looks at.
func (d *decision) wants() choose.Request {
	r := choose.Request{Action: d.Action, Set: d.set, Named: d.model}
	if d.request == nil {
		return r
	}
	for _, own := range []*int64{d.request.MaxTokens, d.request.MaxCompletionTokens} {
		if own != nil {
			r.Limit = *own // of two, the second: that is what vLLM reads
		}
	}
	return r
}

// next picks where the request goes now: an endpoint that was not tried, of the first model that has
// one. ok is false when none is left.
func (p *plan) next(now time.Time) (m *model, e *pool.Endpoint, ok bool) {
	p.leave(now)
	for len(p.models) > 0 {
		m = p.models[0]
		if e := p.pick(m, now); e != nil {
			p.tried = append(p.tried, e)
			return m, e, true
		}
		p.models = p.models[1:]
	}
	return nil, nil, false
}
