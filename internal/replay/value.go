package replay

import (
	"math"

	"signalbox/proxy/decisionlog"
)

// Value estimates the value of the responses under a new configuration, from rated responses under
// the logged one, which drew models with logged probabilities. It assumes that the probability of a
// rating does not depend on the response, and that the model's effort stays the same.
type Value struct {
	Rated        int `json:"rated"`        // ratings that count: probability and new choice are known
	Chanceless   int `json:"chanceless"`   // ratings of requests without a probability, such as continued conversations
	Undetermined int `json:"undetermined"` // ratings of requests whose new choice is unknown

	Logged   Estimate `json:"logged"`             // mean of the ratings that count
	IPS      Estimate `json:"inverse_propensity"` // weighted by the ratio of the model's new and logged probabilities
	SNIPS    Estimate `json:"self_normalised"`    // the same over the sum of the weights
	DR       Estimate `json:"doubly_robust"`      // from means by model and domain, corrected by IPS
	Counting float64  `json:"effective_ratings"`  // the number of unweighted ratings with the same information
	Most     float64  `json:"greatest_weight"`    // of one rating
	// Blind is the share of the new choices that had no probability in the log. Inverse propensity
	// does not cover it.
	Blind   float64  `json:"share_without_chance"`
	samples []sample // the samples of the estimates
}

// Estimate is a mean in [0,1], within statistical error, with its 95 % interval.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// sample is one rated request.
type sample struct {
	model  string
	domain string
	score  float64
	chance float64            // of model, in the log
	log    map[string]float64 // of all models; nil if there was no choice
	target map[string]float64 // under the new configuration
}

// Take counts a logged request whose response has a score in [0,1].
func (v *Value) Take(l *decisionlog.Entry, now *decisionlog.Redecision, score float64) {
	if l.Chance <= 0 || l.Chosen == "" || l.Model != l.Chosen {
		v.Chanceless++
		return
	}
	target := targetOf(now)
	if target == nil {
		v.Undetermined++
		return
	}
	s := sample{
		model: l.Chosen, domain: l.Signals["domain"].Label, score: score, chance: l.Chance, log: l.Chances, target: target,
	}
	if p := l.Chances[l.Chosen]; p > 0 {
		s.chance = p // without the effort
	}
	v.samples = append(v.samples, s)
}

// targetOf returns the probabilities of models under the new configuration; nil if they are
// unknown.
func targetOf(now *decisionlog.Redecision) map[string]float64 {
	switch {
	case len(now.Missing) > 0:
		return nil
	case now.Chosen != "":
		return map[string]float64{now.Chosen: 1}
	case now.Action.By != "weight" || now.Action.Canary != "":
		return nil
	}
	sum, out := 0.0, map[string]float64{}
	for _, c := range now.Action.Models {
		w := float64(max(c.Weight, 1))
		out[c.Name] += w
		sum += w
	}
	for name := range out {
		out[name] /= sum
	}
	return out
}

// Estimate computes the estimates.
func (v *Value) Estimate() {
	n := len(v.samples)
	v.Rated = n
	if n == 0 {
		return
	}
	plain, ips, dr := make([]float64, n), make([]float64, n), make([]float64, n)
	sum, squares := 0.0, 0.0
	halves := [2]means{newMeans(), newMeans()} // each half is predicted from the other
	for i := range v.samples {
		halves[i%2].add(&v.samples[i])
	}
	for i := range v.samples {
		s := &v.samples[i]
		w := s.target[s.model] / s.chance
		sum += w
		squares += w * w
		v.Most = max(v.Most, w)
		for m, p := range s.target {
			if m != s.model && s.log[m] == 0 {
				v.Blind += p / float64(n)
			}
		}
		told := &halves[1-i%2]
		expected := 0.0
		for m, p := range s.target {
			expected += p * told.of(s.domain, m)
		}
		plain[i], ips[i] = s.score, w*s.score
		dr[i] = expected + w*(s.score-told.of(s.domain, s.model))
	}
	v.Logged, v.IPS, v.DR = estimate(plain), estimate(ips), estimate(dr)
	if sum > 0 {
		v.Counting = sum * sum / squares
		mean, off := v.IPS.Mean*float64(n)/sum, 0.0
		for i := range v.samples {
			w := v.samples[i].target[v.samples[i].model] / v.samples[i].chance
			off += w * w * (v.samples[i].score - mean) * (v.samples[i].score - mean)
		}
		v.SNIPS = around(mean, math.Sqrt(off)/sum)
	}
}

// estimate returns the mean of xs with its interval.
func estimate(xs []float64) Estimate {
	n, mean, square := float64(len(xs)), 0.0, 0.0
	for _, x := range xs {
		mean += x / n
	}
	for _, x := range xs {
		square += (x - mean) * (x - mean)
	}
	return around(mean, math.Sqrt(square/max(n-1, 1)/n))
}

func around(mean, deviation float64) Estimate {
	const normal = 1.96 // standard deviations for a 95 % interval
	return Estimate{mean, mean - normal*deviation, mean + normal*deviation}
}

// means are mean scores by model and domain.
type means struct {
	all      tallied
	byModel  map[string]*tallied
	byDomain map[[2]string]*tallied
}

type tallied struct{ n, sum float64 }

// shrunk returns the mean, shrunk towards another mean as if that had been observed a few times.
func (t *tallied) shrunk(to float64) float64 {
	const seen = 5
	if t == nil {
		return to
	}
	return (t.sum + seen*to) / (t.n + seen)
}

func newMeans() means {
	return means{byModel: map[string]*tallied{}, byDomain: map[[2]string]*tallied{}}
}

func (m *means) add(s *sample) {
	key := [2]string{s.domain, s.model}
	if m.byModel[s.model] == nil {
		m.byModel[s.model] = new(tallied)
	}
	if m.byDomain[key] == nil {
		m.byDomain[key] = new(tallied)
	}
	for _, t := range [...]*tallied{&m.all, m.byModel[s.model], m.byDomain[key]} {
		t.n++
		t.sum += s.score
	}
}

func (m *means) of(domain, model string) float64 {
	const nothing = 0.5
	return m.byDomain[[2]string{domain, model}].shrunk(m.byModel[model].shrunk(m.all.shrunk(nothing)))
}
