package main

import (
	"fmt"
	"slices"
	"time"

	"signalbox/internal/simulator/kv"
	"signalbox/proxy/affinity"
)

// fleet is the servers of an experiment and how many requests are under way at once.
type fleet struct {
	servers     int
	server      kv.Options
	concurrency int
	restart     int  // the first server is restarted when so many requests were sent; 0 means never
	observed    bool // proxies look at the servers' metrics
}

// usualFleet has four servers, with a cache of 48,000 tokens each.
func usualFleet() fleet {
	o := kv.DefaultOptions()
	o.Blocks = 3000
	return fleet{servers: 4, server: o, concurrency: 12, observed: true}
}

// outcome is what a run gave.
type outcome struct {
	cached, prompt int             // tokens
	ttft           []time.Duration // of each request
	requests       []int           // of each server
	lost           int             // requests that were sent again because their server was restarted
	wrong          map[int]int     // mispredictions after the restart, by context
}

// share is the share of prompt tokens that were cached.
func (o *outcome) share() float64 { return float64(o.cached) / float64(o.prompt) }

// again is how many prompt tokens were computed.
func (o *outcome) again() float64 { return float64(o.prompt - o.cached) }

// mean is the mean time to the first token in milliseconds.
func (o *outcome) mean() float64 {
	var sum time.Duration
	for _, d := range o.ttft {
		sum += d
	}
	return sum.Seconds() * 1000 / float64(len(o.ttft))
}

// quantile is a quantile of the times to the first token in milliseconds.
func (o *outcome) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(o.ttft))
	return sorted[int(q*float64(len(sorted)-1))].Seconds() * 1000
}

// spread is the requests of the busiest server over the mean.
func (o *outcome) spread() float64 {
	sum := 0
	for _, n := range o.requests {
		sum += n
	}
	return float64(slices.Max(o.requests)*len(o.requests)) / float64(sum)
}

// flight is a request under way.
type flight struct {
	job     *job
	server  int
	follow  follower
	arrived time.Time
}

// run is one run of a plan.
type run struct {
	fleet
	plan    *plan
	policy  policy
	servers []*kv.Engine
	now     time.Time
	under   map[*kv.Sequence]*flight
	busy    []bool // sessions
	next    []int  // turns
	left    []int  // of plan.order
	out     *outcome
	sent    int
	broken  bool
	looked  time.Time // when the proxies looked at /metrics
}

// looks is how often proxies look at the metrics of servers, in simulated time.
const looks = time.Second

// start is when simulated time begins.
func start() time.Time { return time.Unix(1_700_000_000, 0) }

// run lets a policy place all requests of a plan. A server answers a request as soon as it can; the
// next request is sent when one has ended, so that there are always the same number under way.
// clock, when not nil, is set to the simulated time as it passes.
func (f fleet) run(p *plan, by policy, clock *time.Time) (*outcome, error) {
	r := &run{
		fleet: f, plan: p, policy: by, now: start(), under: map[*kv.Sequence]*flight{}, busy: make([]bool, len(p.sessions)),
		next: make([]int, len(p.sessions)), left: slices.Clone(p.order), out: &outcome{requests: make([]int, f.servers), wrong: map[int]int{}},
	}
	for range f.servers {
		e, err := kv.New(f.server, r.now)
		if err != nil {
			return nil, err
		}
		r.servers = append(r.servers, e)
	}
	for {
		*clock = r.now
		if err := r.fill(); err != nil {
			return nil, err
		}
		if len(r.under) == 0 && len(r.left) == 0 {
			return r.out, nil
		}
		if err := r.step(); err != nil {
			return nil, err
		}
	}
}

// fill sends requests until enough are under way.
func (r *run) fill() error {
	for len(r.under) < r.concurrency {
		i := slices.IndexFunc(r.left, func(s int) bool { return !r.busy[s] })
		if i < 0 {
			return nil
		}
		s := r.left[i]
		r.left = slices.Delete(r.left, i, i+1)
		j := r.plan.sessions[s][r.next[s]]
		r.next[s]++
		r.busy[s] = true
		if err := r.send(j, r.now); err != nil {
			return err
		}
		if r.sent++; r.sent == r.restart {
			return r.crash()
		}
	}
	return nil
}

// send places a request that arrived at a time.
func (r *run) send(j *job, arrived time.Time) error {
	at, follow := r.policy.pick(r.now, j, r.servers)
	q, err := r.servers[at].Submit(r.now, kv.Request{Seed: j.seed, Prompt: j.prompt, Answer: j.answer})
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	r.under[q] = &flight{j, at, follow, arrived}
	r.out.requests[at]++
	return nil
}

// crash restarts the first server.
func (r *run) crash() error {
	r.broken = true
	r.servers[0].Restart(r.now)
	return r.settle(0)
}

// step moves on to the next thing that happens anywhere.
func (r *run) step() error {
	which := -1
	var soonest time.Time
	for i, e := range r.servers {
		if at, ok := e.Next(); ok && (which < 0 || at.Before(soonest)) {
			which, soonest = i, at
		}
	}
	if which < 0 {
		return fmt.Errorf("%d requests are under way and nothing happens", len(r.under))
	}
	r.now = soonest
	if p, ok := r.policy.(*product); ok && r.observed && r.now.Sub(r.looked) >= looks {
		r.looked = r.now
		p.observe(r.now, r.servers)
	}
	return r.settle(which)
}

// settle takes in what has happened at a server.
func (r *run) settle(which int) error {
	for _, e := range slices.Clone(r.servers[which].Advance(r.now)) {
		f := r.under[e.Sequence]
		switch {
		case f == nil:
			return fmt.Errorf("server %d tells of a request that was not sent", which)
		case e.State == kv.Decode:
			r.first(f)
		case e.State == kv.Finished:
			r.end(e.Sequence, f)
		case e.State == kv.Gone:
			delete(r.under, e.Sequence)
			r.out.lost++
			if f.follow != nil {
				f.follow.End(r.now, affinity.Usage{Failed: true})
			}
			if err := r.send(f.job, f.arrived); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) first(f *flight) {
	r.out.ttft = append(r.out.ttft, r.now.Sub(f.arrived))
	if f.follow != nil {
		f.follow.First(r.now)
	}
}

func (r *run) end(q *kv.Sequence, f *flight) {
	delete(r.under, q)
	r.busy[f.job.session] = false
	r.out.cached += q.Cached
	r.out.prompt += q.Prompt()
	if f.follow == nil {
		return
	}
	if f.follow.End(r.now, affinity.Usage{Prompt: q.Prompt(), Cached: q.Cached}) && r.broken {
		r.out.wrong[f.job.context]++
	}
}
