package proxy

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
)

// placing is the part of a plan that looks at where prompts are. The zero value looks at nothing.
type placing struct {
	on     bool
	id     string  // of the request
	tokens int     // of the prompt, estimated
	prompt *prompt // nil for a request that is at home nowhere
	tenant string
	salts  *salts
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
		return p.near(m, now)
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

// near takes a slot at the endpoint of m that has most of the prompt for the least wait.
func (p *plan) near(m *backend.Model, now time.Time) (lease *pool.Lease, full bool) {
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
		p.leave(now) // another request took the slot in between
	}
}

// leave ends the attempt under way, which came to nothing.
func (p *placing) leave(now time.Time) {
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
		d.salt = p.salts.of(p.tenant)
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
