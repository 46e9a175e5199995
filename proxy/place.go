package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/engine"
	"signalbox/proxy/fault"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
)

// plan is the order in which a request meets models and endpoints: every endpoint of the first
// model, then those of the next. It belongs to one request.
type plan struct {
	models  []*backend.Model
	tried   []*pool.Endpoint
	intn    func(n int) int
	metrics *telemetry.Metrics
	lease   *pool.Lease                                       // of the last attempt; nil before the first
	afford  func(ctx context.Context, m *backend.Model) error // nil where no model has a budget
	placing
}

// place lists the models that a decision leads to and the caller may use, in the order to try them.
// change is how the request is put to them, h the client's headers, and counted the tokens of the
// prompt by model, where they were counted.
func (st *State) place(change *rewriter, h http.Header, counted map[string]int) (*plan, error) {
	d := change.d
	wants := d.choiceRequest()
	wants.Prompt.Counted = counted
	cs := st.chooser.Choose(wants)
	st.explore(d, cs)
	cs = st.arrange(d, cs)
	if len(cs) > 0 {
		st.exploreEffort(d, cs[0].Name)
	}
	p := &plan{models: make([]*backend.Model, 0, len(cs)), intn: st.chooser.Intn, metrics: st.metrics}
	denied := false
	for i := range cs {
		switch m, ok := st.byName[cs[i].Name]; {
		case !ok:
			return nil, &fault.UnknownModelError{Model: cs[i].Name}
		case !d.who.May(m.Name):
			denied = true
		case !cs[i].Out:
			p.models = append(p.models, m)
		}
	}
	if len(p.models) == 0 && denied {
		return nil, fault.ErrNoModelAllowed
	}
	if len(p.models) == 0 {
		return nil, d.tooLong(&wants.Prompt, cs)
	}
	p.placing = st.placing(change, h)
	return p, nil
}

// save notes what the request saves with. One that goes to the cheapest model tries none out.
func (d *decision) save(how budget.Thrift) {
	d.thrift = how
	if how.Cheaper && d.inArm != "" && !d.callsOf(d.Action.Canary.Model) {
		d.inArm = ""
	}
}

// cheapen puts the cheapest candidates in front, by what the request may cost there, where a budget
// of the caller is nearly used up; a model without a price costs nothing. What a conversation stays
// for gives way, but a result of a tool goes to the model that asked for it. cs is changed in
// place.
func (st *State) cheapen(d *decision, cs []choose.Candidate) {
	t := d.talk
	of := t != nil && t.before != nil
	if !d.thrift.Cheaper || of && t.tool && t.why == whyTool {
		return
	}
	answer := openai.AssumedOutputTokens
	if d.request != nil {
		answer = d.request.MaxOutputTokens()
	}
	price := func(c *choose.Candidate) float64 {
		switch m := st.byName[c.Name]; {
		case m == nil, c.Out:
			return math.Inf(1)
		default:
			return m.Price.Of(float64(d.set.Facts.Tokens), float64(answer))
		}
	}
	slices.SortStableFunc(cs, func(a, b choose.Candidate) int { return cmp.Compare(price(&a), price(&b)) })
	if of && !t.final && len(cs) > 0 && cs[0].Name != t.before.Model {
		t.result, t.why = talkMoved, whyBudget
	}
}

// choiceRequest is what the choice among models looks at.
func (d *decision) choiceRequest() choose.Request {
	r := choose.Request{Action: d.Action, Set: d.set, Named: d.model, Expected: d.expected}
	if d.request == nil {
		return r
	}
	r.Prompt = d.length()
	r.Limit, _ = d.request.AnswerLimit()
	return r
}

// next takes a slot where the request goes now: at an endpoint that was not tried, of the first
// model that has one. A request that was nowhere yet waits for it where all of a model's endpoints
// are full. The lease, which the caller closes, is nil when none is left.
func (p *plan) next(ctx context.Context) (*backend.Model, *pool.Lease, error) {
	p.abandon(time.Now())
	crowded, asleep := false, false
	var spent error // of the first model whose budget the request does not fit in
	for len(p.models) > 0 {
		m := p.models[0]
		if p.afford != nil {
			if err := p.afford(ctx, m); err != nil {
				spent, p.models = cmp.Or(spent, err), p.models[1:]
				continue
			}
		}
		lease, err := p.enter(ctx, m)
		switch {
		case lease != nil:
			p.tried, p.lease = append(p.tried, lease.Endpoint()), lease
			return m, lease, nil
		case ctx.Err() != nil:
			return nil, nil, fault.ErrClientGone
		case err != nil:
			crowded = true
			p.countShed(m.Name, err)
		}
		asleep = asleep || m.Asleep(time.Now())
		p.models = p.models[1:]
	}
	switch {
	case crowded:
		return nil, nil, fault.ErrEndpointsFull
	case asleep && len(p.tried) == 0:
		return nil, nil, fault.ErrAsleep
	case len(p.tried) == 0:
		return nil, nil, spent
	}
	return nil, nil, nil
}

