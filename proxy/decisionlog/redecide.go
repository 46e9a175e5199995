package decisionlog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/rules"
)

// Redecision is how a logged request would be decided under another configuration.
type Redecision struct {
	Route   string
	Outcome string // as in Entry, or "model_not_found"
	Action  Action
	Chosen  string // the first model to try; empty if that depends on chance or on observations
	// Missing lists, in words, what the decision needs and the log lacks. If it is not empty, all
	// other fields are.
	Missing []string
}

// RouteNotFound replaces the route when the model that a request names is no longer configured.
const RouteNotFound = "(model not found)"

// Configuration is what a logged request is decided by. Its functions are safe for concurrent use.
type Configuration struct {
	Identity *Identity
	Program  *rules.Program    // the program for this request
	Named    string            // the model that the request names; empty for routing
	Prompts  map[string]string // texts of the system prompts by name

	Able       signal.Mask // signals that can be computed now
	Extract    Extract
	ExtractAll Extract // reads every window; nil if nothing can

	// Unread returns the signals of which the decision's route requires more of the text to be
	// read.
	Unread func(d *rules.Decision, set *signal.Set) signal.Mask
	// First returns the model that the action tries first among those that the caller may use. It
	// is empty if there is none, or if the caller's permissions are unknown. It is called only when
	// the answer depends neither on chance nor on observations.
	First func(a *rules.Action, set *signal.Set) string
}

// Extract sets every kind in need to known or unknown, from text. It returns soon after ctx ends.
type Extract func(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)

// NotFound returns the result for a request that names a model that is not configured.
func NotFound() *Redecision {
	return &Redecision{Route: RouteNotFound, Outcome: "model_not_found", Action: Action{Verb: "block"}}
}

// Redecide decides a logged request by c, using the logged signals. A signal that is missing, or
// comes from another model or definition, is computed again if the text was recorded and c can;
// otherwise it is listed as missing. Redecide returns an error only when ctx ends. It is safe for
// concurrent use.
func Redecide(ctx context.Context, c Configuration, l *Entry) (*Redecision, error) {
	if l.Cache == "exact" && l.Config != "" && l.Config == c.Identity.Config {
		// A cached response exists only because these rules decided the same request before. No
		// signal was computed for this one.
		return &Redecision{Route: l.Route, Outcome: l.Outcome, Action: l.Action}, nil
	}
	r := &recall{Configuration: c, led: l.led()}
	r.remember(l)
	return r.decide(ctx)
}

// recall is a logged request that is being decided again.
type recall struct {
	Configuration

	led    bool         // see Entry.led
	bare   rules.Action // action of a request that goes to the model it names
	set    signal.Set
	text   signal.Text // empty if it was not recorded
	doubts []doubt
	opaque map[string]bool // headers whose value is unknown; true once rules have read one
}

// doubt is something that the log does not contain and that has few possible values.
type doubt struct {
	name    string
	choices int
	take    func(choice int)
}

// maxDoubts is the maximum number of combinations tried.
const maxDoubts = 64

// remember sets everything that the log contains.
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
	if l.Prompt != nil && len(l.Request.Contexts) == 0 {
		// the log does not contain the texts of contexts
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

// still reports whether the configuration would compute the same value as the logged signal.
func (id *Identity) still(k signal.Kind, s *Signal) bool {
	if s.Definition != id.Definitions[k] || !id.Provided.Has(k) {
		return false
	}
	// A different number of windows selects different windows of a long text.
	if selected(k) && s.Limit != id.Windows && (s.Read < s.Windows || s.Windows > id.Windows) && s.Windows > 0 {
		return false
	}
	// A model that was missing then may be present now.
	return s.State != "unknown" || s.Reason != string(signal.ReasonNoModel)
}

// value returns the signal in the form that rules read.
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

// doubtKeywords adds a doubt for each keyword set that was not searched for then, or has changed:
// it may have matched or not. No rule reads the sets that were removed.
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

// headers makes the request's headers readable: literal values directly, hashed ones by comparison
// with the words in the rules. A header that the log lacks was absent or had one of these words.
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

// decide makes the decision for every combination of doubts, and returns it if all agree.
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

// end is the decision for one combination of doubts.
type end struct {
	route   string
	outcome rules.Outcome
	action  *rules.Action
	missing string
}

// doubtful names the doubts that matter: those for which changing only that one changes some
// decision. Without ends it names all.
func (r *recall) doubtful(ends []end) []string {
	var out []string
	stride := 1
	for _, d := range r.doubts {
		matters := ends == nil
		for i := range ends {
			// compared with its first choice
			matters = matters || ends[i] != ends[i-i/stride%d.choices*stride]
		}
		if matters {
			out = append(out, d.name)
		}
		stride *= d.choices
	}
	return out
}

// merge appends to a the elements of b that it lacks.
func merge(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// led reports whether something other than the route chose the first model: the conversation's
// previous turn, or a budget. Reasons are those of package decide.
func (e *Entry) led() bool {
	if strings.Contains(e.Budget, "cheaper") {
		return true
	}
	if e.Conversation == nil {
		return false
	}
	switch e.Conversation.Reason {
	case "", "rules", "subject", "figures", "not_permitted":
		// chosen by the route, as for a new conversation
		return false
	}
	return true
}

// choice returns the model that a decision tries first. It is unknown when it is drawn by weight or
// by conversation, or depends on observed lengths and latencies.
func (r *recall) choice(final *rules.Decision) string {
	switch a := final.Action; {
	case r.led, final.Outcome == rules.Unavailable, a.Verb != rules.Use,
		a.By == "weight", a.By == "cost", a.By == "latency", a.Canary != nil:
		return ""
	}
	return r.First(final.Action, &r.set)
}

// reread searches the recorded text for keywords and drops the doubts about them.
func (r *recall) reread() {
	r.doubts = slices.DeleteFunc(r.doubts, func(d doubt) bool { return strings.HasPrefix(d.name, "keyword ") })
	r.set.Drop(signal.MaskOf(signal.Keyword))
}

// conclude steps through the rules to the end, computing signals again where possible; otherwise it
// lists what is missing.
func (r *recall) conclude(ctx context.Context) (final rules.Decision, missing []string, err error) {
	var read signal.Mask // in full: no more can be had
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

// extractor returns the function that reads the recorded text for the signals in need; false if
// there is none.
func (r *recall) extractor(need signal.Mask, whole bool) (Extract, bool) { //nolint:revive // whole describes need
	if r.text.Segments == nil || need&^r.Able != 0 {
		return nil, false
	}
	if !whole {
		return r.Extract, true
	}
	return r.ExtractAll, r.ExtractAll != nil
}

func (id *Identity) needed(need signal.Mask, whole bool) []string { //nolint:revive // whole selects a word
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
