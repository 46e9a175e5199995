package rules

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/rules/internal/signaltest"
)

// manyRoutes is a rule set of the given size whose conditions are all different and all false for
// the set of worstCase, each only at its last leaf.
func manyRoutes(routes, leaves int) string {
	var b strings.Builder
	b.WriteString("routes:\n")
	tests := []string{
		"{domain: {in: [math, law], min_score: 0.1%04d}}", "{jailbreak: {max_score: 0.9%04d}}", "{tokens: {gt: %d}}",
		"{tenant: {not_in: [t%d]}}", "{complexity: {in: [high, medium], min_score: 0.2%04d}}",
	}
	for i := range routes {
		fmt.Fprintf(&b, "  - name: r%d\n    when: {all: [", i)
		for j := range leaves - 1 {
			fmt.Fprintf(&b, tests[j%len(tests)]+", ", i)
		}
		fmt.Fprintf(&b, "{keyword: {in: [urgent, internal], not_in: [project_titan]}}, {tenant: [x%d, y]}]}\n", i)
		b.WriteString("    use: {models: [qwen-7b]}\n")
	}
	b.WriteString("default: {models: [qwen-7b]}\n")
	return b.String()
}

func worstCase() *signal.Set {
	labels := testEnv().Labels
	set := &signal.Set{Facts: signal.Facts{Tenant: "acme", Tokens: 50_000, Model: "auto"}}
	set.Put(signal.Domain, signaltest.Labelled(labels[signal.Domain], map[string]float64{"math": 0.8}))
	set.Put(signal.Complexity, signaltest.Labelled(labels[signal.Complexity], map[string]float64{"high": 0.7}))
	set.Put(signal.Jailbreak, signal.Value{State: signal.Known, Score: 0.1})
	set.Put(signal.Keyword, signal.Value{State: signal.Known, Labels: []string{"urgent"}})
	return set
}

func BenchmarkCompile(b *testing.B) {
	src := sourceOf(b, manyRoutes(1000, 5))
	b.ReportAllocs()
	for b.Loop() {
		if p, problems := Compile(src, testEnv()); p == nil {
			b.Fatal(problems)
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	p := mustCompile(t, manyRoutes(20, 4))
	known := worstCase()
	pending := worstCase()
	signaltest.Hide(pending, signal.MaskOf(signal.Domain, signal.Keyword))
	failed := worstCase()
	failed.Put(signal.Domain, signal.Value{State: signal.Unknown})
	for name, set := range map[string]*signal.Set{"known": known, "pending": pending, "failed": failed} {
		if n := testing.AllocsPerRun(100, func() { p.Step(set) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestProgramIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, readFile(t, "testdata/reference.yaml"))
	want, _ := settle(t, p)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, _ := settle(t, p)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("decision (-want +got):\n%s", diff)
				}
				p.Trace(&signal.Set{})
				p.Named().Trace(&signal.Set{})
			}
		})
	}
	wg.Wait()
}

