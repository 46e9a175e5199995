package rules

import (
	"encoding/json"
	"strings"
	"testing"

	"signalbox/internal/signal"
)

// draw is a tree as op(member, ...)=value.
func draw(n *TraceNode) string {
	if n == nil {
		return "none"
	}
	if n.Visit != nil {
		return n.Visit.Leaf + "=" + n.Value
	}
	members := make([]string, len(n.Members))
	for i, m := range n.Members {
		members[i] = draw(m)
	}
	return n.Op + "(" + strings.Join(members, ", ") + ")=" + n.Value
}

func TestATreeHasTheShapeOfTheCondition(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `
routes:
  - {name: nested, when: {any: [{all: [{role: staff}, {domain: law}]}, {all: [{role: admin}, {domain: math}]}]}, use: {models: [qwen-7b]}}
  - {name: single, when: {not: {has: tools}}, use: {models: [qwen-7b]}}
  - {name: unreached, when: {all: [{role: customer}, {any: [{domain: law}, {has: images}]}]}, use: {models: [qwen-7b]}}
default: {models: [qwen-7b]}
`)
	set := &signal.Set{Facts: signal.Facts{Role: "admin"}}
	set.Put(signal.Domain, signal.Value{
		State:  signal.Known,
		Label:  "physics",
		Score:  0.9,
		Labels: []string{"law", "math", "physics"},
		Probs:  []float32{0, 0.1, 0.9},
	})
	traces := p.Trace(set)
	want := []string{
		"any(all(role is staff=false, domain is law=skipped)=false, all(role is admin=true, " +
			"domain is math=false)=false)=false",
		"not has tools=true",
		"all(role is customer=skipped, any(domain is law=skipped, has images=skipped)=skipped)=skipped",
	}
	for i := range want {
		if got := draw(traces[i].Tree()); got != want[i] {
			t.Errorf("%s:\n%s, want\n%s", traces[i].Name, got, want[i])
		}
	}
	set.Put(signal.Domain, signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout})
	traces = p.Trace(set)
	if got := traces[0].Tree().Value; got != "unknown" || traces[0].Value != "unknown" {
		t.Errorf("without the domain the tree is %s and the route %s", got, traces[0].Value)
	}
}

func TestATreeIsWorthWhatItsRouteIs(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, readFile(t, "testdata/reference.yaml"))
	failed := worstCase()
	failed.Put(signal.Domain, signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout})
	for name, set := range map[string]*signal.Set{"all": worstCase(), "no domain": failed, "nothing": {}} {
		for _, r := range p.Trace(set) {
			tree := r.Tree()
			if tree == nil || r.Value == "not_reached" || r.Value == "unknown" {
				continue
			}
			if tree.Value != r.Value && tree.Value != "unknown" { // on_unknown may have settled it
				b, _ := json.Marshal(tree)
				t.Errorf("%s: route %s is %s, its tree %s: %s", name, r.Name, r.Value, tree.Value, b)
			}
		}
	}
}
