package choose

import (
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"signalbox/internal/option"
	"signalbox/internal/signal"
)

// skillDefault is the key in skills for all domains without an entry.
const skillDefault = "default"

// Skills is how well a model answers questions in each domain, in [0,1]. The zero value knows
// nothing. It is immutable and safe for concurrent use.
type Skills struct {
	known  bool
	rest   float64 // for domains without an entry, and for requests of unknown domain
	domain map[string]float64
}

// NewSkills combines stated skills (shares of correct responses in [0,1], by domain, and "default"
// for all others) with the results of the public model called from. Stated skills take precedence.
// Without a default, a domain without an entry gets the mean of the others.
func NewSkills(stated map[string]float64, from string) Skills {
	s := Skills{domain: make(map[string]float64, len(mmluProDomains))}
	if m, ok := findMeasured(from); ok {
		for i, name := range mmluProDomains {
			s.domain[name] = m.accuracy[i]
		}
	}
	maps.Copy(s.domain, stated)
	s.known = len(s.domain) > 0
	rest, given := s.domain[skillDefault]
	delete(s.domain, skillDefault)
	if s.rest = rest; !given && s.known {
		for _, name := range slices.Sorted(maps.Keys(s.domain)) {
			// sorted, so that the sum is always the same
			s.rest += s.domain[name]
		}
		s.rest /= float64(len(s.domain))
	}
	return s
}

// Quality returns the expected share of correct responses, in [0,1], for a request with domain v:
// the skills weighted by the probabilities of the domains. It is negative when nothing is known
// about the model.
func (s *Skills) Quality(v *signal.Value) float64 {
	switch {
	case !s.known:
		return unknown
	case v.State != signal.Known:
		return s.rest
	case len(v.Probs) != len(v.Labels) || len(v.Probs) == 0:
		return s.of(v.Label)
	}
	var sum, weight float64
	for i, p := range v.Probs {
		sum += float64(p) * s.of(v.Labels[i])
		weight += float64(p)
	}
	if !(weight > 0) {
		return s.rest
	}
	return sum / weight
}

func (s *Skills) of(domain string) float64 {
	if q, ok := s.domain[domain]; ok {
		return q
	}
	return s.rest
}

// findMeasured finds a model in the built-in table. It ignores case and an organisation before a
// slash, and treats a dot like the underscore in names such as Meta-Llama-3_1-8B.
func findMeasured(name string) (*measured, bool) {
	key := measuredKey(name)
	for i := range mmluPro {
		if measuredKey(mmluPro[i].name) == key {
			return &mmluPro[i], true
		}
	}
	return nil, false
}

func measuredKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], ".", "_"))
}

// nearestMeasured returns the name in the table with the smallest edit distance to name.
func nearestMeasured(name string) string {
	// edit distance is quadratic, and every name in the table is less than half as long
	const longest = 64
	key, best, least := measuredKey(name), "", longest+1
	for i := range mmluPro {
		if d := levenshtein.ComputeDistance(key[:min(len(key), longest)], measuredKey(mmluPro[i].name)); d < least {
			best, least = mmluPro[i].name, d
		}
	}
	return best
}

// CheckSkills reports invalid arguments of NewSkills to p, as problems of the fields skills and
// skills_from.
func CheckSkills(p *option.Problems, stated map[string]float64, from string) {
	for _, domain := range slices.Sorted(maps.Keys(stated)) {
		option.Between(p, "skills."+domain, stated[domain], 0, 1)
		if strings.TrimSpace(domain) == "" {
			p.Addf("skills", "the name of a domain is blank")
		}
	}
	if from == "" {
		return
	}
	if _, ok := findMeasured(from); !ok {
		names := make([]string, len(mmluPro))
		for i := range mmluPro {
			names[i] = mmluPro[i].name
		}
		p.Addf("skills_from", "no results of %q are built in, did you mean %q? Known are %s", from, nearestMeasured(from), strings.Join(names, ", "))
	}
}
