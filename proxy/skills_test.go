package proxy

import (
	"math"
	"strings"
	"testing"

	"signalbox/internal/signal"
)

func TestQualityIsTheSkillOfTheDomain(t *testing.T) {
	t.Parallel()
	given := func(kv map[string]float64) ModelOptions { return ModelOptions{Skills: kv} }
	both := ModelOptions{SkillsFrom: "mistralai/mistral-7b-instruct-V0.2", Skills: map[string]float64{"math": 0.9}}
	var failed, bare signal.Value
	failed.State = signal.Unknown
	bare.State, bare.Label = signal.Known, "law"
	tests := []struct {
		name   string
		o      ModelOptions
		domain signal.Value
		want   float64
	}{
		{"the skill of the predicted domain", given(map[string]float64{"math": 0.8, "default": 0.5}), domainIs(1, 0), 0.8},
		{"weighted by what the classifier believes", given(map[string]float64{"math": 0.8, "default": 0.4}), domainIs(0.75, 0.25), 0.7},
		{"a label without probabilities counts whole", given(map[string]float64{"law": 0.3, "default": 0.4}), bare, 0.3},
		{"the default when the domain failed", given(map[string]float64{"math": 0.8, "default": 0.5}), failed, 0.5},
		{"the default when nobody asked for the domain", given(map[string]float64{"math": 0.8, "default": 0.5}), signal.Value{}, 0.5},
		{"without a default, the mean of what is given", given(map[string]float64{"math": 0.8, "law": 0.2}), failed, 0.5},
		{"a default of nothing is a default", given(map[string]float64{"math": 0.8, "default": 0}), failed, 0},
		{"from the table, whatever the case and the organisation", both, domainIs(0, 1), 0.213},
		{"own figures stand over the table", both, domainIs(1, 0), 0.9},
		{"nothing given, nothing known", ModelOptions{}, domainIs(1, 0), unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSkills(tt.o)
			if got := s.quality(&tt.domain); math.Abs(got-tt.want) > 1e-6 {
				t.Errorf("quality is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSkillsAreChecked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		o    ModelOptions
		want string // part of the message; empty when all is well
	}{
		{"figures between 0 and 1", ModelOptions{Skills: map[string]float64{"math": 0, "default": 1}}, ""},
		{"a percentage", ModelOptions{Skills: map[string]float64{"math": 80}}, "skills.math: 80 is not between 0 and 1"},
		{"no number", ModelOptions{Skills: map[string]float64{"math": math.NaN()}}, "skills.math: NaN is not"},
		{"a blank domain", ModelOptions{Skills: map[string]float64{" ": 0.5}}, "skills: the name of a domain is blank"},
		{"a dot for an underscore", ModelOptions{SkillsFrom: "meta-llama/Meta-Llama-3.1-8B-Instruct"}, ""},
		{"a slip", ModelOptions{SkillsFrom: "Mathstral7B"}, `skills_from: no results of "Mathstral7B" are built in, did you mean "mathstral-7B"?`},
		{"a name far from all", ModelOptions{SkillsFrom: strings.Repeat("x", 10_000)}, "skills_from: no results of"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p problems
			tt.o.validateSkills(&p)
			switch err := p.err(); {
			case tt.want == "" && err != nil:
				t.Errorf("unexpected: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheTableOfResultsIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range mmluPro {
		key := measuredKey(m.name)
		if seen[key] {
			t.Errorf("%s is there twice", m.name)
		}
		seen[key] = true
		for i, x := range m.accuracy {
			if !(x > 0 && x < 1) {
				t.Errorf("%s, %s: %v", m.name, mmluProDomains[i], x)
			}
		}
	}
	if len(mmluPro) != 29 {
		t.Errorf("%d models", len(mmluPro))
	}
}
