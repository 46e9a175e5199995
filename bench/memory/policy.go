package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/simulator/kv"
	"signalbox/proxy/affinity"
)

// policy places requests.
type policy interface {
	// pick returns the server for a request, and a follower for its end.
	pick(now time.Time, j *job, servers []*kv.Engine) (server int, f follower)
}

// follower is notified of the progress of a request; nil if not needed.
type follower interface {
	First(now time.Time)
	End(now time.Time, u affinity.Usage) (mispredicted bool)
}

// roundRobin selects servers in turn.
type roundRobin struct{ n int }

func (p *roundRobin) pick(_ time.Time, _ *job, servers []*kv.Engine) (int, follower) {
	p.n++
	return p.n % len(servers), nil
}

// leastLoaded selects the server with the fewest requests; of several, the next one in turn.
type leastLoaded struct{ n int }

func (p *leastLoaded) pick(_ time.Time, _ *job, servers []*kv.Engine) (int, follower) {
	p.n++
	best, least := 0, -1
	for i := range servers {
		at := (p.n + i) % len(servers)
		c := servers[at].Counters()
		if n := c.Running + c.Waiting; least < 0 || n < least {
			best, least = at, n
		}
	}
	return best, nil
}

// hashed selects a server by a hash of the session or the context.
type hashed struct{ by func(j *job) int }

func (p *hashed) pick(_ time.Time, j *job, servers []*kv.Engine) (int, follower) {
	return int(xxhash.Sum64String(fmt.Sprint("key ", p.by(j))) % uint64(len(servers))), nil
}

// product is the placement of this product, by one proxy or by several that share the requests at
// random.
type product struct {
	placers []*affinity.Placer
	rand    *rand.Rand
	named   bool // requests name their context; otherwise only the text identifies it
}

// board passes everything that one proxy publishes to all others immediately.
type board struct {
	p    *product
	from int
	now  func() time.Time
}

func (b *board) Publish(r affinity.Residence) {
	for i, other := range b.p.placers {
		if i != b.from {
			other.Learn(b.now(), r)
		}
	}
}

// newProduct creates proxies with the given options, for servers with known cache size and number
// of seats.
func newProduct(o affinity.Options, proxies, servers int, server kv.Options, clock func() time.Time, r *rand.Rand, named bool) (*product, error) {
	p := &product{rand: r, named: named}
	for i := range proxies {
		endpoints := make([]affinity.Endpoint, servers)
		for e := range endpoints {
			endpoints[e] = affinity.Endpoint{
				Name: fmt.Sprint("server-", e), Weight: 1, Tokens: server.Blocks * server.BlockTokens, Seats: server.Seats,
			}
		}
		if proxies > 1 {
			o.Board = &board{p, i, clock}
		}
		one, err := affinity.New(endpoints, o, clock())
		if err != nil {
			return nil, err
		}
		p.placers = append(p.placers, one)
	}
	return p, nil
}

// observe passes the servers' metrics to every proxy.
func (p *product) observe(now time.Time, servers []*kv.Engine) {
	for i, e := range servers {
		c := e.Counters()
		s := affinity.Status{
			Started: float64(c.Started.UnixMilli()) / 1000, Queries: float64(c.PrefixQueries), Running: c.Running, Waiting: c.Waiting,
		}
		for _, one := range p.placers {
			one.Observe(now, i, s)
		}
	}
}

func (p *product) pick(now time.Time, j *job, _ []*kv.Engine) (int, follower) {
	one := p.placers[p.rand.IntN(len(p.placers))]
	traits := affinity.Traits{Model: "m", LoRA: j.seed.LoRA, Salt: j.seed.Salt, Template: j.seed.Effort}
	class, tokens := traits.Class(), j.chain.Bytes()/4
	var hints affinity.Hints
	if p.named {
		hints.Contexts = []string{fmt.Sprint("ctx-", j.context)}
	}
	key, _ := hints.Key(class, j.chain.Blocks(), tokens)
	t, ok := one.Place(now, &affinity.Request{Class: class, Key: key, Blocks: j.chain.Blocks(), Bytes: j.chain.Bytes(), Tokens: tokens})
	if !ok {
		panic("no server, though none is ruled out")
	}
	return t.Endpoint, &t
}
