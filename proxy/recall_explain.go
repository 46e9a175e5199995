package proxy

import (
	"context"
	"errors"

	"signalbox/memory/cache"
	"signalbox/proxy/recall"
)

// Recall is what the cache has to do with a request.
type Recall struct {
	Exact      string   `json:"exact"`                // hit, miss, bypass, or why responses to such requests are not repeated
	Semantic   string   `json:"semantic,omitempty"`   // the same for other words; with differs the nearest question is another
	Difference string   `json:"difference,omitempty"` // of the nearest question
	Similarity *float64 `json:"similarity,omitempty"` // of a hit
}

// explainRecall tells what the request allows; nil where the cache is off.
func explainRecall(d *decision) *Recall {
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

// allowed is miss where the cache may answer, else why it does not.
func allowed(m *recall.Lookup, why cache.Reason) string {
	switch {
	case why != cache.Eligible:
		return why.String()
	case m.Fresh:
		return recall.Bypass
	}
	return recall.Miss
}

// tryRecall looks up what the cache would give.
func (st *State) tryRecall(ctx context.Context, d *decision, r *Recall) {
	if r == nil {
		return
	}
	m, c := d.Lookup, st.Caching
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
