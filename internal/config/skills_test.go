package config

import (
	"strings"
	"testing"

	"signalbox/internal/signal"
)

func TestSkillsNameDomainsThatTheModelReports(t *testing.T) {
	t.Parallel()
	head := "models:\n  - name: m\n    endpoints: [{name: e, url: http://127.0.0.1:9}]\n"
	labels := []string{"math", "computer science", "law"}
	tests := []struct {
		name, skills string
		labels       []string
		want         string // empty when all is well
	}{
		{"domains and the default", "{math: 0.8, computer science: 0.5, default: 0.4}", labels, ""},
		{"a slip", "{maths: 0.8}", labels, `f.yaml:4:21: models[0].skills.maths: no domain is called "maths", did you mean "math"?`},
		{"another word", "{math: 0.8, astrology: 0.5}", labels, `f.yaml:4:36: models[0].skills.astrology: no domain is called "astrology", expected one of computer science, default, law, math`},
		{"a share in percent", "{math: 80}", labels, `f.yaml:4:20: models[0].skills.math: 80 is not between 0 and 1`},
		{"what a model reports is not known", "{astrology: 0.5}", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := head + "    skills: " + tt.skills + "\ndefault: {models: [m]}\n"
			catalog := Catalog{Signals: signal.MaskOf(signal.Domain), Labels: make(map[signal.Kind][]string)}
			catalog.Labels[signal.Domain] = tt.labels
			_, _, err := Parse("f.yaml", []byte(text), func(string) (string, bool) { return "", false }, func(*Classify) (Catalog, error) {
				return catalog, nil
			})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("unexpected: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
