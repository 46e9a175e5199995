package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestFitRefusesANameBeforeItReadsTheRows(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.jsonl")
	for name, want := range map[string]string{
		"domain":     `--name: "domain" is a signal of its own`,
		"embedding":  `--name: "embedding" is a signal of its own`,
		"toxicity\n": `--name: "toxicity\n" has space around it`,
		"../up":      "--name: ",
		"toxicity":   "read data: ",
	} {
		var out, errs bytes.Buffer
		streams := Streams{Out: &out, Err: &errs, Env: func(string) (string, bool) { return "", false }}
		code := Main(t.Context(), "test", []string{"fit", "--name", name, "--data", none}, streams)
		if code == 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: exit code %d, %s, want %s", name, code, errs.String(), want)
		}
	}
}
