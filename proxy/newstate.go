package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/memory/cache"
	"signalbox/memory/conversation"
	"signalbox/memory/outcomes"
	"signalbox/memory/outcomes/signs"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/chain"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/engine"
	"signalbox/proxy/explain"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/lengths"
	"signalbox/proxy/mirror"
	"signalbox/proxy/placement"
	"signalbox/proxy/recall"
	"signalbox/proxy/record"
	"signalbox/proxy/relay"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/settings"
	"signalbox/proxy/signals"
	"signalbox/proxy/tools"
	"signalbox/rules"
)

// StateOptions is what a State is made of: the sections of one configuration, and what outlives it.
type StateOptions struct {
	Models     []backend.ModelOptions // at least one
	Prompts    []settings.Prompt
	Auth       auth.Options
	Virtual    auth.Virtual // callers with virtual keys; nil for none
	Server     settings.Server
	Limits     *settings.Limits // nil for the defaults
	Program    *rules.Program
	Classifier signals.Classifier
	Generation uint64 // of the configuration

	// Guard says how responses are checked, and Claims by what. Without options the guard is off
	// where nobody asks for it, and compares numbers alone.
	Guard  *guardrail.Options
	Claims guardrail.Claims

	Identity   decisionlog.Identity    // of the configuration
	Thresholds map[signal.Kind]float64 // from which a label is told; a kind that is not there has none
	Timeout    time.Duration           // of all that the rules of a request ask for; 0 where only the classifier bounds it
	Patience   time.Duration           // how long the classifier looks for personal data; 0 where that is not known

	// Stick makes conversations stay with their models, by the states in Talks, which other states
	// of a proxy may use as well. Without a store, or with a MaxAge of 0, every turn is decided
	// anew.
	Stick decide.StickOptions
	Talks *conversation.Store

	// Outcomes says how the choice among models learns from what Learnt keeps; nil for nothing.
	Outcomes decide.OutcomeOptions
	Learnt   *outcomes.Store

	// Cache says which responses are stored, in Answers, and under which fingerprint: whatever
	// decides requests, and is not in them, has to change it. Nothing is stored without Answers.
	Cache       recall.Options
	Answers     *recall.Answers
	Fingerprint string

	// Salt is the secret that cache salts, and what stands for forwarded credentials in keys of
	// responses, are made from. Without one, a state takes that of the one before, the first one a
	// random secret.
	Salt []byte
}

