package proxy

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/count"
	"signalbox/proxy/downstream"
	"signalbox/proxy/engine"
	"signalbox/rules"
)

// direct is the body for m, and whether it is the client's own: where a server speaks the API
// itself, and the decision changes nothing but the name of the model, and nobody reads the
// response.
func (o *exchange) direct(w *downstream.Writer, m *backend.Model, made *fitted) (payload, bool) {
	d := w.Messages
	if d == nil || !m.Messages || d.Raw == nil || made.made.pieces != nil ||
		o.escalation.judging() || o.mirror != nil ||
		o.guarding != nil || o.vault != nil || o.lookup.Recorded() || o.req.Extras.Present ||
		made.member != "" || o.req.Has(engine.FieldSalt) {
		return made.made, false
	}
	same := openai.NewPatch(o.req)
	same.SetModel(m.ServedAs)
	made.extend(same)
	if !bytes.Equal(same.Bytes(), made.made.whole) {
		return made.made, false
	}
	if made.salt == "" && m.ServedAs == o.req.Model {
		return payload{whole: d.Raw}, true
	}
	name := openai.NewPatch(o.req) // which spells it
	name.SetModel(m.ServedAs)
	whole := append(make([]byte, 0, len(d.Raw)+128), d.Raw[:d.Model.Start]...)
	whole = append(whole, openai.Member(name.Bytes(), "model")...)
	if made.salt != "" {
		whole = append(strconv.AppendQuote(append(whole, `,"`+engine.FieldSalt+`":`...), made.salt), ' ')
	}
	return payload{whole: append(whole, d.Raw[d.Model.End:]...)}, true
}

// countMessage serves POST /v1/messages/count_tokens: a server of the model that the request would
// go to counts, with its template and the tools. Where none does, the count is an estimate, which a
// header says.
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
		n = req.EstimateTokens() + (len(req.Field("tools"))+3)/openai.BytesPerToken
		if held.Named() {
			n += held.Tokens
		}
		w.Header()["X-Signalbox-Degraded"] = []string{"tokenize"}
	}
	return downstream.WriteJSON(w, http.StatusOK, map[string]int{"input_tokens": n})
}

// countFor has a server count a decided request. What a route would not send to a model is not sent
// to be counted, nor what it hides.
func (p *Proxy) countFor(ctx context.Context, st *State, w *downstream.Writer, d *decision) (n int, ok bool) {
	if d.Outcome == rules.Unavailable || d.Action.Verb != rules.Use || d.Action.Redact {
		return 0, false
	}
	change := st.rewrite(d.Request, d)
	for _, name := range d.Eligible() {
		m := st.ByName[name]
		if m == nil || !d.Who.May(name) {
			continue
		}
		made := fitted{rewriter: change}
		if e := p.counters.Of(m); e != nil && made.fit(ctx, m, endpointFields{}) == nil {
			o := exchange{decision: d, req: d.Request}
			if body, direct := o.direct(w, m, &made); direct && body.Size() <= count.MaxBytes {
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
