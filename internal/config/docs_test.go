package config_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"signalbox/internal/config"
)

// A block of the documentation that defines models and a default is a whole file, which somebody
// will copy.
func TestFilesInTheDocumentationAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	seen := map[string]bool{}
	set := func(string) (string, bool) { return "redis://127.0.0.1:6379", true } // every variable
	for _, f := range append(files, "../../README.md") {
		for _, m := range block.FindAllStringSubmatch(string(read(t, f)), -1) {
			text, name := m[1], filepath.Base(f)
			if !strings.Contains("\n"+text, "\nmodels:") || !strings.Contains(text, "\ndefault:") {
				continue
			}
			seen[name] = true
			if _, warnings, err := config.Parse(name, []byte(text), set, catalog); err != nil {
				t.Errorf("%v\n%s", err, text)
			} else if len(warnings) > 0 && name != "guard.md" && name != "agents.md" { // no model of claims here
				t.Errorf("%s: %v", name, warnings)
			}
		}
	}
	if !seen["README.md"] || !seen["guard.md"] {
		t.Errorf("only %v hold whole files", seen)
	}
}
