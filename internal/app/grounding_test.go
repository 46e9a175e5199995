package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/config"
	"signalbox/internal/eval"
	"signalbox/stream/check"
)

// markModels is a folder of small models with random weights that mark tokens of answers.
const markModels = "../../classify/bundle/testdata/grounding"

// towers is an example whose second claim holds nothing that numbers settle.
var towers = eval.Example{
	Facts: eval.Facts{"The Eiffel Tower in Paris is 330 m high.", "It was opened in 1889 by Gustave Eiffel."}, Question: "How high is it?",
	Answer: "The Eiffel Tower is 330 m high. It was opened by Gustave Eiffel in Paris, France.",
}

func TestAModelOfAnyKindJudgesClaims(t *testing.T) {
	needModels(t)
	for name, tt := range map[string]struct {
		dir, task string
		by        check.Stage
	}{
		"pairs":  {hubModels, "{name: grounding, model: bert-nli}", check.NLI},
		"tokens": {markModels, "{name: grounding, model: bert-separated}", check.Tokens},
	} {
		t.Run(name, func(t *testing.T) {
			a := build(t, taskLines(absolute(t, tt.dir), tt.task))
			if a.neural.grounding.opened.Load() != nil {
				t.Error("the model was opened though nobody asked for the guard")
			}
			report, err := a.verify(t.Context(), &towers)
			if err != nil {
				t.Fatal(err)
			}
			read := false
			for _, c := range report.Claims {
				if c.Err != nil {
					t.Errorf("%q: %v", c.Text, c.Err)
				}
				read = read || c.By == tt.by
			}
			if j := a.neural.grounding.opened.Load(); j == nil || j.err != nil || !read {
				t.Errorf("opened %+v, claims %+v", j, report.Claims)
			}
			if why := a.neural.grounding.lacking(); why != "" {
				t.Errorf("lacking %q", why)
			}
			w := httptest.NewRecorder()
			a.proxy.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
			want := `{"name":"` + a.neural.grounding.place.bundle.Manifest.Name + `","provider":"cpu"}`
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("readyz does not hold %s: %s", want, w.Body)
			}
		})
	}
}

func TestAGuardOpensItsModelAtOnceAndAReloadSwapsIt(t *testing.T) {
	needModels(t)
	dir := absolute(t, hubModels)
	pairs := "guard: {}\n" + taskLines(dir, "{name: grounding, model: bert-nli}")
	a := build(t, pairs)
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	a.cfg.Load().File = file
	first := a.neural.grounding
	j := first.opened.Load()
	if j == nil || j.err != nil {
		t.Fatalf("the guard's model at the start: %+v", j)
	}
	if err := reload(t, a, file, pairs+"prompts: [{name: p, text: x}]\n"); err != nil {
		t.Fatal(err)
	}
	if a.neural.grounding != first {
		t.Error("a reload that changes no model opened one again")
	}
	if err := reload(t, a, file, "guard: {}\n"+taskLines(absolute(t, markModels), "{name: grounding, model: bert-separated}")); err != nil {
		t.Fatal(err)
	}
	if a.neural.grounding == first {
		t.Fatal("the old model is in use")
	}
	a.retiring.Wait()
	if _, err := j.loaded.session.Run(t.Context(), nil, nil); err == nil {
		t.Error("the old model is still open")
	}
	report, err := a.verify(t.Context(), &towers)
	if err != nil || !slices.ContainsFunc(report.Claims, func(c check.Checked) bool { return c.By == check.Tokens }) {
		t.Errorf("%v, claims %+v", err, report.Claims)
	}
}

func TestModelsThatJudgeNoClaimsAreRefused(t *testing.T) {
	t.Parallel()
	for task, want := range map[string]string{
		"{name: grounding, model: no-such-model}":    "classify.tasks[0].model",
		"{name: grounding, model: minilm-embedding}": "classify.tasks[0]",
	} {
		_, err := load(t, taskLines(absolute(t, hubModels), task))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", task, err)
		}
	}
}

func TestLabelsOfInferenceAreFoundByName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		labels []string
		want   [3]int
		ok     bool
	}{
		{[]string{"entailment", "neutral", "contradiction"}, [3]int{0, 1, 2}, true},
		{[]string{"CONTRADICTION", "ENTAILMENT", "NEUTRAL"}, [3]int{1, 2, 0}, true},
		{[]string{"not_entailment", "entailment"}, [3]int{1, 0, -1}, true},
		{[]string{"unsupported", "supported"}, [3]int{1, 0, -1}, true},
		{[]string{"LABEL_0", "LABEL_1"}, [3]int{-1, -1, -1}, false},
		{[]string{"entailment"}, [3]int{0, -1, -1}, false},
	} {
		got, err := inferenceLabels(tt.labels)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%v: %v, %v", tt.labels, got, err)
		}
	}
}

// Without a model numbers alone decide: what they cannot tell is unknown, never supported.
func TestWithoutAModelTheGuardComparesNumbers(t *testing.T) {
	cfg, err := load(t, "guard: {mode: hold}\n")
	if err != nil {
		t.Fatal(err)
	}
	cfg.File, cfg.Telemetry.Log = "", "error"
	a, err := Build(t.Context(), cfg, Options{Version: "test", Settings: config.Settings{Library: "/nowhere"}, Log: t.Output(), Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	w := httptest.NewRecorder()
	a.proxy.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	var ready struct{ Degraded []string }
	if err := json.Unmarshal(w.Body.Bytes(), &ready); err != nil || !slices.ContainsFunc(ready.Degraded, func(s string) bool { return strings.Contains(s, "only numbers") }) {
		t.Errorf("readyz %s, %v", w.Body, err)
	}
	evaluate := a.groundingEvaluator()
	for answer, want := range map[string]eval.Answer{
		"The tower is 330 m high.":             {Known: true},
		"The tower is 200 m high.":             {Known: true, Spans: []eval.Span{{Start: 0, End: 24}}},
		"Hello there.":                         {Known: true},
		"Gustave Eiffel never went to Berlin.": {},
	} {
		got := evaluate(t.Context(), &eval.Example{Facts: eval.Facts{"The tower is 330 m high."}, Answer: answer})
		if got.Known != want.Known || !slices.Equal(got.Spans, want.Spans) || (got.Positive > 0.5) != (len(want.Spans) > 0) && got.Known {
			t.Errorf("%q: %+v, want %+v", answer, got, want)
		}
	}
}

// What the binary holds for the guard, it can use: claims without a number, which only a model can
// tell.
func TestTheEmbeddedModelJudgesClaims(t *testing.T) {
	needModels(t)
	a := build(t, "guard: {}\n")
	for answer, want := range map[string]check.Verdict{
		"After the parcel arrives, refunds are paid.":    check.Supported,
		"Refunds are not paid after the parcel arrives.": check.Unsupported,
		"Refunds are never paid.":                        check.Unsupported,
		"On Mondays the museum is closed.":               check.Supported,
		"Ann lives in Rome.":                             check.Unsupported,
		"Ann lives in Paris.":                            check.Supported,
	} {
		report, err := a.verify(t.Context(), &eval.Example{
			Facts: eval.Facts{"Refunds are paid after the parcel arrives.", "The museum is closed on Mondays.", "Ann lives in Paris with her sister."}, Answer: answer,
		})
		if err != nil || report.Verdict != want || !slices.ContainsFunc(report.Claims, func(c check.Checked) bool { return c.By == check.NLI }) {
			t.Errorf("%q: %v, %v: %+v", answer, report.Verdict, err, report.Claims)
		}
	}
}
