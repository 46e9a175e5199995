package telemetry

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The metrics page is a contract: dashboards are written against it.
func TestMetricsPageMatchesGolden(t *testing.T) {
	o := DefaultOptions()
	tel, err := New(t.Context(), o, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := tel.Metrics
	m.Request("math", "math-70b", 200, 20*time.Millisecond)
	m.Decide(2 * time.Millisecond)
	m.ModelRun("signalbox-minilm", "cpu", time.Millisecond, 1)
	m.SignalSkipped("domain")
	m.SignalUnknown("jailbreak", "timeout")
	m.TTFT("math-70b", 30*time.Millisecond)
	m.InterToken("math-70b", 5*time.Millisecond)
	m.Tokens("prompt", 12)
	m.Cost("math-70b", 0.5, 1)
	m.TenantRequest("lab")
	m.TenantRefused("lab")
	m.TenantUsage("lab", 12, 4, 8, 0.5)
	m.WatchPool(func() PoolStatus {
		return PoolStatus{Endpoints: []EndpointStatus{{Model: "math-70b", Endpoint: "math-a", Up: true, Inflight: 1}}, Queued: []QueueStatus{{"math-70b", 2}}}
	})
	m.WatchConnections(func() []ConnectionStatus {
		return []ConnectionStatus{{
			Listener: "main", Limit: 9, New: 1, Active: 2, Idle: 3,
			Evicted: 4,
		}}
	})
	m.Shed("math-70b", "full")
	m.Retry("connect")
	m.Mirror("math", "math-7b", "answered")
	m.Mirrored("math-7b", 9, 3, 0.5, 0.25)
	m.Arm("math", "canary", 200)
	m.ArmUsed("math", "canary", 9, 3, 0.5)
	m.Escalation("math", "math-7b", "length")
	m.Cache("miss")
	m.GuardClaim("supported")
	m.GuardAction("marked")
	m.GuardCheck(time.Millisecond)
	m.Provider("cpu", "x86_64")
	m.Reloaded(true, 2, time.Unix(1700000000, 0))
	m.Serves("math-70b")
	m.WatchRedis(func() bool { return true })
	m.CountedLocally("rate", RedisLate)
	m.Untold("math-70b")
	m.Placement("math-70b", "home")
	m.EndpointRestarted("math-70b", "math-a")
	m.WarmCall("math-70b", "read")
	m.PageIn("l2", time.Millisecond)
	m.WatchContexts(func(tell func(tier string, contexts, bytes int64)) { tell("hot", 1, 31) })

	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	var got []string
	for line := range strings.Lines(rec.Body.String()) {
		// Bucket bounds and the Go runtime's own metrics are not part of the contract.
		if strings.HasPrefix(line, "signalbox_") && !strings.Contains(line, "_bucket{") {
			line = regexp.MustCompile(`goversion="[^"]*"`).ReplaceAllString(line, `goversion="GO"`)
			got = append(got, regexp.MustCompile(`(_sum(\{[^}]*\})?) .*`).ReplaceAllString(line, "$1 SUM"))
		}
	}
	golden(t, "metrics.golden", strings.Join(got, ""))
	page := metricsPage(rec.Body.String())
	golden(t, "../../../docs/metrics.md", page)
	for _, name := range defined(t) {
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("%s is not on the page: let this test record it", name)
		}
	}
}

// defined lists the metrics that this package has in its code.
func defined(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\("(signalbox_[a-z_]+)",`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 50 {
		t.Fatalf("found %d metrics in %v", len(names), files)
	}
	return names
}

// metricsPage is the documentation of metrics: what a scrape tells of each.
func metricsPage(scrape string) string {
	type family struct {
		help, kind string
		labels     map[string]bool
	}
	all := map[string]*family{}
	find := func(name string) *family {
		if f := all[name]; f != nil {
			return f
		}
		return all[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")]
	}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(scrape) {
		word := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch {
		case len(word) == 4 && word[1] == "HELP" && strings.HasPrefix(word[2], "signalbox_"):
			all[word[2]] = &family{help: word[3], labels: map[string]bool{}}
		case len(word) == 4 && word[1] == "TYPE" && all[word[2]] != nil:
			all[word[2]].kind = word[3]
		case strings.HasPrefix(line, "signalbox_"):
			name, labels, _ := strings.Cut(strings.TrimSpace(line), "{")
			if f := find(name); f != nil {
				for _, m := range label.FindAllStringSubmatch(labels, -1) {
					if m[1] != "le" {
						f.labels[m[1]] = true
					}
				}
			}
		}
	}
	var out strings.Builder
	out.WriteString("# Metrics\n\n" +
		"`GET /metrics` on the admin listener returns these metrics in the Prometheus text format. With\n" +
		"`telemetry.otlp_metrics_endpoint` they are exported over OTLP as well. Label values come from the\n" +
		"configuration and from fixed sets, never from clients, so a client cannot create series. A scrape\n" +
		"also contains `go_*` and `process_*`, for the Go runtime and the process. A test generates this\n" +
		"page from a scrape.\n\n" +
		"| metric | kind | labels | description |\n| --- | --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		labels := "`" + strings.Join(slices.Sorted(maps.Keys(f.labels)), "`, `") + "`"
		if len(f.labels) == 0 {
			labels = ""
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, f.kind, labels, f.help)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("page differs (-want +got):\n%s", diff)
	}
}

func TestRecordingDoesNotAllocateOnceLabelsAreKnown(t *testing.T) {
	m := Discard().Metrics
	record := func() { m.InterToken("math-70b", time.Millisecond) }
	record()
	if n := testing.AllocsPerRun(100, record); n > 1 {
		t.Errorf("InterToken allocates %v times, expected at most the variadic slice of the API", n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	o := Options{Log: "loud", LogFormat: "xml", SampleRatio: 2, OTLPEndpoint: "collector:4318"}
	err := o.Validate()
	if err == nil {
		t.Fatal("no error for options that are all wrong")
	}
	for _, field := range []string{"log:", "log_format:", "sample_ratio:", "otlp_endpoint:"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("problem with %s is missing in %q", field, err)
		}
	}
	if err := DefaultOptions().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestLogsGoToTheGivenWriterAtTheGivenLevel(t *testing.T) {
	var buf bytes.Buffer
	o := DefaultOptions()
	o.Log, o.LogFormat = "warn", "json"
	tel, err := New(t.Context(), o, "test", &buf)
	if err != nil {
		t.Fatal(err)
	}
	tel.Log.Info("quiet")
	tel.Log.Warn("heard")
	if got := buf.String(); strings.Contains(got, "quiet") || !strings.Contains(got, `"msg":"heard"`) {
		t.Errorf("log is %q", got)
	}
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
