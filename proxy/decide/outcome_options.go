package decide

import (
	"slices"

	"signalbox/internal/option"
	"signalbox/memory/outcomes/signs"
)

// OutcomeOptions is the section `outcomes`: how good answers were is remembered, by tenant, and
// decides among the models of a route.
type OutcomeOptions struct {
	// Learn says from what: off, feedback, what callers say by POST /signalbox/v1/feedback, or all,
	// from signs besides. Default off. Reloadable.
	Learn string `yaml:"learn" words:"off feedback all"`
	// Signs says how far signs are to be trusted, with learn: all.
	Signs SignOptions `yaml:"signs"`
	// Path is the file that outcomes are kept in over restarts; one process writes it. It holds no
	// text, but embeddings of what users asked. Default: they are kept in memory alone. Restart
	// needed.
	Path string `yaml:"path" path:"true"`
	// MaxPerTenant is how many outcomes are kept of a tenant, the newest, 900 bytes each. 1 to
	// 100000. Default 10000. Restart needed.
	MaxPerTenant int `yaml:"max_per_tenant"`
	// MaxTenants is of how many tenants, those that gave feedback last. 1 to 10000. Default 100.
	// Restart needed.
	MaxTenants int `yaml:"max_tenants"`
	// MaxWaiting is how many answers wait for feedback, of all tenants; the oldest goes first. 1 to
	// 1000000. Default 10000. Restart needed.
	MaxWaiting int `yaml:"max_waiting"`
	// Shared tells replicas of outcomes over memory.redis, in a stream a tenant of about
	// max_per_tenant lines; the decisions that wait are told as well, so that feedback may come to
	// any replica. Default false. Restart needed.
	Shared bool `yaml:"shared"`
	// MinNeighbours is how many outcomes of near requests, counted by how near they are, have to be
	// known of an effort before `reasoning: auto` chooses it by outcomes, and of a model before
	// `max_tokens: auto` goes by them. Below it both do as without outcomes. More than 0, up to
	// 1000. Default 5. Reloadable.
	MinNeighbours float64 `yaml:"min_neighbours"`
	// MaxQualityLoss is what `reasoning: auto` may lose, on the mean over requests, of the quality
	// that is expected of the best effort, in [0,1]. Default 0.005. Reloadable.
	MaxQualityLoss float64 `yaml:"max_quality_loss"`
	// Explore sends some requests to another model than the best, so that outcomes of it become
	// known.
	Explore ExploreOptions `yaml:"explore"`
}

// The words of OutcomeOptions.Learn.
const (
	learnOff      = "off"
	LearnFeedback = "feedback"
	LearnAll      = "all"
)

const (
	defaultQualityLoss = 0.005
	defaultNeighbours  = 5
	maxNeighbours      = 1000
)

// DefaultOutcomeOptions returns the options of an empty section.
func DefaultOutcomeOptions() OutcomeOptions {
	return OutcomeOptions{
		Learn: learnOff, MaxPerTenant: 10_000, MaxTenants: 100, MaxWaiting: 10_000,
		MinNeighbours: defaultNeighbours, MaxQualityLoss: defaultQualityLoss,
		Explore: ExploreOptions{MaxQualityLoss: defaultQualityLoss}, Signs: DefaultSignOptions(),
	}
}

// Validate reports every bad option, one "field: problem" a line.
func (o OutcomeOptions) Validate() error {
	var p option.Problems
	if words := []string{learnOff, LearnFeedback, LearnAll}; !slices.Contains(words, o.Learn) {
		p.Addf("learn", "%q is none of off, feedback and all", o.Learn)
	}
	for _, c := range []struct {
		field  string
		n, max int
	}{
		{"max_per_tenant", o.MaxPerTenant, 100_000},
		{"max_tenants", o.MaxTenants, 10_000},
		{"max_waiting", o.MaxWaiting, 1_000_000},
	} {
		option.Between(&p, c.field, c.n, 1, c.max)
	}
	if n := o.MinNeighbours; !(n > 0 && n <= maxNeighbours) {
		p.Addf("min_neighbours", "%v is not more than 0 and at most %d", n, maxNeighbours)
	}
	for _, c := range []struct {
		field string
		x     float64
	}{
		{"max_quality_loss", o.MaxQualityLoss},
		{"explore.share", o.Explore.Share},
		{"explore.max_quality_loss", o.Explore.MaxQualityLoss},
	} {
		option.Between(&p, c.field, c.x, 0, 1)
	}
	o.Signs.validate(&p)
	return p.Err()
}

