package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// The efforts that routes and headers speak of.
const (
	effortNone   = "none"
	effortLow    = "low"
	effortMedium = "medium"
	effortHigh   = "high"
)

// effortWords are the efforts that clients and models speak of, from least to most: those that vLLM takes
// as reasoning_effort (vllm/entrypoints/openai/chat_completion/protocol.py at 002032ee).
//
//nolint:gochecknoglobals // constant table
var effortWords = [...]string{effortNone, "minimal", effortLow, effortMedium, effortHigh, "xhigh", "max"}

// rankOf is the place of a word in effortWords, -1 when it is not there.
func rankOf(word string) int { return slices.Index(effortWords[:], word) }

// fold maps an effort to the four that the response header has. A word that is none of effortWords
// asks for reasoning of a degree that only the model knows.
func fold(effort string) string {
	switch rank := rankOf(effort); {
	case rank < 0:
		return effortMedium
	case rank == 0:
		return effortNone
	case rank <= rankOf(effortLow):
		return effortLow
	case rank == rankOf(effortMedium):
		return effortMedium
	}
	return effortHigh
}

// dialect is how a model is told to reason more or less. It is immutable.
type dialect struct {
	levels [len(effortWords)][]setting // what tells the model of an effort; nil: it lacks the effort
	closed bool                        // an effort of the client that the model lacks would be refused
}

// setting is a value in the body of a request.
type setting struct {
	place

	json []byte
}

// place is a field of the body, or a member of the object that a field holds.
type place struct {
	field  string
	member string // empty for the field itself
}

// newDialect compiles options that are valid.
func newDialect(o *ReasoningOptions) (*dialect, error) {
	d := new(dialect)
	with, _ := presetOf(o.Dialect)
	var err error
	switch with.field {
	case DialectEffort:
		d.closed = with.closed || o.Efforts != nil
		words := with.efforts
		if o.Efforts != nil {
			words = o.Efforts
		}
		for _, w := range words {
			d.levels[rankOf(w)] = []setting{{place{field: "reasoning_effort"}, []byte(`"` + w + `"`)}}
		}
	case DialectKwargs:
		values := o.Values
		if values == nil {
			values = map[string]any{effortNone: false, effortLow: false, effortMedium: true, effortHigh: true}
		}
		for w, v := range values {
			s := setting{place: place{"chat_template_kwargs", cmp.Or(o.Key, with.key)}}
			if s.json, err = valueJSON(v); err != nil {
				return nil, fmt.Errorf("reasoning.values.%s: %w", w, err)
			}
			d.levels[rankOf(w)] = []setting{s}
		}
	case DialectCustom:
		for w, fields := range o.Custom {
			if d.levels[rankOf(w)], err = customSettings(fields); err != nil {
				return nil, fmt.Errorf("reasoning.custom.%s: %w", w, err)
			}
		}
	}
	return d, nil
}

