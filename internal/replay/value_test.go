package replay_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"signalbox/internal/replay"
	"signalbox/proxy/decisionlog"
)

// quality is how often a model is right in a domain.
func quality(domain, model string) float64 {
	return map[string]float64{"math a": 0.9, "math b": 0.3, "law a": 0.4, "law b": 0.7}[domain+" "+model]
}

// simulated is a log whose policy is known: it favours the worse model of each domain.
func simulated(seed uint64, n int, target func(domain string) *decisionlog.Redecision) *replay.Value {
	r := rand.New(rand.NewPCG(seed, 1))
	v := new(replay.Value)
	for range n {
		domain, chances := "math", map[string]float64{"a": 0.2, "b": 0.8}
		if r.Float64() < 0.4 {
			domain, chances = "law", map[string]float64{"a": 0.9, "b": 0.1}
		}
		model := "b"
		if r.Float64() < chances["a"] {
			model = "a"
		}
		score := 0.0
		if r.Float64() < quality(domain, model) {
			score = 1
		}
		v.Take(&decisionlog.Entry{
			Chosen: model, Model: model, Chance: chances[model], Chances: chances,
			Signals: map[string]decisionlog.Signal{"domain": {Label: domain}},
		}, target(domain), score)
	}
	v.Estimate()
	return v
}

// Estimates are compared with the truth over many logs: their means, and how often the interval of
// 95 % holds it.
func TestEstimatesFindTheValueThatIsKnown(t *testing.T) {
	t.Parallel()
	best := func(domain string) *decisionlog.Redecision {
		return &decisionlog.Redecision{Chosen: map[string]string{"math": "a", "law": "b"}[domain]}
	}
	even := func(string) *decisionlog.Redecision {
		return &decisionlog.Redecision{Action: decisionlog.Action{
			By: "weight", Models: []decisionlog.Choice{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}},
		}}
	}
	for name, c := range map[string]struct {
		target func(string) *decisionlog.Redecision
		truth  float64
	}{
		"the better model of each domain": {best, 0.6*0.9 + 0.4*0.7},
		"an even draw":                    {even, 0.6*(0.9+0.3)/2 + 0.4*(0.4+0.7)/2},
	} {
		const logs = 300
		var mean, inside, width [3]float64
		for seed := range uint64(logs) {
			v := simulated(seed, 600, c.target)
			if v.Rated != 600 || v.Blind != 0 || v.Counting >= 600 {
				t.Fatalf("%s: %+v", name, v)
			}
			if math.Abs(v.Logged.Mean-c.truth) < 0.05 {
				t.Fatalf("%s: the log itself tells the truth, %v", name, v.Logged)
			}
			for i, e := range []replay.Estimate{v.IPS, v.SNIPS, v.DR} {
				mean[i] += e.Mean / logs
				width[i] += (e.High - e.Low) / logs
				if e.Low <= c.truth && c.truth <= e.High {
					inside[i] += 1. / logs
				}
			}
		}
		for i, of := range []string{"IPS", "SNIPS", "DR"} {
			if math.Abs(mean[i]-c.truth) > 0.01 || inside[i] < 0.9 {
				t.Errorf("%s: %s is %.3f on the mean, the truth %.3f; it is in the interval %.2f of the times",
					name, of, mean[i], c.truth, inside[i])
			}
		}
		if width[2] > 0.9*width[0] {
			t.Errorf("%s: the doubly robust interval is %.3f wide, the other one %.3f", name, width[2], width[0])
		}
	}
}

func TestWhatNoEstimateIsMadeOf(t *testing.T) {
	t.Parallel()
	v := new(replay.Value)
	entry := decisionlog.Entry{Chosen: "a", Model: "a", Chance: 1}
	to := func(m string) *decisionlog.Redecision { return &decisionlog.Redecision{Chosen: m} }
	v.Take(&entry, to("b"), 1) // a model that had no chance
	v.Take(&entry, to("a"), 1)
	v.Take(&entry, &decisionlog.Redecision{Missing: []string{"domain"}}, 1)
	v.Take(&entry, &decisionlog.Redecision{Action: decisionlog.Action{By: "cost"}}, 1)
	fell := entry
	fell.Model = "c" // after a fallback
	v.Take(&fell, to("a"), 1)
	v.Take(&decisionlog.Entry{Chosen: "a", Model: "a"}, to("a"), 1)
	v.Estimate()
	if v.Rated != 2 || v.Undetermined != 2 || v.Chanceless != 2 || v.Blind != 0.5 {
		t.Errorf("%+v", v)
	}
	empty := new(replay.Value)
	if empty.Estimate(); empty.Rated != 0 || empty.IPS != (replay.Estimate{}) {
		t.Errorf("%+v", empty)
	}
}
