package affinity

import (
	"math"
	"sync"
	"time"
)

const (
	// heatWindow is the time over which the load of a key is averaged. A shorter burst ends before
	// another copy of its prompt pays off.
	heatWindow = 10 * time.Second
	// heatStart is how long a key must be known before its load is used without correction.
	heatStart = 2 * time.Second
	// heatKeys is the minimum number of keys remembered; the maximum is twice that.
	heatKeys = 4096
)

// heat tracks how much of an endpoint's time each key has used recently. Keys that are not used for
// long are forgotten: there are two generations, and when the young one is full, the old one is
// dropped.
type heat struct {
	mu         sync.Mutex // guards the fields below
	young, old map[uint64]warmth
}

// warmth is the share of an endpoint used by a key at a time: an average since the key was first
// seen.
type warmth struct {
	share     float64
	at, since time.Time
}

func newHeat() *heat { return &heat{young: make(map[uint64]warmth), old: make(map[uint64]warmth)} }

// add records that key has used seconds of an endpoint's time.
func (h *heat) add(key uint64, seconds float64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.get(key, now)
	w.share += seconds / heatWindow.Seconds()
	if len(h.young) >= heatKeys {
		h.young, h.old = h.old, h.young
		clear(h.young)
	}
	h.young[key] = w
}

// share returns how much of an endpoint's time the key uses; above 1 it is more than one endpoint
// can serve.
func (h *heat) share(key uint64, now time.Time) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.get(key, now)
	return w.share / -math.Expm1(-max(heatStart, now.Sub(w.since)).Seconds()/heatWindow.Seconds())
}

// get returns the key's share, decayed to now. The caller holds the lock.
func (h *heat) get(key uint64, now time.Time) warmth {
	w, ok := h.young[key]
	if !ok {
		w = h.old[key]
	}
	if passed := now.Sub(w.at); passed > 0 {
		w.share *= math.Exp(-passed.Seconds() / heatWindow.Seconds())
	}
	if w.at = now; w.since.IsZero() {
		w.since = now
	}
	return w
}
