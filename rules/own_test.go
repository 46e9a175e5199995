package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

// What another server computes is asked for only where nothing that is computed here decides.
func TestAClassifierElsewhereIsAskedLast(t *testing.T) {
	t.Parallel()
	const toxicity, team = signal.Own, signal.Own + 1
	env := testEnv()
	env.Elsewhere = signal.MaskOf(toxicity)
	p := compileIn(t, env, `
routes:
  - name: both
    when:
      all:
        - classifier: {name: toxicity, label: toxic}
        - classifier: {name: team, label: sales}
    use: {models: [qwen-7b]}
default: {models: [qwen-32b]}
`)
	var set signal.Set
	_, need := p.Step(&set)
	if diff := cmp.Diff([]signal.Kind{team}, need.Kinds()); diff != "" {
		t.Fatalf("first (-want +got):\n%s", diff)
	}
	set.Put(team, signal.Value{State: signal.Known, Label: "sales", Score: 0.9})
	_, need = p.Step(&set)
	if diff := cmp.Diff([]signal.Kind{toxicity}, need.Kinds()); diff != "" {
		t.Fatalf("then (-want +got):\n%s", diff)
	}
	set.Put(team, signal.Value{State: signal.Known, Label: "billing", Score: 0.9})
	if d, need := p.Step(&set); need != 0 || d.Route != RouteDefault {
		t.Errorf("it wants %v for %q", need.Kinds(), d.Route)
	}
}

// A classifier that counts words is asked for before anything that takes a model.
func TestALexicalClassifierIsAskedFirst(t *testing.T) {
	t.Parallel()
	const toxicity = signal.Own
	env := testEnv()
	env.Lexical = signal.MaskOf(toxicity)
	p := compileIn(t, env, `
routes:
  - name: both
    when:
      all:
        - domain: math
        - classifier: {name: toxicity, label: toxic}
    use: {models: [qwen-7b]}
default: {models: [qwen-32b]}
`)
	var set signal.Set
	_, need := p.Step(&set)
	if diff := cmp.Diff([]signal.Kind{toxicity}, need.Kinds()); diff != "" {
		t.Fatalf("first (-want +got):\n%s", diff)
	}
	if m := p.Neural(signal.MaskOf(signal.Keyword, signal.Domain, toxicity)); m != signal.MaskOf(signal.Domain) {
		t.Errorf("a model is needed for %v", m.Kinds())
	}
}
