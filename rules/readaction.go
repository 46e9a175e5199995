package rules

import (
	"regexp"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/rules/internal/syntax"
)

// readVerb reads the value of use, block or answer.
func (c *compiler) readVerb(e syntax.Entry) Action {
	switch e.Key {
	case "block":
		return c.readReply(e.At, Block, "message")
	case "answer":
		return c.readReply(e.At, Answer, "text")
	}
	return c.readUse(e.At)
}

func (*compiler) readReply(at syntax.Cursor, v Verb, key string) Action {
	a := Action{Verb: v}
	mark := at.Mark()
	entries, ok := at.Mapping("{"+key+": TEXT}", key)
	if !ok {
		return a
	}
	for _, e := range entries {
		a.Text, _ = e.At.Word("a text")
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found no %s, expected {%s: TEXT}", key, key)
	}
	return a
}

func (c *compiler) readUse(at syntax.Cursor) Action {
	a := Action{By: "order"}
	mark := at.Mark()
	entries, ok := at.Mapping("{models: [NAME]}", syntax.UseKeys()...)
	if !ok {
		return a
	}
	misspelt := at.Mark() > mark
	var models, weighted, by, margin, override, effort, escalate, mirror, canary syntax.Cursor
	for _, e := range entries {
		switch e.Key {
		case "models":
			models, weighted = e.At, c.readModels(e.At, &a)
		case "by":
			by, a.By = e.At, e.At.Choice("order", "weight", "quality", "cost", "latency")
		case "quality_margin":
			margin = e.At
		case "override":
			override = e.At
			a.Override, _ = e.At.Bool()
		case "prompt":
			a.Prompt = c.readPrompt(e.At)
		case "max_tokens":
			a.MaxTokens = readMaxTokens(e.At)
		case "guard", "windows", "tools", "tool_results":
			readPlain(e, &a)
		case "set":
			readSet(e.At, &a)
		case "escalate":
			escalate = e.At
		case "mirror":
			mirror = e.At
		case "canary":
			canary = e.At
		case "reasoning":
			effort = e.At
			c.readWanting(e, &a)
		default:
			c.readWanting(e, &a)
		}
	}
	switch {
	case misspelt && by.Node == nil:
		a.By = "" // it may be the misspelt key
	case models.Node == nil && !misspelt:
		at.Errorf("found no models, expected {models: [NAME]}")
	}
	warnWeights(weighted, &a)
	if a.Override && a.Reasoning == "" && a.MaxTokens == (MaxTokens{}) && at.Mark() == mark {
		override.Warnf("override has no effect without reasoning or max_tokens")
	}
	readMargin(margin, &a)
	a.Escalate, a.Mirror = readEscalate(escalate, models, &a), c.readMirror(mirror)
	a.Canary = c.readCanary(canary, escalate, &a)
	c.warnIdle(by, effort, mirror, models, &a)
	return a
}

// warnIdle reports keys that have no effect with the given candidates.
func (c *compiler) warnIdle(by, effort, mirror, models syntax.Cursor, a *Action) {
	warnMirror(mirror, models, a)
	c.warnChoice(by, models, a)
	c.warnUntold(effort, models, a)
}

// readPlain reads keys that are independent of the rest of a route.
func readPlain(e syntax.Entry, a *Action) {
	switch e.Key {
	case "guard":
		a.Guard = e.At.Choice("off", "observe", "annotate", "terminate", "hold")
	case "windows":
		a.Windows = e.At.Choice("all", "cascade")
	case "tools":
		a.Tools = readTools(e.At)
	case "tool_results":
		a.Results = readResults(e.At)
	}
}

// allRead reports whether all candidates in the file were accepted.
func allRead(models syntax.Cursor, a *Action) bool {
	return models.Node != nil && len(a.Models) == len(models.Node.Content)
}

// warnUntold reports an effort that none of the candidates supports. A fallback without a dialect
// next to a model with one is legitimate.
func (c *compiler) warnUntold(effort, models syntax.Cursor, a *Action) {
	if c.env.Told == nil || effort.Node == nil || a.Reasoning == "" || a.Reasoning == "none" ||
		!allRead(models, a) || len(a.Models) == 0 {
		return
	}
	if slices.ContainsFunc(a.Models, func(m Choice) bool { return slices.Contains(c.env.Told, m.Name) }) {
		return
	}
	effort.Warnf("reasoning: %s changes nothing: no model of this route has a dialect to be told in; set models[].reasoning.dialect",
		a.Reasoning)
}

// warnWeights reports weights that have no effect because the choice does not use them.
func warnWeights(weighted syntax.Cursor, a *Action) {
	if weighted.Node != nil && a.By != "weight" && a.By != "" {
		weighted.Warnf("weights have no effect without `by: weight`")
	}
}

