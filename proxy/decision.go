package proxy

import (
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/resolve"
	"signalbox/rules"
)

// decision is where a request goes and what it was based on.
type decision struct {
	rules.Decision
	set        *signal.Set
	state      *State            // that requests are decided by
	who        Principal         // that makes the request
	request    *openai.Request   // what was decided; nil where only its signals are known
	contexts   *resolve.Contexts // that it names; nil without any
	text       signal.Text       // what signals were read from; empty when none was
	program    *rules.Program    // that made it
	memo       *memo             // of the cache; nil where it is off everywhere
	talk       *talk             // the conversation that it belongs to; nil for none
	hideAll    bool              // personal data is replaced once the contexts are in the body
	tools      *toolset          // that the model is offered; nil for all of them
	results    *resultset        // results of tools that are sent in short; nil for none
	lacking    []string          // what the check of the answer has to do without
	dropped    signal.Mask       // signals whose extraction was cancelled because the others settled it
	model      string            // the configured model that the client named; empty when it asked for routing
	elapsed    time.Duration     // from the first step to the last, extraction included
	classified time.Duration     // of it, waiting for signals
	drawn      string            // the model that came first; empty where outcomes chose none
	chance     float64           // with which it did
	expected   []choose.Expected // of the candidates, by outcomes; nil without any
	inArm      string            // of a route that tries a model out; empty for none
	seed       uint64            // of the conversation; 0 where no route asked
	decided    time.Time
	thrift     budget.Thrift // what is saved with, as a budget is nearly used up
}
