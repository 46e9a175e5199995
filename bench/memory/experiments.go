package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"signalbox/internal/simulator/kv"
	"signalbox/proxy/affinity"
)

// bench holds the options of all experiments.
type bench struct {
	seeds []uint64
	o     affinity.Options
	small int // workloads are divided by this; 1 runs them completely
}

// contender is a named policy.
type contender struct {
	name string
	make func(o affinity.Options, f fleet, clock *time.Time, seed uint64) (policy, error)
}

// Names of the contenders that rows refer to.
const (
	turn      = "round-robin"
	least     = "least loaded"
	sticky    = "sticky session"
	byContext = "context hash"
	own       = "signalbox"
	text      = "signalbox, nothing named"
	two       = "signalbox, two proxies"
)

func simple(p func() policy) func(affinity.Options, fleet, *time.Time, uint64) (policy, error) {
	return func(affinity.Options, fleet, *time.Time, uint64) (policy, error) { return p(), nil }
}

func proxies(n int, named bool) func(affinity.Options, fleet, *time.Time, uint64) (policy, error) {
	return func(o affinity.Options, f fleet, clock *time.Time, seed uint64) (policy, error) {
		return newProduct(o, n, f.servers, f.server, func() time.Time { return *clock }, source(seed, 2), named)
	}
}

// contenders returns all policies, in the order of the tables.
func contenders() []contender {
	return []contender{
		{turn, simple(func() policy { return &roundRobin{} })},
		{least, simple(func() policy { return &leastLoaded{} })},
		{sticky, simple(func() policy { return &hashed{func(j *job) int { return j.session }} })},
		{byContext, simple(func() policy { return &hashed{func(j *job) int { return j.context }} })},
		{text, proxies(1, false)},
		{two, proxies(2, true)},
		{own, proxies(1, true)},
	}
}

// source is a source of random numbers for one use of a seed.
func source(seed, use uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, use)) } //nolint:gosec // simulation

// results are the results of each contender on each seed, with the ideal share of each seed.
type results struct {
	names []string
	by    map[string][]*outcome
	ideal []float64
	// refused is the number of server errors of each contender, in live runs.
	refused map[string]sample
}

// compare lets every contender place the same requests.
func (b *bench) compare(w workload, f fleet) (*results, error) {
	w.contexts = max(2, w.contexts/b.small)
	res := &results{by: map[string][]*outcome{}}
	for _, seed := range b.seeds {
		p := w.make(source(seed, 1))
		res.ideal = append(res.ideal, p.ideal(f.server.BlockTokens))
		for _, c := range contenders() {
			clock := start()
			by, err := c.make(b.o, f, &clock, seed)
			if err != nil {
				return nil, err
			}
			out, err := f.run(p, by, &clock)
			if err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", c.name, seed, err)
			}
			if res.by[c.name] == nil {
				res.names = append(res.names, c.name)
			}
			res.by[c.name] = append(res.by[c.name], out)
		}
	}
	return res, nil
}

// of returns a figure of a contender on each seed.
func (r *results) of(name string, figure func(o *outcome) float64) sample {
	var s sample
	for _, o := range r.by[name] {
		s = append(s, figure(o))
	}
	return s
}

// over returns the ratio of a figure of the product to that of another contender, by seed.
func (r *results) over(other string, figure func(o *outcome) float64) sample {
	a, b := r.of(own, figure), r.of(other, figure)
	for i := range a {
		a[i] /= b[i]
	}
	return a
}

// experiment is one workload with its requirements.
type experiment struct {
	name string
	run  func(b *bench, r *report) error
}

func experiments() []experiment {
	return []experiment{
		{"shared", (*bench).shared},
		{"proxies", (*bench).proxies},
		{"zipf", (*bench).zipf},
		{"oversubscribed", (*bench).oversubscribed},
		{"domains", (*bench).domains},
		{"restart", (*bench).restart},
		{"tenants", (*bench).tenants},
	}
}

// shared has agents over contexts that fit into half of all caches, with one proxy and with two.
func (b *bench) shared(r *report) error {
	res, err := b.compare(usual(), usualFleet())
	if err != nil {
		return err
	}
	r.table("24 contexts of 4,000 tokens, 3 agents each, 5 turns; 4 servers with 48,000 tokens each; 12 requests at once", res)
	short := func(name string) sample {
		s := res.of(name, (*outcome).share)
		for i := range s {
			s[i] = 100 * (res.ideal[i] - s[i])
		}
		return s
	}
	r.demand("cached share below the ideal, points", short(own), "%.1f", atMost, 1)
	r.demand("the same with nothing named, points", short(text), "%.1f", noBar, 0)
	r.demand("computed again, over round-robin", res.over(turn, (*outcome).again), "%.2f", atMost, 0.15)
	r.demand("computed again, over sticky session", res.over(sticky, (*outcome).again), "%.2f", atMost, 0.30)
	r.demand("mean time to first token, over round-robin", res.over(turn, (*outcome).mean), "%.2f", noBar, 0)
	return nil
}

// proxies has longer sessions, with two proxies that share the requests at random.
func (b *bench) proxies(r *report) error {
	w := usual()
	w.turns = 7
	res, err := b.compare(w, usualFleet())
	if err != nil {
		return err
	}
	r.table("the same with 7 turns", res)
	r.demand("two proxies: cached share", res.of(two, (*outcome).share), "%.3f", atLeast, 0.93)
	return nil
}

