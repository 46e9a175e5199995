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

// Kept is the stored state that a request of the Responses API continues by id: a response or a
// conversation that only the server that created it has. A nil Kept means none.
type Kept struct {
	Model    string // the model that answered
	Endpoint string // name of its endpoint
	Server   string // address of its endpoint

	state *conversation.State // what is known of the conversation
}

// stateful returns the keys of the server state that a request continues, the response first
// (find), and those of them under which the next turn will search as well (keys).
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

// responseOf returns the id of the response that a request continues; empty if there is none.
func responseOf(req *openai.Request) string { return plain(req.QuotedField(byResponse)) }

// plain decodes a JSON string, which may be spelled in several ways.
func plain(quoted string) string {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return quoted // only empty here, since parsed values are valid strings
	}
	return string(text)
}

// findKept finds the server with the state that a request continues. It finds none when the request
// continues nothing, or when the state is unknown here. A request that names its model continues
// like any other. The conversation of one that does not name a model was already looked up under
// the same keys. The error is for a response that belongs to another tenant.
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
	case id != "" && (s == nil || at != 0): // not known as a turn of this caller
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

// owner returns a pseudonym of the callers' tenant.
func (n namer) owner() string { return namer{tenant: n.tenant}.key(byPlace, "").String() }

// without reports whether no server of m has the state that the request continues. Several models
// of one server share its state.
func (k *Kept) without(m *backend.Model) bool {
	return k != nil && m != nil && m.Name != k.Model && k.At(m) < 0
}

// At returns the index of the endpoint of m that has the state, or -1. When several endpoints have
// the same address, for example with different accounts, it is the one that answered.
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

// leavesState reports whether some candidate lacks the state that the request continues.
func (d *Decision) leavesState() bool {
	return slices.ContainsFunc(d.Action.Models, func(c rules.Choice) bool {
		return d.Kept.without(d.Base.ByName[c.Name])
	})
}

// storeNamed stores who answered a request that named its model. Such a request belongs to no
// conversation that could be moved, but only its server has the response that the next request may
// continue.
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
		s = *d.Kept.state // from routed turns of the same conversation
	}
	s.Model, s.Endpoint, s.Server = m.Name, e.Name, e.Chat.String()
	s.Owner, s.Previous = "", ""
	b.Talks.KeepAll(ctx, b.entries(d, req, &s, keys, id))
}

// entries returns what to store for a turn: s under the keys, for StickOptions.MaxAge, and for
// placeLife the server that has the response called id, or the conversation that the server stores.
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

// placeLife is how long the place and owner of a response are remembered. What is stored about a
// model's cache and the user's turns expires after StickOptions.MaxAge.
const placeLife = 7 * 24 * time.Hour

// ruled stands for the model in the state of a turn that a rule answered.
const ruled = "-"

// StoreRuled stores, for a turn answered by a rule, what the turn continued, under the id of the
// rule's answer. No server knows that id, so the next turn continues from the same state.
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
