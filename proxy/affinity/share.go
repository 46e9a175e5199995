package affinity

import (
	"sync"
	"time"
)

// Deviation says that an endpoint which is not the home of a key has, or has no more, the beginning of its
// prompts. Homes need not be told: every proxy knows them.
type Deviation struct {
	Key      uint64
	Endpoint string    // its name
	Tokens   int       // of the prompt that it has; 0 withdraws what was said before
	Expires  time.Time // after which it does not hold
}

// Board tells other proxies of deviations. What they tell goes to Placer.Learn.
type Board interface {
	// Publish must not block and is called by any number of goroutines. A deviation that is lost costs time only.
	Publish(d Deviation)
}

// deviationKeys is how many keys with deviations are remembered at most.
const deviationKeys = 4096

// deviations is what other proxies have told.
type deviations struct {
	mu    sync.Mutex // guards byKey
	byKey map[uint64]*deviant
}

// deviant is what is known of one key, an entry for each endpoint.
type deviant struct {
	tokens  [MaxEndpoints]int32
	expires [MaxEndpoints]uint32 // in ticks
}

// set notes a deviation at endpoint i.
func (d *deviations) set(key uint64, i, tokens int, expires uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.byKey[key]
	if x == nil {
		if tokens == 0 {
			return
		}
		if len(d.byKey) >= deviationKeys {
			for other := range d.byKey { // any one: they are hints, and few
				delete(d.byKey, other)
				break
			}
		}
		x = &deviant{}
		d.byKey[key] = x
	}
	x.tokens[i], x.expires[i] = int32(tokens), expires
}

// drop forgets what was told of endpoint i.
func (d *deviations) drop(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.byKey {
		x.tokens[i] = 0
	}
}

// read fills in how many tokens of the key's prompts each endpoint has at a time. It reports false when nothing
// was told.
func (d *deviations) read(tokens *[MaxEndpoints]int32, key uint64, now uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.byKey[key]
	if x == nil {
		return false
	}
	for i := range tokens {
		if tokens[i] = x.tokens[i]; x.expires[i] <= now {
			tokens[i] = 0
		}
	}
	return true
}
