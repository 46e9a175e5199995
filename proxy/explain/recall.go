package explain

import (
	"context"
	"errors"

	"signalbox/memory/cache"
	"signalbox/proxy/decide"
	"signalbox/proxy/recall"
)

// Recall is what the cache would do with a request.
type Recall struct {
	// hit, miss, bypass, or why responses to such requests are not cached
	Exact string `json:"exact"`
	// the same for semantic hits; differs means that the nearest question is another one
	Semantic   string   `json:"semantic,omitempty"`
	Difference string   `json:"difference,omitempty"` // how the nearest question differs
	Similarity *float64 `json:"similarity,omitempty"` // of a hit
}

// explainRecall describes what the request allows; nil if caching is off.
func explainRecall(d *decide.Decision) *Recall {
	m, mode := d.Lookup, d.Caches()
	if m == nil || mode == recall.ModeOff {
		return nil
	}
	r := &Recall{Exact: allowed(m, m.ID.Exact)}
	if mode == recall.ModeSemantic {
		r.Semantic = allowed(m, m.ID.Similar)
	}
	return r
}

// allowed returns miss if the cache may answer, otherwise why it does not.
func allowed(m *recall.Lookup, why cache.Reason) string {
	switch {
	case why != cache.Eligible:
		return why.String()
	case m.Fresh:
		return recall.Bypass
	}
	return recall.Miss
}

// TryRecall looks up what the cache would return.
func TryRecall(ctx context.Context, d *decide.Decision, r *Recall) {
	if r == nil {
		return
	}
	m, c := d.Lookup, d.Base.Caching
	if r.Exact == recall.Miss {
		if _, err := c.Cache.Exact(ctx, &m.ID); err == nil {
			r.Exact = "hit"
		}
	}
	if r.Semantic != recall.Miss {
		return
	}
	d.Embed(ctx)
	hit, ok, err := d.Similar(ctx)
	var other *cache.MissError
	switch {
	case ok:
		r.Semantic, r.Similarity = "hit", &hit.Similarity
	case errors.As(err, &other):
		r.Semantic, r.Difference = "differs", other.Difference.String()
	}
}
