package choose

import (
	"math"
	"strings"
	"testing"

	"signalbox/internal/option"
	"signalbox/internal/signal"
)

// given is the configured skills of a model.
type given struct {
	stated map[string]float64
	from   string
}

func TestQualityIsTheSkillOfTheDomain(t *testing.T) {
	t.Parallel()
	stated := func(kv map[string]float64) given { return given{stated: kv} }
	both := given{from: "mistralai/mistral-7b-instruct-V0.2", stated: map[string]float64{"math": 0.9}}
	var failed, bare signal.Value
	failed.State = signal.Unknown
	bare.State, bare.Label = signal.Known, "law"
	tests := []struct {
		name   string
		o      given
		domain signal.Value
		want   float64
	}{
		{"the skill of the predicted domain", stated(map[string]float64{"math": 0.8, "default": 0.5}), domainIs(1, 0), 0.8},
		{"weighted by what the classifier believes", stated(map[string]float64{"math": 0.8, "default": 0.4}), domainIs(0.75, 0.25), 0.7},
		{"a label without probabilities counts whole", stated(map[string]float64{"law": 0.3, "default": 0.4}), bare, 0.3},
		{"the default when the domain failed", stated(map[string]float64{"math": 0.8, "default": 0.5}), failed, 0.5},
		{"the default when nobody asked for the domain", stated(map[string]float64{"math": 0.8, "default": 0.5}), signal.Value{}, 0.5},
		{"without a default, the mean of what is given", stated(map[string]float64{"math": 0.8, "law": 0.2}), failed, 0.5},
		{"a default of nothing is a default", stated(map[string]float64{"math": 0.8, "default": 0}), failed, 0},
		{"from the table, whatever the case and the organisation", both, domainIs(0, 1), 0.213},
		{"own figures stand over the table", both, domainIs(1, 0), 0.9},
		{"nothing given, nothing known", given{}, domainIs(1, 0), unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := NewSkills(tt.o.stated, tt.o.from)
			if got := s.Quality(&tt.domain); math.Abs(got-tt.want) > 1e-6 {
				t.Errorf("quality is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSkillsAreChecked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		o    given
		want string // part of the message; empty when all is well
	}{
		{"figures between 0 and 1", given{stated: map[string]float64{"math": 0, "default": 1}}, ""},
		{"a percentage", given{stated: map[string]float64{"math": 80}}, "skills.math: 80 is not between 0 and 1"},
		{"no number", given{stated: map[string]float64{"math": math.NaN()}}, "skills.math: NaN is not"},
		{"a blank domain", given{stated: map[string]float64{" ": 0.5}}, "skills: the name of a domain is blank"},
		{"a dot for an underscore", given{from: "meta-llama/Meta-Llama-3.1-8B-Instruct"}, ""},
		{"a slip", given{from: "Mathstral7B"}, `skills_from: no results of "Mathstral7B" are built in, did you mean "mathstral-7B"?`},
		{"a name far from all", given{from: strings.Repeat("x", 10_000)}, "skills_from: no results of"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p option.Problems
			CheckSkills(&p, tt.o.stated, tt.o.from)
			switch err := p.Err(); {
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
