package decide

import (
	"time"

	"signalbox/internal/option"
)

// StickOptions is the section `stick`: a conversation stays with its model, and with the settings
// of its route, unless a move is worth the prefill that it discards.
type StickOptions struct {
	// Margin is the gain that moves a conversation whose whole prompt is cached, in [0,1]. The gain
	// is how much more probable the new subject is than the old one, or the share of cost or
	// latency that another model saves. If a move discards less of the cache, a proportionally
	// smaller gain is enough. 0 moves for any gain. Default 0.3. Reloadable.
	Margin float64 `yaml:"margin"`
	// MaxAge is how long a conversation may pause before it is decided anew, provided that its
	// prefix is still worth something to its servers. 0 disables stickiness. At most 24h. Default
	// 1h. Reloadable.
	MaxAge option.Duration `yaml:"max_age"`
}

const (
	defaultStickMargin = 0.3
	defaultStickAge    = time.Hour
	maxStickAge        = 24 * time.Hour
)

// DefaultStickOptions returns the defaults, those of an empty section.
func DefaultStickOptions() StickOptions {
	return StickOptions{Margin: defaultStickMargin, MaxAge: option.Duration(defaultStickAge)}
}

// Validate reports every bad option, one "field: problem" per line.
func (o StickOptions) Validate() error {
	var p option.Problems
	option.Between(&p, "margin", o.Margin, 0, 1)
	if d := time.Duration(o.MaxAge); d < 0 || d > maxStickAge || d > 0 && d < time.Second {
		p.Addf("max_age", "%s is neither 0 nor between 1s and %s", o.MaxAge, maxStickAge)
	}
	return p.Err()
}
