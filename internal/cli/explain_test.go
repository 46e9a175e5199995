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

func TestACommandLineThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"explain --config x.yaml --demo hi": "explain takes --config or --demo, not both",
		"completion tcsh": "completion has no command \"tcsh\"; " +
			"`signalbox completion --help` lists them",
	} {
		var out, errs bytes.Buffer
		streams := Streams{Out: &out, Err: &errs, Env: func(string) (string, bool) { return "", false }}
		code := Main(t.Context(), "test", strings.Fields(line), streams)
		if code != 2 || errs.String() != "signalbox: "+want+"\n" || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %s%s", line, code, errs.String(), out.String())
		}
	}
	var out bytes.Buffer
	streams := Streams{Out: &out, Err: &out, Env: func(string) (string, bool) { return "", false }}
	code := Main(t.Context(), "test", []string{"completion", "fish"}, streams)
	if code != 0 || !strings.Contains(out.String(), "complete -c signalbox") {
		t.Errorf("a shell that is known: exit code %d, %.200s", code, out.String())
	}
}
