// Package reasoning tells a model how much to reason, in the dialect that the model understands,
// and reads the effort that a client set in any of the dialects in use.
//
// Dialects are defined for chat completions. In the Responses API the field reasoning_effort is
// reasoning.effort; all other fields are in the same place as in chat: vLLM reads
// chat_template_kwargs there as well (ResponsesRequest,
// vllm/entrypoints/openai/responses/protocol.py at 055e47c2). A plain completion is not rendered by
// a chat template, so nothing is set in it.
//
// The package does not decide how much reasoning a request deserves: a route does. It edits no
// body; it records edits in a patch.
//
// A route uses four efforts: None, Low, Medium and High. Models and clients know more; each has a
// rank, and an effort that a model lacks is replaced by the nearest one.
package reasoning

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/openai"
)

// The efforts that routes use.
const (
	None   = "none"
	Low    = "low"
	Medium = "medium"
	High   = "high"
)

// effortWords are the efforts that clients and models use, from least to most: those that vLLM
// accepts as reasoning_effort (vllm/entrypoints/openai/chat_completion/protocol.py at 002032ee).
//
//nolint:gochecknoglobals // constant table
var effortWords = [...]string{None, "minimal", Low, Medium, High, "xhigh", "max"}

// rankOf returns the index of a word in effortWords; -1 if it is not there.
func rankOf(word string) int { return slices.Index(effortWords[:], word) }

// fold maps an effort to one of the four that routes use. A word that is not in effortWords
// requests reasoning to a degree that only the model knows.
func fold(effort string) string {
	switch rank := rankOf(effort); {
	case rank < 0:
		return Medium
	case rank == 0:
		return None
	case rank <= rankOf(Low):
		return Low
	case rank == rankOf(Medium):
		return Medium
	}
	return High
}

// Dialect is how a model is told how much to reason. It is immutable and safe for concurrent use.
type Dialect struct {
	chat, responses *tongue
	efforts         []string // see Efforts

	budget string // the field that limits reasoning in tokens; empty if there is none
}

// tongue is a dialect in the spelling of one API.
type tongue struct {
	spoken []spokenField
	// settings that request an effort; nil if the model lacks the effort
	levels [len(effortWords)][]setting
	closed bool // the server refuses a client's effort that the model lacks
}

// setting is a value in the body of a request.
type setting struct {
	place

	json []byte
}

// place is a field of the body, or a member of the object in a field.
type place struct {
	field  string
	member string // empty for the field itself
}

// New compiles valid options. An error names a value that cannot be JSON.
func New(o *Options) (*Dialect, error) {
	chat, err := newTongue(o)
	if err != nil {
		return nil, err
	}
	return &Dialect{chat: chat, responses: chat.inResponses(), efforts: chat.distinct(), budget: o.Budget}, nil
}

// inResponses returns the same dialect for the Responses API.
func (d *tongue) inResponses() *tongue {
	out := &tongue{spoken: responsesFields, closed: d.closed}
	for i, level := range &d.levels {
		if level == nil {
			continue
		}
		out.levels[i] = make([]setting, len(level))
		for j, s := range level {
			if s.place == (place{field: effortField}) {
				s.place = place{"reasoning", "effort"}
			}
			out.levels[i][j] = s
		}
	}
	return out
}

func newTongue(o *Options) (*tongue, error) {
	d := &tongue{spoken: chatFields}
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
			d.levels[rankOf(w)] = []setting{{place{field: effortField}, []byte(`"` + w + `"`)}}
		}
	case DialectKwargs:
		values := o.Values
		if values == nil {
			values = map[string]any{None: false, Low: false, Medium: true, High: true}
		}
		for w, v := range values {
			s := setting{place: place{"chat_template_kwargs", cmp.Or(o.Key, with.key)}}
			if s.json, err = valueJSON(v); err != nil {
				return nil, fmt.Errorf("values.%s: %w", w, err)
			}
			d.levels[rankOf(w)] = []setting{s}
		}
	case DialectCustom:
		for w, fields := range o.Custom {
			if d.levels[rankOf(w)], err = customSettings(fields); err != nil {
				return nil, fmt.Errorf("custom.%s: %w", w, err)
			}
		}
	}
	return d, nil
}

// customSettings returns settings sorted by field name. It never returns nil.
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

