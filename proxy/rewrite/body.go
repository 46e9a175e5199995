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

// previous makes a request that continues a rule's answer continue what came before that answer.
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

// Body returns the body for m, without contexts. If nothing has to change, it is the client's body
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
		p.DeleteField(fieldStreamOptions) // requested by the translation, not by the client
	}
	if a.Logprobs = rw.asksLogprobs(m); a.Logprobs {
		value := "true"
		if rw.Request.API == openai.Completion {
			value = "1" // llama.cpp interprets 0 as none
		}
		p.SetField(fieldLogprobs, []byte(value))
	}
	if a.Usage = rw.asksUsage(m); a.Usage {
		p.SetNested(fieldStreamOptions, "include_usage", []byte("true"))
	}
	return p.Bytes(), a
}

// fieldStreamOptions is the field with which a client requests the usage of a stream.
const fieldStreamOptions = "stream_options"

// fieldLogprobs is the field with which a client requests log-probabilities: true in a chat, a
// number in a completion.
const fieldLogprobs = "logprobs"

// asksLogprobs reports whether the proxy requests log-probabilities from m: the response is judged
// by them and the client has not requested them. A route that sets the field takes precedence.
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

// asksUsage reports whether the proxy requests the usage of a stream from m on the client's behalf.
// A route that sets the field takes precedence.
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

// set applies the fields that the route sets. A response limit among them replaces one in the other
// limit field of the body, unless the route sets that one as well.
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

// Effort returns the effort that the route sets for m; empty if it sets none or the basis is
// unknown. A nil m stands for a model without outcomes.
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

// Fitted is the body of a request for the endpoint of the current attempt.
type Fitted struct {
	Change

	model  *backend.Model
	Made   Payload
	Params Params
}

// Fit rebuilds the body if m, or the fields that its endpoint accepts beyond the API, have changed.
func (f *Fitted) Fit(ctx context.Context, m *backend.Model, x EndpointFields) (err error) {
	if m == f.model && x == f.EndpointFields {
		return nil
	}
	f.model, f.EndpointFields = m, x
	f.Made, f.Params, err = f.Payload(ctx, m)
	f.Params.BodySize = f.Made.Size()
	return err
}

// Reader returns a reader of the whole body.
func (b Payload) Reader() io.ReadCloser {
	if b.pieces != nil {
		return io.NopCloser(b.pieces.Reader())
	}
	return io.NopCloser(bytes.NewReader(b.whole))
}

// Size returns the length in bytes.
func (b Payload) Size() int64 {
	if b.pieces != nil {
		return int64(b.pieces.Len())
	}
	return int64(len(b.whole))
}

// Payload returns the body for m. Without contexts it is that of Body, at no additional cost.
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

// FieldTransfer is vLLM's field for moving cached blocks.
const FieldTransfer = "kv_transfer_params"

// extend adds the fields that the endpoint accepts beyond the API and removes a salt that the
// client may have sent. What a caller may send about block transfers was decided before and is left
// alone.
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

// Own returns the client's body in another API, raw, for a server that speaks that API, if nothing
// in req changes except the model name at position at. Otherwise it returns the rewritten body and
// false.
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
	name := openai.NewPatch(req) // to spell it
	name.SetModel(f.model.ServedAs)
	whole := append(make([]byte, 0, len(raw)+128), raw[:at.Start]...)
	whole = append(whole, openai.Member(name.Bytes(), "model")...)
	if f.Salt != "" {
		whole = append(strconv.AppendQuote(append(whole, `,"`+engine.FieldSalt+`":`...), f.Salt), ' ')
	}
	return Payload{whole: append(whole, raw[at.End:]...)}, true
}
