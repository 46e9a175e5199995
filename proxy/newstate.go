package proxy

import (
	"fmt"
	"math/rand/v2"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/telemetry"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/lengths"
	"signalbox/rules"
)

// NewState builds a snapshot and its pool. It reports every bad option, one "section: field:
// problem" a line. That the program names only these models and prompts is for the caller to have
// checked. It starts nothing; endpoints count as healthy until a check or a request says otherwise.
func NewState(models []backend.ModelOptions, prompts []PromptOptions, who auth.Options, opts Options, program *rules.Program, c Classifier, generation uint64, tel *telemetry.Telemetry) (*State, error) {
	if err := validateAll(models, prompts, who, opts); err != nil {
		return nil, err
	}
	keys, err := auth.New(who)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	st := &State{
		opts: opts, limits: DefaultLimitOptions(), auth: keys, byName: make(map[string]*backend.Model, len(models)), prompts: make(map[string]string, len(prompts)),
		program: program, classifier: c, readHeaders: program.Headers(), generation: generation,
		steering: newSteering(opts.AllowEngineParams),
		idle:     make(chan struct{}), salts: newSalts(nil), notices: &backend.Boards{}, chains: &chains{},
		chooser: choose.Chooser{
			Models: make(map[string]*choose.Model, len(models)), Speeds: choose.NewSpeeds(time.Now), Lengths: lengths.New(), Intn: rand.IntN,
		},
	}
	watch, err := guardrail.New(guardrail.DefaultOptions(), guardrail.Claims{}, tel.Metrics)
	if err != nil {
		return nil, err
	}
	st.guard, st.metrics = watch, tel.Metrics
	defaults := &backend.Defaults{
		FirstByte: time.Duration(opts.FirstByteTimeout), Answer: time.Duration(opts.AnswerTimeout),
		Gap: time.Duration(opts.GapTimeout), Connect: time.Duration(opts.ConnectTimeout),
		Board: st.notices.Of,
	}
	for _, o := range models {
		m, err := backend.New(o, defaults)
		if err != nil {
			return nil, err
		}
		st.models = append(st.models, m)
		tel.Metrics.Serves(o.Name)
		st.byName[o.Name], st.chooser.Models[o.Name] = m, m.Model
		st.forwards = st.forwards || m.ForwardsAuth()
		if o.Price.Input+o.Price.Output > st.priciest.Input+st.priciest.Output {
			st.priciest = o.Price
		}
	}
	st.tenants = tenantsOf(&who)
	for t := range st.tenants {
		tel.Metrics.ServesTenant(t)
	}
	for _, o := range prompts {
		st.prompts[o.Name] = o.Text
	}
	for _, s := range opts.VaguePrompts {
		st.vague = append(st.vague, normalise(s))
	}
	st.copies, st.tools, st.results = newCopies(), newToolMemo(), newResultMemo()
	st.refs.Store(1)
	return st, nil
}

func validateAll(models []backend.ModelOptions, prompts []PromptOptions, who auth.Options, opts Options) error {
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
