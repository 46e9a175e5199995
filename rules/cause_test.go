package rules

import (
	"testing"

	"signalbox/internal/signal"
)

func TestTheCauseIsATestThatAnAttackPasses(t *testing.T) {
	t.Parallel()
	const none = signal.NumKinds
	for when, want := range map[string]signal.Kind{
		`{jailbreak: true}`: signal.Jailbreak,
		`{jailbreak: {min_score: 0.5, max_score: 0.95}}`:                               signal.Jailbreak,
		`{not: {jailbreak: {max_score: 0.5}}}`:                                         signal.Jailbreak,
		`{any: [{role: admin}, {jailbreak: {min_score: 0.5, origins: [user]}}]}`:       signal.Jailbreak,
		`{all: [{injection: {max_score: 0.5}}, {jailbreak: true}]}`:                    signal.Jailbreak,
		`{all: [{jailbreak: {max_score: 0.95}}, {role: staff}]}`:                       none,
		`{all: [{injection: false}, {role: staff}]}`:                                   none,
		`{all: [{not: {injection: {min_score: 0.5}}}, {jailbreak: {min_score: 0.8}}]}`: signal.Jailbreak,
	} {
		p := mustCompile(t, "routes:\n  - {name: r, when: "+when+", block: {message: no}}\ndefault: {models: [qwen-7b]}\n")
		set := &signal.Set{Facts: signal.Facts{Role: "staff"}}
		score := func(k signal.Kind, x float64) {
			set.Put(k, signal.Value{
				State: signal.Known, Score: x, Verdicts: []signal.Verdict{{Origin: signal.OriginUser, Score: x}},
			})
		}
		score(signal.Jailbreak, 0.9)
		score(signal.Injection, 0.1)
		d, need := p.Step(set)
		if need != 0 || d.Route != "r" {
			t.Errorf("%s: route %q, needs %v", when, d.Route, need)
			continue
		}
		k, _, ok := p.Cause(&d, set)
		if !ok {
			k = none
		}
		if k != want {
			t.Errorf("%s: the cause is %v, want %v", when, k, want)
		}
	}
}