func TestCompileReadsEveryKeyOfAnAction(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, readFile(t, "testdata/reference.yaml"))
	var got []Action
	for _, r := range p.routes {
		got = append(got, r.action)
	}
	want := []Action{
		{Verb: Block, Text: "This request was declined by policy."},
		{Verb: Answer, Text: "Please write to the help desk."},
		{
			Models: []Choice{{"llama-70b", 1}, {"qwen-32b", 3}}, By: "weight", Reasoning: "high", Override: true,
			Prompt: Prompt{"finance", "prefix", "before"}, MaxTokens: MaxTokens{Limit: 500}, Guard: "hold", Cache: "semantic",
			Windows: "cascade", Redact: &Redact{},
			Body: []Field{
				{"top_p", []byte(`0.9`)},
				{"stop", []byte(`["\n\n","2020-01-01"]`)},
				{"extra", []byte(`{"z":null,"a":{"b":true,"c":7}}`)},
			},
			Headers: []Header{{"X-Team", "finance"}},
		},
		{
			Models: []Choice{{"qwen-7b", 1}}, By: "order", Reasoning: "auto", MaxTokens: MaxTokens{Auto: true},
			Prompt: Prompt{"math", "replace_vague", "after_context"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Action{Models: []Choice{{"qwen-7b", 1}}, By: "order"}, p.fallback); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
}

func TestProgramDescribesWhatItReads(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, readFile(t, "testdata/reference.yaml"))
	want := []Route{
		{"block-unsafe", Block, Match, signal.MaskOf(signal.Jailbreak, signal.PII), 0},
		{"help", Answer, Error, signal.MaskOf(signal.Intent), 0},
		{"finance", Use, Skip, signal.MaskOf(signal.Keyword, signal.Domain), signal.MaskOf(signal.PII)},
		{"maths", Use, Skip, signal.MaskOf(signal.Domain), signal.MaskOf(signal.Complexity)},
	}
	if diff := cmp.Diff(want, p.Routes()); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], p.Named().Routes()); diff != "" {
		t.Errorf("routes for named models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"X-Team"}, p.Headers()); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if !p.ReadsSession() || p.Named() != p.Named().Named() {
		t.Errorf("reads session: %v", p.ReadsSession())
	}
	kinds := signal.MaskOf(signal.Jailbreak, signal.PII, signal.Intent, signal.Keyword, signal.Domain, signal.Complexity)
	if diff := cmp.Diff(kinds.Kinds(), p.Kinds().Kinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestADecisionIsFoundByItsRoute(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, readFile(t, "testdata/reference.yaml"))
	for i, r := range p.Routes() {
		d, ok := p.Taken(r.Name)
		if !ok || d.Index != i || d.Action != &p.routes[i].action || d.Action != p.Actions()[i] || d.Outcome != Matched {
			t.Errorf("%s: %+v, %v", r.Name, d, ok)
		}
	}
	if d, ok := p.Taken(RouteDefault); !ok || d.Outcome != Defaulted || d.Action != p.Actions()[len(p.Routes())] {
		t.Errorf("default: %+v, %v", d, ok)
	}
	if _, ok := p.Taken("gone"); ok {
		t.Error("a route that is not there was taken")
	}
	if d, ok := p.Named().Taken(RouteNamed); !ok || d.Route != RouteNamed {
		t.Errorf("named: %+v, %v", d, ok)
	}
	if _, ok := p.Named().Taken("finance"); ok {
		t.Error("a request that names its model took a route that does not block")
	}
}

func TestTraceIsTheDocumentedJSON(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, readFile(t, "testdata/reference.yaml"))
	set := worstCase()
	v := *set.Value(signal.Jailbreak)
	v.Source = "embedded"
	set.Put(signal.Jailbreak, v)
	set.Put(signal.PII, signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout})
	var got strings.Builder
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p.Trace(set)); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/trace.json"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, golden), got.String()); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

// What a program asks a classifier to read is what its routes name, no more.
func TestOriginsAreThoseThatRoutesName(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `
conditions:
  - {name: unused, when: {jailbreak: {origins: [model]}}}
routes:
  - {name: a, when: {any: [{jailbreak: {origins: user}}, {injection: true}]}, block: {message: no}}
  - {name: b, when: {not: {jailbreak: {min_score: 0.8, origins: [data, user]}}},
      use: {models: [qwen-7b]}}
default: {models: [qwen-7b]}
`)
	//nolint:exhaustive // no other is named
	want := map[signal.Kind]signal.Origins{signal.Jailbreak: signal.OriginsOf(signal.OriginUser,
		signal.OriginData)}
	if diff := cmp.Diff(want, p.Origins()); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	want[signal.Jailbreak] = signal.OriginsOf(signal.OriginUser)
	if diff := cmp.Diff(want, p.Named().Origins()); diff != "" {
		t.Errorf("origins of routes that block (-want +got):\n%s", diff)
	}
}

func TestRedactTakesTheTypesOfItsRoute(t *testing.T) {
	for says, want := range map[string]string{
		"true": "EMAIL_ADDRESS PERSON US_SSN", "PERSON": "PERSON", "[PERSON, US_SSN]": "PERSON US_SSN",
		"{types: PERSON}": "PERSON", "{except: [PERSON]}": "EMAIL_ADDRESS US_SSN",
		"{types: [PERSON, US_SSN], except: US_SSN}": "PERSON", "false": "",
	} {
		p := mustCompile(t, "routes:\n  - name: r\n    when: {domain: math}\n    use: {models: [qwen-7b], redact: "+says+"}\n"+
			"default: {models: [qwen-7b]}\n")
		var got []string
		for _, kind := range []string{"EMAIL_ADDRESS", "PERSON", "US_SSN"} {
			if p.routes[0].action.Redact.Takes(kind) {
				got = append(got, kind)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("redact: %s replaces %q, want %q", says, got, want)
		}
	}
}
