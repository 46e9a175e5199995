package rules

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

// readVerb reads the value of use, block or answer.
func (c *compiler) readVerb(e entry) Action {
	switch e.key {
	case "block":
		return c.readReply(e.at, Block, "message")
	case "answer":
		return c.readReply(e.at, Answer, "text")
	}
	return c.readUse(e.at)
}

func (*compiler) readReply(at cursor, v Verb, key string) Action {
	a := Action{Verb: v}
	mark := at.mark()
	entries, ok := at.mapping("{"+key+": TEXT}", key)
	if !ok {
		return a
	}
	for _, e := range entries {
		a.Text, _ = e.at.word("a text")
	}
	if len(entries) == 0 {
		at.lacking(mark, "found no %s, expected {%s: TEXT}", key, key)
	}
	return a
}

// useWords are the keys of use and default.
func useWords() []string {
	return []string{
		"models", "by", "quality_margin", "reasoning", "override", "prompt", "max_tokens", "guard", "cache", "redact", "windows", "set",
	}
}

func (c *compiler) readUse(at cursor) Action {
	a := Action{By: "order"}
	mark := at.mark()
	entries, ok := at.mapping("{models: [NAME]}", useWords()...)
	if !ok {
		return a
	}
	misspelt := at.mark() > mark
	var models, weighted, by, margin, override cursor
	for _, e := range entries {
		switch e.key {
		case "models":
			models, weighted = e.at, c.readModels(e.at, &a)
		case "by":
			by, a.By = e.at, e.at.choice("order", "weight", "quality", "cost", "latency")
		case "quality_margin":
			margin = e.at
		case "override":
			override = e.at
			a.Override, _ = e.at.bool()
		case "prompt":
			a.Prompt = c.readPrompt(e.at)
		case "max_tokens":
			a.MaxTokens = readMaxTokens(e.at)
		case "guard":
			a.Guard = e.at.choice("off", "observe", "annotate", "terminate", "hold")
		case "windows":
			a.Windows = e.at.choice("all", "cascade")
		case "set":
			readSet(e.at, &a)
		default:
			c.readWanting(e, &a)
		}
	}
	if models.n == nil && !misspelt {
		at.errorf("found no models, expected {models: [NAME]}")
	}
	if weighted.n != nil && a.By != "weight" && a.By != "" {
		weighted.warnf("weights have no effect without `by: weight`")
	}
	if a.Override && a.Reasoning == "" && a.MaxTokens == (MaxTokens{}) && at.mark() == mark {
		override.warnf("override has no effect without reasoning or max_tokens")
	}
	readMargin(margin, &a)
	c.warnChoice(by, models, &a)
	return a
}

// defaultMargin is the Margin of `by: cost`: a cheaper model may be a twentieth worse.
const defaultMargin = 0.05

// readMargin reads quality_margin, which may be absent. Without one, by: cost keeps close to the best
// candidate and by: latency does not look at quality.
func readMargin(at cursor, a *Action) {
	switch a.By {
	case "cost":
		a.Margin = defaultMargin
	case "latency":
		a.Margin = 1
	default:
		if at.n != nil && a.By != "" {
			at.errorf("quality_margin needs `by: cost` or `by: latency`, found by: %s", a.By)
		}
		return
	}
	if at.n == nil {
		return
	}
	if x, ok := at.share(); ok {
		a.Margin = x
	}
}

// readWanting reads the keys whose values make the action read a signal.
func (c *compiler) readWanting(e entry, a *Action) {
	switch e.key {
	case "reasoning":
		a.Reasoning = e.at.choice("none", "low", "medium", "high", "auto")
		if a.Reasoning == "auto" && !c.env.Signals.Has(signal.Complexity) {
			e.at.warnf("no model provides signal complexity, so auto leaves what the client set")
		}
	case "cache":
		a.Cache = e.at.choice("off", "exact", "semantic")
		if a.Cache == "semantic" {
			c.provided(e.at, signal.Embedding)
		}
	case "redact":
		a.Redact, _ = e.at.bool()
		if a.Redact {
			c.provided(e.at, signal.PII)
		}
	}
}

// provided reports a signal that an action needs and nothing extracts.
func (c *compiler) provided(at cursor, k signal.Kind) {
	if !c.env.Signals.Has(k) {
		at.errorf("no model provides signal %s", k)
	}
}

// readModels fills in the candidates and returns the place of the first weight.
func (c *compiler) readModels(at cursor, a *Action) (weighted cursor) {
	items, _ := at.list("a list of at least one model")
	for _, i := range items {
		mark := at.mark()
		name, weight, at := readWeighted(i)
		if weighted.n == nil {
			weighted = at
		}
		if name.n == nil {
			i.lacking(mark, "found no name, expected {name, weight}")
			continue
		}
		s, ok := name.word("a model name")
		if !ok || !name.known("model", s, c.env.Models) {
			continue
		}
		c.use("model", s)
		if slices.ContainsFunc(a.Models, func(m Choice) bool { return m.Name == s }) {
			name.errorf("model %q is listed twice", s)
			continue
		}
		a.Models = append(a.Models, Choice{s, weight})
	}
	return weighted
}

// readWeighted reads NAME or {name, weight}. name and at, the weight's place, have no node when absent.
func readWeighted(i cursor) (name cursor, weight int, at cursor) {
	weight = 1
	if i.n.Kind != yaml.MappingNode {
		return i, weight, at
	}
	entries, _ := i.mapping("a model name or {name, weight}", "name", "weight")
	for _, e := range entries {
		if e.key == "name" {
			name = e.at
			continue
		}
		weight, _ = e.at.integer(1)
		at = e.at
	}
	return name, weight, at
}

