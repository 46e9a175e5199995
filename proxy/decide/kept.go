package decide

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

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

// stateful returns the keys of what a request goes on with on its server, the response first, and of
// those the ones under which the next turn will look as well.
func (n namer) stateful(req *openai.Request) (find, keys []conversation.Key) {
	if id := responseOf(req); id != "" {
		find = append(find, n.key(byResponse, id))
	}
	if id := plain(req.ConversationID()); id != "" {
		k := n.key(byObject, id)
		find, keys = append(find, k), append(keys, k)
	}
	return find, keys
}

// responseOf is the id of the response that a request goes on with; empty for none.
func responseOf(req *openai.Request) string { return plain(req.QuotedField(byResponse)) }

// plain is the text of a JSON string, which may be spelled in several ways.
func plain(quoted string) string {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return quoted // empty; what was parsed is a string
	}
	return string(text)
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
	at := -1
	if t := d.Talk; t == nil {
		s, at = b.Talks.Find(ctx, find...)
	} else if t.at < len(find) {
		s, at = t.before, t.at
	}
	id, talk := responseOf(req), plain(req.ConversationID())
	switch {
	case id != "" && (s == nil || at != 0): // it is not known as a turn of this caller's
		served, _ := b.Talks.Find(ctx, namer{}.key(byPlace, id))
		if served != nil && served.Owner != n.owner() {
			return &openai.Error{
				Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: byResponse,
				Code:    "previous_response_not_found",
				Message: "Previous response with id '" + id + "' not found.",
				Plain:   "the response is another tenant's",
			}
		}
		s = cmp.Or(served, s)
	case id == "" && talk != "" && s == nil:
		s, _ = b.Talks.Find(ctx, n.key(byPlace, talk))
	}
	if s == nil {
		return nil
	}
	if d.Previous = s.Previous; s.Server != "" {
		d.Kept = &Kept{Model: s.Model, Endpoint: s.Endpoint, Server: s.Server, state: s}
	}
	return nil
}

// owner is a name for the tenant of the callers that does not tell it.
func (n namer) owner() string { return namer{tenant: n.tenant}.key(byPlace, "").String() }

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
	var s conversation.State
	if d.Kept != nil {
		s = *d.Kept.state // what routed turns have said of it
	}
	s.Model, s.Endpoint, s.Server = m.Name, e.Name, e.Chat.String()
	s.Owner, s.Previous = "", ""
	b.Talks.KeepAll(ctx, b.entries(d, req, &s, keys, id))
}

// entries is what is kept of a turn: s under the keys for as long as a conversation sticks, and for
// longer who has the response that is called id, or the conversation that the server keeps.
func (b *Base) entries(
	d *Decision, req *openai.Request, s *conversation.State, keys []conversation.Key, id string,
) (out []conversation.Entry) {
	if life := time.Duration(b.Stick.MaxAge); life > 0 {
		for _, k := range keys {
			out = append(out, conversation.Entry{Key: k, State: s, Life: life})
		}
	}
	n := namer{d.Who.Tenant, d.Who.Role}
	place := &conversation.State{
		Model: s.Model, Endpoint: s.Endpoint, Server: s.Server, Owner: n.owner(), Previous: s.Previous,
	}
	if id != "" && string(bytes.TrimSpace(req.Field("store"))) != "false" {
		out = append(out, conversation.Entry{Key: namer{}.key(byPlace, id), State: place, Life: placeLife})
	}
	if talk := plain(req.ConversationID()); talk != "" && s.Server != "" && s.Previous == "" {
		out = append(out, conversation.Entry{Key: n.key(byPlace, talk), State: place, Life: placeLife})
	}
	return out
}

// placeLife is how long is kept who has a response, and whose it is. What is kept for a model's cache,
// and of what was said, ends with StickOptions.MaxAge.
const placeLife = 7 * 24 * time.Hour

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
	b.Talks.KeepAll(ctx, b.entries(d, req, &s, nil, id))
}
