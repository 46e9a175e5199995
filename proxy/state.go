package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/auth"
	"signalbox/proxy/choose"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/lengths"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

// Classifier extracts signals from text. Implementations are safe for concurrent use.
type Classifier interface {
	// Extract sets every kind of need in set to known or unknown; a kind that it leaves alone is
	// taken for unknown. It returns soon after ctx ends. It keeps neither text nor set, and what it
	// stores in set is not changed afterwards.
	Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
	// Signals returns the kinds that it can compute now.
	Signals() signal.Mask
	// Degraded names what does not work as configured, in words for /readyz; empty when all is well.
	Degraded() []string
}

// State is what requests are served from: one configuration, immutable but for the health of its
// endpoints. It is safe for concurrent use.
type State struct {
	opts        Options
	limits      LimitOptions
	auth        *auth.Keys
	models      []*model // in the order of the configuration
	byName      map[string]*model
	prompts     map[string]string
	vague       []string // normalised
	program     *rules.Program
	classifier  Classifier
	readHeaders []string // canonical names that rules depend on
	generation  uint64
	identity    decisionlog.Identity // of the configuration
	thresholds  map[signal.Kind]float64
	priciest    choose.Price   // what every answer is compared with
	chooser     choose.Chooser // its speeds and lengths are of all states of a proxy
	watch       *watch         // the guard
	salts       *salts
	chains      *chains     // of stored contexts; of all states of a proxy
	salted      bool        // they come from a secret of the configuration
	forwards    bool        // some endpoint gets what callers show
	steering    *steering   // what callers may say to model servers
	notices     *notices    // to and from other replicas; of all states of a proxy
	answers     *Answers    // that are kept; nil without any
	caching     *caching    // nil where the cache is off everywhere
	keywords    keywordMemo // of contexts

	refs atomic.Int64  // requests that use it, and one for being the current one
	idle chan struct{} // closed when refs falls to 0
}

// NewState builds a snapshot and its pool. It reports every bad option, one "section: field: problem"
// a line. That the program names only these models and prompts is for the caller to have checked.
// It starts nothing; endpoints count as healthy until a check or a request says otherwise.
func NewState(models []ModelOptions, prompts []PromptOptions, who auth.Options, opts Options, program *rules.Program, c Classifier, generation uint64, tel *telemetry.Telemetry) (*State, error) {
	if err := validateAll(models, prompts, who, opts); err != nil {
		return nil, err
	}
	keys, err := auth.New(who)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	st := &State{
		opts: opts, limits: DefaultLimitOptions(), auth: keys, byName: make(map[string]*model, len(models)), prompts: make(map[string]string, len(prompts)),
		program: program, classifier: c, readHeaders: program.Headers(), generation: generation,
		steering: newSteering(opts.AllowEngineParams),
		idle:     make(chan struct{}), salts: newSalts(nil), notices: &notices{}, chains: &chains{},
		chooser: choose.Chooser{
			Models: make(map[string]*choose.Model, len(models)), Speeds: choose.NewSpeeds(time.Now), Lengths: lengths.New(), Intn: rand.IntN,
		},
	}
	watch, err := newWatch(DefaultGuardOptions(), Claims{}, tel.Metrics)
	if err != nil {
		return nil, err
	}
	st.watch = watch
	for _, o := range models {
		m, err := newModel(o, opts, &notice{st.notices, o.Name})
		if err != nil {
			return nil, err
		}
		st.models = append(st.models, m)
		st.byName[o.Name], st.chooser.Models[o.Name] = m, m.Model
		st.forwards = st.forwards || m.ForwardsAuth()
		if o.Price.Input+o.Price.Output > st.priciest.Input+st.priciest.Output {
			st.priciest = o.Price
		}
	}
	for _, o := range prompts {
		st.prompts[o.Name] = o.Text
	}
	for _, s := range opts.VaguePrompts {
		st.vague = append(st.vague, normalise(s))
	}
	st.refs.Store(1)
	return st, nil
}

func validateAll(models []ModelOptions, prompts []PromptOptions, who auth.Options, opts Options) error {
	var p option.Problems
	p.Join("server", opts.Validate())
	p.Join("auth", who.Validate())
	if len(models) == 0 {
		p.Addf("models", "at least one is required")
	}
	seen := option.Unique{}
	for i, m := range models {
		at := fmt.Sprintf("models[%d]", i)
		p.Join(at, m.Validate())
		seen.Check(&p, at+".name", m.Name)
	}
	named := option.Unique{}
	for i, o := range prompts {
		at := fmt.Sprintf("prompts[%d]", i)
		p.Name(at+".name", o.Name)
		named.Check(&p, at+".name", o.Name)
		if o.Text == "" {
			p.Addf(at+".text", "a text is required")
		}
	}
	return p.Err()
}

// hold takes a reference; false when the state is no longer served from.
func (st *State) hold() bool {
	for {
		n := st.refs.Load()
		if n == 0 {
			return false
		}
		if st.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back.
func (st *State) release() {
	if st.refs.Add(-1) == 0 {
		close(st.idle)
	}
}

// Idle is closed when no request uses st any more and none will. What st was made of, such as its
// classifier, may be released then.
func (st *State) Idle() <-chan struct{} { return st.idle }

// groups lists the endpoints of every model.
func (st *State) groups() []*pool.Group {
	out := make([]*pool.Group, len(st.models))
	for i, m := range st.models {
		out[i] = m.Group
	}
	return out
}

// inherit takes over what an older state learned about endpoints that both have.
func (st *State) inherit(old *State) {
	st.chooser.Speeds, st.chooser.Lengths = old.chooser.Speeds, old.chooser.Lengths
	st.notices.board.Store(old.notices.board.Load())
	st.chains = old.chains
	st.auth.Adopt(old.auth)
	if !st.salted {
		st.salts = old.salts
	}
	for _, m := range st.models {
		if before, ok := old.byName[m.Name]; ok {
			m.Adopt(before.Group)
			m.where.adopt(before.where)
		}
	}
}
