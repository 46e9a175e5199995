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

// Headers are given as curl takes them.
func TestExplainTakesHeaders(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	const text = `
models: [{name: m, endpoints: [{name: e, url: 'http://127.0.0.1:9/v1'}]}]
routes:
  - {name: research, when: {header: {name: X-Team, equals: research}}, use: {models: [m]}}
  - {name: marked, when: {header: {name: X-Mark, matches: '^$'}}, use: {models: [m]}}
default: {models: [m]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"none":            {nil, `"route": "default"`, 0},
		"one":             {[]string{"--header", "x-team:research"}, `"route": "research"`, 0},
		"two":             {[]string{"-H", "X-Other: a: b", "-H", "X-Team: research"}, `"route": "research"`, 0},
		"without a value": {[]string{"-H", "X-Mark;"}, `"route": "marked"`, 0},
		"no name":         {[]string{"-H", ": b"}, `--header ": b" is no header; write 'NAME: VALUE'`, 2},
		"no colon":        {[]string{"-H", "X-Team"}, `--header "X-Team" is no header`, 2},
		"nothing behind":  {[]string{"-H", "X-Team:"}, "'NAME;' is a header without one", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			streams := Streams{Out: &out, Err: &errs, Env: func(string) (string, bool) { return "", false }}
			args := append([]string{"explain", "--config", file, "--json", "hello"}, c.args...)
			code := Main(t.Context(), "test", args, streams)
			if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d, %s, want %d and %s", code, said, c.code, c.want)
			}
		})
	}
}

func TestACommandLineThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"explain --config x.yaml --demo hi": "explain takes --config or --demo, not both",
		"completion korn":                   `completion has no command "korn"; it has bash, fish, powershell and zsh`,
		"models vrify --x": `models has no command "vrify", did you mean "verify"? It has list, pull ` +
			`and verify`,
		"keys re": `keys has no command "re", did you mean "revoke"? It has create, list, ` +
			`new, revoke, rotate and show`,
		"help keys lsit": `keys has no command "lsit", did you mean "list"? It has create, list, ` +
			`new, revoke, rotate and show`,
		"help check all":   "there is no command \"all\"; `signalbox --help` lists them",
		"rep":              `there is no command "rep", did you mean "replay"?`,
		"check --onlin":    "unknown flag: --onlin, did you mean --online?",
		"report --jsn x":   "unknown flag: --jsn, did you mean --json?",
		"explain --req=x":  "unknown flag: --req, did you mean --request?",
		"doctor -strict":   "unknown shorthand flag: 's' in -strict, did you mean --strict?",
		"doctor -x":        "unknown shorthand flag: 'x' in -x; `signalbox doctor --help` lists its flags",
		"doctor --verbose": "unknown flag: --verbose; `signalbox doctor --help` lists its flags",
		"simulate --kv-bl": "unknown flag: --kv-bl; `signalbox simulate --help` lists its flags",
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
