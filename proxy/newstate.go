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

// StateOptions holds the sections of one configuration that a State is built from, and the stores
// that outlive it.
type StateOptions struct {
	Models     []backend.ModelOptions // at least one
	Prompts    []settings.Prompt
	Auth       auth.Options
	Virtual    auth.Virtual // for callers with virtual keys; nil if there are none
	Server     settings.Server
	Limits     *settings.Limits // nil for defaults
	Program    *rules.Program
	Classifier signals.Classifier
	Generation uint64 // of the configuration

	// Guard configures how responses are checked, and Claims is what they are checked with. With
	// nil options the guard is off unless a request asks for it, and compares numbers only.
	Guard  *guardrail.Options
	Claims guardrail.Claims

	Identity decisionlog.Identity // of the configuration
	// minimum score for a label; a kind without an entry has no threshold
	Thresholds map[signal.Kind]float64
	Timeout    time.Duration // for all signals of a request; 0 leaves the limit to the classifier
	Patience   time.Duration // how long the classifier searches for personal data; 0 if unknown

	// Stick configures how conversations stay with their models. Talks stores their states and may
	// be shared with other states of the proxy. Without a store, or with a MaxAge of 0, every turn
	// is decided anew.
	Stick decide.StickOptions
	Talks *conversation.Store

	// Outcomes configures how the choice among models uses the outcomes stored in Learnt. A nil
	// store turns this off.
	Outcomes decide.OutcomeOptions
	Learnt   *outcomes.Store

	// Cache configures which responses are stored in Answers; without Answers nothing is stored.
	// Fingerprint is part of every cache key and must change with anything that affects decisions
	// and is not part of the request.
	Cache       recall.Options
	Answers     *recall.Answers
	Fingerprint string

	// Salt is the secret from which cache salts are derived, and the stand-ins for forwarded
	// credentials in the keys of cached responses. Without one, a state takes over the secret of
	// its predecessor; the first state generates a random one.
	Salt []byte
}

// NewState builds a snapshot and its pool. The error lists every bad option, one "section: field:
// problem" per line. The caller must have checked that the program names only these models and
// prompts. NewState starts nothing; endpoints count as healthy until a check or a request shows
// otherwise.
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

// bare builds a state with models, keys and rules only.
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

// cache sets up the response cache. It does nothing when no route uses it.
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

// seenTurns is the number of turns for which the next turn is awaited, to infer outcomes from it.
const seenTurns = 10_000
