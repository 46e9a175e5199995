package proxy

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/lengths"
	"signalbox/proxy/reasoning"
	"signalbox/rules"
)

// rewriter makes the body that a model receives from the one that the client sent. It depends on
// the model, so a request that falls back to another one is rewritten again, from the original.
type rewriter struct {
	st  *State
	req *openai.Request
	d   *decision
	dress

	counted bool // a limit or a budget of the caller is settled by the tokens of the answer
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
		p.SetField(t.field, t.json)
	}
	rw.d.results.apply(p)
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

// asksLogprobs reports whether m is asked how sure it is of its answer, in place of the client:
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
	if m.StreamUsage == backend.UsageNever || m.StreamUsage != backend.UsageAlways && !rw.counted && m.Budget.USD == 0 &&
		rw.d.Action.Escalate == nil && rw.d.Action.Mirror == nil && rw.d.inArm == "" {
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

// set gives the fields that the route sets their values. A limit on the answer among them stands
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

// twinOf is the other one of the two fields for a limit on the answer, empty for any other field.
func twinOf(field string) string {
	switch field {
	case openai.FieldMaxTokens:
		return openai.FieldMaxCompletionTokens
	case openai.FieldMaxCompletionTokens:
		return openai.FieldMaxTokens
	}
	return ""
}

// limitField is the field that a limit on the answer has in this request, which in chat is the
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

// effort is what the route asks of m; empty when it asks for nothing or for what is not known. A nil
// m stands for a model that outcomes say nothing of.
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

// byComplexity is the effort that the complexity of a request asks for; empty where it is not known.
func (d *decision) byComplexity() string {
	c := &d.set.Values[signal.Complexity]
	if c.State == signal.Known && (c.Label == reasoning.Low || c.Label == reasoning.Medium || c.Label == reasoning.High) {
		return c.Label
	}
	return ""
}

// What became of the client's system prompt.
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

// minCompletion is the least room for an answer, in tokens, that an automatic limit is fitted into.
// With less, the estimate of the prompt's length decides more than the limit does, and the
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

// longest is the length that nearly all answers of m to requests like this one stay below; 0 where
// outcomes do not say.
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
		p.SetField(fieldSalt, strconv.AppendQuote(nil, rw.salt))
	case rw.req.Field(fieldSalt) != nil:
		p.DeleteField(fieldSalt)
	}
	own := rw.req.Field(fieldTransfer)
	if rw.member != "" && (own == nil || neutral(fieldTransfer, own)) {
		p.SetNested(fieldTransfer, rw.member, []byte(rw.value))
	}
}

// tokenLimit is the limit on an answer that the proxy put into a request; zero when it put none.
type tokenLimit struct {
	n     int // in tokens; 0 with given when its value is no number of tokens
	auto  bool
	near  bool // by outcomes of near requests
	given bool // by a field that the route sets
}

// kind names the answers that one of model m to this request is like. effort is that of the
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

// apply puts the short texts into the body.
func (s *resultset) apply(p *openai.Patch) {
	if s == nil {
		return
	}
	for i, text := range s.texts {
		p.ReplaceMessageText(i, text)
	}
}

// promptFate tells what putting the route's prompt in made of the client's.
func (rw rewriter) promptFate() string {
	return rw.prompt(openai.NewPatch(rw.req))
}
