package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/memory/prefix"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/engine"
	"signalbox/proxy/rate"
	"signalbox/proxy/reasoning"
	"signalbox/rules"
)

// rewrite prepares the changes that a decision asks for.
func (st *State) rewrite(req *openai.Request, d *decision) rewriter {
	return rewriter{st: st, req: req, d: d}
}

// body returns the body for m, without contexts. When nothing has to change it is the client's body
// itself.
func (rw rewriter) body(m *backend.Model) ([]byte, params) {
	p := openai.NewPatch(rw.req)
	p.StripExtras()
	p.SetModel(m.ServedAs)
	if rw.req.Form() {
		return p.Bytes(), params{effort: reasoning.None}
	}
	rw.prompt(p)
	effort := m.Dialect.Apply(p, rw.req, reasoning.Want{
		Effort: rw.effort(m), Override: rw.d.Action.Override, Named: rw.named(m), Less: rw.d.Saving.LessEffort,
	})
	m.Dialect.Bound(p, rw.req, effort)
	a := params{effort: cmp.Or(effort, reasoning.None), kind: rw.kind(m, effort)}
	a.limit = rw.limit(p, m, a.kind)
	rw.extend(p)
	if t := rw.tools; t != nil {
		p.SetField(t.Field, t.JSON)
	}
	rw.results.Apply(p)
	rw.set(p, &a)
	if rw.req.Translated && m.StreamUsage == backend.UsageNever {
		p.DeleteField(fieldStreamOptions) // it is the translation that asks
	}
	if a.logprobs = rw.asksLogprobs(m); a.logprobs {
		value := "true"
		if rw.req.API == openai.Completion {
			value = "1" // of how many tokens; llama.cpp takes 0 for none
		}
		p.SetField(fieldLogprobs, []byte(value))
	}
	if a.usage = rw.asksUsage(m); a.usage {
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
func (rw rewriter) asksLogprobs(m *backend.Model) bool {
	a := rw.d.Action
	if a.Escalate == nil || !a.Escalate.Logprobs || m.Name == a.Models[len(a.Models)-1].Name ||
		rw.req.API != openai.Chat && rw.req.API != openai.Completion {
		return false
	}
	switch string(rw.req.Field(fieldLogprobs)) {
	case "", "null", "false":
	default:
		return false
	}
	return !slices.ContainsFunc(a.Body, func(f rules.Field) bool { return f.Name == fieldLogprobs })
}

// asksUsage reports whether m is asked for the usage of a stream in place of the client; a route
// that sets the field decides itself.
func (rw rewriter) asksUsage(m *backend.Model) bool {
	if !rw.req.Stream || rw.req.IncludeUsage || rw.req.API != openai.Chat && rw.req.API != openai.Completion {
		return false
	}
	settled := rw.counted || rw.paid && m.Price.Known() || m.Budget.USD > 0
	compared := rw.d.Action.Escalate != nil || rw.d.Action.Mirror != nil || rw.d.Arm != ""
	if m.StreamUsage == backend.UsageNever || m.StreamUsage != backend.UsageAlways && !settled && !compared {
		return false
	}
	return !slices.ContainsFunc(rw.d.Action.Body, func(f rules.Field) bool { return f.Name == fieldStreamOptions })
}

// set gives the fields that the route sets their values. A limit on the response among them stands
// alone: what the body has in the other field goes, unless the route sets that too.
func (rw rewriter) set(p *openai.Patch, a *params) {
	fields := rw.d.Action.Body
	for _, f := range fields {
		twin := twinOf(f.Name)
		if twin == "" {
			p.SetField(f.Name, f.JSON)
			continue
		}
		p.SetField(rw.limitField(f.Name), f.JSON)
		a.limit = tokenLimit{given: true}
		if n, err := strconv.Atoi(string(f.JSON)); err == nil && n > 0 {
			a.limit.n = n
		}
		if rw.req.API == openai.Chat && string(f.JSON) != "null" && !slices.ContainsFunc(fields, func(o rules.Field) bool { return o.Name == twin }) {
			p.DeleteField(twin)
		}
	}
}

// effort is what the route asks of m; empty when it asks for nothing or for what is not known. A
// nil m stands for a model that outcomes say nothing of.
func (rw rewriter) effort(m *backend.Model) string {
	switch rw.d.Action.Reasoning {
	case reasoning.None, reasoning.Low, reasoning.Medium, reasoning.High:
		return rw.d.Action.Reasoning
	case decide.ReasoningAuto:
		if m != nil {
			if e := rw.d.ExpectedOf(m.Name); e != nil && (e.ByOutcomes || e.Drawn) {
				return e.Effort
			}
		}
		return rw.d.ByComplexity()
	}
	return ""
}

// fitted is the body of a request as the endpoint of the attempt under way takes it.
type fitted struct {
	rewriter

	model  *backend.Model
	made   payload
	params params
}

// fit makes the body again if m, or what its endpoint takes beyond the API, is another than before.
func (f *fitted) fit(ctx context.Context, m *backend.Model, x endpointFields) (err error) {
	if m == f.model && x == f.endpointFields {
		return nil
	}
	f.model, f.endpointFields = m, x
	f.made, f.params, err = f.payload(ctx, m)
	return err
}

// Reader reads the body from its start, once.
func (b payload) Reader() io.ReadCloser {
	if b.pieces != nil {
		return io.NopCloser(b.pieces.Reader())
	}
	return io.NopCloser(bytes.NewReader(b.whole))
}

// Size is the number of bytes.
func (b payload) Size() int64 {
	if b.pieces != nil {
		return int64(b.pieces.Len())
	}
	return int64(len(b.whole))
}

// payload makes the body for m. Without contexts it is that of body and costs nothing more.
func (rw rewriter) payload(ctx context.Context, m *backend.Model) (payload, params, error) {
	body, a := rw.body(m)
	if !rw.d.Contexts.Named() {
		return payload{whole: body}, a, nil
	}
	pieces, err := rw.compile(body, m)
	switch {
	case errors.Is(err, prefix.ErrUnsupported):
		return payload{}, a, unsupportedContexts(rw.req)
	case err != nil:
		return payload{}, a, err
	case !rw.hideAll:
		return payload{pieces: pieces}, a, nil
	}
	out, err := rw.hidden(ctx, rw.req.API, pieces.Bytes())
	return out, a, err
}

// prepareBody is rewrite for a request that is served: with the tools that are offered. The body is
// written for each attempt, by fit.
func (o *exchange) prepareBody(ctx context.Context, w *downstream.Writer, req *openai.Request) rewriter {
	o.tools = o.state.tools.Choose(ctx, o.state.Signals.Classifier, req, o.Action.Tools)
	o.tools.Describe(w.Header())
	change := o.rewriter(req)
	change.counted, change.paid = w.Lease.Bounds(rate.Tokens), len(o.who.Budgets) > 0
	return change
}

// fieldTransfer is what vLLM takes about moving cached blocks.
const fieldTransfer = "kv_transfer_params"

// extend gives the body what its endpoint takes beyond the API, and takes out the salt that a
// client may have sent. What a caller may say of the transfer of blocks was settled before, and
// stays as it is.
func (rw rewriter) extend(p *openai.Patch) {
	switch {
	case rw.salt != "":
		p.SetField(engine.FieldSalt, strconv.AppendQuote(nil, rw.salt))
	case rw.req.Field(engine.FieldSalt) != nil:
		p.DeleteField(engine.FieldSalt)
	}
	own := rw.req.Field(fieldTransfer)
	if rw.member != "" && (own == nil || engine.Neutral(fieldTransfer, own)) {
		p.SetNested(fieldTransfer, rw.member, []byte(rw.value))
	}
}

// rewriter is rewrite with what was chosen for the request that is served.
func (o *exchange) rewriter(req *openai.Request) rewriter {
	rw := o.state.rewrite(req, o.decision)
	rw.tools, rw.results, rw.hideAll = o.tools, o.results, o.hideAll
	return rw
}
