package placement

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/chain"
	"signalbox/proxy/decide"
	"signalbox/proxy/engine"
	"signalbox/proxy/fault"
	"signalbox/proxy/pool"
	"signalbox/proxy/rewrite"
)

// Plan is the order in which a request tries models and endpoints: every endpoint of the first
// model, then those of the next. It belongs to one request.
type Plan struct {
	Models  []*backend.Model
	tried   []*pool.Endpoint
	intn    func(n int) int
	metrics *telemetry.Metrics
	lease   *pool.Lease                                       // of the last attempt; nil before the first
	kept    *decide.Kept                                      // state that the request continues; nil if there is none
	Afford  func(ctx context.Context, m *backend.Model) error // nil if no model has a budget

	prefixPlacement
}

// Places is the placement data of one configuration. It is safe for concurrent use.
type Places struct {
	Off     bool              // do not choose endpoints by where prompts are cached
	Salts   *engine.Salts     // of tenants
	Chains  *chain.Memo       // of stored contexts; shared by all configurations of a process
	Prompts map[string]string // that routes name
}

// Plan returns the plan for a request before its first attempt. models are those to try, in order;
// change is the rewrite of the request, h the client's headers, id the request id; intn returns a
// number in [0,n).
func (b *Places) Plan(
	models []*backend.Model, change *rewrite.Change, h http.Header, id string, intn func(n int) int, m *telemetry.Metrics,
) *Plan {
	p := &Plan{Models: models, intn: intn, metrics: m, prefixPlacement: b.placementOf(change, h)}
	p.id, p.kept = id, change.Decision.Kept
	return p
}

// Length returns the tokens of the prompt by the count of the current attempt's model; 0 if not
// estimated.
func (p *Plan) Length() int { return p.length }

// Ticket returns the placement ticket of the current attempt.
func (p *Plan) Ticket() *affinity.Ticket { return &p.ticket }

// Close releases the slot of the last attempt if it is still held.
func (p *Plan) Close() { p.lease.Close() }

// Restart treats the attempts so far as settled and continues with the models for which keep is
// true. A request that reaches a model for the first time may wait.
func (p *Plan) Restart(keep func(m *backend.Model) bool) {
	p.ticket, p.by = affinity.Ticket{}, affinity.NoSource
	p.Models = slices.DeleteFunc(p.Models, func(m *backend.Model) bool { return !keep(m) })
	p.tried = p.tried[:0]
}

// Withdraw ends the current attempt without reporting it to placement at the end.
func (p *Plan) Withdraw(now time.Time) {
	p.Abandon(now)
	p.of = nil
}

// Next chooses the model and endpoint of the next attempt and takes a slot there: at an endpoint
// that was not tried, of the first model that has one. If the request has not been sent anywhere
// and all endpoints of a model are full, it waits for a slot. The caller closes the lease, which is
// nil when no endpoint is left.
func (p *Plan) Next(ctx context.Context) (*backend.Model, *pool.Lease, error) {
	p.Abandon(time.Now())
	crowded, asleep, away := false, false, false
	var spent error // error of the first model whose budget is too small for the request
	for len(p.Models) > 0 {
		m := p.Models[0]
		if p.Afford != nil {
			if err := p.Afford(ctx, m); err != nil {
				spent, p.Models = cmp.Or(spent, err), p.Models[1:]
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
			if p.keeper(m, time.Now()) >= 0 { // the endpoint exists, and no other has the state
				p.Models = slices.DeleteFunc(p.Models, func(m *backend.Model) bool { return p.kept.At(m) < 0 })
			}
		}
		asleep, away = asleep || m.Asleep(time.Now()), true
		p.Models = p.Models[1:]
	}
	switch {
	case crowded:
		return nil, nil, fault.ErrEndpointsFull
	case asleep && len(p.tried) == 0:
		return nil, nil, fault.ErrAsleep
	case len(p.tried) == 0 && !away: // a server returns sooner than a budget resets
		return nil, nil, spent
	}
	return nil, nil, nil
}

// enter takes a slot at an endpoint of m, after the requests that already wait.
func (p *Plan) enter(ctx context.Context, m *backend.Model) (lease *pool.Lease, err error) {
	var only *pool.Endpoint
	if at := p.keeper(m, time.Now()); at >= 0 {
		only = m.Servers.All[at].Endpoint
	}
	full := m.Ahead(only) > 0
	if !full {
		if lease, full = p.pick(m, time.Now()); lease != nil {
			return lease, nil
		}
	}
	if !full || len(p.tried) > 0 { // a request that was refused elsewhere does not wait again
		return nil, nil
	}
	err = m.Wait(ctx, only, func() bool {
		lease, _ = p.pick(m, time.Now())
		return lease != nil
	})
	return lease, err
}

// countShed counts a request that got no slot at a model.
func (p *Plan) countShed(model string, err error) {
	reason := "full"
	if errors.Is(err, pool.ErrQueueLate) {
		reason = "late"
	}
	p.metrics.Shed(model, reason)
}

// pick takes a slot at an endpoint of m that was not tried. It returns nil if none is left; full
// then reports whether one would be available if it were not full. A request with a key goes where
// its prompt is cached, any other to the less loaded of two. The caller closes the lease.
func (p *Plan) pick(m *backend.Model, now time.Time) (lease *pool.Lease, full bool) {
	w := m.Servers
	p.of = m
	if at := p.keeper(m, now); at >= 0 {
		lease, ok := w.All[at].Endpoint.Enter()
		if ok {
			p.sentTo(w, at, now)
		}
		return lease, !ok // it waits, since no other endpoint has the state
	}
	if p.on && p.prompt != nil && w.Placer != nil {
		return p.pickByPrefix(m, now)
	}
	for lease == nil { // until no other request takes the slot first
		var e *pool.Endpoint
		if e, full = m.Pick(p.tried, p.intn, now); e == nil {
			return nil, full
		}
		lease, _ = e.Enter()
	}
	p.sentTo(w, w.Index(lease.Endpoint()), now)
	return lease, false
}

// keeper returns the index of the only endpoint of m with the state that the request continues; -1
// if there is none that was not tried and is available.
func (p *Plan) keeper(m *backend.Model, now time.Time) int {
	at := p.kept.At(m)
	if at < 0 {
		return -1
	}
	if e := m.Servers.All[at].Endpoint; slices.Contains(p.tried, e) || e.Fitness(now) > pool.Ejected {
		return -1
	}
	return at
}

// sentTo records an attempt at an endpoint that was chosen without regard to the prompt.
func (p *Plan) sentTo(w *backend.Servers, at int, now time.Time) {
	if p.at = at; p.on && w.Placer != nil && len(w.All) > 1 {
		p.length = w.Correct(p.tokens)
		p.ticket = w.Sent(now, &affinity.Request{Tokens: p.length}, at)
	}
}

// pickByPrefix takes a slot at the endpoint of m that has most of the prompt cached for the least
// wait.
func (p *Plan) pickByPrefix(m *backend.Model, now time.Time) (lease *pool.Lease, full bool) {
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
		p.Abandon(now) // another request took the slot first
	}
}