// enter takes a slot at an endpoint of m, after those who wait for one.
func (p *plan) enter(ctx context.Context, m *backend.Model) (lease *pool.Lease, err error) {
	full := m.Queued() > 0
	if !full {
		if lease, full = p.pick(m, time.Now()); lease != nil {
			return lease, nil
		}
	}
	if !full || len(p.tried) > 0 { // who was refused elsewhere does not wait again
		return nil, nil
	}
	err = m.Wait(ctx, func() bool {
		lease, _ = p.pick(m, time.Now())
		return lease != nil
	})
	return lease, err
}

// countShed counts a request that got no place at a model.
func (p *plan) countShed(model string, err error) {
	reason := "full"
	if errors.Is(err, pool.ErrQueueLate) {
		reason = "late"
	}
	p.metrics.Shed(model, reason)
}

// modelBudgets is the group of the budgets of models. No tenant is called so: their names can be
// printed.
const modelBudgets = "\x00models"

// planWithinBudget places a request and reserves what it may cost. One that finds a soft bound
// reached only then, for others were let in between, is placed again, so that no more than one of
// all replicas is dear beyond the bound.
func (p *Proxy) planWithinBudget(
	ctx context.Context, st *State, w *downstream.Response, h http.Header, change *rewriter, o *exchange,
) (*plan, error) {
	counted := p.measure(ctx, st, change)
	where, err := st.place(change, h, counted)
	if err != nil {
		return nil, err
	}
	where.id = w.ID
	if err = p.reserve(ctx, w, o, where); err != nil {
		return nil, err
	}
	how := o.thrift.And(w.Cost.Thrift())
	if how == o.thrift {
		return where, nil
	}
	o.save(how)
	o.describeThrift(w.Header())
	again, err := st.place(change, h, counted)
	if err == nil {
		again.id, again.afford = w.ID, where.afford
	}
	return again, err
}

// reserve takes what a request may cost from the budgets of its caller: its prompt, estimated, and
// the most that it allows for the response, by the price of the dearest model that it may go to,
// or, where the next model is asked when a response is not good enough, of all of them. What it
// takes from the budgets of models is taken when it comes to them.
func (p *Proxy) reserve(ctx context.Context, w *downstream.Response, o *exchange, where *plan) (err error) {
	ofModels := slices.ContainsFunc(where.models, func(m *backend.Model) bool { return m.Budget.USD > 0 })
	if len(o.who.Budgets) == 0 && !ofModels {
		return nil
	}
	prompt, answer := float64(o.req.EstimateTokens()), 0.0
	if o.held.Named() {
		prompt += float64(o.held.Tokens)
	}
	if o.req.API != openai.Other {
		answer = float64(o.req.MaxOutputTokens())
	}
	if ofModels {
		where.afford = func(ctx context.Context, m *backend.Model) error {
			return p.share(ctx, w, m, m.Price.Of(prompt, answer))
		}
	}
	usd := 0.0
	for _, m := range where.models {
		if price := m.Price.Of(prompt, answer); o.Action.Escalate != nil {
			usd += price
		} else {
			usd = math.Max(usd, price)
		}
	}
	w.Cost, err = p.spending.Reserve(ctx, o.who.Tenant, o.who.Budgets, usd)
	return err
}

// share takes what a request may cost at a model from the budget of that, once.
func (p *Proxy) share(ctx context.Context, w *downstream.Response, m *backend.Model, usd float64) error {
	if m.Budget.USD == 0 || slices.ContainsFunc(w.Shares, func(s downstream.ModelShare) bool { return s.Of == m }) {
		return nil
	}
	r, err := p.spending.Reserve(ctx, modelBudgets, []budget.Budget{m.Budget}, usd)
	if err == nil {
		w.Shares = append(w.Shares, downstream.ModelShare{Of: m, Cost: r})
	}
	return err
}

// placing is the part of a plan that looks at where prompts are. The zero value looks at nothing.
type placing struct {
	on     bool
	id     string  // of the request
	tokens int     // of the prompt, estimated
	prompt *prompt // nil for a request that is at home nowhere
	tenant string
	salts  *engine.Salts
	hints  KVManager
	ticket affinity.Ticket // of the attempt under way
	by     affinity.Source // what it was placed by
	at     int             // index of its endpoint
	length int             // of its prompt, as the model counts
	parted bool            // from the last request that belongs to the same, by what leads the template
	of     *backend.Model  // that it is to
}

