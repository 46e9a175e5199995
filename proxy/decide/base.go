package decide

import (
	"signalbox/memory/conversation"
	"signalbox/memory/outcomes"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/recall"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

// Base is what the decisions of one configuration are made from. Once in use it is immutable,
// except for what its stores learn, and safe for concurrent use.
type Base struct {
	Signals     *signals.Reader
	Program     *rules.Program
	ReadHeaders []string         // canonical names of the headers that rules read
	Models      []*backend.Model // in the order of the configuration
	ByName      map[string]*backend.Model
	Chooser     choose.Chooser // its speeds and lengths are shared by all states of a proxy

	AutoModels  []string // the model names that ask for routing
	RoutesNamed bool     // evaluate every route for requests that name a model, too

	Caching  *recall.Cache // nil when caching is off everywhere
	Stick    StickOptions
	Talks    *conversation.Store // states of conversations; nil when stickiness is off
	Learning OutcomeOptions
	Outcomes *outcomes.Store // outcomes to learn from; nil when learning is off
}
