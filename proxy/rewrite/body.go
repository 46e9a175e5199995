package rewrite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/memory/prefix"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/engine"
	"signalbox/proxy/reasoning"
	"signalbox/rules"
)

// previous lets a request that goes on with a rule's answer go on with what was before it.
func (rw Change) previous(p *openai.Patch) {
	const field = "previous_response_id"
	switch prev := rw.Decision.Previous; prev {
	case "":
	case "null":
		p.DeleteField(field)
	default:
		p.SetField(field, []byte(prev))
	}
}

// Body returns the body for m, without contexts. When nothing has to change it is the client's body
// itself.
func (rw Change) Body(m *backend.Model) ([]byte, Params) {
	p := openai.NewPatch(rw.Request)
	p.StripExtras()
	p.SetModel(m.ServedAs)
	if rw.Request.Form() {
		return p.Bytes(), Params{}
	}
	rw.previous(p)
	rw.prompt(p)
	want := reasoning.Want{
		Effort: rw.Effort(m), Override: rw.Decision.Action.Override, Named: rw.named(m), Less: rw.Decision.Saving.LessEffort,
	}
	effort, word := m.Dialect.Apply(p, rw.Request, want)
	m.Dialect.Bound(p, rw.Request, effort)
	a := Params{Kind: rw.kind(m, effort)}
	if m.Dialect.Tells(rw.Request, want) {
		a.Effort = word
	}
	a.Limit = rw.limit(p, m, a.Kind)
	rw.extend(p)
	if t := rw.Tools; t != nil {
		p.SetField(t.Field, t.JSON)
	}
	rw.Results.Apply(p)
	rw.set(p, &a)
	if rw.Request.Translated && m.StreamUsage == backend.UsageNever {
		p.DeleteField(fieldStreamOptions) // it is the translation that asks
	}
	if a.Logprobs = rw.asksLogprobs(m); a.Logprobs {
		value := "true"
		if rw.Request.API == openai.Completion {
			value = "1" // of how many tokens; llama.cpp takes 0 for none
		}
		p.SetField(fieldLogprobs, []byte(value))
	}
	if a.Usage = rw.asksUsage(m); a.Usage {
		p.SetNested(fieldStreamOptions, "include_usage", []byte("true"))
	}
	return p.Bytes(), a
}

// fieldStreamOptions is where a client asks for the usage of a stream.
const fieldStreamOptions = "stream_options"

// fieldLogprobs is where a client asks for log-probabilities: true in a chat, a number in a
// completion.
const fieldLogprobs = "logprobs"

// asksLogprobs reports whether m is asked how sure it is of its response, in place of the client:
// where that is judged, and the client has not asked. A route that sets the field decides itself.
func (rw Change) asksLogprobs(m *backend.Model) bool {
	a := rw.Decision.Action
	if a.Escalate == nil || !a.Escalate.Logprobs || m.Name == a.Models[len(a.Models)-1].Name ||
		rw.Request.API != openai.Chat && rw.Request.API != openai.Completion {
		return false
	}
	switch string(rw.Request.Field(fieldLogprobs)) {
	case "", "null", "false":
	default:
		return false
	}
	return !slices.ContainsFunc(a.Body, func(f rules.Field) bool { return f.Name == fieldLogprobs })
}

// asksUsage reports whether m is asked for the usage of a stream in place of the client; a route
// that sets the field decides itself.
func (rw Change) asksUsage(m *backend.Model) bool {
	if !rw.Request.Stream || rw.Request.IncludeUsage || rw.Request.API != openai.Chat && rw.Request.API != openai.Completion {
		return false
	}
	settled := rw.Counted || rw.Paid && m.Price.Known() || m.Budget.USD > 0
	compared := rw.Decision.Action.Escalate != nil || rw.Decision.Action.Mirror != nil || rw.Decision.Arm != ""
	if m.StreamUsage == backend.UsageNever || m.StreamUsage != backend.UsageAlways && !settled && !compared {
		return false
	}
	return !slices.ContainsFunc(rw.Decision.Action.Body, func(f rules.Field) bool { return f.Name == fieldStreamOptions })
}

// set gives the fields that the route sets their values. A limit on the response among them stands
// alone: what the body has in the other field goes, unless the route sets that too.
func (rw Change) set(p *openai.Patch, a *Params) {
	fields := rw.Decision.Action.Body
	for _, f := range fields {
		twin := twinOf(f.Name)
		if twin == "" {
			p.SetField(f.Name, f.JSON)
			continue
		}
		p.SetField(rw.limitField(f.Name), f.JSON)
		a.Limit = Limit{Given: true}
		if n, err := strconv.Atoi(string(f.JSON)); err == nil && n > 0 {
			a.Limit.Tokens = n
		}
		if rw.Request.API == openai.Chat && string(f.JSON) != "null" && !slices.ContainsFunc(fields, func(o rules.Field) bool { return o.Name == twin }) {
			p.DeleteField(twin)
		}
	}
}

