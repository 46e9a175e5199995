package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replayFiles are the log of a route that drew one of two models evenly, with ratings: those of the
// answers of b are good, those of a bad. One decision has no chance, and one no rating.
func replayFiles(t *testing.T) (decisions, outcomes string) {
	t.Helper()
	const decision = `{"v":1,"id":"%s","request":{"model":"auto","tenant":"t"},"route":"default",` +
		`"outcome":"default","action":{"verb":"use"},"signals":{},"status":200,` +
		`"chosen":"%[2]s","model":"%[2]s"%s}` + "\n"
	const even = `,"chance":0.5,"chances":{"a":0.5,"b":0.5}`
	var log, ratings strings.Builder
	for i, model := range []string{"a", "b", "a", "b"} {
		fmt.Fprintf(&log, decision, fmt.Sprint("r", i), model, even)
		fmt.Fprintf(&ratings, `{"tenant":"t","id":"r%d","score":%d}`+"\n", i, i%2)
	}
	fmt.Fprintf(&log, decision, "goes-on", "a", "")
	fmt.Fprintf(&log, decision, "unrated", "b", even)
	ratings.WriteString(`{"tenant":"t","id":"goes-on","score":1}` + "\n")
	ratings.WriteString(`{"tenant":"other","id":"unrated","score":1}` + "\n")
	dir := t.TempDir()
	decisions, outcomes = filepath.Join(dir, "decisions.jsonl"), filepath.Join(dir, "outcomes.jsonl")
	for path, text := range map[string]string{decisions: log.String(), outcomes: ratings.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return decisions, outcomes
}

// replayed decides the log again where the default route has the given models.
func replayed(t *testing.T, route string, args ...string) (out, problems string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "new.yaml")
	text := "models:\n" +
		"  - {name: a, endpoints: [{name: e, url: \"http://127.0.0.1:9/v1\"}]}\n" +
		"  - {name: b, endpoints: [{name: e, url: \"http://127.0.0.1:9/v1\"}]}\n" +
		"default: " + route + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	none := func(name string) (string, bool) {
		if name == "SIGNALBOX_ONNXRUNTIME" {
			return filepath.Join(t.TempDir(), "none.so"), true
		}
		return os.LookupEnv(name)
	}
	var stdout, stderr bytes.Buffer
	Main(t.Context(), "v1.2.3", append([]string{"replay", "--config", config}, args...), Streams{
		In: strings.NewReader(""), Out: &stdout, Err: &stderr, Width: 100, Env: none,
	})
	return stdout.String(), stderr.String()
}

func TestReplayEstimatesWhatAnswersWouldHaveBeenWorth(t *testing.T) {
	t.Parallel()
	decisions, outcomes := replayFiles(t)
	for route, want := range map[string][]string{
		// ratings of b count 1.5, those of a 0.5
		"{models: [{name: a, weight: 1}, {name: b, weight: 3}], by: weight}": {
			"as logged 0.500 ", "inverse propensity 0.750 ", "self-normalised 0.750 ", "greatest weight 1.5; 0.0 %",
		},
		"{models: [b]}": {
			"as logged 0.500 ", "inverse propensity 1.000 ", "self-normalised 1.000 ", "greatest weight 2.0; 0.0 %",
		},
	} {
		out, problems := replayed(t, route, "--decisions", decisions, "--outcomes", outcomes)
		got := strings.Join(strings.Fields(out), " ")
		for _, w := range append(want, "4 ratings count; 1 have no chance in the log, 0 no choice") {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is missing in\n%s%s", route, w, out, problems)
			}
		}
	}
	out, problems := replayed(t, "{models: [b]}", "--decisions", decisions)
	if strings.Contains(problems, "error") || strings.Contains(out, "ratings") {
		t.Errorf("without ratings: %s%s", out, problems)
	}
	if named, problems := replayed(t, "{models: [b]}", decisions); named != out {
		t.Errorf("a log that is named without the flag: %s%s, want %s", named, problems, out)
	}
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, problems := replayed(t, "{models: [b]}", "--decisions", decisions, "--outcomes", bad); !strings.Contains(
		problems, "read outcomes: ") || !strings.Contains(problems, "line 1") {
		t.Errorf("of a file that is no export: %q", problems)
	}
}

func TestReplayTellsALogFromAConfiguration(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"replay":          "missing decision log: signalbox replay FILE... --config NEW.yaml, or - for standard input",
		"replay new.yaml": "new.yaml is a configuration, not a decision log: signalbox replay LOG... --config new.yaml",
		"replay log.jsonl --decisions new.yml": "new.yml is a configuration, not a decision log: " +
			"signalbox replay LOG... --config new.yml",
	} {
		code, out, problems := run(t, "", strings.Fields(line)...)
		if code != 2 || out != "" || problems != "signalbox: "+want+"\n" {
			t.Errorf("%s: exit code %d, %s%s", line, code, problems, out)
		}
	}
}