// NewState builds a snapshot and its pool. It reports every bad option, one "section: field:
// problem" a line. That the program names only these models and prompts is for the caller to have
// checked. It starts nothing; endpoints count as healthy until a check or a request says otherwise.
func NewState(o *StateOptions, tel *telemetry.Telemetry) (*State, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	st, err := o.bare(tel)
	if err != nil {
		return nil, err
	}
	if o.Virtual != nil {
		st.auth.Accept(o.Virtual)
	}
	if o.Limits != nil {
		st.limits = *o.Limits
	}
	st.Signals.Identity, st.Signals.Thresholds = o.Identity, o.Thresholds
	st.Signals.Timeout, st.Signals.Patience = o.Timeout, o.Patience
	if o.Salt != nil {
		st.places.Salts, st.salted = engine.NewSalts(o.Salt), true
	}
	st.Stick, st.Talks = o.Stick, o.Talks
	if o.Learnt != nil && o.Outcomes.On() {
		st.Outcomes, st.Learning = o.Learnt, o.Outcomes
	}
	if o.Answers != nil {
		if err := st.cache(o); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	st.refs.Store(1)
	watch := guardrail.DefaultOptions()
	if o.Guard != nil {
		watch = *o.Guard
	}
	if st.guard, err = guardrail.New(watch, o.Claims, tel.Metrics); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	st.relay = relay.Stage{Metrics: tel.Metrics, Explainer: explain.Explainer{Guard: st.guard, Edits: st.edits}}
	return st, nil
}

// bare is a state of models, keys and rules alone.
func (o *StateOptions) bare(tel *telemetry.Telemetry) (*State, error) {
	keys, err := auth.New(o.Auth)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	st := &State{
		Base: decide.Base{
			Signals: &signals.Reader{Classifier: o.Classifier}, Program: o.Program, ReadHeaders: o.Program.Headers(),
			ByName:     make(map[string]*backend.Model, len(o.Models)),
			AutoModels: o.Server.AutoModels, RoutesNamed: o.Server.RouteNamedModels,
			Chooser: choose.Chooser{
				Models: make(map[string]*choose.Model, len(o.Models)), Speeds: choose.NewSpeeds(time.Now),
				Lengths: lengths.New(), Spent: choose.NewAccounts(), Intn: rand.IntN,
			},
		},
		opts: o.Server, limits: settings.DefaultLimits(), auth: keys,
		edits:    rewrite.NewOptions(o.Prompts, o.Server.VaguePrompts, o.Server.AutoMaxTokens),
		controls: engine.NewControls(o.Server.AllowEngineParams), metrics: tel.Metrics,
		idle: make(chan struct{}), notices: &backend.Boards{},
	}
	st.book = record.Book{
		Base: &st.Base, Generation: o.Generation, Prompts: st.edits.Prompts, Tenants: record.TenantsOf(&o.Auth),
		Copies: mirror.NewPool(), Seen: signs.New(seenTurns, time.Now),
		MaxRetryAfter: time.Duration(o.Server.MaxRetryAfter),
	}
	st.places = placement.Places{
		Off: o.Server.Placement == settings.PlacementOff, Salts: engine.NewSalts(nil), Chains: &chain.Memo{},
		Prompts: st.edits.Prompts,
	}
	defaults := &backend.Defaults{
		FirstByte: time.Duration(o.Server.FirstByteTimeout), Answer: time.Duration(o.Server.AnswerTimeout),
		Gap: time.Duration(o.Server.GapTimeout), Connect: time.Duration(o.Server.ConnectTimeout),
		Board: st.notices.Of,
	}
	for _, x := range o.Models {
		m, err := backend.New(x, defaults)
		if err != nil {
			return nil, err
		}
		st.Models = append(st.Models, m)
		tel.Metrics.Serves(x.Name)
		st.ByName[x.Name], st.Chooser.Models[x.Name] = m, m.Model
		st.forwards = st.forwards || m.ForwardsAuth()
		if x.Price.Input+x.Price.Output > st.book.Priciest.Input+st.book.Priciest.Output {
			st.book.Priciest = x.Price
		}
	}
	for t := range st.book.Tenants {
		tel.Metrics.ServesTenant(t)
	}
	st.tools, st.results = tools.NewMemo(), tools.NewShortForms()
	return st, nil
}

// validate reports every bad option.
func (o *StateOptions) validate() error {
	var p option.Problems
	p.Join("server", o.Server.Validate())
	p.Join("auth", o.Auth.Validate())
	if o.Limits != nil {
		p.Join("limits", o.Limits.Validate(o.Server.MaxBodyBytes))
	}
	if o.Talks != nil {
		p.Join("stick", o.Stick.Validate())
	}
	if o.Learnt != nil {
		p.Join("outcomes", o.Outcomes.Validate())
	}
	if o.Answers != nil {
		p.Join("cache", o.Cache.Validate())
	}
	if len(o.Models) == 0 {
		p.Addf("models", "at least one is required")
	}
	seen := option.Unique{}
	for i := range o.Models {
		m := &o.Models[i]
		at := fmt.Sprintf("models[%d]", i)
		p.Join(at, m.Validate())
		seen.Check(&p, at+".name", m.Name)
	}
	named := option.Unique{}
	for i, x := range o.Prompts {
		at := fmt.Sprintf("prompts[%d]", i)
		p.Name(at+".name", x.Name)
		named.Check(&p, at+".name", x.Name)
		if x.Text == "" {
			p.Addf(at+".text", "a text is required")
		}
	}
	return p.Err()
}

// cache makes what stores responses; nothing where no route stores any.
func (st *State) cache(from *StateOptions) error {
	o, a := from.Cache, from.Answers
	st.answers = a
	actions := st.Program.Actions()
	uses := func(mode string) bool {
		return o.Mode == mode || slices.ContainsFunc(actions, func(a *rules.Action) bool { return a.Cache == mode })
	}
	c := &recall.Cache{Opts: o, Answers: a, Fingerprint: from.Fingerprint, Similar: uses(recall.ModeSemantic), Treatments: make(map[*rules.Action]string, len(actions))}
	if !c.Similar && !uses(recall.ModeExact) {
		return nil
	}
	c.Identifier = cache.Identifier{MaxTemperature: o.MaxTemperature, Literal: !c.Similar}
	var err error
	c.Cache, err = cache.New(a.Store, cache.Options{TTL: time.Duration(o.TTL), MinSimilarity: o.MinSimilarity, MaxEntries: o.MaxEntries, Index: a.Index})
	if err != nil {
		return err
	}
	for _, a := range actions {
		c.Treatments[a] = recall.Treatment(a)
	}
	st.Caching = c
	return nil
}

// seenTurns is of how many turns the next ones are waited for.
const seenTurns = 10_000