// customSettings lists fields in the order of their names. It is never nil.
func customSettings(fields map[string]any) ([]setting, error) {
	out := []setting{}
	add := func(at place, v any) error {
		b, err := valueJSON(v)
		out = append(out, setting{at, b})
		return err
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		object, ok := fields[f].(map[string]any)
		if !ok || len(object) == 0 {
			if err := add(place{field: f}, fields[f]); err != nil {
				return nil, err
			}
			continue
		}
		for _, m := range slices.Sorted(maps.Keys(object)) {
			if err := add(place{f, m}, object[m]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// nearest is the rank of the effort that the model has and that is closest to the given one, the lower
// of two that are equally close; -1 when the model cannot be told.
func (d *dialect) nearest(rank int) int {
	best := -1
	for i, level := range &d.levels {
		if level != nil && (best < 0 || abs(i-rank) < abs(best-rank)) {
			best = i
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// says is the effort that the header reports when the model was told of a level: what switches
// reasoning off is called none, whatever was asked for.
func (d *dialect) says(rank int) string {
	if off := d.levels[0]; off != nil && slices.EqualFunc(off, d.levels[rank], sameSetting) {
		return effortNone
	}
	return fold(effortWords[rank])
}

func sameSetting(a, b setting) bool { return a.place == b.place && bytes.Equal(a.json, b.json) }

// tell writes a level into the body and returns what the header reports.
func (d *dialect) tell(p *openai.Patch, rank int) string {
	for _, s := range d.levels[rank] {
		if s.member == "" {
			p.SetField(s.field, s.json)
		} else {
			p.SetNested(s.field, s.member, s.json)
		}
	}
	return d.says(rank)
}

// reason tells the model how much to think, in its dialect, and returns the effort that the request
// asks for in the end: empty when nobody asks a model that can be told, which then does as it pleases.
//
// What a client said, in whatever dialect, wins unless the route overrides it. A client that asked for
// routing does not know which model answers, so its effort is translated; one that named its model
// gets its words through as they are.
func (rw rewriter) reason(p *openai.Patch, m *model) string {
	d := m.dialect
	said, want := rw.clientEffort(d), rw.effort()
	override := rw.d.Action.Override && want != ""
	if said.effort != "" && !override {
		rank := rankOf(said.effort)
		if rw.d.model != "" || said.final || rank < 0 || d.nearest(rank) < 0 {
			return fold(said.effort)
		}
		return d.tell(p, d.nearest(rank))
	}
	if want == "" {
		if d.nearest(0) < 0 {
			return effortNone
		}
		return ""
	}
	rank := d.nearest(rankOf(want))
	if override {
		rw.silence(p, d, rank)
	}
	if rank < 0 {
		return effortNone
	}
	return d.tell(p, rank)
}

// silence removes what a client said about reasoning in other places than those that a level sets. A
// model that cannot be told has rank -1.
func (rw rewriter) silence(p *openai.Patch, d *dialect, rank int) {
	remove := func(at place) {
		if rank >= 0 && slices.ContainsFunc(d.levels[rank], func(s setting) bool { return s.place == at }) {
			return
		}
		if at.member == "" {
			p.DeleteField(at.field)
		} else {
			p.DeleteNested(at.field, at.member)
		}
	}
	for _, f := range spokenFields {
		if f.read(valueAt(rw.req, f.place)) != "" {
			remove(f.place)
		}
	}
	for _, level := range &d.levels {
		for _, s := range level {
			remove(s.place)
		}
	}
}

// effort is what the route asks for; empty when it asks for nothing or for what is not known.
func (rw rewriter) effort() string {
	switch rw.d.Action.Reasoning {
	case effortNone, effortLow, effortMedium, effortHigh:
		return rw.d.Action.Reasoning
	case "auto":
		c := &rw.d.set.Values[signal.Complexity]
		if c.State == signal.Known && (c.Label == effortLow || c.Label == effortMedium || c.Label == effortHigh) {
			return c.Label
		}
	}
	return ""
}

// spoken is what a client said about reasoning.
type spoken struct {
	effort string // one of effortWords, or a word of the client's own; empty when it said nothing
	final  bool   // it spoke the model's dialect, and the model takes what it said
}

// clientEffort reads what the client's body says for itself: in the model's dialect first, then in all
// the others.
func (rw rewriter) clientEffort(d *dialect) spoken {
	if s := d.heard(rw.req); s.effort != "" {
		return s
	}
	for _, f := range spokenFields {
		if e := f.read(valueAt(rw.req, f.place)); e != "" {
			return spoken{effort: e}
		}
	}
	return spoken{}
}

// heard reads what a client said in this dialect: the least of the efforts that its words stand for.
func (d *dialect) heard(req *openai.Request) spoken {
	matches := func(s setting) bool { return bytes.Equal(valueAt(req, s.place), s.json) }
	var found []byte
	for i, level := range &d.levels {
		for _, s := range level {
			if v := valueAt(req, s.place); v != nil && string(v) != "null" {
				found = v
			}
		}
		if found != nil && len(level) > 0 && !slices.ContainsFunc(level, func(s setting) bool { return !matches(s) }) {
			return spoken{effortWords[i], true}
		}
	}
	if found == nil {
		return spoken{}
	}
	if e := effortIn(found); e != "" {
		return spoken{e, !d.closed}
	}
	return spoken{effortOf(found), true}
}

// spokenFields are the places in which clients speak of reasoning, the most telling first.
//
//   - reasoning_effort: OpenAI, vLLM, Mistral;
//   - chat_template_kwargs: the templates that vLLM and SGLang render;
//   - thinking {type: enabled|disabled}: DeepSeek's own API (api-docs.deepseek.com/guides/thinking_mode);
//   - reasoning {effort, enabled}: OpenRouter (openrouter.ai/docs, reasoning tokens);
//   - prompt_mode: reasoning: Magistral at Mistral's API.
//
//nolint:gochecknoglobals // constant table
var spokenFields = []struct {
	place

	read func(json []byte) string
}{
	{place{"reasoning_effort", ""}, effortIn},
	{place{"chat_template_kwargs", "reasoning_effort"}, effortIn},
	{place{"chat_template_kwargs", "enable_thinking"}, effortOf},
	{place{"chat_template_kwargs", "thinking"}, effortOf},
	{place{"thinking", ""}, func(b []byte) string { return switched(openai.Member(b, "type")) }},
	{place{"reasoning", ""}, func(b []byte) string {
		return or(effortIn(openai.Member(b, "effort")), switched(openai.Member(b, "enabled")))
	}},
	{place{"prompt_mode", ""}, switched},
}

// valueAt is the JSON value that the client sent at a place, nil when it sent none.
func valueAt(req *openai.Request, at place) []byte {
	if at.field == "chat_template_kwargs" && !req.ChatTemplateKwargs.Present() {
		return nil // most requests have none
	}
	v := req.Field(at.field)
	if v == nil || at.member == "" {
		return v
	}
	return openai.Member(v, at.member)
}

// effortIn reads a word of effort, in a JSON string.
func effortIn(b []byte) string {
	var word string
	if len(b) == 0 || json.Unmarshal(b, &word) != nil {
		return ""
	}
	return word
}

// effortOf reads a switch that is on unless it says false.
func effortOf(b []byte) string {
	switch string(b) {
	case "", "null":
		return ""
	case "false":
		return effortNone
	}
	return effortMedium
}

// switched reads the words for on and off.
func switched(b []byte) string {
	switch string(b) {
	case "false", `"disabled"`:
		return effortNone
	case "true", `"enabled"`, `"adaptive"`, `"reasoning"`:
		return effortMedium
	}
	return ""
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
