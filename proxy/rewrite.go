package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/ledger"
	"signalbox/memory/prefix"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/engine"
	"signalbox/proxy/fault"
	"signalbox/proxy/lengths"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/tools"
	"signalbox/rules"
)

// rewriter makes the body that a model receives from the one that the client sent. It depends on
// the model, so a request that falls back to another one is rewritten again, from the original.
type rewriter struct {
	st  *State
	req *openai.Request
	d   *decision
	dress

	counted bool // a limit of the caller is settled by the tokens of the answer
	paid    bool // a budget of the caller is settled by what the answer costs
}

// rewrite prepares the changes that a decision asks for.
func (st *State) rewrite(req *openai.Request, d *decision) rewriter {
	return rewriter{st: st, req: req, d: d}
}

// asked is what a body asks of the model beyond its text.
type asked struct {
	effort   string       // of reasoning, as the header reports it
	kind     lengths.Kind // of answers that it is like
	limit    tokenLimit   // that the proxy set
	logprobs bool         // the proxy asked for log-probabilities, and the client did not
	usage    bool         // the proxy asked how many tokens the stream takes, and the client did not
}

// body returns the body for m, without contexts. When nothing has to change it is the client's body
// itself.
func (rw rewriter) body(m *backend.Model) ([]byte, asked) {
	p := openai.NewPatch(rw.req)
	p.StripExtras()
	p.SetModel(m.ServedAs)
	if rw.req.Form() {
		return p.Bytes(), asked{effort: reasoning.None}
	}
	rw.prompt(p)
	effort := m.Dialect.Apply(p, rw.req, reasoning.Want{Effort: rw.effort(m), Override: rw.d.Action.Override, Named: rw.named(m), Less: rw.d.thrift.LessEffort})
	m.Dialect.Bound(p, rw.req, effort)
	a := asked{effort: cmp.Or(effort, reasoning.None), kind: rw.d.kind(m, effort)}
	a.limit = rw.limit(p, m, a.kind)
	rw.extend(p)
	if t := rw.d.tools; t != nil {
		p.SetField(t.Field, t.JSON)
	}
	rw.d.results.Apply(p)
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
	compared := rw.d.Action.Escalate != nil || rw.d.Action.Mirror != nil || rw.d.inArm != ""
	if m.StreamUsage == backend.UsageNever || m.StreamUsage != backend.UsageAlways && !settled && !compared {
		return false
	}
	return !slices.ContainsFunc(rw.d.Action.Body, func(f rules.Field) bool { return f.Name == fieldStreamOptions })
}

// named reports that the client asked for this very model, and so knows how to speak to it. One
// that named a model and was routed to another knows as little as one that asked for routing, or in
// another API.
func (rw rewriter) named(m *backend.Model) bool {
	return rw.d.model == m.Name && !rw.req.Translated
}

