package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func textOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// S38: modules are named by version and by their sums, and nothing is replaced, but the program in
// the modules of benches by this checkout. They take what the program takes.
func TestS38ModulesArePinned(t *testing.T) {
	t.Parallel()
	required := regexp.MustCompile(`(?m)^\s+(\S+\.\S+/\S+) (v\S+)`)
	replace := regexp.MustCompile(`(?m)^(?:replace|exclude)\b(?:.*=> )?(.*)`)
	program := map[string]string{} // the versions of modules in the first go.mod
	for _, m := range []struct {
		dir   string
		least int    // modules
		mine  string // what one module is replaced by: the program as it lies here
	}{
		{".", 50, ""},
		{"bench", 50, ".."},
		{"training/features", 10, "../.."},
		{"tools", 50, ""},
	} {
		mod, sum := textOf(t, filepath.Join(m.dir, "go.mod")), textOf(t, filepath.Join(m.dir, "go.sum"))
		modules := required.FindAllStringSubmatch(mod, -1)
		replaced := ""
		for _, r := range replace.FindAllStringSubmatch(mod, -1) {
			replaced += r[1]
		}
		if len(modules) < m.least || replaced != m.mine {
			t.Errorf("%s: %d modules, or one is replaced by %q", m.dir, len(modules), replaced)
		}
		for _, r := range modules {
			if !strings.Contains(sum, r[1]+" "+r[2]+" h1:") && !strings.Contains(sum, r[1]+" "+r[2]+"/go.mod h1:") {
				t.Errorf("%s: %s %s has no sum", m.dir, r[1], r[2])
			}
			if m.dir == "." {
				program[r[1]] = r[2]
			}
			if was := program[r[1]]; m.mine != "" && was != "" && was != r[2] {
				t.Errorf("%s: %s %s, of which the program has %s", m.dir, r[1], r[2], was)
			}
		}
	}
}

// S38: what the program is built and tried with is named by version: nothing is taken as it happens
// to be on the day. The licences of modules are compared by `make licences`, known vulnerabilities
// by `make vuln`.
func TestS38WhatIsBuiltFromIsPinned(t *testing.T) {
	t.Parallel()
	if !strings.Contains(textOf(t, "Makefile"), "check: fmt lint vet test test-openai test-nocgo generated licences") ||
		!strings.Contains(textOf(t, "Makefile"), "GOFLAGS := -mod=readonly") {
		t.Error("make check does not compare licences, or changes go.mod")
	}
	files := []string{"Makefile", "Dockerfile", ".ci/run", "tools/fetch-onnxruntime.sh", "examples/run.sh"}
	requirements, err := filepath.Glob("examples/*/requirements.txt")
	if err != nil || len(requirements) == 0 {
		t.Fatalf("%v, %v", requirements, err)
	}
	for _, name := range append(files, requirements...) {
		for line := range strings.Lines(textOf(t, name)) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "@latest") || strings.Contains(line, ":latest") || regexp.MustCompile(`(curl|wget).*\|\s*(ba)?sh\b`).MatchString(line) {
				t.Errorf("%s: %s", name, line)
			}
			if strings.HasSuffix(name, ".txt") && line != "" && line[0] != '#' && !strings.HasPrefix(line, "-") && !strings.Contains(line, "==") {
				t.Errorf("%s: %s names no version", name, line)
			}
		}
	}
	for _, name := range []string{"Dockerfile", "tools/fetch-onnxruntime.sh"} {
		if text := textOf(t, name); strings.Contains(text, "curl") && !strings.Contains(text, "sha256sum") {
			t.Errorf("%s fetches, and compares no sum", name)
		}
	}
}

// S38: that go.work puts the program and its benches together changes no version that the program
// is built from.
func TestS38TheWorkspaceChangesNoVersion(t *testing.T) {
	t.Parallel()
	linked := func(workspace string) []string {
		t.Helper()
		cmd := exec.CommandContext(
			t.Context(),
			"go",
			"list",
			"-deps",
			"-f",
			"{{with .Module}}{{.Path}} {{.Version}}{{end}}",
			".",
		)
		cmd.Env = append(os.Environ(), "GOWORK="+workspace)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return slices.Compact(slices.Sorted(strings.Lines(string(out))))
	}
	alone, together := linked("off"), linked("")
	if len(alone) < 50 {
		t.Errorf("%d modules", len(alone))
	}
	if d := cmp.Diff(alone, together); d != "" {
		t.Errorf("with go.work (run make tidy):\n%s", d)
	}
}
