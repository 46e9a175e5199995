package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainNamesTheFileThatIsNoRequest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "q1.json")
	if err := os.WriteFile(file, []byte(`{"model":`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	streams := Streams{Out: &out, Err: &errs, Env: func(string) (string, bool) { return "", false }}
	code := Main(t.Context(), "test", []string{"explain", "--demo", "--request", file}, streams)
	if want := "explain: " + file + ": invalid JSON at byte "; code != 1 || !strings.Contains(errs.String(), want) {
		t.Errorf("exit code %d, %s, want %s", code, errs.String(), want)
	}
}
