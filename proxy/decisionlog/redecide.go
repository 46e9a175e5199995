package decisionlog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/rules"
)

// Redecision is what a logged request would come to under another configuration.
type Redecision struct {
	Route   string
	Outcome string // as in Entry, or "model_not_found"
	Action  Action
	Chosen  string // the model that would be tried first; empty where that depends on chance or on what was observed
	// Missing is what the decision needs and the log lacks, in words; when it is not empty, nothing
	// else is said.
	Missing []string
}

// RouteNotFound stands for a route where the model that a request names is not configured any more.
const RouteNotFound = "(model not found)"

// Configuration is what a logged request is decided by. Its functions are safe for concurrent use.
type Configuration struct {
	Identity *Identity
	Program  *rules.Program    // for what the request asks for
	Named    string            // the model that the request names; empty when it asks for routing
	Prompts  map[string]string // texts of the system prompts, by name

	Able       signal.Mask // what can be extracted now
	Extract    Extract
	ExtractAll Extract // reads every window; nil when nothing can

	// Unread returns the signals of which the route of a decision wants more read than was.
	Unread func(d *rules.Decision, set *signal.Set) signal.Mask
	// First is the model that the action tries first, of those that the caller may use; empty when
	// there is none, or it is not known what the caller may use. It is asked only
	// when that depends neither on chance nor on what was observed.
	First func(a *rules.Action, set *signal.Set) string
}

// Extract sets every kind of need in set to known or unknown, from text. It returns soon after ctx
// ends.
type Extract func(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)

// NotFound is what becomes of a request that names a model which is not configured.
func NotFound() *Redecision {
	return &Redecision{Route: RouteNotFound, Outcome: "model_not_found", Action: Action{Verb: "block"}}
}

// Redecide decides a logged request by c, from the signals in the log. What the log lacks, or has
// from another model or another definition, is extracted again where the text of the request was
// recorded and c can; else it is named as missing. It returns an error only when ctx ends. It is
// safe for concurrent use.
func Redecide(ctx context.Context, c Configuration, l *Entry) (*Redecision, error) {
	if l.Cache == "exact" && l.Config != "" && l.Config == c.Identity.Config {
		// That there was a response means that these rules had decided the same request. No signal was
		// computed for this one.
		return &Redecision{Route: l.Route, Outcome: l.Outcome, Action: l.Action}, nil
	}
	r := &recall{Configuration: c, led: l.led()}
	r.remember(l)
	return r.decide(ctx)
}

// recall is a logged request on its way to a decision.
type recall struct {
	Configuration

	led    bool         // see Entry.led
	bare   rules.Action // of a request that goes to the model it names
	set    signal.Set
	text   signal.Text // empty when it was not recorded
	doubts []doubt
	opaque map[string]bool // headers whose value cannot be told; true once rules have read one
}

// doubt is something that the log does not tell and that can only be one of a few things.
type doubt struct {
	name    string
	choices int
	take    func(choice int)
}

// maxDoubts bounds how many combinations are tried, as a number of combinations.
const maxDoubts = 64

// remember fills in what the log knows.
func (r *recall) remember(l *Entry) {
	r.set.Facts = signal.Facts{
		Role: l.Request.Role, Tenant: l.Request.Tenant, Model: l.Request.Model, Tokens: l.Request.Tokens, Context: l.Request.Context,
		Turns: l.Request.Turns, Results: l.Request.Results, ToolLoop: l.Request.ToolLoop,
	}
	if l.Request.Session {
		r.set.Facts.Session = "named"
	}
	for _, w := range featureWords {
		if slices.Contains(l.Request.Features, w.name) {
			r.set.Facts.Features |= w.bit
		}
	}
	if l.Prompt != nil && len(l.Request.Contexts) == 0 { // what contexts say is not in the log
		r.text.LastUser, r.text.Before = l.Prompt.LastUser, l.Prompt.Before
		for _, s := range l.Prompt.Segments {
			r.text.Segments = append(r.text.Segments, signal.Segment{
				Role: s.Role, Text: s.Text,
				Origin: originOf(s.Origin),
			})
		}
	}
	id, named := r.Identity, r.Program.Origins()
	for name, s := range l.Signals {
		if k, ok := id.Names.Parse(name); ok && id.still(k, &s) && s.covers(id, k, named[k]) {
			v := s.value()
			s.speakFor(id, k, &v)
			r.set.Put(k, v)
		}
	}
	r.set.Fail(r.Program.Kinds()&^id.Provided, signal.ReasonNoModel)
	if s, ok := l.Signals[signal.Keyword.String()]; ok && r.set.Value(signal.Keyword).State == signal.Known {
		r.doubtKeywords(s.Sets)
	}
	r.headers(l.Request.Headers)
}

