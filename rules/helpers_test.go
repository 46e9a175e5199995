package rules

import (
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

// testEnv is the configuration that every test's rules live in.
func testEnv() Env {
	return Env{
		Models:     []string{"qwen-7b", "qwen-32b", "llama-70b"},
		AutoModels: []string{"auto", "auto-fast"},
		Prompts:    []string{"finance", "math"},
		Roles:      []string{"staff", "admin", "customer"},
		Signals:    1<<signal.NumKinds - 1,
		Labels: map[signal.Kind][]string{ //nolint:exhaustive // the others are not checked
			signal.Domain:     {"business", "economics", "law", "math", "physics", "other"},
			signal.Keyword:    {"project_titan", "urgent", "internal"},
			signal.Intent:     {"hr_bot", "it_help"},
			signal.Complexity: {"low", "medium", "high"},
			signal.PII:        {"EMAIL_ADDRESS", "PERSON", "US_SSN"},
		},
		Thresholds: map[signal.Kind]float64{signal.Jailbreak: 0.6, signal.PII: 0.4}, //nolint:exhaustive // the others have the default
	}
}

// sourceOf finds the sections of a configuration.
func sourceOf(tb testing.TB, text string) Source {
	tb.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		tb.Fatalf("the test's YAML does not parse: %v", err)
	}
	return sections(&doc)
}

func sections(doc *yaml.Node) Source {
	var src Source
	if len(doc.Content) == 0 {
		return src
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		switch top[i].Value {
		case "routes":
			src.Routes = top[i+1]
		case "default":
			src.Default = top[i+1]
		case "conditions":
			src.Conditions = top[i+1]
		}
	}
	return src
}

// mustCompile fails the test on any error; warnings pass.
func mustCompile(tb testing.TB, text string) *Program {
	tb.Helper()
	p, problems := Compile(sourceOf(tb, text), testEnv())
	if p == nil {
		for _, problem := range problems {
			tb.Errorf("%v", problem)
		}
		tb.FailNow()
	}
	return p
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// headersOf makes Facts.Header from pairs.
func headersOf(pairs ...string) func(string) []string {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h.Values
}

// labelled makes a known value over labels. Each of scores names a label and its probability; the
// rest is spread over the others.
func labelled(labels []string, scores map[string]float64) signal.Value {
	v := signal.Value{State: signal.Known, Labels: labels, Probs: make([]float32, len(labels))}
	rest := 1.0
	for _, s := range scores {
		rest -= s
	}
	for i, l := range labels {
		s, ok := scores[l]
		if !ok {
			s = max(0, rest) / float64(max(1, len(labels)-len(scores)))
		}
		v.Probs[i] = float32(s)
		if s > v.Score || math.IsNaN(s) {
			v.Label, v.Score = l, s
		}
	}
	return v
}

func fields(line string) (verb string, args []string) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return "", nil
	}
	return f[0], f[1:]
}
