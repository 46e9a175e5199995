package proxy

import (
	"sync"

	"signalbox/memory"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
)

// warms is the contexts that are read ahead of need.
type warms struct {
	queue chan *warmup // bounded by manyWarms; full: refused

	mu      sync.Mutex // guards flights
	flights map[reading]chan struct{}
}

// reading names what is read ahead in full, so that no two ever pass for one.
type reading struct{ tenant, model, context string }

func newWarms() *warms {
	return &warms{queue: make(chan *warmup, manyWarms), flights: make(map[reading]chan struct{})}
}

const manyWarms = 256 // that wait

// warmup is one context to be read by one model. It holds its state until release, and from open on
// the context.
type warmup struct {
	st    *State
	m     *backend.Model
	owner memory.Owner
	ref   memory.Ref

	snap *memory.Snapshot
	salt string
	ask  affinity.Request
}