// On reports whether outcomes are learnt from.
func (o OutcomeOptions) On() bool { return o.Learn != learnOff }

// SignOptions is how far each sign of how good an answer was is to be trusted, in [0,1]: it is the
// weight of the outcome that is made of it. 0 turns a sign off. What callers say has the weight 1
// and stands above.
type SignOptions struct {
	// Regenerated weighs that the same messages came again within 30 minutes. The outcome is 0.
	// Default 0.3. Reloadable.
	Regenerated float64 `yaml:"regenerated"`
	// Edited weighs that the last message of the user came again in other words. The outcome is 0.
	// Default 0.15. Reloadable.
	Edited float64 `yaml:"edited"`
	// Continued weighs that another turn followed. The outcome is 1. Default 0.1. Reloadable.
	Continued float64 `yaml:"continued"`
	// ToolCall weighs that the next turn shows that the answer called a tool with arguments that are
	// no JSON. The outcome is 0. Default 0.5. Reloadable.
	ToolCall float64 `yaml:"tool_call"`
	// Length weighs that the answer was cut at its limit. The outcome is 0. Default 0.2. Reloadable.
	Length float64 `yaml:"length"`
	// Guard weighs that the guard of answers found a claim that it acts on. The outcome is 0.
	// Default 0.3. Reloadable.
	Guard float64 `yaml:"guard"`
	// Metadata weighs what the metadata of a request have under feedback, up or down, of the answer
	// before, or of that which they name under feedback_request_id. The outcome is 1 or 0. Default
	// 1. Reloadable.
	Metadata float64 `yaml:"metadata"`
}

// DefaultSignOptions returns the weights of an empty section. They are judgements, not measured.
func DefaultSignOptions() SignOptions {
	return SignOptions{
		Regenerated: 0.3, Edited: 0.15, Continued: 0.1, ToolCall: 0.5, Length: 0.2, Guard: 0.3, Metadata: 1,
	}
}

// ByMetadata is the source of outcomes that metadata tell.
const ByMetadata signs.Sign = "metadata"

// Weights are the weights by sign, in [0,1].
func (o *SignOptions) Weights() map[signs.Sign]float64 {
	return map[signs.Sign]float64{
		signs.Regenerated: o.Regenerated, signs.Edited: o.Edited, signs.Continued: o.Continued,
		signs.ToolCall: o.ToolCall, signs.Length: o.Length, signs.Guard: o.Guard, ByMetadata: o.Metadata,
	}
}

func (o *SignOptions) validate(p *option.Problems) {
	for sign, w := range o.Weights() {
		option.Between(p, "signs."+string(sign), w, 0, 1)
	}
}

// ExploreOptions is how much is given up to learn. A request goes to each candidate with the chance
// that it is the right one, as far as that is uncertain (Thompson sampling).
type ExploreOptions struct {
	// Share is how many of the requests, at most, go to another candidate than the first, in [0,1].
	// 0 turns exploring off. Default 0. Reloadable.
	Share float64 `yaml:"share"`
	// MaxQualityLoss bounds what exploring costs a tenant on the mean over its requests: against
	// choosing without outcomes, or without exploring where that is the worse one. Expectations may
	// be wrong, so they spend half of it, and that of 200 requests more where the model that skills
	// praise proves to be worse than they say. In [0,1]. Default 0.005. Reloadable.
	MaxQualityLoss float64 `yaml:"max_quality_loss"`
}
