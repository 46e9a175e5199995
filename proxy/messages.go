package proxy

import (
	"context"
	"net/http"
	"strings"

	"signalbox/internal/anthropic"
	"signalbox/proxy/backend"
	"signalbox/proxy/count"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/engine"
	"signalbox/proxy/exchange"
	"signalbox/proxy/rewrite"
	"signalbox/rules"
)

// ownBody returns the body for m. own is true when the client's own body may be used: the server
// speaks the Messages API itself, the decision changes nothing but the model name, and no stage
// reads the response.
func ownBody(
	w *downstream.Writer, o *exchange.Exchange, m *backend.Model, made *rewrite.Fitted,
) (rewrite.Payload, bool) {
	d := w.Messages
	if d == nil || !m.Messages || d.Raw == nil ||
		o.Escalation.Judging() || o.Mirror != nil ||
		o.Guarding != nil || o.Vault != nil || o.Lookup.Recorded() || o.Req.Extras.Present ||
		o.Req.Has(engine.FieldSalt) {
		return made.Made, false
	}
	return made.Own(o.Req, d.Raw, d.Model)
}

// countMessage serves POST /v1/messages/count_tokens. A server of the model that the request would
// be routed to counts the tokens, with its chat template and the tools. When no server counts, the
// response is an estimate and a header says so.
func (p *Proxy) countMessage(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	req, err := st.translate(w, body, anthropic.Options{Counting: true, Limits: st.limits.OfBody()})
	if err != nil {
		return err
	}
	if err = st.controls.Check(&who, req); err != nil {
		return err
	}
	held, err := p.resolver.Resolve(r.Context(), who, req, r.Header)
	defer held.Release()
	if err != nil {
		return err
	}
	d, err := st.Start(who, req, r.Header, held)
	if err != nil {
		return err
	}
	if err = st.Conclude(r.Context(), d, req); err != nil {
		return err
	}
	n, exact := p.countFor(r.Context(), st, w, d)
	if !exact {
		n = held.PromptTokens(req)
		w.Header()["X-Signalbox-Degraded"] = []string{"tokenize"}
	}
	return downstream.WriteJSON(w, http.StatusOK, map[string]int{"input_tokens": n})
}

// countFor asks a server to count the tokens of a decided request. It does not send a request that
// the route would block, nor text that the route redacts.
func (p *Proxy) countFor(ctx context.Context, st *State, w *downstream.Writer, d *decide.Decision) (n int, ok bool) {
	if d.Outcome == rules.Unavailable || d.Action.Verb != rules.Use || d.Action.Redact != nil {
		return 0, false
	}
	change := rewrite.New(st.edits, d.Request, d)
	for _, name := range d.Eligible() {
		m := st.ByName[name]
		if m == nil || !d.Who.May(name) {
			continue
		}
		made := rewrite.Fitted{Change: change}
		if e := p.counters.Of(m); e != nil && made.Fit(ctx, m, rewrite.EndpointFields{}) == nil {
			o := exchange.Exchange{Decision: d, Req: d.Request}
			if body, own := ownBody(w, &o, m, &made); own && body.Size() <= count.MaxBytes {
				return p.counters.Tokenize(ctx, e, strings.TrimPrefix(downstream.CountPath, "/v1/"), body.Reader())
			}
		}
		if !countable(d.Request) {
			return 0, false
		}
		return p.measureBy(ctx, &change, m)
	}
	return 0, false
}
