package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// run runs a command line and returns what it printed.
func run(t *testing.T, in string, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(t.Context(), "v1.2.3", args, Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr, Width: 100, Env: os.LookupEnv})
	return code, stdout.String(), stderr.String()
}

// The log is one that the product wrote: five simulated models, keys of two tenants, the cache, the
// guard and escalation, and a server that was away in the end.
const reportLog = "../report/testdata/decisions.jsonl"

func TestAReportIsPrintedInEveryFormat(t *testing.T) {
	t.Parallel()
	for format, args := range map[string][]string{
		"table": {"--format", "table"}, "csv": {"--format", "csv"},
		"json": {"--format", "json"}, "html": {"--format", "html"},
		"short form of json": {"--json"},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			code, got, problems := run(t, "", append([]string{"report", reportLog}, args...)...)
			if code != 0 || problems != "" {
				t.Fatalf("exit code %d, %s", code, problems)
			}
			golden := filepath.Join("testdata", "report."+args[len(args)-1])
			if args[0] == "--json" {
				golden = filepath.Join("testdata", "report.json")
			} else if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReportReadsSeveralLogsAndStandardInput(t *testing.T) {
	t.Parallel()
	log, err := os.ReadFile(reportLog)
	if err != nil {
		t.Fatal(err)
	}
	code, got, problems := run(t, string(log)+"{\"v\":1\n", "report", reportLog, "-", "--by", "tenant", "--format", "csv")
	if code != 0 || !strings.Contains(got, "\nall,all,66,") || strings.Contains(got, "\nroute,") || !strings.Contains(got, "\ntenant,shop,") {
		t.Errorf("exit code %d:\n%s", code, got)
	}
	if !strings.Contains(problems, "signalbox: -:34: not a line of a decision log") || !strings.Contains(problems, "lines that could not be read: 1") {
		t.Errorf("problems: %s", problems)
	}
}

func TestAReportSaysWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "missing decision log"},
		{[]string{"no-such.jsonl"}, 1, "no-such.jsonl: no such file"},
		{[]string{reportLog, "--by", "colour"}, 2, `"colour" is not one of route, model`},
		{[]string{reportLog, "--format", "xml"}, 2, `--format "xml" is not one of table, csv, json, html`},
		{[]string{reportLog, "--json", "--format", "csv"}, 2, "report takes --json or --format csv, not both"},
		{[]string{reportLog, "--since", "yesterday"}, 2, `--since "yesterday" is not a day`},
		{[]string{reportLog, "--since", "2026-05-02", "--until", "2026-05-01"}, 2, "nothing lies between"},
		{[]string{reportLog, "--outcomes", reportLog}, 1, "decisions.jsonl: line 1: id or score is missing"},
		{[]string{reportLog, "--top", "0"}, 2, "0 names are not 1 to 200"},
	} {
		if code, out, problems := run(t, "", append([]string{"report"}, tt.args...)...); code != tt.code || out != "" || !strings.Contains(problems, tt.want) {
			t.Errorf("%v: exit code %d, %q, want %d, %q", tt.args, code, problems, tt.code, tt.want)
		}
	}
	for _, ago := range []string{"24h", "7d", "2026-05-01", "2026-05-01T12:00", "2026-05-01T12:00:00+02:00"} {
		if code, _, problems := run(t, "", "report", reportLog, "--since", ago); code != 0 {
			t.Errorf("--since %s: %s", ago, problems)
		}
	}
}

func TestALogOfWhichNothingCouldBeReadIsTrouble(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		"[1]":             "-:1: not a line of a decision log: it is a JSON array and no object",
		"time,route":      "-:1: not a line of a decision log: invalid character 'i'",
		`{"v":1,"torn`:    "-:1: not a line of a decision log: unexpected EOF",
		`{"route":[1]}`:   "-:1: not a line of a decision log: route cannot be read from such a JSON array",
		`{"time":"noon"}`: "-:1: not a line of a decision log: time cannot be read from such a JSON string",
	} {
		code, got, problems := run(t, log+"\n", "report", "-")
		if code != 1 || !strings.Contains(got, want) || !strings.Contains(problems, "report: no line could be read") {
			t.Errorf("%s: exit code %d: %s\n%s", log, code, problems, got)
		}
		if strings.Contains(got, "Go ") || strings.Contains(got, "json: ") || strings.Contains(got, "jsontext") {
			t.Errorf("%s: words of the program in %s", log, got)
		}
	}
	for _, log := range []string{"", "[1]\n" + `{"v":1,"time":"2026-05-01T00:00:00Z","route":"r","outcome":"refused",` +
		`"action":{"verb":"block"},"refused":2}` + "\n"} {
		if code, got, problems := run(t, log, "report", "-"); code != 0 {
			t.Errorf("%q: exit code %d: %s\n%s", log, code, problems, got)
		}
	}
}

func TestTheWordsOfAReportAreCompleted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"--format": "table\ncsv\njson\nhtml\n", "--by": "route\nmodel\ntenant\nkey\nday\narm\n"} {
		if _, got, _ := run(t, "", "__complete", "report", name, ""); !strings.HasPrefix(got, want) {
			t.Errorf("%s is completed by %q, want %q", name, got, want)
		}
	}
}
