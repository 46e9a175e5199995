package affinity

import (
	"math"
	"sync"
	"time"
)

const (
	// heatWindow is over what time the load of a key is averaged. A key that is hot for less than
	// that is over before another copy of its prompt pays.
	heatWindow = 10 * time.Second
	// heatStart is how long a key must be known for its load to be taken at face value.
	heatStart = 2 * time.Second
	// heatKeys is how many keys are remembered at least; twice as many at most.
	heatKeys = 4096
)

// heat knows how much of an endpoint each key has kept busy lately. Keys that were not used for
// long are forgotten: there are two generations, and when the young one is full the old one goes.
type heat struct {
	mu         sync.Mutex // guards what follows
	young, old map[uint64]warmth
}

// warmth is the share of an endpoint at a time: an average that has run since a key was first seen.
type warmth struct {
	share     float64
	at, since time.Time
}

func newHeat() *heat { return &heat{young: make(map[uint64]warmth), old: make(map[uint64]warmth)} }

// add notes that key has taken seconds of an endpoint's time.
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

// share is how much of an endpoint the key keeps busy; above 1 it is more than one can do.
func (h *heat) share(key uint64, now time.Time) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.get(key, now)
	return w.share / -math.Expm1(-max(heatStart, now.Sub(w.since)).Seconds()/heatWindow.Seconds())
}

// get is what is left of a key's share. The lock is held.
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
