package decide

import (
	"cmp"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/cache"
	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/recall"
	"signalbox/proxy/resolve"
	"signalbox/rules"
)

// Decision is where a request goes and what it was based on. It belongs to the goroutine of its
// request.
type Decision struct {
	rules.Decision

	Set      *signal.Set
	Base     *Base             // that requests are decided by
	Who      auth.Principal    // that makes the request
	Request  *openai.Request   // what was decided; nil where only its signals are known
	Contexts *resolve.Contexts // that it names; nil without any
	Text     signal.Text       // what signals were read from; empty when none was
	Program  *rules.Program    // that made it
	Lookup   *recall.Lookup    // of the cache; nil where it is off everywhere
	Talk     *Talk             // the conversation that it belongs to; nil for none
	Kept     *Kept             // what its servers have that the request goes on with; nil where none is known
	Previous string            // what it goes on with in place of a rule's answer, as JSON; empty for what it names
	Named    string            // the configured model that the client named; empty when it asked for routing
	Arm      string            // of a route that tries a model out; empty for none
	Saving   budget.Saving     // what is saved with, as a budget is nearly used up
	Lacking  []string          // what the check of the response has to do without
	Dropped  signal.Mask       // signals whose extraction was cancelled because the others settled it

	Decided    time.Time     // when it was made
	Elapsed    time.Duration // from the first step to the last, extraction included
	Classified time.Duration // of it, waiting for signals

	DrawnEffort string             // at which the first model was drawn to reason; empty where outcomes did not choose it
	Chances     map[string]float64 // of all candidates; nil where there was no choice

	drawn    string            // the model that came first; empty where outcomes chose none
	chance   float64           // with which it was
	expected []choose.Expected // of the candidates, by outcomes; nil without any
	placings int               // times that its models were put in order to be tried
	seed     uint64            // of the conversation; 0 where no route asked
}

// Caches is the mode of the cache for a decided request: as its route says, or the section where it
// says nothing. What was hidden from the model differs from request to request, so a response to
// that is never kept.
func (d *Decision) Caches() string {
	c := d.Base.Caching
	if c == nil || d.Action == nil || d.Action.Verb != rules.Use || d.Action.Redact != nil {
		return recall.ModeOff
	}
	return cmp.Or(d.Action.Cache, c.Opts.Mode)
}

// Vector is the embedding of the last question, nil without one.
func (d *Decision) Vector() []float32 { return d.Set.Value(signal.Embedding).Vector }

// Restore takes the decision that led to a response. It reports false when there is no such
// decision any more.
func (d *Decision) Restore(a *cache.Answer) bool {
	taken, ok := d.Program.Taken(a.Route)
	if d.Named != "" && a.Route == rules.RouteNamed { // as conclude has it
		taken, ok = rules.Decision{Route: rules.RouteNamed, Index: -1, Outcome: rules.Defaulted, Action: &rules.Action{}}, true
	}
	d.Decision, d.Decided = taken, time.Now()
	return ok && d.Caches() != recall.ModeOff && d.Base.ByName[a.Model] != nil
}

// Ask is the request as the guard looks at it.
func (d *Decision) Ask() *guardrail.Ask {
	return &guardrail.Ask{
		Action: d.Action, Request: d.Request, Contexts: d.Contexts, Classifier: d.Base.Signals.Classifier,
	}
}
