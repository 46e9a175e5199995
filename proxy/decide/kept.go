package decide

import (
	"context"
	"slices"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory/conversation"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

// Kept is what a request of the Responses API goes on with by name: a response, or a conversation,
// that the server which answered before keeps, and nobody else. Nil stands for none.
type Kept struct {
	Model    string // that answered
	Endpoint string // of it, by name
	Server   string // its address

	state *conversation.State // that is known of it
}

// stateful returns the keys of what a request goes on with on its server, and of those the ones
// under which the next turn will look as well.
func (n namer) stateful(req *openai.Request) (find, keys []conversation.Key) {
	if id := req.QuotedField("previous_response_id"); id != "" {
		find = append(find, n.key(byResponse, id))
	}
	if id := req.ConversationID(); id != "" {
		k := n.key(byObject, id)
		find, keys = append(find, k), append(keys, k)
	}
	return find, keys
}

// keptFor finds out which server has what a request goes on with; nil where it goes on with
// nothing, or nobody here knows. A request that names its model goes on like any other. The
// conversation of one that does not was looked for under the same keys first.
func (b *Base) keptFor(ctx context.Context, d *Decision, req *openai.Request) *Kept {
	if b.Talks == nil || req.API != openai.Response {
		return nil
	}
	find, _ := namer{d.Who.Tenant, d.Who.Role}.stateful(req)
	var s *conversation.State
	if t := d.Talk; t == nil {
		s, _ = b.Talks.Find(ctx, find...)
	} else if t.at < len(find) {
		s = t.before
	}
	if s != nil && s.Server != "" {
		return &Kept{Model: s.Model, Endpoint: s.Endpoint, Server: s.Server, state: s}
	}
	return nil
}

// without reports that no server of m has what the request goes on with. Several models of one
// server share what it keeps.
func (k *Kept) without(m *backend.Model) bool {
	return k != nil && m != nil && m.Name != k.Model && k.At(m) < 0
}

// At is the index of the endpoint of m that has it, -1 for none: of several with one address, which
// may be those of several accounts, the one that answered.
func (k *Kept) At(m *backend.Model) int {
	if k == nil {
		return -1
	}
	at := -1
	for i, s := range m.Servers.All {
		switch {
		case s.Endpoint.Chat.String() != k.Server:
		case m.Name == k.Model && s.Endpoint.Name == k.Endpoint:
			return i
		case at < 0:
			at = i
		}
	}
	return at
}

// leavesState reports that a candidate has nothing of what the request goes on with.
func (d *Decision) leavesState() bool {
	return slices.ContainsFunc(d.Action.Models, func(c rules.Choice) bool {
		return d.Kept.without(d.Base.ByName[c.Name])
	})
}

// storeNamed keeps who answered a request that named its model: it belongs to no conversation that
// could be moved, but only its server has the response that the next one may go on with.
func (b *Base) storeNamed(
	ctx context.Context, d *Decision, req *openai.Request, m *backend.Model, e *pool.Endpoint, id string,
) {
	if b.Talks == nil || req.API != openai.Response {
		return
	}
	n := namer{d.Who.Tenant, d.Who.Role}
	_, keys := n.stateful(req)
	if id != "" {
		keys = append(keys, n.key(byResponse, id))
	}
	if len(keys) > 0 {
		var s conversation.State
		if d.Kept != nil {
			s = *d.Kept.state // what routed turns have said of it
		}
		s.Model, s.Endpoint, s.Server = m.Name, e.Name, e.Chat.String()
		b.Talks.Keep(ctx, &s, time.Duration(b.Stick.MaxAge), keys...)
	}
}
