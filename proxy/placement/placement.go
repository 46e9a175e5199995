package placement

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/engine"
	"signalbox/proxy/kv"
	"signalbox/proxy/rewrite"
	"signalbox/stream/response"
)

// prefixPlacement is the part of a plan that considers where prompts are cached. The zero value
// does not.
type prefixPlacement struct {
	on     bool
	id     string  // of the request
	tokens int     // estimated tokens of the prompt
	prompt *prompt // nil for a request whose prefix is not tracked
	tenant string
	salts  *engine.Salts
	hints  KVManager

	// The fields below belong to the current attempt.
	ticket affinity.Ticket
	by     affinity.Source // source of the key that the endpoint was chosen by
	at     int             // index of the endpoint in its group
	length int             // prompt tokens by the model's count
	// parted means that the template begins differently than for the last request of the same
	// session or context, for example with another effort, so that no prefix is shared.
	parted bool
	of     *backend.Model // model of the attempt
}

// placementOf prepares placement before a request's first attempt.
func (b *Places) placementOf(change *rewrite.Change, h http.Header) prefixPlacement {
	f := &change.Decision.Set.Facts
	x := prefixPlacement{tokens: f.Tokens, tenant: f.Tenant, salts: b.Salts, hints: kv.P2P{}}
	if x.on = !b.Off && change.Request.API != openai.Other; x.on {
		x.prompt = b.promptOf(change, h)
	}
	if change.Request.API == openai.Other {
		x.salts, x.hints = nil, nil // no server is known to accept them there
	}
	return x
}

// Abandon ends the current attempt without a result.
func (p *prefixPlacement) Abandon(now time.Time) {
	p.ticket.End(now, affinity.Usage{Failed: true})
	p.ticket, p.by = affinity.Ticket{}, affinity.NoSource
}

// Describe writes the header that says how much of the prompt the endpoint should have cached.
func (p *prefixPlacement) Describe(h http.Header) {
	const name = "X-Signalbox-Context-Predicted-Tokens"
	if p.by == affinity.NoSource {
		delete(h, name) // an earlier attempt may have set it
		return
	}
	h[name] = []string{strconv.Itoa(p.ticket.Predicted)}
}

// EndpointFields returns the fields that the endpoint of the current attempt accepts.
func (p *prefixPlacement) EndpointFields(m *backend.Model) (d rewrite.EndpointFields) {
	if p.salts == nil || p.at < 0 {
		return d
	}
	to := &m.Servers.All[p.at]
	if to.Salted.Load() {
		d.Salt = p.salts.Of(p.tenant)
	}
	if t := &p.ticket; p.by != affinity.NoSource && t.Held-t.Predicted >= kv.MinTokens {
		member, value, err := p.hints.Hint(&m.Servers.All[t.Holder].Options, &to.Options, transferID())
		if err == nil {
			d.Member, d.Value = member, string(value)
		}
	}
	return d
}

// KVManager tells an endpoint where to fetch cached blocks that it lacks. Implementations are safe
// for concurrent use and do no I/O.
type KVManager interface {
	// Hint returns the member of kv_transfer_params, and its JSON value, that lets endpoint to
	// fetch the blocks of a prompt from endpoint from; the member is empty if that is not possible.
	// id is unique.
	Hint(from, to *kv.Options, id string) (member string, value []byte, err error)
}

var _ KVManager = kv.P2P{}

// transferID identifies one transfer of blocks. The request id is not suitable, since a client may
// have chosen it.
func transferID() string { return "kv_" + rand.Text() }

// UsageOf converts what a response reported about its prompt.
func UsageOf(told *response.Usage) affinity.Usage {
	u := affinity.Usage{Prompt: told.Input, Cached: told.Cached}
	if u.Cached == 0 && !told.Uncached {
		u.Cached = -1 // not reported, or 0
	}
	return u
}

// End reports to placement how a request ended, once: with u, where input is the number of prompt
// tokens that the server counted. It returns how the endpoint was chosen; ok is false if any would
// have done, or if the request failed.
func (p *Plan) End(now time.Time, u affinity.Usage, input int) (how Placed, ok bool) {
	if p == nil || p.of == nil {
		return how, false
	}
	t := &p.ticket
	u.Of = p.id
	t.End(now, u)
	if u.Failed {
		return how, false
	}
	p.of.Servers.Learn(p.tokens, int64(input))
	if p.by == affinity.NoSource {
		return how, false
	}
	m, model := p.metrics, p.of.Name
	if p.parted {
		m.PrefixClassSplit(model)
	}
	if t.Home {
		m.Placement(model, "home")
	} else {
		m.Placement(model, "away")
	}
	if t.Cached >= 0 {
		m.PrefixTokens(model, "predicted", int64(t.Predicted)*int64(input)/int64(max(p.length, 1)))
		m.PrefixTokens(model, "confirmed", int64(t.Cached))
	}
	return Placed{By: p.by, Home: t.Home, Predicted: t.Predicted}, true
}

// Placed is how the endpoint of a request was chosen; zero if any would have done.
type Placed struct {
	By        affinity.Source
	Home      bool
	Predicted int
}

// Attrs returns the attributes for the log line of a request.
func (x *Placed) Attrs() []slog.Attr {
	if x.By == affinity.NoSource {
		return nil
	}
	return []slog.Attr{slog.String("placed_by", x.By.String()), slog.Bool("home", x.Home), slog.Int("predicted_tokens", x.Predicted)}
}
