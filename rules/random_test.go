package rules

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
)

// settle steps a program to its end, failing whatever it asks for.
func settle(tb testing.TB, p *Program) (d Decision, asked []signal.Mask) {
	tb.Helper()
	set := &signal.Set{}
	for range signal.NumKinds + 1 {
		d, need := p.Step(set)
		if need == 0 {
			if d.Action == nil {
				tb.Fatalf("decision without an action: %+v", d)
			}
			return d, asked
		}
		if need&set.Have() != 0 {
			tb.Fatalf("asks again for %v", (need & set.Have()).Kinds())
		}
		asked = append(asked, need)
		set.Fail(need, signal.ReasonTimeout)
	}
	tb.Fatal("does not come to a decision")
	return d, asked
}

// leafTexts is the pool that random conditions draw from: few signals and many tests of each, so
// that tests of one signal meet, contradict and imply each other.
func leafTexts() []string {
	return []string{
		`{role: staff}`, `{role: [staff, admin]}`, `{role: {not_in: [admin]}}`, `{tenant: acme}`,
		`{tokens: {gt: 100}}`, `{tokens: {lte: 100}}`, `{tokens: {gte: 50, lt: 200}}`,
		`{conversation: {turns: {gt: 3}}}`, `{conversation: {turns: {lte: 3}, tool_loop: true}}`,
		`{conversation: {tool_loop: false}}`, `{conversation: {tool_results: {gte: 1, lt: 5}}}`,
		`{has: tools}`, `{has: [tools, images]}`, `{session: {present: true}}`,
		`{header: {name: X-Team, equals: ads}}`, `{header: {name: X-Team, matches: "^a"}}`,
		`{keyword: urgent}`, `{keyword: [urgent, internal]}`, `{keyword: {not_in: [internal]}}`,
		`{language: fr}`, `{language: {not_in: [fr]}}`,
		`{domain: math}`, `{domain: [math, law]}`, `{domain: {not_in: [law]}}`, `{domain: {not_in: [math, law]}}`,
		`{domain: {in: [math], min_score: 0.7}}`, `{domain: {in: [math, law], max_score: 0.7}}`,
		`{domain: {in: [math], min_score: 0}}`, `{domain: {margin: 0.3}}`, `{domain: {in: [law], margin: 0.3}}`, `{domain: {not_in: [law], min_score: 0.55}}`,
		`{jailbreak: true}`, `{jailbreak: false}`, `{jailbreak: {min_score: 0.9}}`, `{jailbreak: {max_score: 0.9}}`,
		`{jailbreak: {min_score: 0.2, max_score: 0.6}}`,
		`{jailbreak: {origins: user}}`, `{jailbreak: {min_score: 0.9, origins: [user, data]}}`,
		`{jailbreak: {max_score: 0.9, origins: [data]}}`,
		`{jailbreak: {max_score: 0.2, origins: [user, data]}}`, `{injection: true}`,
		`{injection: {origins: [data]}}`,
		`{pii: true}`, `{pii: US_SSN}`, `{pii: {types: [US_SSN, PERSON], min_score: 0.8}}`,
		`{complexity: high}`, `{complexity: [low, medium]}`, `{factcheck: true}`, `{factcheck: {max_score: 0.3}}`,
		`true`, `false`,
	}
}

func drawCondition(t *rapid.T, pool []string, depth int) string {
	switch op := rapid.IntRange(0, 9).Draw(t, "operator"); {
	case depth <= 0 || op < 4:
		return rapid.SampledFrom(pool).Draw(t, "leaf")
	case op < 6:
		return "{not: " + drawCondition(t, pool, depth-1) + "}"
	case op < 8:
		return "{all: [" + drawConditions(t, pool, depth-1) + "]}"
	default:
		return "{any: [" + drawConditions(t, pool, depth-1) + "]}"
	}
}

func drawConditions(t *rapid.T, pool []string, depth int) string {
	var out []string
	for range rapid.IntRange(1, 4).Draw(t, "members") {
		out = append(out, drawCondition(t, pool, depth))
	}
	return strings.Join(out, ", ")
}

// drawConfig makes a whole configuration with up to n routes.
func drawConfig(t *rapid.T, pool []string, n, depth int) string {
	var b strings.Builder
	b.WriteString("routes:\n")
	for i := range rapid.IntRange(1, n).Draw(t, "routes") {
		fmt.Fprintf(&b, "  - name: r%d\n    when: %s\n", i, drawCondition(t, pool, depth))
		if policy := rapid.SampledFrom([]string{"", "skip", "match", "error"}).Draw(t, "on_unknown"); policy != "" {
			fmt.Fprintf(&b, "    on_unknown: %s\n", policy)
		}
		b.WriteString("    " + rapid.SampledFrom([]string{
			"use: {models: [qwen-7b]}", "use: {models: [qwen-32b], reasoning: auto}", "block: {message: no}", "answer: {text: hello}",
		}).Draw(t, "action") + "\n")
	}
	b.WriteString("default: {models: [qwen-7b]}\n")
	return b.String()
}

// compileDrawn compiles a drawn configuration, which is always valid.
func compileDrawn(t *rapid.T, config string) *Program {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		t.Fatalf("%v in\n%s", err, config)
	}
	p, problems := Compile(sections(&doc), testEnv())
	if p == nil {
		t.Fatalf("%v in\n%s", problems, config)
	}
	return p
}