// nearest returns the rank of the model's effort that is closest to the given one, the lower one of
// two that are equally close; -1 if the model cannot be told.
func (d *tongue) nearest(rank int) int {
	best := -1
	for i, level := range &d.levels {
		if level != nil && (best < 0 || abs(i-rank) < abs(best-rank)) {
			best = i
		}
	}
	return best
}

// below returns the rank of the next effort below the one that the model would be told for the
// given one; -1 if there is none, or if the given effort is unknown.
func (d *tongue) below(rank int) int {
	if rank < 0 {
		return -1
	}
	from := d.nearest(rank)
	for i := from - 1; i >= 0; i-- {
		if level := d.levels[i]; level != nil && !slices.EqualFunc(level, d.levels[from], sameSetting) {
			return i
		}
	}
	return -1
}

// reasons returns the lowest rank, from the given one on, at which the model reasons at all: with a
// token budget, reasoning need not be turned off. If there is none, it returns rank.
func (d *tongue) reasons(rank int) int {
	for i := rank; i > 0 && i < len(d.levels); i++ {
		if d.levels[i] != nil && d.says(i) != None {
			return i
		}
	}
	return rank
}

func abs(n int) int { return max(n, -n) }

// says returns the effort of a level that the model was told. One that turns reasoning off is none,
// whatever was requested.
func (d *tongue) says(rank int) string { return fold(d.word(rank)) }

// word returns the same as it was sent, for the header.
func (d *tongue) word(rank int) string {
	if off := d.levels[0]; off != nil && slices.EqualFunc(off, d.levels[rank], sameSetting) {
		return None
	}
	return effortWords[rank]
}

// maxWord limits a client's own word in a header, in bytes.
const maxWord = 64

// shown returns a client's word in a form that is safe for a header.
func shown(word string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, word[:min(len(word), maxWord)])
}

func sameSetting(a, b setting) bool { return a.place == b.place && bytes.Equal(a.json, b.json) }

// tell writes a level into the body and returns its effort and the word for the header.
func (d *tongue) tell(p *openai.Patch, rank int) (effort, word string) {
	for _, s := range d.levels[rank] {
		if s.member == "" {
			p.SetField(s.field, s.json)
		} else {
			p.SetNested(s.field, s.member, s.json)
		}
	}
	return d.says(rank), d.word(rank)
}

// Want is what a route requests, and what is known about the client.
type Want struct {
	Effort   string // None, Low, Medium or High; empty if the route requests none
	Override bool   // Effort takes precedence over the client's
	Named    bool   // the client named this very model, and so is expected to know its dialect
	// Less lowers the effort by one step if the model has a lower one. A request without an effort
	// counts as Medium.
	Less bool

	bounded bool // a budget is sent as well
}

// Apply records in p the changes to req that tell the model how much to reason, in its dialect. It
// returns the resulting effort, None, Low, Medium or High; empty if nobody requests an effort or
// the model cannot be told, so that the model decides. word is the effort as sent, such as minimal
// or a word of the client's own.
//
// What a client requests, in any dialect, takes precedence unless the route overrides it. If the
// client asked for routing or for another model, it does not know which model answers, and its
// effort is translated. If it named this model, its words are sent unchanged.
//
// A request in which no effort can be set returns None.
func (d *Dialect) Apply(p *openai.Patch, req *openai.Request, w Want) (effort, word string) {
	switch req.API {
	case openai.Chat:
		w.bounded = d.budget != "" && req.ThinkingBudget > 0
		return d.chat.apply(p, req, w)
	case openai.Response:
		return d.responses.apply(p, req, w)
	case openai.Completion, openai.Other:
	}
	return None, None
}

// Bound sets the token budget that the client of a translated request named, if the model has a
// field for it and reasons with the effort that Apply returned.
func (d *Dialect) Bound(p *openai.Patch, req *openai.Request, effort string) {
	if d.budget != "" && req.ThinkingBudget > 0 && effort != None {
		p.SetField(d.budget, strconv.AppendInt(nil, req.ThinkingBudget, 10))
	}
}