// defaultMargin is the Margin of `by: cost`: a cheaper model may be 0.05 worse.
const defaultMargin = 0.05

// readMargin reads quality_margin, which may be absent. By default, by: cost stays close to the
// best candidate and by: latency ignores quality.
func readMargin(at syntax.Cursor, a *Action) {
	switch a.By {
	case "cost":
		a.Margin = defaultMargin
	case "latency":
		a.Margin = 1
	default:
		if at.Node != nil && a.By != "" {
			at.Errorf("quality_margin needs `by: cost` or `by: latency`, found by: %s", a.By)
		}
		return
	}
	if at.Node == nil {
		return
	}
	if x, ok := at.Share(); ok {
		a.Margin = x
	}
}

// readWanting reads the keys that make the action read a signal.
func (c *compiler) readWanting(e syntax.Entry, a *Action) {
	switch e.Key {
	case "reasoning":
		a.Reasoning = e.At.Choice("none", "low", "medium", "high", "auto")
		if a.Reasoning == "auto" && !c.env.Signals.Has(signal.Complexity) {
			e.At.Warnf("no model provides signal complexity, so auto leaves what the client set")
		}
	case "cache":
		a.Cache = e.At.Choice("off", "exact", "semantic")
		if a.Cache == "semantic" {
			c.provided(e.At, signal.Embedding)
		}
	case "redact":
		a.Redact = c.readRedact(e.At)
	}
}

// readRedact reads redact: true, false, TYPE, [TYPE, ...] or {types, except}.
func (c *compiler) readRedact(at syntax.Cursor) *Redact {
	const what = "type of personal data"
	r := &Redact{}
	check := c.checkLabel(signal.PII, what)
	switch {
	case at.IsScalar("!!bool"):
		if says, _ := at.Bool(); !says {
			return nil
		}
	case !at.IsMapping():
		r.Types = at.Words(what, check)
	default:
		mark := at.Mark()
		entries, ok := at.Mapping("{types, except}", "types", "except")
		if ok && len(entries) == 0 {
			at.Lacking(mark, "found an empty mapping, expected {types, except}")
		}
		for _, e := range entries {
			if e.Key == "types" {
				r.Types = e.At.Words(what, check)
			} else {
				r.Except = e.At.Words(what, check)
			}
		}
		if at.Mark() == mark {
			c.leavesSome(at, r)
		}
	}
	c.provided(at, signal.PII)
	return r
}

// leavesSome reports a redact that replaces nothing because except excludes every type.
func (c *compiler) leavesSome(at syntax.Cursor, r *Redact) {
	types, all := r.Types, "everything that types lists"
	if types == nil {
		types, all = c.env.Labels[signal.PII], "every type of personal data"
	}
	if len(types) > 0 && !slices.ContainsFunc(types, r.Takes) {
		at.Errorf("except takes out %s, so nothing would be replaced", all)
	}
}

// provided reports a signal that an action needs but nothing extracts.
func (c *compiler) provided(at syntax.Cursor, k signal.Kind) {
	if !c.env.Signals.Has(k) {
		at.Errorf("no model provides signal %s", k)
	}
}

// readModels reads the candidates into a and returns the place of the first weight.
func (c *compiler) readModels(at syntax.Cursor, a *Action) (weighted syntax.Cursor) {
	items, _ := at.List("a list of at least one model")
	for _, i := range items {
		mark := at.Mark()
		name, weight, at := readWeighted(i)
		if weighted.Node == nil {
			weighted = at
		}
		if name.Node == nil {
			i.Lacking(mark, "found no name, expected {name, weight}")
			continue
		}
		s, ok := name.Word("a model name")
		if !ok || !name.Known("model", s, c.env.Models) {
			continue
		}
		c.use("model", s)
		if slices.ContainsFunc(a.Models, func(m Choice) bool { return m.Name == s }) {
			name.Errorf("model %q is listed twice", s)
			continue
		}
		a.Models = append(a.Models, Choice{s, weight})
	}
	return weighted
}

// readWeighted reads NAME or {name, weight}. name and at, the place of the weight, have no node if
// absent.
func readWeighted(i syntax.Cursor) (name syntax.Cursor, weight int, at syntax.Cursor) {
	weight = 1
	if !i.IsMapping() {
		return i, weight, at
	}
	entries, _ := i.Mapping("a model name or {name, weight}", "name", "weight")
	for _, e := range entries {
		if e.Key == "name" {
			name = e.At
			continue
		}
		weight, _ = e.At.Integer(1)
		at = e.At
	}
	return name, weight, at
}

