package rules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

var update = flag.Bool("update", false, "rewrite the expected problems of testdata/bad and testdata/warn")

// TestProblems compares all problems of every file with its leading comment lines.
func TestProblems(t *testing.T) {
	t.Parallel()
	for folder, least := range map[string]int{"bad": 150, "warn": 25} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil || len(files) < least {
			t.Fatalf("found %d files in testdata/%s, expected at least %d: %v", len(files), folder, least, err)
		}
		for _, file := range files {
			t.Run(folder+"/"+strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
				t.Parallel()
				if errors := checkProblems(t, file); errors != (folder == "bad") {
					t.Errorf("errors: %v", errors)
				}
			})
		}
	}
}

// checkProblems reports whether the file has errors.
func checkProblems(t *testing.T, file string) bool {
	t.Helper()
	text := readFile(t, file)
	want, body := splitHeader(text)
	program, problems := Compile(sourceOf(t, text), testEnv())
	if *update {
		if len(want) != len(problems) {
			text = strings.Repeat("#\n", len(problems)) + body
			_, problems = Compile(sourceOf(t, text), testEnv())
		}
		var b strings.Builder
		for _, p := range problems {
			b.WriteString("# " + p.String() + "\n")
		}
		if err := os.WriteFile(file, []byte(b.String()+body), 0o600); err != nil {
			t.Fatal(err)
		}
		return HasErrors(problems)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if HasErrors(problems) != (program == nil) {
		t.Errorf("errors: %v, program: %v", HasErrors(problems), program != nil)
	}
	return HasErrors(problems)
}

// splitHeader returns the leading comment lines and what follows.
func splitHeader(text string) (header []string, body string) {
	for {
		line, rest, _ := strings.Cut(text, "\n")
		expected, ok := strings.CutPrefix(line, "#")
		if !ok {
			return header, text
		}
		header = append(header, strings.TrimPrefix(expected, " "))
		text = rest
	}
}

func TestCompileReportsAnAbsentDefaultWithoutAPosition(t *testing.T) {
	t.Parallel()
	p, problems := Compile(Source{}, testEnv())
	want := []Problem{{
		Path: "default",
		Msg:  "nothing says where a request goes that no route matches; add `default: {models: [NAME]}`",
	}}
	if diff := cmp.Diff(want, problems); diff != "" || p != nil {
		t.Errorf("program %v, problems (-want +got):\n%s", p, diff)
	}
}

func TestCompileNamesSignalsThatNothingProvides(t *testing.T) {
	t.Parallel()
	env := testEnv()
	env.Signals = 0
	env.Labels = nil
	src := sourceOf(t, `
routes:
  - {name: a, when: {domain: math}, use: {models: [qwen-7b], cache: semantic}}
  - {name: b, when: {keyword: titan}, use: {models: [qwen-7b], redact: true}}
  - {name: c, when: {intent: hr}, use: {models: [qwen-7b], reasoning: auto}}
default: {models: [qwen-7b]}
`)
	_, problems := Compile(src, env)
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		`3:12: routes[0].name: warning: route "a" can never match: no model provides domain`,
		"3:30: routes[0].when.domain: warning: no model provides signal domain, so this is unknown for every request",
		"3:69: routes[0].use.cache: no model provides signal embedding",
		`4:31: routes[1].when.keyword: unknown keyword set "titan"; none is defined under signals.keywords`,
		"4:72: routes[1].use.redact: no model provides signal pii",
		`5:30: routes[2].when.intent: unknown intent "hr"; none is defined under signals.intents`,
		"5:71: routes[2].use.reasoning: warning: no model provides signal complexity, so auto leaves what the client set",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestCompileKnowsLanguagesByTheirNames(t *testing.T) {
	t.Parallel()
	env := testEnv()
	env.Labels[signal.Language] = []string{"de", "en", "fr", "zh"}
	_, problems := Compile(sourceOf(t, `
routes:
  - {name: r, when: {language: [germn, French]}, use: {models: [qwen-7b]}}
  - {name: s, when: {language: {not_in: [de-AT, xx]}}, use: {models: [qwen-7b]}}
default: {models: [qwen-7b]}
`), env)
	want := []string{
		`3:33: routes[0].when.language[0]: unknown language "germn"; did you mean "de"?`,
		`3:40: routes[0].when.language[1]: unknown language "French"; did you mean "fr"?`,
		`4:42: routes[1].when.language.not_in[0]: unknown language "de-AT"; did you mean "de"?`,
		`4:49: routes[1].when.language.not_in[1]: unknown language "xx"; expected one of de, en, fr, zh`,
	}
	if diff := cmp.Diff(want, textsOfProblems(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// FuzzCompile feeds arbitrary YAML. Compile must neither panic nor accept a program that then
// misbehaves on a request about which nothing is known.
func FuzzCompile(f *testing.F) {
	for _, folder := range []string{"bad", "warn"} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			f.Add(readFile(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(text), &doc) != nil {
			t.Skip("not YAML")
		}
		p, problems := Compile(sections(&doc), testEnv())
		if (p == nil) != HasErrors(problems) {
			t.Fatalf("program: %v, problems: %v", p != nil, problems)
		}
		for _, problem := range problems {
			if problem.Path == "" || problem.Msg == "" || problem.Line < 1 && problem.Path != "default" {
				t.Fatalf("problem without a place: %+v", problem)
			}
		}
		if p == nil {
			return
		}
		settle(t, p)
		settle(t, p.Named())
	})
}