func (d *tongue) apply(p *openai.Patch, req *openai.Request, w Want) (effort, word string) {
	said, want := d.said(req), w.Effort
	override := w.Override && want != ""
	if w.Less {
		if said.effort != "" && !override {
			want = said.effort
		}
		if rank := d.below(rankOf(cmp.Or(want, Medium))); rank >= 0 {
			d.silence(p, req, rank)
			return d.tell(p, rank)
		}
	}
	if said.effort != "" && !override {
		rank := rankOf(said.effort)
		if w.Named || said.final || rank < 0 || d.nearest(rank) < 0 {
			return fold(said.effort), shown(said.effort)
		}
		rank = d.nearest(rank)
		if w.bounded {
			rank = d.reasons(rank)
		}
		return d.translate(p, said, rank)
	}
	if want == "" {
		if d.nearest(0) < 0 {
			return None, None
		}
		return "", ""
	}
	rank := d.nearest(rankOf(want))
	if override {
		d.silence(p, req, rank)
	}
	if rank < 0 {
		return None, None
	}
	return d.tell(p, rank)
}

// translate sends an effort that a client expressed in other words than those of a level.
func (d *tongue) translate(p *openai.Patch, said spoken, rank int) (effort, word string) {
	if said.partly {
		d.clear(p, rank)
	}
	return d.tell(p, rank)
}

// Tells reports whether a request sets reasoning after Apply, even in the client's words. It is
// false for a model without a dialect if the client set nothing.
func (d *Dialect) Tells(req *openai.Request, w Want) bool {
	switch req.API {
	case openai.Chat, openai.Response:
		return len(d.efforts) > 0 || !d.Leaves(req, w.Override && w.Effort != "")
	case openai.Completion, openai.Other:
	}
	return false
}

// Leaves reports whether the route decides how much the model reasons, because the client did not
// say or the route overrides it.
func (d *Dialect) Leaves(req *openai.Request, override bool) bool {
	switch req.API {
	case openai.Chat:
		return override || d.chat.said(req).effort == ""
	case openai.Response:
		return override || d.responses.said(req).effort == ""
	case openai.Completion, openai.Other:
	}
	return false
}

// Efforts lists the efforts that a chat can request from the model, lowest first, as Apply reports
// them. Of words with the same effect only the lowest is listed. It is empty if nothing can be set.
// The caller must not change it.
func (d *Dialect) Efforts() []string { return d.efforts }

// Standing returns the member of Efforts with the same effect as an effort that Apply reported; the
// effort itself if there is none.
func (d *Dialect) Standing(effort string) string {
	rank := rankOf(effort)
	if rank < 0 || d.chat.nearest(rank) < 0 {
		return effort
	}
	return d.chat.least(d.chat.nearest(rank))
}

// least returns the effort reported for the lowest rank with the same settings as the given one,
// which the model must have.
func (d *tongue) least(rank int) string {
	for i := range d.levels {
		if l := d.levels[i]; l != nil && slices.EqualFunc(l, d.levels[rank], sameSetting) {
			return d.says(i)
		}
	}
	return d.says(rank)
}

