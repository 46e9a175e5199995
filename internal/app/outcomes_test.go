package app

import (
	"net/http"
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

const proxyModel = "X-Signalbox-Model"
