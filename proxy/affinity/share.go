package affinity

import (
	"sync"
	"time"
)

// Residence says that an endpoint has, or no longer has, the beginning of the prompts of a key.
type Residence struct {
	Key      uint64
	Endpoint string    // name of the endpoint
	Tokens   int       // prompt tokens that it has; 0 withdraws an earlier notice
	Expires  time.Time // end of validity
}

// Board informs other proxies of what endpoints hold. It is notified when an endpoint gets a prompt
// that it did not have, and when an endpoint turns out not to have one: usually once per key and
// endpoint, not once per request. Notices from other proxies go to Placer.Learn.
type Board interface {
	// Publish must not block and may be called by any number of goroutines. A lost notice costs
	// only time.
	Publish(r Residence)
}

// residentKeys is the maximum number of keys remembered.
const residentKeys = 4096

// residencies is what is known about keys, for example from other proxies.
type residencies struct {
	mu    sync.Mutex // guards byKey
	byKey map[uint64]*resident
}

// resident is what is known about one key, with one entry per endpoint.
type resident struct {
	tokens  [MaxEndpoints]int32
	expires [MaxEndpoints]uint32 // in ticks
}

// set records how many tokens endpoint i has.
func (d *residencies) set(key uint64, i, tokens int, expires uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.byKey[key]
	if x == nil {
		if tokens == 0 {
			return
		}
		if len(d.byKey) >= residentKeys {
			for other := range d.byKey { // evict any one: they are hints, and few
				delete(d.byKey, other)
				break
			}
		}
		x = &resident{}
		d.byKey[key] = x
	}
	x.tokens[i], x.expires[i] = int32(tokens), expires
}

// moveTo copies the entries to another set of endpoints. from maps each new index to the old one,
// -1 for none. The target must not be in use yet.
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

// drop removes all entries of endpoint i.
func (d *residencies) drop(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.byKey {
		x.tokens[i] = 0
	}
}

// read fills in how many tokens of the key's prompts each endpoint has at now. It returns false
// when nothing is known.
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