// distinct lists the reported efforts of all levels without repetition.
func (d *tongue) distinct() (out []string) {
	for i := range d.levels {
		if d.levels[i] == nil {
			continue
		}
		if e := d.least(i); !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// silence removes what a client said about reasoning in places other than those that a level sets.
// rank is -1 for a model that cannot be told.
func (d *tongue) silence(p *openai.Patch, req *openai.Request, rank int) {
	for _, f := range d.spoken {
		if f.read(valueAt(req, f.place)) != "" {
			d.remove(p, f.place, rank)
		}
	}
	d.clear(p, rank)
}

// clear does this for the places of the dialect only.
func (d *tongue) clear(p *openai.Patch, rank int) {
	for _, level := range &d.levels {
		for _, s := range level {
			d.remove(p, s.place, rank)
		}
	}
}

// remove removes the value at a place, unless a level sets it.
func (d *tongue) remove(p *openai.Patch, at place, rank int) {
	switch {
	case rank >= 0 && slices.ContainsFunc(d.levels[rank], func(s setting) bool { return s.place == at }):
	case at.member == "":
		p.DeleteField(at.field)
	default:
		p.DeleteNested(at.field, at.member)
	}
}

// spoken is what a client said about reasoning.
type spoken struct {
	effort string // one of effortWords or a word of the client's own; empty if it said nothing
	final  bool   // it used the model's dialect, and the model accepts the value
	// it used a field of the model's dialect, but with a different value for that effort
	partly bool
}

// said reads an effort from the client's body, first in the model's dialect and then in all others.
func (d *tongue) said(req *openai.Request) spoken {
	if s := d.heard(req); s.effort != "" {
		return s
	}
	for _, f := range d.spoken {
		if e := f.read(valueAt(req, f.place)); e != "" {
			return spoken{effort: e}
		}
	}
	return spoken{}
}

// heard reads an effort in this dialect: the lowest one that the client's values stand for. A value
// in an effort field is not final if the model is told this effort in other fields, or in more
// fields than the client has set.
func (d *tongue) heard(req *openai.Request) spoken {
	var found setting
	words := false // the field contains words, not a switch
	whole := false // the client has set all fields of some level
	for i, level := range &d.levels {
		equal, set := 0, 0
		for _, s := range level {
			v := valueAt(req, s.place)
			if v == nil || string(v) == "null" {
				continue
			}
			if set++; bytes.Equal(v, s.json) {
				equal++
			}
			if rankOf(effortIn(found.json)) < 0 {
				found, words = setting{s.place, v}, s.json[0] == '"'
			}
		}
		if len(level) > 0 && equal == len(level) {
			return spoken{effort: effortWords[i], final: true}
		}
		whole = whole || set > 0 && set == len(level)
	}
	return d.understood(found, words, whole)
}

// understood interprets a client's value in a field of this dialect when it matches no complete
// level.
func (d *tongue) understood(found setting, words, whole bool) spoken {
	if found.json == nil {
		return spoken{}
	}
	e := effortIn(found.json)
	rank := rankOf(e)
	switch {
	case e == "" || !words && rank < 0:
		return spoken{effort: effortOf(found.json), final: true}
	case rank >= 0 && found.ofEfforts() && (!whole || d.levels[rank] != nil):
		return spoken{effort: e, partly: true}
	}
	return spoken{effort: e, final: !d.closed}
}

// ofEfforts reports whether a place is one in which clients set an effort for any model.
func (at place) ofEfforts() bool {
	return at == place{field: effortField} || at == place{"reasoning", "effort"}
}

// effortField is the effort field of chat completions.
const effortField = "reasoning_effort"

// spokenField is a place in which clients set reasoning.
type spokenField struct {
	place

	read func(json []byte) string
}

// responsesFields are the places in the Responses API, the most specific first.
//
//nolint:gochecknoglobals // constant table
var responsesFields = []spokenField{
	{place{"reasoning", "effort"}, effortIn},
	{place{"chat_template_kwargs", "reasoning_effort"}, effortIn},
	{place{"chat_template_kwargs", "enable_thinking"}, effortOf},
	{place{"chat_template_kwargs", "thinking"}, effortOf},
}

// chatFields are the places in chat completions, the most specific first.
//
//   - reasoning_effort: OpenAI, vLLM, Mistral;
//   - chat_template_kwargs: the templates that vLLM and SGLang render;
//   - thinking {type: enabled|disabled}: DeepSeek's own API
//     (api-docs.deepseek.com/guides/thinking_mode);
//   - reasoning {effort, enabled}: OpenRouter (openrouter.ai/docs, reasoning tokens);
//   - prompt_mode: reasoning: Magistral at Mistral's API.
//
//nolint:gochecknoglobals // constant table
var chatFields = []spokenField{
	{place{effortField, ""}, effortIn},
	{place{"chat_template_kwargs", "reasoning_effort"}, effortIn},
	{place{"chat_template_kwargs", "enable_thinking"}, effortOf},
	{place{"chat_template_kwargs", "thinking"}, effortOf},
	{place{"thinking", ""}, func(b []byte) string { return switched(openai.Member(b, "type")) }},
	{place{"reasoning", ""}, func(b []byte) string {
		return cmp.Or(effortIn(openai.Member(b, "effort")), switched(openai.Member(b, "enabled")))
	}},
	{place{"prompt_mode", ""}, switched},
}

// valueAt returns the JSON value that the client sent at a place; nil if there is none.
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

// effortIn reads an effort from a JSON string.
func effortIn(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	var word string
	if json.Unmarshal(b, &word) != nil {
		return ""
	}
	return word
}

// effortOf reads a switch that is on unless it is false.
func effortOf(b []byte) string {
	switch string(b) {
	case "", "null":
		return ""
	case "false":
		return None
	}
	return Medium
}

// switched reads words for on and off.
func switched(b []byte) string {
	switch string(b) {
	case "false", `"disabled"`:
		return None
	case "true", `"enabled"`, `"adaptive"`, `"reasoning"`:
		return Medium
	}
	return ""
}
