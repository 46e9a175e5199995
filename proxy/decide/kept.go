package decide

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
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

// findKept finds out which server has what a request goes on with: nobody where it goes on with
// nothing, or nothing is known here. A request that names its model goes on like any other. The
// conversation of one that does not was looked for under the same keys first. The error is that of
// a response that another tenant was answered with.
func (b *Base) findKept(ctx context.Context, d *Decision, req *openai.Request) error {
	if b.Talks == nil || req.API != openai.Response {
		return nil
	}
	n := namer{d.Who.Tenant, d.Who.Role}
	find, _ := n.stateful(req)
	var s *conversation.State
	if t := d.Talk; t == nil {
		s, _ = b.Talks.Find(ctx, find...)
	} else if t.at < len(find) {
		s = cmp.Or(t.before, t.ruled)
	}
	if id := req.QuotedField(byResponse); s == nil && id != "" {
		if s, _ = b.Talks.Find(ctx, namer{}.key(byOwner, id)); s != nil && s.Owner != n.owner() {
			return &openai.Error{
				Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: byResponse,
				Code:    "previous_response_not_found",
				Message: "Previous response with id '" + strings.Trim(id, `"`) + "' not found.",
				Plain:   "the response is another tenant's",
			}
		}
	}
	if s != nil {
		d.Previous = s.Previous
	}
	if s != nil && s.Server != "" {
		d.Kept = &Kept{Model: s.Model, Endpoint: s.Endpoint, Server: s.Server, state: s}
	}
	return nil
}

// owner is a name for the tenant of the callers that does not tell it.
func (n namer) owner() string { return namer{tenant: n.tenant}.key(byOwner, "").String() }

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
		s.Owner, s.Previous = "", ""
		b.Talks.Keep(ctx, &s, servedLife, keys...)
	}
	b.storeOwner(ctx, d, m, e, id)
}

// ruled is the model of a state whose turn no model answered.
const ruled = "-"

// StoreRuled keeps what a turn went on with that a rule answered, under the id of that answer, which
// no server knows: the next turn goes on with the same.
func (b *Base) StoreRuled(ctx context.Context, d *Decision, req *openai.Request, id string) {
	if b.Talks == nil || req.API != openai.Response {
		return
	}
	s := conversation.State{Model: ruled, Previous: cmp.Or(d.Previous, req.QuotedField(byResponse), "null")}
	if k := d.Kept; k != nil {
		s.Model, s.Endpoint, s.Server = k.Model, k.Endpoint, k.Server
	}
	b.Talks.Keep(ctx, &s, servedLife, namer{d.Who.Tenant, d.Who.Role}.key(byResponse, strconv.Quote(id)))
}

// servedLife is how long is kept who has a response: as long as OpenAI keeps one. What is kept for a
// model's cache ends with StickOptions.MaxAge.
const servedLife = 30 * 24 * time.Hour

// storeOwner keeps whose a response is, which servers cannot tell: they see one account. An id that
// the client named says nothing of that.
func (b *Base) storeOwner(ctx context.Context, d *Decision, m *backend.Model, e *pool.Endpoint, id string) {
	if id == "" {
		return
	}
	b.Talks.Keep(ctx, &conversation.State{
		Model: m.Name, Endpoint: e.Name, Server: e.Chat.String(), Owner: namer{tenant: d.Who.Tenant}.owner(),
	}, servedLife, namer{}.key(byOwner, id))
}
