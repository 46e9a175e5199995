package main

import (
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// folds is the number of parts of a set, each of which is predicted from the others.
const folds = 5

// atOnce is the number of concurrent requests.
const atOnce = 4

// whole returns the prompts of a set that have responses of all given models.
func whole(ps []*prompt, models ...string) []*prompt {
	var out []*prompt
	for _, p := range ps {
		if !slices.ContainsFunc(models, func(m string) bool { _, ok := p.out[m]; return !ok }) {
			out = append(out, p)
		}
	}
	return out
}

// nearlyAll is the share of a set's prompts that a model must have answered to count as one of its
// models.
const nearlyAll = 0.97

// models lists the models that answered nearly all prompts of a set, the best first.
func (s *set) models() []string {
	n := map[string]int{}
	for _, p := range s.prompts {
		for m := range p.out {
			n[m]++
		}
	}
	var out []string
	for _, m := range slices.Sorted(maps.Keys(n)) {
		if float64(n[m]) >= nearlyAll*float64(len(s.prompts)) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(mean(s.prompts, b), mean(s.prompts, a)) })
	return out
}

func mean(ps []*prompt, model string) float64 {
	sum, n := 0.0, 0.0
	for _, p := range ps {
		if r, ok := p.out[model]; ok {
			sum += r.score
			n++
		}
	}
	return sum / max(n, 1)
}

// fold returns the part that a prompt belongs to.
func (p *prompt) fold() int { return int(crc32.ChecksumIEEE([]byte(p.id)) % folds) }

func (*set) foldOf(p *prompt) string { return string(rune('0' + p.fold())) }

// benchmark is the unit that is left out together: a source up to its second part, or a task if the
// set has one source.
func (s *set) benchmark(p *prompt) string {
	if s.single == nil {
		one := !slices.ContainsFunc(
			s.prompts,
			func(x *prompt) bool { return family(x.src) != family(s.prompts[0].src) },
		)
		s.single = &one
	}
	if *s.single {
		return p.task
	}
	return family(p.src)
}

// family returns a source without the text after a dash in its last part.
func family(src string) string {
	at := strings.LastIndexByte(src, '/') + 1
	if dash := strings.IndexByte(src[at:], '-'); dash > 0 && at > 0 {
		return src[:at+dash]
	}
	return src
}

// benchmarks lists the benchmarks of a set.
func (s *set) benchmarks() []string {
	seen := map[string]bool{}
	for _, p := range s.prompts {
		seen[s.benchmark(p)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// way is what is left out together when outcomes are predicted.
type way struct {
	name string
	part func(*prompt) string
}

// ways are those of a set: with one benchmark there is none that could be left out.
func (s *set) ways() []way {
	out := []way{{"same benchmarks", s.foldOf}}
	if len(s.benchmarks()) > 1 {
		out = append(out, way{"unseen benchmark", s.benchmark})
	}
	return out
}

// asked is a prompt with what the product did.
type asked struct {
	*prompt

	served map[string]*served // by route
}

// got is the recorded answer that a route was served with.
func (a *asked) got(route string) result { return a.out[a.served[route].arm.of] }

// replay sends every prompt by the given routes through a product that has the outcomes of the
// prompts of all other parts, and whose skills are what the models scored there.
func replay(
	ctx context.Context, r *reader, s setup, ps []*prompt, part func(*prompt) string, routes ...string,
) ([]asked, error) {
	parts := map[string][]*prompt{}
	for _, p := range ps {
		parts[part(p)] = append(parts[part(p)], p)
	}
	out := make([]asked, 0, len(ps))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		var others []*prompt
		for _, p := range ps {
			if part(p) != name {
				others = append(others, p)
			}
		}
		others = firstOf(others, s.known)
		s.prior = s.skills(others)
		got, err := one(ctx, r, s, parts[name], others, routes)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// firstOf takes the first n prompts of each task, all for 0.
func firstOf(ps []*prompt, n int) []*prompt {
	if n == 0 {
		return ps
	}
	seen := map[string]int{}
	return slices.DeleteFunc(slices.Clone(ps), func(p *prompt) bool {
		seen[p.task]++
		return seen[p.task] > n
	})
}

// skills are what the models of a setup score, each at its best effort.
func (s *setup) skills(ps []*prompt) map[string]float64 {
	out := make(map[string]float64, len(s.arms))
	for _, a := range s.arms {
		out[a.model] = max(out[a.model], mean(ps, a.of))
	}
	return out
}

// one replays a part.
func one(
	ctx context.Context, r *reader, s setup, ps, others []*prompt, routes []string,
) (out []asked, err error) {
	p, err := open(ctx, s, r, ps)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.teach(ctx, others); err != nil {
		return nil, err
	}
	out = make([]asked, len(ps))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, x := range ps {
		out[i] = asked{x, make(map[string]*served, len(routes))}
		g.Go(func() error {
			for _, route := range routes {
				got, err := p.ask(ctx, x, route)
				if err != nil {
					return err
				}
				out[i].served[route] = got
			}
			return nil
		})
	}
	return out, g.Wait()
}

func arms(models ...string) []arm {
	out := make([]arm, len(models))
	for i, m := range models {
		out[i] = arm{model: m, of: m}
	}
	return out
}
