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

// Decision is where a request goes and what that was based on. It belongs to the goroutine of its
// request.
type Decision struct {
	rules.Decision

	Set      *signal.Set
	Base     *Base             // the configuration that decides
	Who      auth.Principal    // the caller
	Request  *openai.Request   // the request; nil when only its signals are known
	Contexts *resolve.Contexts // that the request names; nil if it names none
	Text     signal.Text       // what signals were read from; empty when none was read
	Program  *rules.Program    // the program that decided
	Lookup   *recall.Lookup    // cache lookup; nil when caching is off everywhere
	Talk     *Talk             // its conversation; nil if there is none
	Kept     *Kept             // the server state that the request continues; nil if none is known
	// id, as JSON, to send in place of one that a rule's answer has; empty to keep the client's
	Previous string
	Named    string        // the configured model that the client named; empty for routing
	Arm      string        // arm of the canary; empty if there is none
	Saving   budget.Saving // applied because a budget is nearly exhausted
	Lacking  []string      // what the check of the response is missing
	Dropped  signal.Mask   // signals cancelled because others settled the decision

	Decided    time.Time     // when the decision was made
	Elapsed    time.Duration // duration of the decision, extraction included
	Classified time.Duration // part of Elapsed spent waiting for signals

	DrawnEffort string             // effort drawn for the first model; empty without a draw
	Chances     map[string]float64 // by model, of all candidates; nil if there was no choice

	drawn  string  // first model, if outcomes chose it; otherwise empty
	chance float64 // probability with which it was drawn
	// expected figures of the candidates, from outcomes; nil if there are none
	expected []choose.Expected
	placings int    // number of times that its models were ordered
	seed     uint64 // of the conversation; 0 if no route needed it
}

// Caches returns the cache mode of a decided request, from its route or else from the `cache`
// section. A response to a redacted request is never stored, since what was hidden differs from
// request to request.
func (d *Decision) Caches() string {
	c := d.Base.Caching
	if c == nil || d.Action == nil || d.Action.Verb != rules.Use || d.Action.Redact != nil {
		return recall.ModeOff
	}
	return cmp.Or(d.Action.Cache, c.Opts.Mode)
}

// Vector returns the embedding of the last question; nil if there is none.
func (d *Decision) Vector() []float32 { return d.Set.Value(signal.Embedding).Vector }

// Restore sets the decision that led to a cached response. It returns false when that decision no
// longer exists.
func (d *Decision) Restore(a *cache.Answer) bool {
	taken, ok := d.Program.Taken(a.Route)
	if d.Named != "" && a.Route == rules.RouteNamed { // as in Conclude
		taken, ok = rules.Decision{Route: rules.RouteNamed, Index: -1, Outcome: rules.Defaulted, Action: &rules.Action{}}, true
	}
	d.Decision, d.Decided = taken, time.Now()
	return ok && d.Caches() != recall.ModeOff && d.Base.ByName[a.Model] != nil
}

// Ask returns the request in the form that the guard needs.
func (d *Decision) Ask() *guardrail.Ask {
	return &guardrail.Ask{
		Action: d.Action, Request: d.Request, Contexts: d.Contexts, Classifier: d.Base.Signals.Classifier,
	}
}
