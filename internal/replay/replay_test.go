package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"signalbox/proxy/decisionlog"
	"signalbox/rules"
)

// line is an entry of a log that was decided by route.
func line(id, route string) string {
	return fmt.Sprintf(`{"v":1,"id":%q,"request":{"model":"auto"},"route":%q,"outcome":"matched","action":{"verb":"use","models":[{"name":"m"}]},"signals":{},"chosen":"m"}`, id, route)
}

// same decides as the log says.
func same(l *decisionlog.Entry) *decisionlog.Redecision {
	return &decisionlog.Redecision{Route: l.Route, Outcome: l.Outcome, Action: l.Action, Chosen: l.Chosen}
}

// byID decides as the log says but for some requests.
func byID(changes map[string]func(*decisionlog.Redecision)) Decide {
	return func(_ context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error) {
		r := same(l)
		if change := changes[l.ID]; change != nil {
			change(r)
		}
		return r, nil
	}
}

func sources(texts ...string) []Source {
	var out []Source
	for i, text := range texts {
		out = append(out, Source{Name: string(rune('a' + i)), Reader: strings.NewReader(text)})
	}
	return out
}

func TestRunCountsWhatChanges(t *testing.T) {
	t.Parallel()
	first := strings.Join([]string{line("1", "law"), line("2", "law"), "", line("3", "math"), `{"v":1,"torn`, line("4", "math")}, "\n") + "\n"
	second := line("5", "law") + "\r\n" + line("6", "default") // without a last line break
	got, err := Run(t.Context(), sources(first, second), 0, byID(map[string]func(*decisionlog.Redecision){
		"1": func(r *decisionlog.Redecision) { r.Route = "math" },
		"3": func(r *decisionlog.Redecision) { r.Action.Reasoning, r.Chosen = "high", "n" },
		"4": func(r *decisionlog.Redecision) { *r = decisionlog.Redecision{Missing: []string{"domain", "jailbreak"}} },
		"5": func(r *decisionlog.Redecision) { r.Route = "math" },
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Decisions: 6, Unchanged: 2, Route: 2, Parameters: 1, Undetermined: 1, Unreadable: 1,
		Moves: []Move{{"law", "math", 2}}, Fields: []Count{{"model", 1}, {"reasoning", 1}}, Missing: []Count{{"domain", 1}, {"jailbreak", 1}},
		Samples: []Example{
			{ID: "1", Line: "a:1", Change: Route, From: "law", To: "math", Model: "m", Now: "m"},
			{ID: "5", Line: "b:1", Change: Route, From: "law", To: "math", Model: "m", Now: "m"},
			{ID: "3", Line: "a:4", Change: Parameters, From: "math", To: "math", Model: "m", Now: "n", Fields: []string{"model", "reasoning"}},
			{ID: "4", Line: "a:6", Change: Undetermined, From: "math", Model: "m", Missing: []string{"domain", "jailbreak"}},
		},
		Bad: []string{"a:5: not a line of a decision log: unexpected end of JSON input"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if got.Same() {
		t.Error("a report of changes says that all is the same")
	}
}

func TestEveryKeyOfARouteIsCompared(t *testing.T) {
	t.Parallel()
	prompts := map[string]string{"p": "be brief", "q": "be long"}
	base := func() *rules.Action {
		return &rules.Action{
			Models: []rules.Choice{{Name: "m", Weight: 1}}, By: "weight", Prompt: rules.Prompt{Name: "p", Mode: "always"},
			Redact: &rules.Redact{}, Escalate: &rules.Escalate{}, Mirror: &rules.Mirror{Model: "x", Share: 0.5},
			Tools: &rules.Tools{Keep: 3, Share: 0.5}, Results: &rules.Results{Budget: 100, Each: 64},
			Canary: &rules.Canary{Model: "x", Share: 0.5},
		}
	}
	for field, change := range map[string]func(*rules.Action){
		"action":         func(a *rules.Action) { a.Verb = rules.Block },
		"text":           func(a *rules.Action) { a.Text = "no" },
		"models":         func(a *rules.Action) { a.Models[0].Weight = 2 },
		"by":             func(a *rules.Action) { a.By, a.Models = "weights", nil },
		"quality_margin": func(a *rules.Action) { a.Margin = 0.1 },
		"reasoning":      func(a *rules.Action) { a.Reasoning = "high" },
		"override":       func(a *rules.Action) { a.Override = true },
		"prompt":         func(a *rules.Action) { a.Prompt.Position = "before" },
		"max_tokens":     func(a *rules.Action) { a.MaxTokens.Limit = 5 },
		"guard":          func(a *rules.Action) { a.Guard = "hold" },
		"cache":          func(a *rules.Action) { a.Cache = "exact" },
		"windows":        func(a *rules.Action) { a.Windows = "all" },
		"mirror":         func(a *rules.Action) { a.Mirror.Share = 0.1 },
		"tools":          func(a *rules.Action) { a.Tools.Share = 0.1 },
		"tool_results":   func(a *rules.Action) { a.Results.Budget = 200 },
		"canary":         func(a *rules.Action) { a.Canary.Model = "y" },
		"escalate":       func(a *rules.Action) { a.Escalate.When = []rules.Sign{rules.SignEmpty} },
		"redact":         func(a *rules.Action) { a.Redact.Types = []string{"EMAIL"} },
		"set":            func(a *rules.Action) { a.Body = []rules.Field{{Name: "top_p", JSON: []byte("1")}} },
	} {
		changed := base()
		change(changed)
		before := decisionlog.Entry{Action: decisionlog.ActionOf(base(), prompts)}
		now := decisionlog.Redecision{Action: decisionlog.ActionOf(changed, prompts)}
		if what, fields := Compare(&before, &now); what != Parameters || !slices.Contains(fields, field) {
			t.Errorf("%s: %s of %v", field, what, fields)
		}
	}
}

func TestSameMeansThatEveryLineWasReadAndDecidedAsBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"every line":        {line("1", "law") + "\n" + line("2", "math") + "\n", true},
		"no line at all":    {"", true},
		"a line of another": {line("1", "law") + "\n" + `{"hello":"world"}` + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Run(t.Context(), sources(c.text), 0, byID(nil), nil)
			if err != nil || got.Same() != c.want {
				t.Errorf("same is %v, want %v (%v)", got.Same(), c.want, err)
			}
		})
	}
}

func TestRunReadsNoFurtherThanItsLimit(t *testing.T) {
	t.Parallel()
	text := "junk\n" + strings.Repeat(line("1", "law")+"\n", 10)
	got, err := Run(t.Context(), sources(text, text), 3, byID(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Decisions != 3 || got.Unreadable != 1 {
		t.Errorf("%d decisions, %d unreadable", got.Decisions, got.Unreadable)
	}
}

func TestRunTellsItsProgressInBytesOfAllSources(t *testing.T) {
	t.Parallel()
	text := line("1", "law") + "\n" + line("2", "law") + "\n"
	var seen []int64
	if _, err := Run(t.Context(), sources(text, text), 0, byID(nil), func(n int64) { seen = append(seen, n) }); err != nil {
		t.Fatal(err)
	}
	n := int64(len(text)) / 2
	if diff := cmp.Diff([]int64{n, 2 * n, 3 * n, 4 * n}, seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestALineLongerThanTheBufferIsRead(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(line("long", "law"), "}") + `,"prompt":{"last_user":"` + strings.Repeat("x", 300_000) + `"}}`
	got, err := Run(t.Context(), sources(line("1", "law")+"\n"+long+"\n"+line("2", "law")), 0, byID(nil), nil)
	if err != nil || got.Decisions != 3 || got.Unreadable != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRunEndsWithItsContextAndWithABrokenFile(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, sources(line("1", "law")), 0, byID(nil), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	broken := Source{Name: "disk", Reader: io.MultiReader(strings.NewReader(line("1", "law")+"\n"), iotest.ErrReader(io.ErrClosedPipe))}
	if _, err := Run(t.Context(), []Source{broken}, 0, byID(nil), nil); !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("error %v", err)
	}
}

func TestCompareNamesEveryFieldThatChanges(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*decisionlog.Redecision){
		"outcome":        func(r *decisionlog.Redecision) { r.Outcome = "fail_closed" },
		"action":         func(r *decisionlog.Redecision) { r.Action.Verb = "block" },
		"text":           func(r *decisionlog.Redecision) { r.Action.Text = "other" },
		"model":          func(r *decisionlog.Redecision) { r.Chosen = "n" },
		"models":         func(r *decisionlog.Redecision) { r.Action.Models = []decisionlog.Choice{{Name: "m"}, {Name: "n"}} },
		"by":             func(r *decisionlog.Redecision) { r.Action.By = "cost" },
		"quality_margin": func(r *decisionlog.Redecision) { r.Action.Margin = 0.1 },
		"reasoning":      func(r *decisionlog.Redecision) { r.Action.Reasoning = "low" },
		"override":       func(r *decisionlog.Redecision) { r.Action.Override = true },
		"prompt":         func(r *decisionlog.Redecision) { r.Action.Wording = "other" },
		"max_tokens":     func(r *decisionlog.Redecision) { r.Action.MaxTokens = "auto" },
		"guard":          func(r *decisionlog.Redecision) { r.Action.Guard = "hold" },
		"cache":          func(r *decisionlog.Redecision) { r.Action.Cache = "exact" },
		"windows":        func(r *decisionlog.Redecision) { r.Action.Windows = "all" },
		"redact":         func(r *decisionlog.Redecision) { r.Action.Redact = true },
		"set":            func(r *decisionlog.Redecision) { r.Action.Set = "other" },
	} {
		before, err := decisionlog.Parse([]byte(line("1", "law")))
		if err != nil {
			t.Fatal(err)
		}
		now := same(before)
		if got, fields := Compare(before, now); got != Unchanged || fields != nil {
			t.Fatalf("nothing was changed and %v %v did", got, fields)
		}
		change(now)
		got, fields := Compare(before, now)
		if diff := cmp.Diff([]string{field}, fields); diff != "" || got != Parameters {
			t.Errorf("%s: %s, fields (-want +got):\n%s", field, got, diff)
		}
	}
}

func TestAModelThatCannotBeToldIsNoChange(t *testing.T) {
	t.Parallel()
	before, err := decisionlog.Parse([]byte(line("1", "law")))
	if err != nil {
		t.Fatal(err)
	}
	now := same(before)
	now.Chosen = ""
	if got, fields := Compare(before, now); got != Unchanged {
		t.Errorf("%s %v", got, fields)
	}
}

func TestAReportShowsFewExamplesOfEachChange(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		b.WriteString(line(fmt.Sprint(i), fmt.Sprint("route-", i%40)) + "\n" + "junk\n")
	}
	got, err := Run(t.Context(), sources(b.String()), 0, func(_ context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error) {
		r := same(l)
		r.Route = "other"
		return r, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Samples) != maxExamples || len(got.Bad) != maxBad || got.Unreadable != 1000 || len(got.Moves) != 40 {
		t.Errorf("%d examples, %d bad lines of %d, %d moves", len(got.Samples), len(got.Bad), got.Unreadable, len(got.Moves))
	}
	perKind := map[string]int{}
	for _, e := range got.Samples {
		if perKind[e.From]++; perKind[e.From] > examplesPerKind {
			t.Errorf("more than %d examples of %s", examplesPerKind, e.From)
		}
	}
}

func FuzzRun(f *testing.F) {
	f.Add(line("1", "law") + "\n\n" + line("2", "math"))
	f.Add("{}\r\n" + `{"v":1,"torn` + "\n\x00\n")
	f.Add(strings.Repeat("x", 70_000) + "\n" + line("1", "law"))
	f.Fuzz(func(t *testing.T, text string) {
		report, err := Run(t.Context(), sources(text), 0, byID(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := report.Unchanged + report.Route + report.Parameters + report.Undetermined; n != report.Decisions {
			t.Errorf("%d changes of %d decisions", n, report.Decisions)
		}
		filled := 0
		for l := range strings.Lines(text) {
			if strings.Trim(l, "\r\n") != "" {
				filled++
			}
		}
		if report.Decisions+report.Unreadable != filled {
			t.Errorf("%d decisions and %d unreadable lines of %d", report.Decisions, report.Unreadable, filled)
		}
		if _, err := json.Marshal(report); err != nil {
			t.Error(err)
		}
	})
}

func TestTheModelThatWasTriedFirstIsCompared(t *testing.T) {
	t.Parallel()
	const first = `,"chosen":"large","model":"large","escalation":{"result":"escalated","from":[{"model":"small"}]}}`
	const failed = `,"chosen":"large","model":"small","escalation":{"result":"failed"}}`
	base := strings.TrimSuffix(line("1", "law"), `,"chosen":"m"}`)
	small := func(_ context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error) {
		r := same(l)
		r.Chosen = "small"
		return r, nil
	}
	got, err := Run(t.Context(), sources(base+first+"\n"+base+failed+"\n"), 0, small, nil)
	if err != nil || got.Decisions != 2 || !got.Same() {
		t.Errorf("%+v, %v", got, err)
	}
}