// still reports whether a logged signal is what the configuration would compute.
func (id *Identity) still(k signal.Kind, s *Signal) bool {
	if s.Definition != id.Definitions[k] || !id.Provided.Has(k) {
		return false
	}
	// Another number of windows chooses others of a long text.
	if selected(k) && s.Limit != id.Windows && (s.Read < s.Windows || s.Windows > id.Windows) && s.Windows > 0 {
		return false
	}
	// A model that was not there then may be there now.
	return s.State != "unknown" || s.Reason != string(signal.ReasonNoModel)
}

// value is the signal as rules read it.
func (s *Signal) value() signal.Value {
	v := signal.Value{
		State: signal.Known, Reason: signal.Reason(s.Reason), Label: s.Label, Score: s.Score, Labels: s.Labels, Probs: s.Probs, Source: s.Source,
		Windows: s.Windows, Read: s.Read, Partial: s.Partial, Verdicts: s.verdicts(),
	}
	if s.State == "unknown" {
		v.State = signal.Unknown
	}
	if s.Windows > 0 {
		v.Coverage = signal.Windowed
	}
	return v
}

// doubtKeywords notes the keyword sets that were not looked for then, or were other words: each
// matched or did not. Sets that are gone no rule reads.
func (r *recall) doubtKeywords(then map[string]string) {
	var labels []string
	matched := r.set.Value(signal.Keyword).Labels
	for _, name := range slices.Sorted(maps.Keys(r.Identity.Keywords)) {
		if then[name] == r.Identity.Keywords[name] {
			if slices.Contains(matched, name) {
				labels = append(labels, name)
			}
			continue
		}
		r.doubts = append(r.doubts, doubt{name: "keyword " + name, choices: 2, take: func(choice int) {
			labels := slices.Clone(r.set.Value(signal.Keyword).Labels)
			labels = slices.DeleteFunc(labels, func(l string) bool { return l == name })
			if choice == 1 {
				labels = append(labels, name)
			}
			r.setKeywords(labels)
		}})
	}
	r.setKeywords(labels)
}

func (r *recall) setKeywords(matched []string) {
	v := *r.set.Value(signal.Keyword)
	v.Labels = matched
	r.set.Put(signal.Keyword, v)
}

// headers makes the request's headers readable: literal values as they are, hashed ones by the
// words that rules compare them with. A header that the log does not have was absent or any of
// these words.
func (r *recall) headers(logged map[string]Header) {
	id := r.Identity
	known := make(map[string][]string, len(logged))
	r.opaque = make(map[string]bool)
	for _, name := range r.Program.Headers() {
		h, ok := logged[name]
		words := id.HeaderWords[name]
		switch {
		case !ok && id.HeaderPatterns[name], len(h.Hashed) > 0 && id.HeaderPatterns[name]:
			r.opaque[name] = false
		case !ok:
			r.doubts = append(r.doubts, doubt{name: "header " + name, choices: len(words) + 1, take: func(choice int) {
				known[name] = nil
				if choice > 0 {
					known[name] = words[choice-1 : choice]
				}
			}})
		default:
			known[name] = h.Literal
			for _, w := range words {
				if slices.Contains(h.Hashed, HashHeader(name, w)) {
					known[name] = append(known[name], w)
				}
			}
		}
	}
	r.set.Facts.Header = func(name string) []string {
		if _, ok := r.opaque[name]; ok {
			r.opaque[name] = true
		}
		return known[name]
	}
}

// decide settles the decision for every combination of doubts and says it when they agree.
func (r *recall) decide(ctx context.Context) (*Redecision, error) {
	if len(r.text.Segments) > 0 && r.Able.Has(signal.Keyword) {
		r.reread()
	}
	combinations := 1
	for _, d := range r.doubts {
		if combinations *= d.choices; combinations > maxDoubts {
			return &Redecision{Missing: r.doubtful(nil)}, nil
		}
	}
	ends := make([]end, combinations)
	var first *Redecision
	var missing []string
	for i := range ends {
		rest := i
		for _, d := range r.doubts {
			d.take(rest % d.choices)
			rest /= d.choices
		}
		final, lacks, err := r.conclude(ctx)
		if err != nil {
			return nil, err
		}
		ends[i] = end{final.Route, final.Outcome, final.Action, strings.Join(lacks, ", ")}
		missing = merge(missing, lacks)
		if first == nil && len(lacks) == 0 {
			first = &Redecision{Route: final.Route, Outcome: OutcomeOf(final.Outcome), Action: ActionOf(final.Action, r.Prompts), Chosen: r.choice(&final)}
		}
	}
	if missing = merge(r.doubtful(ends), missing); len(missing) > 0 {
		return &Redecision{Missing: missing}, nil
	}
	return first, nil
}

