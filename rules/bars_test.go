package rules

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

// BenchmarkBars measures one decision over the sizes that the design sets bars for, with every
// signal known and every route false only at its last leaf, beside two evaluators that decide the
// same:
//
//   - engine: Program.Step
//   - eager: the same compiled tests under a plain tree walk that looks at every member of every
//     route
//   - plain: a tree of operators and tests told apart by their words, signals in a map, and a list
//     of the routes that matched; what one writes first
//
// The metric x-engine says how many times the processor time of the engine an evaluator takes,
// of-bar how much of the bar the engine's is.
func BenchmarkBars(b *testing.B) {
	for _, size := range []struct {
		routes, leaves int
		bar            time.Duration
	}{{10, 3, 2 * time.Microsecond}, {100, 5, 20 * time.Microsecond}, {1000, 5, 250 * time.Microsecond}} {
		text := manyRoutes(size.routes, size.leaves-2)
		program, set := mustCompile(b, text), worstCase()
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			b.Fatal(err)
		}
		reference, naive := newEager(b, &doc, testEnv()), newPlain(b, text)
		signals := plainSignals(set)
		name := fmt.Sprintf("%dx%d/", size.routes, size.leaves)
		var engine float64
		b.Run(name+"engine", func(b *testing.B) {
			cpu := startCPU(b)
			for b.Loop() {
				if d, need := program.Step(set); need != 0 || d.Outcome != Defaulted {
					b.Fatal(d, need)
				}
			}
			engine = cpu(b)
			b.ReportMetric(engine/float64(size.bar.Nanoseconds()), "of-bar")
		})
		b.Run(name+"eager", func(b *testing.B) {
			cpu := startCPU(b)
			for b.Loop() {
				if v := reference.decide(set); v.Route != "" {
					b.Fatal(v)
				}
			}
			b.ReportMetric(cpu(b)/engine, "x-engine")
		})
		b.Run(name+"plain", func(b *testing.B) {
			cpu := startCPU(b)
			for b.Loop() {
				if r := naive.decide(signals); r != "" {
					b.Fatal(r)
				}
			}
			b.ReportMetric(cpu(b)/engine, "x-engine")
		})
	}
}

// startCPU counts allocations and the processor time of the process, which other processes on the
// machine do not lengthen as they do the time on the wall. The result ends the count and returns
// nanoseconds for each iteration.
func startCPU(b *testing.B) func(*testing.B) float64 {
	b.Helper()
	b.ReportAllocs()
	begun := testkit.Used(b)
	return func(b *testing.B) float64 {
		b.Helper()
		ns := float64(testkit.Used(b)-begun) / float64(b.N)
		b.ReportMetric(ns, "cpu-ns/op")
		return ns
	}
}

// plain is a rule set as decoded YAML.
type plain struct {
	Routes []struct {
		Name string         `yaml:"name"`
		When map[string]any `yaml:"when"`
	} `yaml:"routes"`
}

// plainSignal is a signal as a name-to-score table.
type plainSignal struct {
	label  string
	scores map[string]float64
	score  float64
	labels []string
}

func newPlain(tb testing.TB, text string) *plain {
	tb.Helper()
	var p plain
	if err := yaml.Unmarshal([]byte(text), &p); err != nil {
		tb.Fatal(err)
	}
	return &p
}

func plainSignals(set *signal.Set) map[string]plainSignal {
	out := map[string]plainSignal{
		"tenant": {label: set.Facts.Tenant}, "tokens": {score: float64(set.Facts.Tokens)},
	}
	for k := range signal.NumKinds {
		v := set.Value(k)
		s := plainSignal{label: v.Label, score: v.Score, labels: v.Labels, scores: map[string]float64{}}
		for i, p := range v.Probs {
			s.scores[v.Labels[i]] = float64(p)
		}
		out[k.String()] = s
	}
	return out
}

// decide evaluates every route and returns the first of those that matched.
func (p *plain) decide(signals map[string]plainSignal) string {
	var matched []string
	for _, r := range p.Routes {
		if plainValue(r.When, signals) {
			matched = append(matched, r.Name)
		}
	}
	if len(matched) == 0 {
		return ""
	}
	return matched[0]
}

func plainValue(when map[string]any, signals map[string]plainSignal) bool {
	for word, arg := range when {
		switch word {
		case "all", "any":
			results := []bool{}
			for _, m := range arg.([]any) { //nolint:forcetypeassert // the benchmark's own file
				results = append(results, plainValue(m.(map[string]any), signals)) //nolint:forcetypeassert // as above
			}
			return slices.Contains(results, word == "any") == (word == "any")
		default:
			return plainTest(arg, signals[word])
		}
	}
	return false
}

func plainTest(arg any, s plainSignal) bool {
	if list, ok := arg.([]any); ok {
		return slices.ContainsFunc(list, func(x any) bool { return x == s.label || slices.Contains(s.labels, fmt.Sprint(x)) && s.scores == nil })
	}
	test, ok := arg.(map[string]any)
	if !ok {
		return arg == s.label
	}
	score, listed := s.score, true
	if in, ok := test["in"].([]any); ok {
		best := 0.0
		listed = false
		for _, x := range in {
			name, _ := x.(string)
			best = max(best, s.scores[name])
			listed = listed || name == s.label || slices.Contains(s.labels, name)
		}
		score = best
	}
	if out, ok := test["not_in"].([]any); ok {
		for _, x := range out {
			name, _ := x.(string)
			listed = listed && name != s.label && !slices.Contains(s.labels, name)
		}
	}
	for word, bound := range test {
		var limit float64
		switch x := bound.(type) {
		case float64:
			limit = x
		case int:
			limit = float64(x)
		default:
			continue
		}
		switch {
		case word == "min_score" && score < limit, word == "max_score" && score > limit, word == "gt" && score <= limit:
			return false
		}
	}
	return listed
}
