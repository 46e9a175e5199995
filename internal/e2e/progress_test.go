package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

// `make test` tells what is under way, what a package that fails has said, and ends as go test
// does.
func TestProgressOfTestsIsTold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example\n\ngo 1.26\n",
		"good/a_test.go": "package good\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Log(\"nobody asks\") }\n",
		"bad/a_test.go":  "package bad\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { t.Error(\"seven is not eight\") }\n",
		"gone/a_test.go": "package gone\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) { os.Exit(3) }\n",
		"no/a_test.go":   "package no\n\nfunc a() { return 1 }\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string // those of make test, for which the library is compiled already
	if testkit.Race {
		flags = []string{"-race", "-gcflags=all=-dwarf=false", "-ldflags=-s"}
	}
	bin := filepath.Join(dir, "progress")
	build := append(append([]string{"build"}, flags...), "-o", bin, "tools/progress/main.go")
	if out, err := exec.CommandContext(t.Context(), "go", build...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := func(packages ...string) (status int, out string) {
		cmd := exec.CommandContext(t.Context(), bin, append(append([]string{"-vet=off"}, flags...), packages...)...)
		cmd.Dir = dir
		b, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			return exit.ExitCode(), string(b)
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, string(b)
	}
	status, out := run("./...")
	for _, want := range []string{
		"compiling the tests\n", " example/good, 1 tests\n", "example/bad: TestB fails\n", "seven is not eight",
		" example/bad, 2 tests\n", " example/gone, ", "too many return values", "1 packages passed, 3 failed ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not told", want)
		}
	}
	if status != 1 || strings.Contains(out, "nobody asks") {
		t.Errorf("status %d", status)
	}
	if t.Failed() {
		t.Log(out)
	}
	if status, out := run("./good"); status != 0 || !strings.Contains(out, "1 packages passed, 0 failed") {
		t.Errorf("status %d, %s", status, out)
	}
}
