package main

import (
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"signalbox/memory/outcomes"
)

// folds is in how many parts a set is taken, each of which is predicted from the others.
const folds = 5

const tenant = "bench"

// whole takes from a set the prompts that have all of some models.
func whole(ps []*prompt, models []string) []*prompt {
	var out []*prompt
	for _, p := range ps {
		if !slices.ContainsFunc(models, func(m string) bool { _, ok := p.out[m]; return !ok }) {
			out = append(out, p)
		}
	}
	return out
}

// models lists those that answered nearly all prompts of a set, the best first.
func (s *set) models() []string {
	n := map[string]int{}
	for _, p := range s.prompts {
		for m := range p.out {
			n[m]++
		}
	}
	var out []string
	for _, m := range slices.Sorted(maps.Keys(n)) {
		if float64(n[m]) >= 0.97*float64(len(s.prompts)) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		x, y := mean(s.prompts, a), mean(s.prompts, b)
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return out
}

// mean is the mean score of a model.
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

// fold is the part that a prompt is in.
func (p *prompt) fold() int { return int(crc32.ChecksumIEEE([]byte(p.id)) % folds) }

func (*set) foldOf(p *prompt) string { return string(rune('0' + p.fold())) }

// benchmark is what is left out together: a source up to its second part, or a task where the set
// has one source.
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

// family is a source without what comes behind a dash of its last part.
func family(src string) string {
	at := strings.LastIndexByte(src, '/') + 1
	if dash := strings.IndexByte(src[at:], '-'); dash > 0 && at > 0 {
		return src[:at+dash]
	}
	return src
}

// benchmarks lists those of a set.
func (s *set) benchmarks() []string {
	seen := map[string]bool{}
	for _, p := range s.prompts {
		seen[s.benchmark(p)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// taught is the product's memory with the outcomes of some models to some prompts. What the
// configuration would say of the models is what they scored there on the whole.
func taught(ps []*prompt, models []string, prior map[string]float64) (*outcomes.Store, error) {
	st, _, err := outcomes.Open(
		outcomes.Options{Limit: max(len(ps)*len(models), counts[len(counts)-1]), Tenants: 1, Waiting: 1},
	)
	if err != nil {
		return nil, err
	}
	for _, p := range ps {
		for _, m := range models {
			if r, ok := p.out[m]; ok {
				o := outcomes.Outcome{
					Tenant: tenant, ID: p.id + " " + m, Model: m, Prior: prior[m], Score: r.score,
					Weight: 1, Tokens: int(r.tokens),
				}
				if err := st.Add(o, p.vector); err != nil {
					return nil, err
				}
			}
		}
	}
	return st, nil
}

// priorsOf is what models score on the whole.
func priorsOf(ps []*prompt, models []string) map[string]float64 {
	out := make(map[string]float64, len(models))
	for _, m := range models {
		out[m] = mean(ps, m)
	}
	return out
}

// ask predicts for a prompt, in the order of models.
func ask(st *outcomes.Store, p *prompt, models []string, prior map[string]float64) []outcomes.Prediction {
	out := make([]outcomes.Prediction, len(models))
	for i, m := range models {
		out[i] = outcomes.Prediction{Model: m, Prior: prior[m], Mean: prior[m]}
	}
	st.Predict(tenant, p.vector, out)
	return out
}

// each calls use for every prompt, with a memory that was taught those of other parts.
func each(
	ps []*prompt, models []string, part func(*prompt) string, use func(*prompt, []outcomes.Prediction),
) error {
	parts := map[string][]*prompt{}
	for _, p := range ps {
		parts[part(p)] = append(parts[part(p)], p)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		var others []*prompt
		for _, p := range ps {
			if part(p) != name {
				others = append(others, p)
			}
		}
		prior := priorsOf(others, models)
		st, err := taught(others, models, prior)
		if err != nil {
			return err
		}
		for _, p := range parts[name] {
			use(p, ask(st, p, models, prior))
		}
	}
	return nil
}
