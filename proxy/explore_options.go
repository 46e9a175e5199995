package proxy

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