// placing looks at a request before its first attempt.
func (st *State) placing(change *rewriter, h http.Header) placing {
	f := &change.d.set.Facts
	x := placing{tokens: f.Tokens, tenant: f.Tenant, salts: st.salts, hints: kv.P2P{}}
	if x.on = st.opts.Placement != placementOff && change.req.API != openai.Other; x.on {
		x.prompt = st.promptOf(change, h)
	}
	if change.req.API == openai.Other {
		x.salts, x.hints = nil, nil // no server is known to take them there
	}
	return x
}

// pick takes a slot at an endpoint of m that was not tried; nil when none is left, and then whether
// one would be there if it were not full. A request that belongs to something goes where its prompt
// is, any other to the less loaded of two. The caller closes the lease.
func (p *plan) pick(m *backend.Model, now time.Time) (lease *pool.Lease, full bool) {
	w := m.Servers
	p.of = m
	if p.on && p.prompt != nil && w.Placer != nil {
		return p.pickByPrefix(m, now)
	}
	for lease == nil { // until no other request takes the slot in between
		var e *pool.Endpoint
		if e, full = m.Pick(p.tried, p.intn, now); e == nil {
			return nil, full
		}
		lease, _ = e.Enter()
	}
	if p.at = w.Index(lease.Endpoint()); p.on && w.Placer != nil && len(w.All) > 1 {
		p.length = w.Correct(p.tokens)
		p.ticket = w.Sent(now, &affinity.Request{Tokens: p.length}, p.at)
	}
	return lease, false
}

// pickByPrefix takes a slot at the endpoint of m that has most of the prompt for the least wait.
func (p *plan) pickByPrefix(m *backend.Model, now time.Time) (lease *pool.Lease, full bool) {
	w, x := m.Servers, p.prompt
	class := x.class(m)
	key, by := x.hints.Key(class, x.chain.Blocks(), x.tokens)
	penalty := x.penalty[:len(w.All)]
	p.length = w.Correct(p.tokens)
	for {
		full = w.Penalties(penalty, p.tried, now)
		t, ok := w.Place(now, &affinity.Request{
			Class: class, Key: key, Source: by, Blocks: x.chain.Blocks(), Bytes: x.chain.Bytes(),
			Tokens: p.length, Penalty: penalty,
		})
		if !ok {
			return nil, full
		}
		p.ticket, p.by, p.at = t, by, t.Endpoint
		if lease, ok = w.All[t.Endpoint].Endpoint.Enter(); ok {
			p.parted = p.parted || x.parts(m, class)
			return lease, false
		}
		p.abandon(now) // another request took the slot in between
	}
}

// abandon ends the attempt under way, which came to nothing.
func (p *placing) abandon(now time.Time) {
	p.ticket.End(now, affinity.Usage{Failed: true})
	p.ticket, p.by = affinity.Ticket{}, affinity.NoSource
}

// describe writes the header that says how much of the prompt the endpoint should have.
func (p *placing) describe(h http.Header) {
	const name = "X-Signalbox-Context-Predicted-Tokens"
	if p.by == affinity.NoSource {
		delete(h, name) // an attempt before this one may have set it
		return
	}
	h[name] = []string{strconv.Itoa(p.ticket.Predicted)}
}

// KVManager tells an endpoint where to take cached blocks that it lacks. Implementations are safe
// for concurrent use and do no I/O.
type KVManager interface {
	// Hint returns a member of kv_transfer_params by which endpoint to takes the blocks of a prompt
	// from endpoint from, and its value in JSON; an empty member when it cannot. id is unique.
	Hint(from, to *kv.Options, id string) (member string, value []byte, err error)
}

var _ KVManager = kv.P2P{}

// dress says what the endpoint of the attempt under way takes.
func (p *placing) dress(m *backend.Model) (d dress) {
	if p.salts == nil || p.at < 0 {
		return d
	}
	to := &m.Servers.All[p.at]
	if to.Salted.Load() {
		d.salt = p.salts.Of(p.tenant)
	}
	if t := &p.ticket; p.by != affinity.NoSource && t.Held-t.Predicted >= kv.MinTokens {
		member, value, err := p.hints.Hint(&m.Servers.All[t.Holder].Options, &to.Options, transferID())
		if err == nil {
			d.member, d.value = member, string(value)
		}
	}
	return d
}

// transferID names one transfer of blocks. The request's own id will not do: a client may have
// chosen it.
func transferID() string { return "kv_" + rand.Text() }
