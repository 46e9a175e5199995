package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/signals"
)

// teacher is a classifier with one intent.
type teacher struct {
	*fakeClassifier
	examples []string
}

func (t *teacher) Intents() []signals.Intent {
	return []signals.Intent{{Name: "hr", Examples: len(t.examples), Threshold: 0.5}}
}

func (t *teacher) AddExamples(_ context.Context, intent string, examples []string) (added, total int, err error) {
	if intent != "hr" && intent != "hr/it" {
		return 0, 0, signals.ErrUnknownIntent
	}
	for i, e := range examples {
		if e == "" {
			return 0, 0, &signals.ExampleError{Index: i, Msg: "is empty"}
		}
		if e == "broken" {
			return 0, 0, errors.New("no model: secret detail")
		}
	}
	t.examples = append(t.examples, examples...)
	return len(examples), len(t.examples), nil
}

func TestExamplesAreAddedToIntents(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) {
		s.auth.Mode = auth.ModeKeys
		s.auth.Keys = []auth.KeyOptions{
			{Name: "app", SHA256: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"},                // secret
			{Name: "ops", SHA256: "8C6976E5B5410415BDE908BD4DEE15DFB167A9C873FC4BB8A81F6F2AB448A918", Role: "admin"}, // admin
		}
	})
	b.state.Signals.Classifier = &teacher{fakeClassifier: b.classifier}
	for _, tt := range []struct {
		name, method, path, body, key string
		status                        int
		want                          string
	}{
		{"nobody", "GET", "/signalbox/v1/intents", "", "", 401, "invalid_api_key"},
		{"a common role may not look", "GET", "/signalbox/v1/intents", "", "Bearer secret", 403, "insufficient_permissions"},
		{"a common role may not add", "POST", "/signalbox/v1/intents/hr/examples", `{"examples":["a"]}`, "Bearer secret", 403, "insufficient_permissions"},
		{"an admin adds", "POST", "/signalbox/v1/intents/hr/examples", `{"examples":["a","b"]}`, "Bearer admin", 200, `{"added":2,"examples":2,"intent":"hr"}`},
		{"and sees it", "GET", "/signalbox/v1/intents", "", "Bearer admin", 200, `{"intents":[{"name":"hr","examples":2,"live":0,"negatives":0,"threshold":0.5,"auto":false}]}`},
		{"an unknown intent", "POST", "/signalbox/v1/intents/it/examples", `{"examples":["a"]}`, "Bearer admin", 404, "intent_not_found"},
		{"a name with a slash", "POST", "/signalbox/v1/intents/hr%2Fit/examples", `{"examples":["a"]}`, "Bearer admin", 200, `"intent":"hr/it"`},
		{"a name that looks escaped", "POST", "/signalbox/v1/intents/a%2525b/examples", `{"examples":["a"]}`, "Bearer admin", 404, `a%25b`},
		{"an empty example", "POST", "/signalbox/v1/intents/hr/examples", `{"examples":["a",""]}`, "Bearer admin", 400, `"param":"examples[1]"`},
		{"no example", "POST", "/signalbox/v1/intents/hr/examples", `{"examples":[]}`, "Bearer admin", 400, `"param":"examples"`},
		{"another member", "POST", "/signalbox/v1/intents/hr/examples", `{"texts":["a"]}`, "Bearer admin", 400, "must be an object"},
		{"two objects", "POST", "/signalbox/v1/intents/hr/examples", `{"examples":["a"]}{}`, "Bearer admin", 400, "unexpected data after"},
		{"no model", "POST", "/signalbox/v1/intents/hr/examples", `{"examples":["broken"]}`, "Bearer admin", 503, "signal_unavailable"},
		{"another method", "DELETE", "/signalbox/v1/intents", "", "Bearer admin", 405, "method"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.key != "" {
				header = []string{"Authorization", tt.key}
			}
			got := b.do(tt.method, tt.path, tt.body, header...)
			if got.status != tt.status || !strings.Contains(got.body, tt.want) || strings.Contains(got.body, "secret detail") {
				t.Errorf("status %d, body %s, want %d with %s", got.status, got.body, tt.status, tt.want)
			}
		})
	}
}

func TestWithoutIntentsThereIsNothingToAddTo(t *testing.T) {
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))))
	if got := b.do("GET", "/signalbox/v1/intents", ""); got.status != 200 || got.body != `{"intents":[]}` {
		t.Errorf("list: %d %s", got.status, got.body)
	}
	if got := b.post("/signalbox/v1/intents/hr/examples", `{"examples":["a"]}`); got.status != 404 || got.code(t) != "intent_not_found" {
		t.Errorf("add: %d %s", got.status, got.body)
	}
}
