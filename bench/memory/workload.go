package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"signalbox/internal/simulator/kv"
	"signalbox/proxy/affinity"
)

// workload is a number of agents that read shared contexts and have conversations of some turns.
type workload struct {
	contexts, agents, turns int
	contextTokens           int
	userTokens, answer      int     // per turn
	domainTokens            int     // of a prompt that each agent of a context has for itself
	domainFirst             bool    // that prompt precedes the context
	zipf                    float64 // skew of the contexts that sessions choose; 0 assigns agents to contexts evenly
}

// usual is the workload of most rows: 360 requests over 24 contexts, with questions so short that
// all but the first request of a context could be cached almost completely.
func usual() workload {
	return workload{contexts: 24, agents: 3, turns: 5, contextTokens: 4000, userTokens: 12, answer: 40}
}

// job is one request.
type job struct {
	session, context int
	seed             kv.Seed
	prompt, answer   []uint32
	chain            affinity.Chain
	last             bool // of its session
}

// plan holds the requests of all sessions and their order.
type plan struct {
	sessions [][]*job // in the order of their turns
	order    []int    // sessions
}

// words draws n token ids.
func words(r *rand.Rand, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = r.Uint32N(128000)
	}
	return out
}

// spell writes tokens as text: four letters each, five for every other id.
func spell(tokens []uint32) string {
	var b strings.Builder
	for _, t := range tokens {
		for i := range 4 + t%2 {
			b.WriteByte('a' + byte(t>>(4*i)&15))
		}
	}
	return b.String()
}

// make draws a plan.
func (w workload) make(r *rand.Rand) *plan {
	contexts := make([][]uint32, w.contexts)
	for i := range contexts {
		contexts[i] = words(r, w.contextTokens)
	}
	domains := make([][]uint32, w.agents)
	for i := range domains {
		domains[i] = words(r, w.domainTokens)
	}
	p := &plan{}
	for s := range w.contexts * w.agents {
		c := s / w.agents
		if w.zipf > 0 {
			c = draw(r, w.contexts, w.zipf)
		}
		p.sessions = append(p.sessions, w.session(r, s, c, contexts[c], domains[s%w.agents]))
		for range w.turns {
			p.order = append(p.order, s)
		}
	}
	r.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
	return p
}

// session returns the turns of one agent.
func (w workload) session(r *rand.Rand, session, context int, shared, domain []uint32) []*job {
	head := slices.Concat(shared, domain)
	if w.domainFirst {
		head = slices.Concat(domain, shared)
	}
	var chain affinity.Chain
	chain.Message("system", spell(head))
	jobs := make([]*job, 0, w.turns)
	prompt := head
	for range w.turns {
		j := &job{session: session, context: context, answer: words(r, w.answer)}
		user := words(r, w.userTokens)
		prompt = slices.Concat(prompt, user)
		chain.Message("user", spell(user))
		j.prompt = prompt
		j.chain.Resume(&chain)
		prompt = slices.Concat(prompt, j.answer)
		chain.Message("assistant", spell(j.answer))
		jobs = append(jobs, j)
	}
	jobs[len(jobs)-1].last = true
	return jobs
}

// draw returns a number in [0,n), small ones more often: number i with a weight of 1/(i+1)^s.
func draw(r *rand.Rand, n int, s float64) int {
	total := 0.0
	for i := range n {
		total += math.Pow(float64(i+1), -s)
	}
	x := r.Float64() * total
	for i := range n {
		if x -= math.Pow(float64(i+1), -s); x < 0 {
			return i
		}
	}
	return n - 1
}

// ideal is the share of prompt tokens that one unlimited cache would have cached, if requests did
// not overlap.
func (p *plan) ideal(blockTokens int) float64 {
	blocks := 0
	for _, s := range p.sessions {
		for _, j := range s {
			blocks += (len(j.prompt)+len(j.answer))/blockTokens + 1
		}
	}
	cache := kv.NewCache(blocks)
	next := make([]int, len(p.sessions))
	var cached, all int
	for _, s := range p.order {
		j := p.sessions[s][next[s]]
		next[s]++
		names := kv.AppendChain(nil, j.seed, slices.Concat(j.prompt, j.answer[:len(j.answer)-1]), blockTokens)
		l, ok := cache.Take(names, (len(j.prompt)-1)/blockTokens, len(names))
		if !ok {
			panic("the endless cache has ended")
		}
		cached += l.Hits() * blockTokens
		all += len(j.prompt)
		cache.Compute(l, len(names))
		cache.Release(l)
	}
	return float64(cached) / float64(all)
}
