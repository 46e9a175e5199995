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

// Base is what the decisions of one configuration are made from. It is immutable once it is used,
// but for what its stores learn, and safe for concurrent use.
type Base struct {
	Signals     *signals.Reader
	Program     *rules.Program
	ReadHeaders []string         // canonical names that rules depend on
	Models      []*backend.Model // in the order of the configuration
	ByName      map[string]*backend.Model
	Chooser     choose.Chooser // its speeds and lengths are of all states of a proxy

	AutoModels  []string // the names that ask for routing
	RoutesNamed bool     // every route is evaluated for requests that name a model, too

	Caching  *recall.Cache // nil where the cache is off everywhere
	Stick    StickOptions
	Talks    *conversation.Store // states of conversations; nil where nothing sticks
	Learning OutcomeOptions
	Outcomes *outcomes.Store // that are learnt from; nil where nothing is
}
