package decide

import (
	"slices"

	"signalbox/internal/option"
	"signalbox/memory/outcomes/signs"
)

// OutcomeOptions is the section `outcomes`: ratings of responses are stored per tenant and used to
// choose among the models of a route.
type OutcomeOptions struct {
	// Learn selects the sources of outcomes: off; feedback, which callers report with POST
	// /signalbox/v1/feedback; or all, which adds signs derived from later requests and from the
	// responses themselves. Default off. Reloadable.
	Learn string `yaml:"learn" words:"off feedback all"`
	// Signs sets the weights of signs, with `learn: all`.
	Signs SignOptions `yaml:"signs"`
	// Path is the file in which outcomes are kept across restarts. It is written by one process
	// only. It holds no text, but embeddings of what users asked. Default: outcomes are kept in
	// memory only. Restart needed.
	Path string `yaml:"path" path:"true"`
	// MaxPerTenant is the number of outcomes kept per tenant, the newest ones, at 900 bytes each. 1
	// to 100000. Default 10000. Restart needed.
	MaxPerTenant int `yaml:"max_per_tenant"`
	// MaxTenants is the number of tenants whose outcomes are kept: those that gave feedback most
	// recently. 1 to 10000. Default 100. Restart needed.
	MaxTenants int `yaml:"max_tenants"`
	// MaxWaiting is the number of responses, of all tenants together, that can await feedback. The
	// oldest is dropped first. 1 to 1000000. Default 10000. Restart needed.
	MaxWaiting int `yaml:"max_waiting"`
	// Shared exchanges outcomes between replicas through memory.redis, in one stream per tenant of
	// about max_per_tenant entries. Decisions that await feedback are shared too, so that feedback
	// may be sent to any replica. Default false. Restart needed.
	Shared bool `yaml:"shared"`
	// MinNeighbours is the number of outcomes of similar requests, weighted by similarity, that
	// must be known: of an effort before `reasoning: auto` uses outcomes to choose it, and of a
	// model before `max_tokens: auto` uses them. Below it, both behave as without outcomes. More
	// than 0, up to 1000. Default 5. Reloadable.
	MinNeighbours float64 `yaml:"min_neighbours"`
	// MaxQualityLoss is the expected quality that `reasoning: auto` may give up against the best
	// effort, as a mean over requests, in [0,1]. Default 0.005. Reloadable.
	MaxQualityLoss float64 `yaml:"max_quality_loss"`
	// Explore sends some requests to a model other than the best one, to obtain outcomes for it.
	Explore ExploreOptions `yaml:"explore"`
}

// The values of OutcomeOptions.Learn.
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

// DefaultOutcomeOptions returns the defaults, those of an empty section.
func DefaultOutcomeOptions() OutcomeOptions {
	return OutcomeOptions{
		Learn: learnOff, MaxPerTenant: 10_000, MaxTenants: 100, MaxWaiting: 10_000,
		MinNeighbours: defaultNeighbours, MaxQualityLoss: defaultQualityLoss,
		Explore: ExploreOptions{MaxQualityLoss: defaultQualityLoss}, Signs: DefaultSignOptions(),
	}
}

// Validate reports every bad option, one "field: problem" per line.
func (o OutcomeOptions) Validate() error {
	var p option.Problems
	if words := []string{learnOff, LearnFeedback, LearnAll}; !slices.Contains(words, o.Learn) {
		p.Addf("learn", "%q is not one of off, feedback and all", o.Learn)
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

// On reports whether learning from outcomes is on.
func (o OutcomeOptions) On() bool { return o.Learn != learnOff }

// SignOptions sets the weights of signs: the weight, in [0,1], of the outcome that is derived from
// each sign of how good a response was. 0 disables a sign. Feedback of callers has weight 1 and
// takes precedence.
type SignOptions struct {
	// Regenerated is the weight of the sign that the same messages were sent again within 30
	// minutes, in [0,1]. Its outcome is 0. Default 0.3. Reloadable.
	Regenerated float64 `yaml:"regenerated"`
	// Edited is the weight of the sign that the user's last message was sent again in other words,
	// in [0,1]. Its outcome is 0. Default 0.15. Reloadable.
	Edited float64 `yaml:"edited"`
	// Continued is the weight of the sign that another turn followed, in [0,1]. Its outcome is 1.
	// Default 0.1. Reloadable.
	Continued float64 `yaml:"continued"`
	// ToolCall is the weight of the sign that the response called a tool with arguments that are
	// not valid JSON, as the next turn shows, in [0,1]. Its outcome is 0. Default 0.5. Reloadable.
	ToolCall float64 `yaml:"tool_call"`
	// Length is the weight of the sign that the response was cut off at a token limit that the
	// client did not set itself, in [0,1]. Its outcome is 0. Default 0.2. Reloadable.
	Length float64 `yaml:"length"`
	// Guard is the weight of the sign that the guard found a claim that it acts on, in [0,1]. Its
	// outcome is 0. Default 0.3. Reloadable.
	Guard float64 `yaml:"guard"`
	// Metadata is the weight of feedback in the metadata of a request, in [0,1]: its member
	// feedback, up or down, rates the previous response, or the one named by feedback_request_id.
	// Its outcome is 1 or 0. Default 1. Reloadable.
	Metadata float64 `yaml:"metadata"`
}

// DefaultSignOptions returns the default weights, those of an empty section. They are judgements,
// not measured.
func DefaultSignOptions() SignOptions {
	return SignOptions{
		Regenerated: 0.3, Edited: 0.15, Continued: 0.1, ToolCall: 0.5, Length: 0.2, Guard: 0.3, Metadata: 1,
	}
}

// ByMetadata is the source of outcomes that request metadata report.
const ByMetadata signs.Sign = "metadata"

// Weights returns the weights by sign, in [0,1].
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

// ExploreOptions limits what is given up to learn. As far as it is uncertain which candidate is the
// right one, a request goes to each with the probability that it is (Thompson sampling).
type ExploreOptions struct {
	// Share is the maximum share of requests that go to a candidate other than the first, in [0,1].
	// 0 disables exploration. Default 0. Reloadable.
	Share float64 `yaml:"share"`
	// MaxQualityLoss limits the quality that exploration costs a tenant, as a mean over its
	// requests, in [0,1]. The loss is measured against choosing without outcomes, or against
	// choosing without exploration, whichever is worse. As expectations may be wrong, only half of
	// the limit is spent on them. If the model with the best skills turns out worse than rated, up
	// to 200 times this value may be spent in addition (one response at 0.005). Default 0.005.
	// Reloadable.
	MaxQualityLoss float64 `yaml:"max_quality_loss"`
}
