package main

import (
	"context"
	"fmt"
)

// compare lets a talk run over some ways, and returns what each gave on each seed.
func (l *live) compare(ctx context.Context, t talk, list []way) (*results, error) {
	res := &results{by: map[string][]*outcome{}, refused: map[string]sample{}}
	for i, w := range list {
		res.names = append(res.names, w.name)
		for _, seed := range l.seeds {
			_, _ = fmt.Fprintf(l.log, "  %s, seed %d\n", w.name, seed)
			out, err := l.play(ctx, t, w, seed, 0)
			if err != nil {
				return nil, err
			}
			if out.cut > 0 {
				return nil, fmt.Errorf("%s, seed %d: %d streams cut", w.name, seed, out.cut)
			}
			res.refused[w.name] = append(res.refused[w.name], float64(out.errors))
			if i == 0 {
				res.ideal = append(res.ideal, out.ideal)
			}
			res.by[w.name] = append(res.by[w.name], &out.outcome)
		}
	}
	return res, nil
}

// shared is agents over contexts that fit into half of all caches.
func (l *live) shared(ctx context.Context, r *report) error {
	res, err := l.compare(ctx, l.usualTalk(), policies())
	if err != nil {
		return err
	}
	t := l.usualTalk()
	r.table(fmt.Sprintf("%d contexts of %d tokens, %d agents each, %d turns; 4 servers with 48,000 tokens each; %d requests at once, over HTTP",
		t.contexts, t.contextWords, t.agents, t.turns, atOnce), res)
	below := res.of(own, (*outcome).share)
	for i := range below {
		below[i] = 100 * (res.ideal[i] - below[i])
	}
	r.demand("live: cached share below the ideal, points", below, "%.1f", atMost, 1)
	r.demand("live: computed again, over round-robin", res.over(turn, (*outcome).again), "%.2f", atMost, 0.15)
	r.demand("live: computed again, over sticky session", res.over(sticky, (*outcome).again), "%.2f", atMost, 0.30)
	r.demand("live: answers of 500 and above, asked for again", res.refused[own], "%.0f", atMost, 0)
	r.demand("live: mean time to first token, over round-robin", res.over(turn, (*outcome).mean), "%.2f", noBar, 0)
	return nil
}

// proxies is longer sessions by two proxies that share a Redis.
func (l *live) proxies(ctx context.Context, r *report) error {
	t := l.usualTalk()
	t.turns = 7
	res, err := l.compare(ctx, t, []way{{name: two, proxies: 2, named: true}})
	if err != nil {
		return err
	}
	r.demand("live: two proxies over one Redis, 7 turns: cached share", res.of(two, (*outcome).share), "%.3f", atLeast, 0.93)
	r.demand("live: the ideal share of that", res.ideal, "%.3f", noBar, 0)
	r.demand("live: two proxies over one Redis: answers of 500 and above, asked for again", res.refused[two], "%.0f", noBar, 0)
	return nil
}

// domains is three agents with prompts of their own over each context.
func (l *live) domains(ctx context.Context, r *report) error {
	t := l.usualTalk()
	t.domain = true
	res, err := l.compare(ctx, t, []way{{name: own, proxies: 1, named: true}})
	if err != nil {
		return err
	}
	r.demand("live: three prompts of agents over one context: cached share", res.of(own, (*outcome).share), "%.3f", atLeast, 0.92)
	r.demand("live: the ideal share of that", res.ideal, "%.3f", noBar, 0)
	return nil
}

// restart is a server that is restarted halfway.
func (l *live) restart(ctx context.Context, r *report) error {
	t := l.usualTalk()
	var wrong, errors, cut sample
	for _, seed := range l.seeds {
		out, err := l.play(ctx, t, way{name: own, proxies: 1, named: true}, seed, t.contexts*t.agents*t.turns/2)
		if err != nil {
			return err
		}
		most := 0
		for _, n := range out.wrongly {
			most = max(most, n)
		}
		wrong, errors, cut = append(wrong, float64(most)), append(errors, float64(out.errors)), append(cut, float64(out.cut))
	}
	r.demand("live: restart of a server: wrong predictions of one context, at most", wrong, "%.0f", atMost, 1)
	r.demand("live: restart of a server: answers of 500 and above", errors, "%.0f", atMost, 0)
	r.demand("live: restart of a server: streams that it cut, and that were asked for again", cut, "%.0f", noBar, 0)
	return nil
}