// warnChoice reports a way to choose with only one candidate, or without the data that it requires.
func (c *compiler) warnChoice(by, models syntax.Cursor, a *Action) {
	if by.Node == nil || !allRead(models, a) || a.By == "" || a.By == "order" {
		return
	}
	if len(a.Models) == 1 {
		by.Warnf("by: %s has no effect on a single candidate", a.By)
		return
	}
	lacking := func(known []string) (out []string) {
		for _, m := range a.Models {
			if !slices.Contains(known, m.Name) {
				out = append(out, m.Name)
			}
		}
		return out
	}
	if a.By == "cost" && c.env.Priced != nil {
		if without := lacking(c.env.Priced); len(without) > 0 {
			by.Warnf("no price is known of %s, so cost cannot be compared; set models[].price", strings.Join(without, ", "))
		}
	}
	if a.ranksQuality() && c.env.Skilled != nil {
		aside := ""
		if a.By != "quality" {
			aside = ", or quality_margin: 1 to leave quality aside"
		}
		if without := lacking(c.env.Skilled); len(without) > 0 {
			by.Warnf("no skills are known of %s, so quality cannot be compared; set models[].skills%s", strings.Join(without, ", "), aside)
		}
	}
}

func (c *compiler) readPrompt(at syntax.Cursor) Prompt {
	p := Prompt{Mode: "replace_vague", Position: "after_context"}
	name := at
	if at.IsMapping() {
		name = at.Child(nil, "name")
		mark := at.Mark()
		entries, _ := at.Mapping("a prompt name or {name, mode, position}", "name", "mode", "position")
		for _, e := range entries {
			switch e.Key {
			case "name":
				name = e.At
			case "mode":
				p.Mode = e.At.Choice("replace_vague", "prefix", "always")
			case "position":
				p.Position = e.At.Choice("after_context", "before")
			}
		}
		if name.Node == nil {
			at.Lacking(mark, "found no name, expected a prompt name or {name, mode, position}")
			return p
		}
	}
	if s, ok := name.Word("a prompt name"); ok && name.Known("prompt", s, c.env.Prompts) {
		p.Name = s
		c.use("prompt", s)
	}
	return p
}

func readMaxTokens(at syntax.Cursor) MaxTokens {
	if at.IsScalar("!!str") && at.Node.Value == "auto" {
		return MaxTokens{Auto: true}
	}
	var n int
	if !at.IsScalar("!!int") || at.Node.Decode(&n) != nil || n < 1 {
		at.Expected("auto or a whole number of at least 1")
		return MaxTokens{}
	}
	return MaxTokens{Limit: n}
}

// ownFields returns the body fields that are set by other keys, or by the client alone.
func ownFields() []string {
	return []string{"model", "messages", "prompt", "input", "stream", "signalbox"}
}

// ownHeaders returns the headers that are set by the connection or the endpoint's credentials.
func ownHeaders() []string {
	return []string{
		"Authorization", "Connection", "Content-Encoding", "Content-Length", "Host", "Keep-Alive",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
}

// tokenPattern is the field-name of RFC 9110, section 5.1.
var tokenPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// headerName checks the name of a header and returns its canonical form.
func headerName(at syntax.Cursor, name string) (canonical string, ok bool) {
	if !tokenPattern.MatchString(name) {
		at.Errorf("found %q, expected the name of a header", syntax.Shorten(name))
		return "", false
	}
	return canonicalHeader(name), true
}

// canonicalHeader returns a header's name in the canonical form of net/http, without importing that
// package.
func canonicalHeader(name string) string {
	b := []byte(name)
	start := true
	for i, x := range b {
		switch {
		case start && 'a' <= x && x <= 'z':
			b[i] = x - 'a' + 'A'
		case !start && 'A' <= x && x <= 'Z':
			b[i] = x - 'A' + 'a'
		}
		start = x == '-'
	}
	return string(b)
}

func readSet(at syntax.Cursor, a *Action) {
	entries, _ := at.Mapping("{body, headers}", "body", "headers")
	for _, e := range entries {
		fields, _ := e.At.Mapping("a mapping")
		for _, f := range fields {
			if e.Key == "body" {
				readField(f, a)
			} else {
				readHeader(f, a)
			}
		}
	}
}

func readField(f syntax.Entry, a *Action) {
	if slices.Contains(ownFields(), f.Key) {
		f.At.Errorf("field %q cannot be set by a route", f.Key)
		return
	}
	if text, ok := f.At.JSON(); ok {
		a.Body = append(a.Body, Field{f.Key, text})
	}
}

func readHeader(f syntax.Entry, a *Action) {
	name, ok := headerName(f.At, f.Key)
	if !ok {
		return
	}
	if slices.Contains(ownHeaders(), name) {
		f.At.Errorf("header %q cannot be set by a route", name)
		return
	}
	s, ok := f.At.Text("a text")
	if ok && strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		f.At.Errorf("a header value cannot hold control characters")
		return
	}
	if ok {
		a.Headers = append(a.Headers, Header{name, s})
	}
}
