package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// shown is what `top --once` prints of an overview.
func shown(t *testing.T, overview string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/overview") {
			fmt.Fprint(w, overview)
			return
		}
		fmt.Fprintln(w, `{"decisions":[],"skipped":0}`)
	}))
	t.Cleanup(s.Close)
	var out bytes.Buffer
	streams := Streams{
		Out: &out, Err: io.Discard, Width: 80, Env: func(string) (string, bool) { return "", false },
	}
	if code := Main(t.Context(), "test", []string{"top", "--once", "--admin", s.URL}, streams); code != 0 {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	return out.String()
}

func TestTopSaysHowManyAnswersItsCostLeavesOut(t *testing.T) {
	t.Parallel()
	const overview = `{"ready":true,"dearest":"large","tally":{"decided":549,"spent":[` +
		`{"model":"large","requests":171,"untold":157,"cost_usd":0.04,"baseline_usd":0.04},` +
		`{"model":"small","requests":342,"untold":%d,"cost_usd":0.0038,"baseline_usd":0.1285}]}}`
	got := shown(t, fmt.Sprintf(overview, 197))
	const want = "549 requests  $0.0438, 74 % less than always large  " +
		"not counted: 354 responses without token usage\n"
	if !strings.Contains(got, want) {
		t.Errorf("a sum of some answers looks like that of all:\n%s", got)
	}
	if got := shown(t, strings.ReplaceAll(fmt.Sprintf(overview, 0), "157", "0")); strings.Contains(got, "not counted") {
		t.Errorf("every answer was told, and yet:\n%s", got)
	}
}

func TestTopCountsWhatLimitsHaveRefused(t *testing.T) {
	t.Parallel()
	got := shown(t, `{"ready":true,"tally":{"decided":2,"refused":{"tokens":3,"requests":1},"spent":[]}}`)
	if !strings.Contains(got, "\n  refused by limits, beside these: 4 (requests 1, tokens 3)\n") {
		t.Errorf("requests that limits have refused are not told:\n%s", got)
	}
	if got := shown(t, `{"ready":true,"tally":{"decided":2,"refused":{},"spent":[]}}`); strings.Contains(got, "refused") {
		t.Errorf("no limit has refused anything:\n%s", got)
	}
}
