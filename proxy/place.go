package proxy

import (
	"slices"
	"time"
)

// plan is the order in which a request meets models and endpoints: every endpoint of the first
// model, then those of the next. It belongs to one request.
type plan struct {
	models []*model
	tried  []*endpoint
	intn   func(n int) int
}

// slack is by how much the estimate of a prompt's length may exceed a context window before the
// model is left out: the estimate is made without the model's tokenizer.
const slack = 1.3

// place lists the models that a decision leads to, in the order to try them.
func (st *State) place(d *decision) (*plan, error) {
	cs := st.choose(d)
	p := &plan{models: make([]*model, 0, len(cs)), intn: st.intn}
	for i := range cs {
		switch c := &cs[i]; {
		case c.model == nil:
			return nil, &unknownModelError{c.Name}
		case !c.Out:
			p.models = append(p.models, c.model)
		}
	}
	if len(p.models) == 0 {
		return nil, errTooLong
	}
	return p, nil
}

// next picks where the request goes now: an endpoint that was not tried, of the first model that has
// one. ok is false when none is left.
func (p *plan) next(now time.Time) (m *model, e *endpoint, ok bool) {
	for len(p.models) > 0 {
		m = p.models[0]
		if e := m.pick(p.tried, p.intn, now); e != nil {
			p.tried = append(p.tried, e)
			return m, e, true
		}
		p.models = p.models[1:]
	}
	return nil, nil, false
}

// pick takes the less loaded of two endpoints drawn at random (Mitzenmacher, The Power of Two
// Choices in Randomized Load Balancing, 2001), which spreads load almost as well as comparing all
// without sending every proxy to the same one. Ejected endpoints are drawn only when no other is
// left; those that are down, never.
func (m *model) pick(tried []*endpoint, intn func(n int) int, now time.Time) *endpoint {
	var space [16]*endpoint
	for _, want := range []fitness{fit, ejected} {
		open := space[:0]
		for _, e := range m.endpoints {
			if !slices.Contains(tried, e) && e.fitness(now) == want {
				open = append(open, e)
			}
		}
		switch len(open) {
		case 0:
			continue
		case 1:
			return open[0]
		}
		i := intn(len(open))
		j := intn(len(open) - 1)
		if j >= i {
			j++
		}
		if open[j].load() < open[i].load() {
			i = j
		}
		return open[i]
	}
	return nil
}
