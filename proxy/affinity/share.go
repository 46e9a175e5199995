package affinity

import (
	"sync"
	"time"
)

// Residence says that an endpoint has, or has no more, the beginning of the prompts of a key.
type Residence struct {
	Key      uint64
	Endpoint string    // its name
	Tokens   int       // of the prompt that it has; 0 withdraws what was said before
	Expires  time.Time // after which it does not hold
}

// Board tells other proxies what endpoints hold. It is told when an endpoint has got a prompt that
// it did not have, and when it turns out not to have one: once for each key and endpoint as a rule,
// not once a request. What others tell goes to Placer.Learn.
type Board interface {
	// Publish must not block and is called by any number of goroutines. What is lost costs time
	// only.
	Publish(r Residence)
}

// residentKeys is how many keys are remembered at most.
const residentKeys = 4096

// residencies is what is known of keys, such as what other proxies have told.
type residencies struct {
	mu    sync.Mutex // guards byKey
	byKey map[uint64]*resident
}

// resident is what is known of one key, an entry for each endpoint.
type resident struct {
	tokens  [MaxEndpoints]int32
	expires [MaxEndpoints]uint32 // in ticks
}

// set notes what endpoint i has.
func (d *residencies) set(key uint64, i, tokens int, expires uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.byKey[key]
	if x == nil {
		if tokens == 0 {
			return
		}
		if len(d.byKey) >= residentKeys {
			for other := range d.byKey { // any one: they are hints, and few
				delete(d.byKey, other)
				break
			}
		}
		x = &resident{}
		d.byKey[key] = x
	}
	x.tokens[i], x.expires[i] = int32(tokens), expires
}

// moveTo copies what was told to the residences of other endpoints, of which from says which ones
// they were here, -1 for none. Nobody uses those yet.
func (d *residencies) moveTo(to *residencies, from []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, x := range d.byKey {
		y := &resident{}
		for i, j := range from {
			if j >= 0 {
				y.tokens[i], y.expires[i] = x.tokens[j], x.expires[j]
			}
		}
		to.byKey[key] = y
	}
}

// drop forgets what was told of endpoint i.
func (d *residencies) drop(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.byKey {
		x.tokens[i] = 0
	}
}

// read fills in how many tokens of the key's prompts each endpoint has at a time. It reports false
// when nothing was told.
func (d *residencies) read(tokens *[MaxEndpoints]int32, key uint64, now uint32) bool {
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
