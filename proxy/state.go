package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
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
	auth        auth
	models      []*model // in the order of the configuration
	byName      map[string]*model
	prompts     map[string]string
	vague       []string // normalised
	program     *rules.Program
	classifier  Classifier
	readHeaders []string // canonical names that rules depend on
	generation  uint64
	identity    Identity     // of the configuration
	priciest    PriceOptions // what every answer is compared with
	intn        func(n int) int
	speeds      *speeds  // of all states of a proxy
	lengths     *lengths // of all states of a proxy

	refs atomic.Int64  // requests that use it, and one for being the current one
	idle chan struct{} // closed when refs falls to 0
}

// NewState builds a snapshot and its pool. It reports every bad option, one "section: field: problem"
// a line. That the program names only these models and prompts is for the caller to have checked.
// It starts nothing; endpoints count as healthy until a check or a request says otherwise.
func NewState(models []ModelOptions, prompts []PromptOptions, auth AuthOptions, opts Options, program *rules.Program, c Classifier, generation uint64, tel *telemetry.Telemetry) (*State, error) {
	if err := validateAll(models, prompts, auth, opts); err != nil {
		return nil, err
	}
	st := &State{
		opts: opts, auth: newAuth(auth), byName: make(map[string]*model, len(models)), prompts: make(map[string]string, len(prompts)),
		program: program, classifier: c, readHeaders: program.Headers(), generation: generation,
		intn: rand.IntN, speeds: newSpeeds(), lengths: newLengths(), idle: make(chan struct{}),
	}
	for _, o := range models {
		m, err := newModel(o, opts, tel.Metrics)
		if err != nil {
			return nil, err
		}
		st.models = append(st.models, m)
		st.byName[o.Name] = m
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

func validateAll(models []ModelOptions, prompts []PromptOptions, auth AuthOptions, opts Options) error {
	var p problems
	join := func(section string, err error) {
		if err != nil {
			p.list = append(p.list, fmt.Errorf("%s: %w", section, err))
		}
	}
	join("server", opts.Validate())
	join("auth", auth.Validate())
	if len(models) == 0 {
		p.addf("models", "at least one is required")
	}
	seen := unique{}
	for i, m := range models {
		at := fmt.Sprintf("models[%d]", i)
		join(at, m.Validate())
		seen.check(&p, at+".name", m.Name)
	}
	named := unique{}
	for i, o := range prompts {
		at := fmt.Sprintf("prompts[%d]", i)
		p.name(at+".name", o.Name)
		named.check(&p, at+".name", o.Name)
		if o.Text == "" {
			p.addf(at+".text", "a text is required")
		}
	}
	return p.err()
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

// inherit takes over what an older state learned about endpoints that both have.
func (st *State) inherit(old *State) {
	st.speeds, st.lengths = old.speeds, old.lengths
	for _, m := range st.models {
		before, ok := old.byName[m.name]
		if !ok {
			continue
		}
		for _, e := range m.endpoints {
			for _, b := range before.endpoints {
				if b.name == e.name && *b.chat == *e.chat {
					e.adopt(b)
				}
			}
		}
	}
}