// Effort is what the route asks of m; empty when it asks for nothing or for what is not known. A
// nil m stands for a model that outcomes say nothing of.
func (rw Change) Effort(m *backend.Model) string {
	switch rw.Decision.Action.Reasoning {
	case reasoning.None, reasoning.Low, reasoning.Medium, reasoning.High:
		return rw.Decision.Action.Reasoning
	case decide.ReasoningAuto:
		if m != nil {
			if e := rw.Decision.ExpectedOf(m.Name); e != nil && (e.ByOutcomes || e.Drawn) {
				return e.Effort
			}
		}
		return rw.Decision.ByComplexity()
	}
	return ""
}

// Fitted is the body of a request as the endpoint of the attempt under way takes it.
type Fitted struct {
	Change

	model  *backend.Model
	Made   Payload
	Params Params
}

// Fit makes the body again if m, or what its endpoint takes beyond the API, is another than before.
func (f *Fitted) Fit(ctx context.Context, m *backend.Model, x EndpointFields) (err error) {
	if m == f.model && x == f.EndpointFields {
		return nil
	}
	f.model, f.EndpointFields = m, x
	f.Made, f.Params, err = f.Payload(ctx, m)
	f.Params.BodySize = f.Made.Size()
	return err
}

// Reader reads the body from its start, once.
func (b Payload) Reader() io.ReadCloser {
	if b.pieces != nil {
		return io.NopCloser(b.pieces.Reader())
	}
	return io.NopCloser(bytes.NewReader(b.whole))
}

// Size is the number of bytes.
func (b Payload) Size() int64 {
	if b.pieces != nil {
		return int64(b.pieces.Len())
	}
	return int64(len(b.whole))
}

// Payload makes the body for m. Without contexts it is that of body and costs nothing more.
func (rw Change) Payload(ctx context.Context, m *backend.Model) (Payload, Params, error) {
	body, a := rw.Body(m)
	if !rw.Decision.Contexts.Named() {
		return Payload{whole: body}, a, nil
	}
	pieces, err := rw.compile(body, m)
	switch {
	case errors.Is(err, prefix.ErrUnsupported):
		return Payload{}, a, unsupportedContexts(rw.Request)
	case err != nil:
		return Payload{}, a, err
	case !rw.HideAll:
		return Payload{pieces: pieces}, a, nil
	}
	out, err := rw.hidden(ctx, rw.Request.API, pieces.Bytes())
	return out, a, err
}

// FieldTransfer is what vLLM takes about moving cached blocks.
const FieldTransfer = "kv_transfer_params"

// extend gives the body what its endpoint takes beyond the API, and takes out the salt that a
// client may have sent. What a caller may say of the transfer of blocks was settled before, and
// stays as it is.
func (rw Change) extend(p *openai.Patch) {
	switch {
	case rw.Salt != "":
		p.SetField(engine.FieldSalt, strconv.AppendQuote(nil, rw.Salt))
	case rw.Request.Field(engine.FieldSalt) != nil:
		p.DeleteField(engine.FieldSalt)
	}
	own := rw.Request.Field(FieldTransfer)
	if rw.Member != "" && (own == nil || engine.Neutral(FieldTransfer, own)) {
		p.SetNested(FieldTransfer, rw.Member, []byte(rw.Value))
	}
}

// Own is the body that a client sent in another API, raw, for a server that speaks that itself:
// where nothing of the request, req, changes but the name of the model, which stands at at. ok is
// false, and the body is the one that was made, where more does.
func (f *Fitted) Own(req *openai.Request, raw []byte, at openai.Span) (body Payload, ok bool) {
	if f.Made.pieces != nil || f.Member != "" {
		return f.Made, false
	}
	same := openai.NewPatch(req)
	same.SetModel(f.model.ServedAs)
	f.extend(same)
	if !bytes.Equal(same.Bytes(), f.Made.whole) {
		return f.Made, false
	}
	if f.Salt == "" && f.model.ServedAs == req.Model {
		return Payload{whole: raw}, true
	}
	name := openai.NewPatch(req) // which spells it
	name.SetModel(f.model.ServedAs)
	whole := append(make([]byte, 0, len(raw)+128), raw[:at.Start]...)
	whole = append(whole, openai.Member(name.Bytes(), "model")...)
	if f.Salt != "" {
		whole = append(strconv.AppendQuote(append(whole, `,"`+engine.FieldSalt+`":`...), f.Salt), ' ')
	}
	return Payload{whole: append(whole, raw[at.End:]...)}, true
}
