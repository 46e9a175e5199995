package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/config"
)

// Files that are right and most likely not what was meant: the golden file holds the warnings, each
// with the place of what it speaks of, in whichever section that is.
func TestDoubtfulFilesAreAcceptedWithWarnings(t *testing.T) {
	files, err := filepath.Glob("testdata/warn/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var got strings.Builder
	for _, f := range files {
		name := filepath.Base(f)
		_, warnings, err := config.Parse(name, read(t, f), noEnv, catalog)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(warnings) == 0 {
			t.Errorf("%s: no warning", name)
		}
		for _, w := range warnings {
			got.WriteString(config.Format(name, w) + "\n")
		}
	}
	golden(t, "testdata/warn.golden", got.String())
}