// zipf has contexts of which a few get most requests, on busy servers.
func (b *bench) zipf(r *report) error {
	w, f := usual(), usualFleet()
	w.contexts, w.agents, w.zipf = 48, 2, 1.2
	f.server.Seats = 4
	res, err := b.compare(w, f)
	if err != nil {
		return err
	}
	r.table("96 sessions over 48 contexts drawn by Zipf's law with exponent 1.2; 4 seats a server", res)
	r.demand("skewed: mean time to first token, over round-robin", res.over(turn, (*outcome).mean), "%.2f", atMost, 0.4)
	r.demand("skewed: requests of the busiest server, over the mean", res.of(own, (*outcome).spread), "%.2f", atMost, 1.6)
	return nil
}

// oversubscribed has contexts that need one and a half times the available cache.
func (b *bench) oversubscribed(r *report) error {
	w := usual()
	w.contexts = 72
	res, err := b.compare(w, usualFleet())
	if err != nil {
		return err
	}
	r.table("72 contexts: 150 % of all caches", res)
	r.demand("oversubscribed: cached share", res.of(own, (*outcome).share), "%.3f", atLeast, 0.50)
	r.demand("oversubscribed: cached share over round-robin's", res.over(turn, (*outcome).share), "%.1f", atLeast, 1)
	return nil
}

// domains has agents with different prompts, before the shared context or after it.
func (b *bench) domains(r *report) error {
	w := usual()
	w.domainTokens = 100
	after, err := b.compare(w, usualFleet())
	if err != nil {
		return err
	}
	w.domainFirst = true
	before, err := b.compare(w, usualFleet())
	if err != nil {
		return err
	}
	r.table("each agent has a prompt of 100 tokens of its own, after the context", after)
	r.table("the same before the context", before)
	r.demand("own prompt after the context: cached share", after.of(own, (*outcome).share), "%.3f", atLeast, 0.92)
	r.demand("own prompt before it: cached share", before.of(own, (*outcome).share), "%.3f", noBar, 0)
	return nil
}

// restart has a server that loses its cache halfway, detected by the proxy or not.
func (b *bench) restart(r *report) error {
	for _, observed := range []bool{true, false} {
		var most, lost sample
		for _, seed := range b.seeds {
			w, f := usual(), usualFleet()
			w.contexts = max(2, w.contexts/b.small)
			f.restart, f.observed = w.contexts*w.agents*w.turns/2, observed
			clock := start()
			by, err := proxies(1, true)(b.o, f, &clock, seed)
			if err != nil {
				return err
			}
			out, err := f.run(w.make(source(seed, 1)), by, &clock)
			if err != nil {
				return err
			}
			n := 0
			for _, wrong := range out.wrong {
				n = max(n, wrong)
			}
			most, lost = append(most, float64(n)), append(lost, float64(out.lost))
		}
		how := "restart that only usage tells of"
		if observed {
			how = "restart seen at /metrics"
		}
		r.demand(how+": wrong predictions of one context, at most", most, "%.0f", atMost, 1)
		r.demand(how+": requests that had to be sent again", lost, "%.0f", noBar, 0)
	}
	return nil
}

// tenants compares the same text for every pair of tenants and scopes, on one server and in one
// proxy.
func (b *bench) tenants(r *report) error {
	type holder struct{ tenant, scope string }
	var all []holder
	for _, t := range []string{"a", "b", "ab", ""} {
		for _, s := range []string{"", "a", "b", "session-1"} {
			all = append(all, holder{t, s})
		}
	}
	salt := func(h holder) string { return affinity.Salt([]byte("secret of the bench"), h.tenant, h.scope) }
	var hits, predicted, ownHits sample
	for _, seed := range b.seeds {
		jobs := usual().session(source(seed, 1), 0, 0, words(source(seed, 3), 4000), nil)
		others, told, same := 0, 0, 0
		for i, first := range all {
			for k, second := range all {
				cached, expected, err := b.pair(jobs[0], salt(first), salt(second))
				if err != nil {
					return err
				}
				if i == k {
					same += min(cached, 1)
					continue
				}
				others, told = others+cached, told+expected
			}
		}
		hits, predicted, ownHits = append(hits, float64(others)), append(predicted, float64(told)), append(ownHits, float64(same))
	}
	n := len(all) * (len(all) - 1)
	r.demand(fmt.Sprintf("tokens that one tenant and scope found of another, %d ordered pairs", n), hits, "%.0f", atMost, 0)
	r.demand("tokens that the proxy predicted there", predicted, "%.0f", atMost, 0)
	r.demand(fmt.Sprintf("of %d tenants and scopes, those that found their own", len(all)), ownHits, "%.0f", atLeast, float64(len(all)))
	return nil
}

// pair serves a prompt twice, with different salts, and returns the number of tokens that the
// second found cached, and the predicted number.
func (b *bench) pair(j *job, first, second string) (cached, predicted int, err error) {
	now := start()
	e, err := kv.New(usualFleet().server, now)
	if err != nil {
		return 0, 0, err
	}
	p, err := affinity.New([]affinity.Endpoint{{Name: "server", Weight: 1}}, b.o, now)
	if err != nil {
		return 0, 0, err
	}
	for _, salt := range []string{first, second} {
		traits := affinity.Traits{Model: "m", Salt: salt}
		t, _ := p.Place(now, &affinity.Request{Class: traits.Class(), Key: 1, Blocks: j.chain.Blocks(), Bytes: j.chain.Bytes()})
		s, err := e.Submit(now, kv.Request{Seed: kv.Seed{Salt: salt}, Prompt: j.prompt, Answer: j.answer})
		if err != nil {
			return 0, 0, err
		}
		now = now.Add(time.Minute)
		e.Advance(now)
		t.First(now)
		t.End(now, affinity.Usage{Prompt: s.Prompt(), Cached: s.Cached})
		cached, predicted = s.Cached, t.Predicted
	}
	return cached, predicted, nil
}
