package proxy

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/engine"
	"signalbox/proxy/kv"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/settings"
)

// prefixPlacement is the part of a plan that looks at where prompts are. The zero value looks at
// nothing.
type prefixPlacement struct {
	on     bool
	id     string  // of the request
	tokens int     // of the prompt, estimated
	prompt *prompt // nil for a request whose prefix is tracked nowhere
	tenant string
	salts  *engine.Salts
	hints  KVManager

	// The rest is of the attempt under way.
	ticket affinity.Ticket
	by     affinity.Source // what the endpoint was picked by
	at     int             // the endpoint's index in its group
	length int             // tokens of the prompt, as the model counts them
	// parted says that the template begins otherwise than at the last request of the same session
	// or context, as with another effort, so that nothing of the prefix is shared.
	parted bool
	of     *backend.Model // the model of the attempt
}

// placementOf looks at a request before its first attempt.
func (st *State) placementOf(change *rewrite.Change, h http.Header) prefixPlacement {
	f := &change.Decision.Set.Facts
	x := prefixPlacement{tokens: f.Tokens, tenant: f.Tenant, salts: st.salts, hints: kv.P2P{}}
	if x.on = st.opts.Placement != settings.PlacementOff && change.Request.API != openai.Other; x.on {
		x.prompt = st.promptOf(change, h)
	}
	if change.Request.API == openai.Other {
		x.salts, x.hints = nil, nil // no server is known to take them there
	}
	return x
}

// abandon ends the attempt under way, which came to nothing.
func (p *prefixPlacement) abandon(now time.Time) {
	p.ticket.End(now, affinity.Usage{Failed: true})
	p.ticket, p.by = affinity.Ticket{}, affinity.NoSource
}

// describe writes the header that says how much of the prompt the endpoint should have.
func (p *prefixPlacement) describe(h http.Header) {
	const name = "X-Signalbox-Context-Predicted-Tokens"
	if p.by == affinity.NoSource {
		delete(h, name) // an attempt before this one may have set it
		return
	}
	h[name] = []string{strconv.Itoa(p.ticket.Predicted)}
}

// endpointFields says what the endpoint of the attempt under way takes.
func (p *prefixPlacement) endpointFields(m *backend.Model) (d rewrite.EndpointFields) {
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

// KVManager tells an endpoint where to take cached blocks that it lacks. Implementations are safe
// for concurrent use and do no I/O.
type KVManager interface {
	// Hint returns a member of kv_transfer_params by which endpoint to takes the blocks of a prompt
	// from endpoint from, and its value in JSON; an empty member when it cannot. id is unique.
	Hint(from, to *kv.Options, id string) (member string, value []byte, err error)
}

var _ KVManager = kv.P2P{}

// transferID names one transfer of blocks. The request's own id will not do: a client may have
// chosen it.
func transferID() string { return "kv_" + rand.Text() }
