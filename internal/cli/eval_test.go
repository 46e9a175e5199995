package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Labelled data are read from the file that is named, by --data or as the argument, or from
// standard input; the configuration may lack its secrets where the flag says so.
func TestEvalReadsItsDataAsItsSiblingsDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, data := filepath.Join(dir, "signalbox.yaml"), filepath.Join(dir, "rows.jsonl")
	const rows = `{"text":"hello","label":"all"}` + "\n"
	for path, text := range map[string]string{
		file: "models: [{name: m, endpoints: [{name: e, url: 'http://127.0.0.1:9/v1', api_key: '${NOWHERE_SET}'}]}]\n" +
			"routes: [{name: all, when: {language: [de]}, use: {models: [m]}}, {name: rest, when: true, use: {models: [m]}}]\n" +
			"default: {models: [m]}\n",
		data: strings.ReplaceAll(rows, "all", "rest"),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string // on standard output, or on the other one of a failure
		code int
	}{
		"an argument":    {[]string{"--allow-unset", data}, `"n": 1`, 0},
		"a flag":         {[]string{"--allow-unset", "--data", data}, `"n": 1`, 0},
		"standard input": {[]string{"--allow-unset", "-"}, `"n": 1`, 0},
		"a flag for it":  {[]string{"--allow-unset", "--data", "-"}, `"n": 1`, 0},
		"no secret":      {[]string{data}, "NOWHERE_SET", 1},
		"none":           {nil, "missing file of labelled data: signalbox eval ... FILE.jsonl, or - for standard input", 2},
		"two":            {[]string{"a", "b"}, `eval takes one file of data, found "b" besides "a"`, 2},
		"twice":          {[]string{"a", "--data", "b"}, `the data file is given twice, with --data and as "a"`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			streams := Streams{
				In: strings.NewReader(rows), Out: &out, Err: &errs, Env: func(string) (string, bool) { return "", false },
			}
			args := append([]string{"eval", "--config", file, "--task", "route", "--json"}, c.args...)
			code := Main(t.Context(), "test", args, streams)
			said := out.String()
			if c.code != 0 {
				said = errs.String()
			}
			if code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d, %s%s, want %d and %s", code, out.String(), errs.String(), c.code, c.want)
			}
		})
	}
}
