package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// S38: what the program is built and tried with is named by version, and modules by their sums:
// nothing is replaced, and nothing is taken as it happens to be on the day. The licences of modules
// are compared by `make licences`, known vulnerabilities by `make vuln`.
func TestS38WhatIsBuiltFromIsPinned(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	required := regexp.MustCompile(`(?m)^\s+(\S+\.\S+/\S+) (v\S+)`)
	for _, dir := range []string{".", "tools"} {
		mod, sum := read(filepath.Join(dir, "go.mod")), read(filepath.Join(dir, "go.sum"))
		modules := required.FindAllStringSubmatch(mod, -1)
		if len(modules) < 50 || regexp.MustCompile(`(?m)^(replace|exclude)\b`).MatchString(mod) {
			t.Errorf("%s: %d modules, or one is replaced", dir, len(modules))
		}
		for _, m := range modules {
			if !strings.Contains(sum, m[1]+" "+m[2]+" h1:") && !strings.Contains(sum, m[1]+" "+m[2]+"/go.mod h1:") {
				t.Errorf("%s: %s %s has no sum", dir, m[1], m[2])
			}
		}
	}
	if !strings.Contains(read("Makefile"), "check: fmt lint vet test test-openai test-nocgo generated licences") || !strings.Contains(read("Makefile"), "GOFLAGS := -mod=readonly") {
		t.Error("make check does not compare licences, or changes go.mod")
	}
	files := []string{"Makefile", "Dockerfile", ".ci/run", "tools/fetch-onnxruntime.sh", "examples/run.sh"}
	requirements, err := filepath.Glob("examples/*/requirements.txt")
	if err != nil || len(requirements) == 0 {
		t.Fatalf("%v, %v", requirements, err)
	}
	for _, name := range append(files, requirements...) {
		for line := range strings.Lines(read(name)) {
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
		if text := read(name); strings.Contains(text, "curl") && !strings.Contains(text, "sha256sum") {
			t.Errorf("%s fetches, and compares no sum", name)
		}
	}
}