// end is what one combination of doubts comes to.
type end struct {
	route   string
	outcome rules.Outcome
	action  *rules.Action
	missing string
}

// doubtful names the doubts that make a difference: somewhere, another choice of one alone ends
// otherwise. Without ends it names all.
func (r *recall) doubtful(ends []end) []string {
	var out []string
	stride := 1
	for _, d := range r.doubts {
		matters := ends == nil
		for i := range ends {
			matters = matters || ends[i] != ends[i-i/stride%d.choices*stride] // against its first choice
		}
		if matters {
			out = append(out, d.name)
		}
		stride *= d.choices
	}
	return out
}

// merge adds what is new in b to a.
func merge(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// led reports whether another thing than the route chose the model that was tried first: what the
// conversation had before, or a budget. Reasons are in the words of package decide.
func (e *Entry) led() bool {
	if strings.Contains(e.Budget, "cheaper") {
		return true
	}
	if e.Conversation == nil {
		return false
	}
	switch e.Conversation.Reason {
	case "", "rules", "subject", "figures", "not_permitted": // by the route, as if it were new
		return false
	}
	return true
}

// choice is the model that a decision tries first. What is drawn by weight or by conversation, or
// depends on lengths and latencies that were observed, is not known here.
func (r *recall) choice(final *rules.Decision) string {
	switch a := final.Action; {
	case r.led, final.Outcome == rules.Unavailable, a.Verb != rules.Use,
		a.By == "weight", a.By == "cost", a.By == "latency", a.Canary != nil:
		return ""
	}
	return r.First(final.Action, &r.set)
}

// reread looks for keywords again, in the recorded text, and drops the doubts about them.
func (r *recall) reread() {
	r.doubts = slices.DeleteFunc(r.doubts, func(d doubt) bool { return strings.HasPrefix(d.name, "keyword ") })
	r.set.Drop(signal.MaskOf(signal.Keyword))
}

// conclude steps to the end, extracting again what it can, or names what is missing.
func (r *recall) conclude(ctx context.Context) (final rules.Decision, missing []string, err error) {
	var read signal.Mask // whole: there is no more to be had
	for {
		clearMarks(r.opaque)
		var need signal.Mask
		final, need = r.Program.Step(&r.set)
		whole := false
		if need == 0 {
			if need = r.Unread(&final, &r.set) &^ read; need == 0 {
				break
			}
			whole = true
		}
		extract, ok := r.extractor(need, whole)
		if !ok {
			return final, r.Identity.needed(need, whole), nil
		}
		r.set.Drop(need)
		if extract(ctx, &r.text, need, &r.set); whole {
			read |= need & r.set.Have()
		}
		r.set.Fail(need, signal.ReasonInternal)
		if err := ctx.Err(); err != nil {
			return final, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.opaque)) {
		if r.opaque[name] {
			missing = append(missing, "header "+name)
		}
	}
	if r.Named != "" && final.Outcome == rules.Defaulted {
		final.Route, final.Action = rules.RouteNamed, &r.bare
	}
	return final, missing, nil
}

// extractor is what reads the recorded text for the signals of need; false when nothing can.
func (r *recall) extractor(need signal.Mask, whole bool) (Extract, bool) { //nolint:revive // whole is a fact about need
	if r.text.Segments == nil || need&^r.Able != 0 {
		return nil, false
	}
	if !whole {
		return r.Extract, true
	}
	return r.ExtractAll, r.ExtractAll != nil
}

func (id *Identity) needed(need signal.Mask, whole bool) []string { //nolint:revive // whole chooses a word
	var out []string
	for _, k := range need.Kinds() {
		name := id.Names.Of(k)
		if whole {
			name += " (every window)"
		}
		out = append(out, name)
	}
	return out
}

func clearMarks(marks map[string]bool) {
	for name := range marks {
		marks[name] = false
	}
}
