package decide

import (
	"time"

	"signalbox/internal/option"
)

// StickOptions is the section `stick`: a conversation stays with its model, and with what its route
// asks of it, unless another is worth the prefill that a move throws away.
type StickOptions struct {
	// Margin is the gain from which on a conversation whose whole prompt is cached moves, in [0,1]:
	// how much more probable the new subject is than the old one, or the share of the cost or of
	// the time that another model saves. Where a move throws less away, less is enough, in
	// proportion. 0 moves for any gain. Default 0.3. Reloadable.
	Margin float64 `yaml:"margin"`
	// MaxAge is how long a conversation may pause before it is decided anew, as long as its prefix
	// is worth something to its servers. 0 turns stickiness off. At most 24h. Default 1h.
	// Reloadable.
	MaxAge option.Duration `yaml:"max_age"`
}

const (
	defaultStickMargin = 0.3
	defaultStickAge    = time.Hour
	maxStickAge        = 24 * time.Hour
)

// DefaultStickOptions returns the options of an empty section.
func DefaultStickOptions() StickOptions {
	return StickOptions{Margin: defaultStickMargin, MaxAge: option.Duration(defaultStickAge)}
}

// Validate reports every bad option, one "field: problem" a line.
func (o StickOptions) Validate() error {
	var p option.Problems
	option.Between(&p, "margin", o.Margin, 0, 1)
	if d := time.Duration(o.MaxAge); d < 0 || d > maxStickAge || d > 0 && d < time.Second {
		p.Addf("max_age", "%s is neither 0 nor between 1s and %s", o.MaxAge, maxStickAge)
	}
	return p.Err()
}
