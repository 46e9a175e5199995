package proxy

import (
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/conversation"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/resolve"
	"signalbox/rules"
)

// decision is where a request goes and what it was based on.
type decision struct {
	rules.Decision
	set         *signal.Set
	state       *State             // that requests are decided by
	who         Principal          // that makes the request
	request     *openai.Request    // what was decided; nil where only its signals are known
	contexts    *resolve.Contexts  // that it names; nil without any
	text        signal.Text        // what signals were read from; empty when none was
	program     *rules.Program     // that made it
	memo        *memo              // of the cache; nil where it is off everywhere
	talk        *talk              // the conversation that it belongs to; nil for none
	hideAll     bool               // personal data is replaced once the contexts are in the body
	tools       *toolset           // that the model is offered; nil for all of them
	results     *resultset         // results of tools that are sent in short; nil for none
	lacking     []string           // what the check of the answer has to do without
	dropped     signal.Mask        // signals whose extraction was cancelled because the others settled it
	model       string             // the configured model that the client named; empty when it asked for routing
	elapsed     time.Duration      // from the first step to the last, extraction included
	classified  time.Duration      // of it, waiting for signals
	drawn       string             // the model that came first; empty where outcomes chose none
	drawnEffort string             // at which it was drawn to reason; empty where that was not chosen by outcomes
	chance      float64            // with which it was
	chances     map[string]float64 // of all candidates; nil where there was no choice
	expected    []choose.Expected  // of the candidates, by outcomes; nil without any
	placings    int                // times that its models were put in order to be tried
	inArm       string             // of a route that tries a model out; empty for none
	seed        uint64             // of the conversation; 0 where no route asked
	decided     time.Time
	thrift      budget.Thrift // what is saved with, as a budget is nearly used up
}

// caches is the mode of the cache for a decided request: as its route says, or the section where it
// says nothing. What was hidden from the model differs from request to request, so an answer to
// that is never kept.
func (d *decision) caches() string {
	c := d.state.caching
	if c == nil || d.Action == nil || d.Action.Verb != rules.Use || d.Action.Redact {
		return cacheOff
	}
	if d.Action.Cache != "" {
		return d.Action.Cache
	}
	return c.opts.Mode
}

// vector is the embedding of the last question, nil without one.
func (d *decision) vector() []float32 { return d.set.Values[signal.Embedding].Vector }

// toolset is a list of tools of which some stay away from the model.
type toolset struct {
	field string // of the body
	json  []byte // its value
	kept  int
	named int
}

// resultset are the messages whose texts are short, by their place.
type resultset struct {
	texts map[int]string
	named int // results of tools
}

// talk is what is known of the conversation that a request belongs to. It belongs to the request's
// goroutine. Nil stands for a request that belongs to none, as where stickiness is off.
type talk struct {
	keys   []conversation.Key             // under which the next turn will look
	found  []conversation.Key             // under one of which the turn before was found
	before *conversation.State            // nil where nothing is known
	named  bool                           // the client names it, so that requests may leave out what was said
	short  bool                           // this one does
	tool   bool                           // the request brings results of tools to the model that asked for them
	price  float64                        // the gain that a move has to bring, in [0,1]
	gain   float64                        // the greatest of a topic that was kept
	held   *[signal.NumKinds]signal.Value // topics that stay what they were; nil where none does
	holds  signal.Mask                    // the kinds of held
	moved  bool                           // the subject did
	result string
	why    string
	told   bool // a model was asked: result holds
}
