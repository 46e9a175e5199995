package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
	"signalbox/stream/response"
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

// placed is how the endpoint of a request was picked; zero when any would have done.
type placed struct {
	by        affinity.Source
	home      bool
	predicted int
}

func (x *placed) attrs() []slog.Attr {
	if x.by == affinity.NoSource {
		return nil
	}
	return []slog.Attr{slog.String("placed_by", x.by.String()), slog.Bool("home", x.home), slog.Int("predicted_tokens", x.predicted)}
}

// usageOf is what an answer told of its prompt, as placement takes it.
func usageOf(told *response.Usage) affinity.Usage {
	u := affinity.Usage{Prompt: told.Input, Cached: told.Cached}
	if u.Cached == 0 && !told.Uncached {
		u.Cached = -1 // not told, or none
	}
	return u
}

// settlePlacement tells placement how a request ended, once.
func (p *Proxy) settlePlacement(o *exchange, status int, err error) {
	x := o.where
	if x == nil || x.of == nil {
		return
	}
	now, t, used := time.Now(), &x.ticket, o.told.Usage
	u := usageOf(&used)
	u.Failed = err != nil || status != http.StatusOK
	u.Whole, u.Of = !o.req.Stream && used.Output != 1, x.id
	t.End(now, u)
	if u.Failed {
		return
	}
	x.of.Servers.Learn(x.tokens, int64(used.Input))
	if x.by == affinity.NoSource {
		return
	}
	o.placed = placed{by: x.by, home: t.Home, predicted: t.Predicted}
	m, model := p.tel.Metrics, x.of.Name
	if x.parted {
		m.PrefixClassSplit(model)
	}
	if t.Home {
		m.Placement(model, "home")
	} else {
		m.Placement(model, "away")
	}
	if t.Cached >= 0 {
		m.PrefixTokens(model, "predicted", int64(t.Predicted)*int64(used.Input)/int64(max(x.length, 1)))
		m.PrefixTokens(model, "confirmed", int64(t.Cached))
	}
}

// KVManager tells an endpoint where to take cached blocks that it lacks. Implementations are safe
// for concurrent use and do no I/O.
type KVManager interface {
	// Hint returns a member of kv_transfer_params by which endpoint to takes the blocks of a prompt
	// from endpoint from, and its value in JSON; an empty member when it cannot. id is unique.
	Hint(from, to *kv.Options, id string) (member string, value []byte, err error)
}

var _ KVManager = kv.P2P{}

// dress is what an endpoint takes in a body beyond the API; zero for nothing.
type dress struct {
	salt   string
	member string // of kv_transfer_params
	value  string
}

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

// scrape reads what the endpoints of a state say of themselves until ctx ends or the state is idle.
func (p *Proxy) scrape(ctx context.Context, st *State) {
	var targets []kv.Target
	for _, m := range st.models {
		for i := range m.Servers.All {
			e := &m.Servers.All[i]
			plain := e.Level != kv.LevelAPC && e.Level != kv.LevelAuto
			if plain && !e.Endpoint.Probed() { // who wants no health checks asks nothing
				continue
			}
			targets = append(targets, kv.Target{
				URL: kv.Metrics(e.Endpoint.Chat, m.Servers.KV.Scrape.Path), Bearer: e.Endpoint.Bearer, Options: m.Servers.KV.Scrape, Transport: e.Endpoint.Via(p.transport),
				Models: e.Endpoint.URL("models"), Served: m.ServedAs,
				Paused: kv.Metrics(e.Endpoint.Chat, "/is_paused"),
				Rarely: plain,
				Window: func(tokens int) { e.ModelLen.Store(int64(tokens)) },
				Told: func(now time.Time, r kv.Report) {
					p.heard(ctx, m, e.Endpoint, m.Servers.Report(now, i, r))
				},
			})
		}
	}
	if len(targets) > 0 {
		kv.Watch(ctx, targets, st.idle)
	}
}

// heard counts and logs what an endpoint has told of itself.
func (p *Proxy) heard(ctx context.Context, m *backend.Model, e *pool.Endpoint, c backend.Change) {
	log := p.tel.Log.With(slog.String("model", m.Name), slog.String("endpoint", e.Name))
	if c.Restarted {
		p.tel.Metrics.EndpointRestarted(m.Name, e.Name)
		log.InfoContext(ctx, "endpoint restarted")
	}
	if c.Slept {
		log.WarnContext(ctx, "endpoint asleep")
	}
	if c.Woke {
		log.InfoContext(ctx, "endpoint awake")
	}
}