// set gives the fields that the route sets their values. A limit on the response among them stands
// alone: what the body has in the other field goes, unless the route sets that too.
func (rw rewriter) set(p *openai.Patch, a *asked) {
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

// twinOf is the other one of the two fields for a limit on the response, empty for any other field.
func twinOf(field string) string {
	switch field {
	case openai.FieldMaxTokens:
		return openai.FieldMaxCompletionTokens
	case openai.FieldMaxCompletionTokens:
		return openai.FieldMaxTokens
	}
	return ""
}

// limitField is the field that a limit on the response has in this request, which in chat is the
// given one.
func (rw rewriter) limitField(chat string) string {
	switch rw.req.API {
	case openai.Completion:
		return openai.FieldMaxTokens
	case openai.Response:
		return openai.FieldMaxOutputTokens
	case openai.Chat, openai.Other:
	}
	return chat
}

// reasoningAuto is the effort of a route that leaves it to what is known of the request.
const reasoningAuto = "auto"

// effort is what the route asks of m; empty when it asks for nothing or for what is not known. A
// nil m stands for a model that outcomes say nothing of.
func (rw rewriter) effort(m *backend.Model) string {
	switch rw.d.Action.Reasoning {
	case reasoning.None, reasoning.Low, reasoning.Medium, reasoning.High:
		return rw.d.Action.Reasoning
	case reasoningAuto:
		if m != nil {
			if e := rw.d.expectedOf(m.Name); e != nil && (e.ByOutcomes || e.Drawn) {
				return e.Effort
			}
		}
		return rw.d.byComplexity()
	}
	return ""
}

// byComplexity is the effort that the complexity of a request asks for; empty where it is not
// known.
func (d *decision) byComplexity() string {
	c := &d.set.Values[signal.Complexity]
	if c.State == signal.Known && (c.Label == reasoning.Low || c.Label == reasoning.Medium || c.Label == reasoning.High) {
		return c.Label
	}
	return ""
}

// The fates of the client's system prompt.
const (
	promptInserted = "inserted" // there was none
	promptReplaced = "replaced"
	promptPrefixed = "prefixed"
	promptKept     = "kept"
)

// prompt puts the route's system prompt in and tells what became of the client's own; empty when
// the route has none, or the request has no place for one, as a completion that is no chat. It goes
// where the client's own stands, or, where the request names contexts, beside those; see compile. A
// client's own prompt that says something gives way only to mode always.
//
// Some clients split their prompt over several messages, of role system or developer, and in the
// Responses API over instructions and such items. They are one prompt: it is vague when all of it
// is, and when it is replaced no part of it stays.
func (rw rewriter) prompt(p *openai.Patch) (fate string) {
	want := rw.d.Action.Prompt
	if want.Name == "" || rw.req.API != openai.Chat && rw.req.API != openai.Response {
		return ""
	}
	text, first := rw.st.prompts[want.Name], max(rw.req.SystemIndex, 0)
	end := first
	for end < len(rw.req.Messages) && isSystem(&rw.req.Messages[end]) {
		end++
	}
	own := rw.req.Messages[first:end]
	specific := !isVague(rw.st.vague, rw.req.Instructions) ||
		slices.ContainsFunc(own, func(m openai.Message) bool { return m.HasImage || !isVague(rw.st.vague, m.Text) })
	switch {
	case len(own) == 0 && rw.req.Instructions == "":
		fate = promptInserted
	case want.Mode == "always", !specific:
		fate = promptReplaced
	case want.Mode == "prefix":
		fate = promptPrefixed
	default:
		return promptKept
	}
	switch {
	case rw.d.contexts.Named():
		if fate == promptReplaced {
			rw.clearPrompt(p, first, end)
		}
	case rw.req.API == openai.Response:
		rw.instruct(p, fate, text, first, end)
	default:
		putSystem(p, fate, text, first, end)
	}
	return fate
}

func isSystem(m *openai.Message) bool { return m.Role == "system" || m.Role == "developer" }

// putSystem puts text in among the messages of a chat; those from first to end are the client's
// prompt.
func putSystem(p *openai.Patch, fate, text string, first, end int) {
	switch fate {
	case promptInserted:
		p.InsertMessage(0, "system", text)
	case promptPrefixed:
		p.PrependToMessageText(first, text+"\n\n")
	case promptReplaced:
		p.ReplaceMessageText(first, text)
		for i := first + 1; i < end; i++ {
			p.DeleteMessage(i)
		}
	}
}

// instruct puts text into the instructions of a response. They come before all items, so in front
// of items of the client's prompt that stay they stand by themselves.
func (rw rewriter) instruct(p *openai.Patch, fate, text string, first, end int) {
	if fate == promptPrefixed && rw.req.Instructions != "" {
		p.PrependToInstructions(text + "\n\n")
		return
	}
	p.SetInstructions(text)
	for i := first; i < end && fate == promptReplaced; i++ {
		p.DeleteMessage(i)
	}
}

// isVague reports whether a system prompt says nothing: it is blank or one of the vague ones.
func isVague(vague []string, text string) bool {
	n := normalise(text)
	return n == "" || slices.Contains(vague, n)
}

// longestVague bounds the prompts that are compared with the vague ones, in bytes.
const longestVague = 4 << 10

// normalise folds what two spellings of a sentence may differ in: case, spacing, closing
// punctuation.
func normalise(s string) string {
	if len(s) > longestVague {
		return s
	}
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	return strings.TrimRight(s, ".!? ")
}

// minCompletion is the least room for a response, in tokens, that an automatic limit is fitted
// into. With less, the estimate of the prompt's length decides more than the limit does, and the
// upstream, which counts exactly, is the better judge. A number that a route names is a cap, which
// no long prompt lifts.
const minCompletion = 256

// limit sets the token limit that the route asks for, unless the client set one, and returns it.
func (rw rewriter) limit(p *openai.Patch, m *backend.Model, like lengths.Kind) tokenLimit {
	want := rw.d.Action.MaxTokens
	field := m.TokenField
	if rw.req.MaxTokens != nil || rw.req.MaxCompletionTokens != nil {
		// An automatic limit never shrinks what the client asked for, override or not.
		if !rw.d.Action.Override || want.Auto || want.Limit == 0 {
			rw.moveLimit(p, m)
			return tokenLimit{}
		}
		if rw.req.MaxCompletionTokens != nil {
			field = openai.FieldMaxCompletionTokens
		} else if rw.named(m) {
			field = openai.FieldMaxTokens
		}
	}
	n, near := want.Limit, false
	if want.Auto {
		n = rw.st.chooser.Lengths.Limit(like, &rw.st.opts.AutoMaxTokens)
		if longest := rw.longest(m); longest > 0 {
			n, near = rw.st.chooser.Lengths.Above(like, longest, &rw.st.opts.AutoMaxTokens), true
		}
	}
	if n == 0 {
		return tokenLimit{}
	}
	if m.Window > 0 {
		room := m.Window - rw.promptTokens()
		if rw.req.HasMedia {
			room -= m.Window / 2 // what an image or a recording takes is not known here
		}
		switch {
		case want.Auto && room < minCompletion:
			return tokenLimit{}
		case room >= 1:
			n = min(n, room)
		}
	}
	if field = rw.limitField(field); field == openai.FieldMaxCompletionTokens {
		p.DeleteField(openai.FieldMaxTokens) // two limits would contradict each other
	}
	p.SetField(field, strconv.AppendInt(nil, int64(n), 10))
	return tokenLimit{n: n, auto: want.Auto, near: near}
}

// longest is the length that nearly all responses of m to requests like this one stay below; 0
// where outcomes do not say.
func (rw rewriter) longest(m *backend.Model) float64 {
	e := rw.d.expectedOf(m.Name)
	if e == nil {
		return 0
	}
	longest, near := e.Longest, e.Near
	for i := range e.AtEfforts {
		if x := &e.AtEfforts[i]; x.Effort == e.Effort {
			longest, near = x.Longest, x.Near
		}
	}
	if near < rw.st.learning.MinNeighbours {
		return 0
	}
	return longest
}

// moveLimit gives a limit of the client the name that the model takes, which a client that asked
// for this very model knows.
func (rw rewriter) moveLimit(p *openai.Patch, m *backend.Model) {
	if rw.req.API != openai.Chat || rw.named(m) || rw.req.MaxTokens == nil || rw.req.MaxCompletionTokens != nil || m.TokenField != openai.FieldMaxCompletionTokens {
		return
	}
	p.DeleteField(openai.FieldMaxTokens)
	p.SetField(openai.FieldMaxCompletionTokens, strconv.AppendInt(nil, *rw.req.MaxTokens, 10))
}

// promptTokens is how much of a window the prompt may take. An upstream refuses a limit that does
// not fit beside the prompt, so what the estimate may be off by, and what it does not see, is left
// free.
func (rw rewriter) promptTokens() int {
	n := rw.d.set.Facts.Tokens
	for _, f := range [...]string{"tools", "functions", "response_format", "text"} {
		n += len(rw.req.Field(f)) / 4
	}
	return int(math.Ceil(choose.Slack * float64(n)))
}

// dress is what an endpoint takes in a body beyond the API; zero for nothing.
type dress struct {
	salt   string
	member string // of kv_transfer_params
	value  string
}

// promptBefore is the position of a prompt in front of contexts.
const promptBefore = "before"

// beside is the text of the route's prompt that stands beside contexts; empty where there is none.
func (rw rewriter) beside() string {
	switch rw.promptFate() {
	case "", promptKept:
		return ""
	}
	return rw.st.prompts[rw.d.Action.Prompt.Name]
}

// clearPrompt takes the client's own prompt out, the messages from first to end, for one that
// stands beside contexts. A message with media keeps them, and the last message of a request stays,
// without text.
func (rw rewriter) clearPrompt(p *openai.Patch, first, end int) {
	if rw.req.Instructions != "" {
		p.DeleteField("instructions")
	}
	left := len(rw.req.Messages)
	for i := first; i < end; i++ {
		if rw.req.Messages[i].HasImage || left == 1 {
			p.ReplaceMessageText(i, "")
			continue
		}
		p.DeleteMessage(i)
		left--
	}
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

// tokenLimit is the limit on a response that the proxy put into a request; zero when it put none.
type tokenLimit struct {
	n     int // in tokens; 0 with given when its value is no number of tokens
	auto  bool
	near  bool // by outcomes of near requests
	given bool // by a field that the route sets
}

// kind names the responses that one of model m to this request is like. effort is that of the
// dialect.
func (d *decision) kind(m *backend.Model, effort string) lengths.Kind {
	k := lengths.Kind{Model: m.Name, Effort: effort}
	if v := &d.set.Values[signal.Domain]; v.State == signal.Known {
		k.Domain = v.Label
	}
	if v := &d.set.Values[signal.Complexity]; v.State == signal.Known {
		k.Complexity = v.Label
	}
	return k
}

// promptFate tells what putting the route's prompt in made of the client's.
func (rw rewriter) promptFate() string {
	return rw.prompt(openai.NewPatch(rw.req))
}

// payload is the body that a model receives, which every attempt reads anew. The zero value is
// empty.
type payload struct {
	whole  []byte
	pieces prefix.Body   // in place of whole, where stored contexts are part of it: their bytes are not copied
	vault  *redact.Vault // of what was hidden in the pieces; nil when nothing was
}

// fitted is the body of a request as the endpoint of the attempt under way takes it.
type fitted struct {
	rewriter

	model *backend.Model
	made  payload
	asked asked
}

// fit makes the body again if m, or what its endpoint takes beyond the API, is another than before.
func (f *fitted) fit(ctx context.Context, m *backend.Model, x dress) (err error) {
	if m == f.model && x == f.dress {
		return nil
	}
	f.model, f.dress = m, x
	f.made, f.asked, err = f.payload(ctx, m)
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
func (rw rewriter) payload(ctx context.Context, m *backend.Model) (payload, asked, error) {
	body, a := rw.body(m)
	if !rw.d.contexts.Named() {
		return payload{whole: body}, a, nil
	}
	pieces, err := rw.compile(body, m)
	switch {
	case errors.Is(err, prefix.ErrUnsupported):
		return payload{}, a, unsupportedContexts(rw.req)
	case err != nil:
		return payload{}, a, err
	case !rw.d.hideAll:
		return payload{pieces: pieces}, a, nil
	}
	out, err := rw.d.hidden(ctx, rw.req.API, pieces.Bytes())
	return out, a, err
}

// unsupportedContexts says why contexts have no place in a request.
func unsupportedContexts(req *openai.Request) error {
	why := resolve.ContextField + " cannot be put into this request"
	switch req.API {
	case openai.Completion:
		why = resolve.ContextField + " needs a prompt that is text, and contexts that are text: one that is messages needs a chat"
	case openai.Response:
		why = resolve.ContextField + " needs instructions that are text, and an input that is text or a list"
	case openai.Chat, openai.Other:
	}
	return fault.InvalidField(resolve.ContextField, why)
}

// compile puts contexts, and the route's prompt where it stands beside them, into a body for m.
func (rw rewriter) compile(body []byte, m *backend.Model) (prefix.Body, error) {
	r := prefix.Request{API: rw.req.API, Body: body, Contexts: rw.d.contexts.Prefix(), Role: m.ContextRole}
	text := rw.beside()
	switch {
	case text == "":
	case rw.d.Action.Prompt.Position == promptBefore:
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return nil, fmt.Errorf("spell prompt: %w", err)
		}
		in := prefix.Context{Kind: ledger.Text, Fragments: [][]byte{quoted[1 : len(quoted)-1]}}
		r.Contexts = append([]prefix.Context{in}, r.Contexts...)
	default:
		r.Domain = text
	}
	return prefix.Compile(r)
}

// hidden is a body with its personal data replaced, that of contexts included. It is read for it
// here, all of it: what is stored of a context is which types it holds, and not where. Without
// knowing, nothing is sent.
func (d *decision) hidden(ctx context.Context, api openai.API, body []byte) (payload, error) {
	req, err := openai.Parse(api, body, resolve.Limits())
	if err != nil {
		return payload{}, fmt.Errorf("%w: %w", fault.ErrNotRedacted, err)
	}
	text := req.Text()
	v, err := d.state.personal(ctx, &text)
	if err != nil {
		return payload{}, err
	}
	out, vault, err := redact.Hide(req, v.Spans)
	if err != nil {
		return payload{}, err
	}
	return payload{whole: out.Raw, vault: vault}, nil
}

// personal reads all of a text for personal data.
func (st *State) personal(ctx context.Context, text *signal.Text) (*signal.Value, error) {
	var set signal.Set
	need := signal.MaskOf(signal.PII)
	switch c := st.classifier.(type) {
	case Interruptible:
		c.ExtractAllWhile(ctx, text, need, &set, func() signal.Mask { return need })
	case thorough:
		c.ExtractAll(ctx, text, need, &set)
	default:
		c.Extract(ctx, text, need, &set)
	}
	v := &set.Values[signal.PII]
	switch {
	case ctx.Err() != nil:
		return nil, fault.ErrClientGone
	case v.State == signal.Known && v.Read >= v.Windows, v.Reason == signal.ReasonNoText:
		return v, nil
	case v.Reason == signal.ReasonTimeout, v.Reason == signal.ReasonOverload:
		return nil, fault.ErrOverloaded
	}
	return nil, fault.ErrNotRedacted
}

// shortenResults makes the results of tools short where the route has a budget for them, and tells
// the client of it.
func (p *Proxy) shortenResults(
	ctx context.Context, w *downstream.Response, o *exchange, req *openai.Request, h http.Header,
) {
	want := o.Action.Results
	shortener, ok := o.state.classifier.(tools.Shortener)
	if want == nil || !ok || p.resolver.Store == nil || o.hideAll {
		return
	}
	owner := resolve.Owner(o.who, resolve.Session(o.req, h))
	o.results = o.state.results.Shorten(ctx, shortener, p.resolver.Store, owner, req, want)
	o.results.Describe(w.Header())
}