// warnChoice reports a way to choose that has nothing to choose from, or nothing to choose by.
func (c *compiler) warnChoice(by, models cursor, a *Action) {
	if by.n == nil || models.n == nil || len(a.Models) < len(models.n.Content) || a.By == "" || a.By == "order" {
		return
	}
	if len(a.Models) == 1 {
		by.warnf("by: %s has no effect on a single candidate", a.By)
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
			by.warnf("no price is known of %s, so cost cannot be compared; set models[].price", join(without))
		}
	}
	if a.ranksQuality() && c.env.Skilled != nil {
		if without := lacking(c.env.Skilled); len(without) > 0 {
			by.warnf("no skills are known of %s, so quality cannot be compared; set models[].skills%s", join(without),
				choose(a.By == "quality", "", ", or quality_margin: 1 to leave quality aside"))
		}
	}
}

func (c *compiler) readPrompt(at cursor) Prompt {
	p := Prompt{Mode: "replace_vague", Position: "after_context"}
	name := at
	if at.n.Kind == yaml.MappingNode {
		name = at.child(nil, "name")
		mark := at.mark()
		entries, _ := at.mapping("a prompt name or {name, mode, position}", "name", "mode", "position")
		for _, e := range entries {
			switch e.key {
			case "name":
				name = e.at
			case "mode":
				p.Mode = e.at.choice("replace_vague", "prefix", "always")
			case "position":
				p.Position = e.at.choice("after_context", "before")
			}
		}
		if name.n == nil {
			at.lacking(mark, "found no name, expected a prompt name or {name, mode, position}")
			return p
		}
	}
	if s, ok := name.word("a prompt name"); ok && name.known("prompt", s, c.env.Prompts) {
		p.Name = s
		c.use("prompt", s)
	}
	return p
}

func readMaxTokens(at cursor) MaxTokens {
	if at.scalar("!!str") && at.n.Value == "auto" {
		return MaxTokens{Auto: true}
	}
	var n int
	if !at.scalar("!!int") || at.n.Decode(&n) != nil || n < 1 {
		at.expected("auto or a whole number of at least 1")
		return MaxTokens{}
	}
	return MaxTokens{Limit: n}
}

// ownFields are the body fields that other keys, or the client alone, decide.
func ownFields() []string {
	return []string{"model", "messages", "prompt", "input", "stream", "signalbox"}
}

// ownHeaders are the headers that the connection or the endpoint's credentials decide.
func ownHeaders() []string {
	return []string{
		"Authorization", "Connection", "Content-Encoding", "Content-Length", "Host", "Keep-Alive",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
}

// tokenPattern is the field-name of RFC 9110, section 5.1.
var tokenPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// canonicalHeader writes a header's name the way net/http keeps it, without importing the network.
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

func readSet(at cursor, a *Action) {
	entries, _ := at.mapping("{body, headers}", "body", "headers")
	for _, e := range entries {
		fields, _ := e.at.mapping("a mapping")
		for _, f := range fields {
			if e.key == "body" {
				readField(f, a)
			} else {
				readHeader(f, a)
			}
		}
	}
}

func readField(f entry, a *Action) {
	if slices.Contains(ownFields(), f.key) {
		f.at.errorf("field %q cannot be set by a route", f.key)
		return
	}
	var b bytes.Buffer
	if appendJSON(&b, f.at, 0) {
		a.Body = append(a.Body, Field{f.key, b.Bytes()})
	}
}

func readHeader(f entry, a *Action) {
	name := canonicalHeader(f.key)
	if !tokenPattern.MatchString(f.key) {
		f.at.errorf("found %q, expected the name of a header", shorten(f.key))
		return
	}
	if slices.Contains(ownHeaders(), name) {
		f.at.errorf("header %q cannot be set by a route", name)
		return
	}
	s, ok := f.at.text("a text")
	if ok && strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		f.at.errorf("a header value cannot hold control characters")
		return
	}
	if ok {
		a.Headers = append(a.Headers, Header{name, s})
	}
}

// appendJSON encodes a YAML value, keeping the order of keys.
func appendJSON(b *bytes.Buffer, at cursor, depth int) bool {
	if !at.plain() {
		return false
	}
	if depth > maxDepth {
		at.errorf("found more than %d levels of nesting", maxDepth)
		return false
	}
	switch at.n.Kind {
	case yaml.MappingNode:
		return appendObject(b, at, depth)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i := range at.n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if !appendJSON(b, at.item(i), depth+1) {
				return false
			}
		}
		b.WriteByte(']')
		return true
	case yaml.ScalarNode, yaml.AliasNode, yaml.DocumentNode:
	}
	return appendScalar(b, at)
}

func appendObject(b *bytes.Buffer, at cursor, depth int) bool {
	before := len(*at.report)
	entries, _ := at.mapping("a mapping")
	b.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(e.key)
		if err != nil {
			e.at.errorf("found %q, expected a key that JSON can hold", shorten(e.key))
			return false
		}
		b.Write(key)
		b.WriteByte(':')
		if !appendJSON(b, e.at, depth+1) {
			return false
		}
	}
	b.WriteByte('}')
	return len(*at.report) == before
}

func appendScalar(b *bytes.Buffer, at cursor) bool {
	var v any = at.n.Value // text, and whatever YAML reads into it that JSON has no form for
	switch at.n.Tag {
	case "!!null":
		v = nil
	case "!!bool", "!!int", "!!float":
		if err := at.n.Decode(&v); err != nil {
			at.expected("a value that JSON can hold")
			return false
		}
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		at.expected("a finite number")
		return false
	}
	text, err := json.Marshal(v)
	if err != nil {
		at.expected("a value that JSON can hold")
		return false
	}
	b.Write(text)
	return true
}
