package app

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/config"
	"signalbox/internal/testkit"
)

// Feedback decides among models with the embedded model's vectors, and after a restart.
func TestFeedbackOutlivesARestart(t *testing.T) {
	needModels(t)
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	conf := func() *config.Config {
		text := "outcomes: {learn: feedback, path: " + path + "}\nmodels:\n" +
			"  - {name: praised, skills: {default: 0.8}, endpoints: [{name: a, url: " + up.URL() + "}]}\n" +
			"  - {name: other, skills: {default: 0.7}, endpoints: [{name: a, url: " + up.URL() + "}]}\n" +
			"default: {models: [praised, other], by: quality}\n"
		cfg, _, err := config.Parse("f.yaml", []byte(text), func(string) (string, bool) { return "", false }, Catalog)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const question = "What is the derivative of x^3 * sin(x)?"
	t.Run("before", func(t *testing.T) {
		s := serve(t, conf(), flags(t))
		for range 25 {
			got := s.post(t, "/v1/chat/completions", chat("auto", question))
			outcome := "0"
			if got.header.Get(proxyModel) == "other" {
				outcome = "1"
			}
			body := `{"request_id":"` + got.header.Get("X-Request-Id") + `","outcome":` + outcome + `}`
			if got := s.post(t, "/signalbox/v1/feedback", body); got.status != http.StatusOK {
				t.Fatalf("feedback: %d %s", got.status, got.body)
			}
		}
	})
	t.Run("after", func(t *testing.T) {
		s := serve(t, conf(), flags(t))
		if got := s.post(t, "/v1/chat/completions", chat("auto", question)); got.header.Get(proxyModel) != "other" {
			t.Errorf("%s answers: %d %s", got.header.Get(proxyModel), got.status, got.body)
		}
		got := do(t, http.MethodGet, s.admin+"/-/outcomes", "")
		if n := strings.Count(got.body, "\n"); got.status != http.StatusOK || n != 25 {
			t.Errorf("export: %d, %d lines", got.status, n)
		}
		if strings.Contains(got.body, "derivative") {
			t.Error("the export holds text")
		}
	})
}

// A command that runs once beside the process that serves reads its outcomes, and takes nothing from it.
func TestACommandLeavesTheFileOfOutcomesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	vector := base64.StdEncoding.EncodeToString(make([]byte, 8))
	line := `{"tenant":"default","id":"1","model":"m","prior":0.5,"score":1,"weight":1,"vector":"` + vector + `"}` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text := "outcomes: {learn: feedback, path: " + path + "}\n" +
		"models: [{name: m, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]\ndefault: {models: [m]}\n"
	cfg, _, err := config.Parse("f.yaml", []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Build(t.Context(), cfg, Options{
		Version: "test", Settings: memoryOnly(flags(t)), Log: io.Discard, Env: os.LookupEnv, Once: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := a.outcomes.Len("default"); n != 1 {
		t.Errorf("%d outcomes were read", n)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file is another one: %v", err)
	}
}

const proxyModel = "X-Signalbox-Model"
