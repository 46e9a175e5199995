package rules

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
	"signalbox/rules/internal/signaltest"
)

// testEnv is the configuration that every test's rules live in.
func testEnv() Env {
	return Env{
		Models:     []string{"qwen-7b", "qwen-32b", "llama-70b"},
		AutoModels: []string{"auto", "auto-fast"},
		Prompts:    []string{"finance", "math"},
		Roles:      []string{"staff", "admin", "customer"},
		Signals:    1<<signal.NumKinds - 1,
		Classifiers: []signal.OwnClassifier{
			{Name: "toxicity", Labels: []string{"fine", "toxic"}, Thresholds: []float64{0, 0.7}},
			{Name: "team", Labels: []string{"billing", "sales", "support"}, Thresholds: make([]float64, 3)},
			{Name: "tags", Labels: []string{"rude", "legal"}, Thresholds: []float64{0.3, 0.6}},
		},
		Labels:     signaltest.Labels(),
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
	return compileIn(tb, testEnv(), text)
}

func compileIn(tb testing.TB, env Env, text string) *Program {
	tb.Helper()
	p, problems := Compile(sourceOf(tb, text), env)
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

func fields(line string) (verb string, args []string) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return "", nil
	}
	return f[0], f[1:]
}
