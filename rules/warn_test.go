package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/signaltest"
)

func textsOfProblems(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

func TestCompileNamesWhatNoRuleUses(t *testing.T) {
	t.Parallel()
	env := testEnv()
	for i, m := range env.Models {
		env.Defined = append(env.Defined, Definition{"model", m, fmt.Sprintf("models[%d].name", i)})
	}
	for i, p := range env.Prompts {
		env.Defined = append(env.Defined, Definition{"prompt", p, fmt.Sprintf("prompts[%d].name", i)})
	}
	for i, k := range env.Labels[signal.Keyword] {
		env.Defined = append(env.Defined, Definition{"keyword set", k, fmt.Sprintf("signals.keywords[%d].name", i)})
	}
	for i, k := range env.Labels[signal.Intent] {
		env.Defined = append(env.Defined, Definition{"intent", k, fmt.Sprintf("signals.intents[%d].name", i)})
	}
	const text = `
routes:
  - {name: a, when: {all: [{keyword: {in: [urgent], not_in: [internal]}}, {not: {intent: it_help}}]}, use: {models: [qwen-32b], prompt: {name: math}}}
  - {name: b, when: {model: llama-70b}, block: {message: no}}
default: {models: [MODEL]}
`
	_, problems := Compile(sourceOf(t, strings.Replace(text, "MODEL", "qwen-32b", 1)), env)
	want := []string{
		`0:0: models[0].name: warning: no route and no default uses model "qwen-7b"; only clients that name it reach it`,
		`0:0: prompts[0].name: warning: no rule uses prompt "finance"`,
		`0:0: signals.keywords[0].name: warning: no rule uses keyword set "project_titan"`,
		`0:0: signals.intents[0].name: warning: no rule uses intent "hr_bot"`,
	}
	if diff := cmp.Diff(want, textsOfProblems(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	_, problems = Compile(sourceOf(t, strings.Replace(text, "MODEL", "qwen", 1)), env)
	want = []string{`5:20: default.models[0]: unknown model "qwen"; expected one of qwen-7b, qwen-32b, llama-70b`}
	if diff := cmp.Diff(want, textsOfProblems(problems)); diff != "" {
		t.Errorf("problems beside an error (-want +got):\n%s", diff)
	}
}

func TestCompileTellsWhatACriterionLacks(t *testing.T) {
	t.Parallel()
	env := testEnv()
	env.Priced, env.Skilled = []string{"qwen-7b", "llama-70b"}, []string{}
	_, problems := Compile(sourceOf(t, `
routes:
  - {name: a, when: {role: staff}, use: {models: [qwen-7b, qwen-32b], by: cost, quality_margin: 1}}
  - {name: b, when: {role: admin}, use: {models: [qwen-7b, llama-70b], by: cost}}
  - {name: c, when: {tenant: a}, use: {models: [qwen-7b, llama-70b], by: latency}}
  - {name: d, when: {tenant: b}, use: {models: [qwen-7b, llama-70b], by: latency, quality_margin: 0.1}}
default: {models: [qwen-7b, qwen-32b], by: quality}
`), env)
	want := []string{
		"3:75: routes[0].use.by: warning: no price is known of qwen-32b, so cost cannot be compared; set models[].price",
		"4:76: routes[1].use.by: warning: no skills are known of qwen-7b, llama-70b, so quality cannot be compared; set models[].skills, or quality_margin: 1 to leave quality aside",
		"6:74: routes[3].use.by: warning: no skills are known of qwen-7b, llama-70b, so quality cannot be compared; set models[].skills, or quality_margin: 1 to leave quality aside",
		"7:44: default.by: warning: no skills are known of qwen-7b, qwen-32b, so quality cannot be compared; set models[].skills",
	}
	if diff := cmp.Diff(want, textsOfProblems(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestCompileRefusesWhatTheBuildCannotAnswer(t *testing.T) {
	t.Parallel()
	env := testEnv()
	env.Absent = []string{"cache", "context_tokens", "context", "facts"}
	_, problems := Compile(sourceOf(t, `
routes:
  - {name: a, when: {any: [{cache: {similarity: 0.9}}, {context_tokens: {gt: 1}}, {has: [tools, facts]}]}, use: {models: [qwen-7b]}}
default: {models: [qwen-7b]}
`), env)
	want := []string{
		"3:36: routes[0].when.any[0].cache: cache is not in this version",
		"3:73: routes[0].when.any[1].context_tokens: context_tokens is not in this version",
		"3:97: routes[0].when.any[2].has[1]: has: facts is not in this version",
	}
	if diff := cmp.Diff(want, textsOfProblems(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestCompileTellsWhatAnAbsentSignalDoes(t *testing.T) {
	t.Parallel()
	env := testEnv()
	env.Signals &^= signal.MaskOf(signal.Jailbreak, signal.FactCheck)
	const missing = "warning: no model provides signal jailbreak, so this is unknown for every request"
	_, problems := Compile(sourceOf(t, `
routes:
  - {name: some, when: {any: [{jailbreak: true}, {domain: math}]}, use: {models: [qwen-7b]}}
  - {name: never, when: {all: [{jailbreak: false}, {domain: law}]}, use: {models: [qwen-7b]}}
  - {name: error, when: {not: {factcheck: true}}, on_unknown: error, use: {models: [qwen-7b]}}
  - {name: block, when: {any: [{jailbreak: true}, {keyword: urgent}]}, block: {message: no}}
default: {models: [qwen-7b]}
`), env)
	want := []string{
		`3:12: routes[0].name: warning: requests that route "some" takes are never checked by "block" below it; move it down, or limit it to a role or tenant`,
		"3:43: routes[0].when.any[0].jailbreak: " + missing,
		`4:12: routes[1].name: warning: route "never" can never match: no model provides jailbreak`,
		"4:44: routes[1].when.all[0].jailbreak: " + missing,
		`5:12: routes[2].name: warning: route "error" refuses every request that reaches it: no model provides factcheck, and on_unknown is error`,
		"5:43: routes[2].when.not.factcheck: warning: no model provides signal factcheck, so this is unknown for every request",
		`6:12: routes[3].name: warning: route "block" takes every request that reaches it: no model provides jailbreak, and what is unknown matches`,
		"6:44: routes[3].when.any[0].jailbreak: " + missing,
	}
	if diff := cmp.Diff(want, textsOfProblems(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// A warning is a promise about every request: on random configurations and requests, with failed
// and absent signals, none is ever broken.
func TestNoWarningIsAFalseAlarm(t *testing.T) {
	t.Parallel()
	configs := 500
	if raceDetector || testing.Short() {
		configs = 300
	}
	type sample struct {
		lazyCase

		sets []*signal.Set
	}
	generator := rapid.Custom(func(t *rapid.T) sample {
		s := sample{lazyCase: lazyCases(anyLeaves).Draw(t, "case")}
		for range 20 {
			set := signaltest.Draw(t)
			for _, k := range (allKinds &^ s.env.Signals).Kinds() {
				set.Put(k, signal.Value{State: signal.Unknown, Reason: signal.ReasonNoModel})
			}
			s.sets = append(s.sets, set)
		}
		return s
	})
	kept := map[string]int{}
	for seed := range configs {
		s := generator.Example(seed)
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(s.config), &doc); err != nil {
			t.Fatal(err)
		}
		_, problems := Compile(sections(&doc), s.env)
		reference := newEager(t, &doc, s.env)
		for _, p := range problems {
			promise, broken := promiseOf(p, reference)
			if promise == "" {
				continue
			}
			kept[promise]++
			for _, set := range s.sets {
				if broken(set) {
					t.Fatalf("case %d: %v: broken by %+v in\n%s", seed, p, set, s.config)
				}
			}
		}
	}
	for _, promise := range []string{
		"can never match", "matches only when a signal failed", "takes every request that reaches it", "refuses every request that reaches it",
		"so this is never true", "so this is always true", "together take all", "has the same condition", "under another name",
	} {
		if kept[promise] == 0 {
			t.Errorf("no random configuration led to %q", promise)
		}
	}
	t.Logf("warnings that were held against 20 requests each: %v", kept)
}

// promiseOf says what a warning promises and how a request breaks it. Warnings of another sort, and
// those inside a condition that is not the route's own operator, promise nothing here.
func promiseOf(p Problem, e *eager) (promise string, broken func(*signal.Set) bool) {
	var index int
	if _, err := fmt.Sscanf(p.Path, "routes[%d]", &index); err != nil {
		return "", nil
	}
	r := &e.routes[index]
	wins := func(set *signal.Set) bool { return e.decide(set).Route == r.name }
	_, inside, _ := strings.Cut(p.Path, ".when.")
	own := p.Path == fmt.Sprintf("routes[%d].when.%s", index, inside) && !strings.ContainsAny(inside, ".[") && inside != "not"
	for _, c := range []struct {
		promise string
		applies bool
		broken  func(*signal.Set) bool
	}{
		{"together take all", true, wins},
		{"has the same condition", true, wins},
		{"under another name", true, wins},
		{"can never match", true, wins},
		{"matches only when a signal failed", true, func(set *signal.Set) bool { return wins(set) && value(r.when, set) == condition.True }},
		{"takes every request that reaches it", true, func(set *signal.Set) bool {
			v := value(r.when, set)
			return v == condition.False || v == condition.Unknown && r.policy != Match
		}},
		{"refuses every request that reaches it", true, func(set *signal.Set) bool {
			return value(r.when, set) != condition.Unknown || r.policy != Error
		}},
		{"so this is never true", own, func(set *signal.Set) bool { return value(r.when, set) == condition.True }},
		{"so this is always true", own, func(set *signal.Set) bool { return value(r.when, set) == condition.False }},
	} {
		if c.applies && strings.Contains(p.Msg, c.promise) {
			return c.promise, c.broken
		}
	}
	return "", nil
}
