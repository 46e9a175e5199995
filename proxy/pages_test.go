package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
)

// A page where an API answers in JSON comes from a proxy, a portal or a wrong address: it is a
// failure of the endpoint. Another type may be a slip of a server that answers well.
func TestAPageIsNoAnswerOfAnAPI(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Body(200, "text/html", "<p>sign in</p>"))
	b := start(t, oneModel(up))
	asked := map[string]string{
		chatPath:                strings.Replace(ask("hi"), "auto", "small", 1),
		"/v1/completions":       `{"model":"small","prompt":"hi"}`,
		"/v1/responses":         `{"model":"small","input":"hi"}`,
		downstream.MessagesPath: strings.Replace(askMessage("hi", ""), "auto", "small", 1),
		"/v1/embeddings":        `{"model":"small","input":"hi"}`,
	}
	for path, body := range asked {
		if got := b.post(path, body); got.status != 502 || strings.Contains(got.body, "sign in") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := stateOf(t, b, "small-a"); got != "suspect" {
		t.Errorf("the endpoint is %s", got)
	}
	speech := `{"model":"small","input":"hi","voice":"a"}`
	if got := b.post("/v1/audio/speech", speech); got.status != 200 || !strings.Contains(got.body, "sign in") {
		t.Errorf("of an API that is not known: %d %s", got.status, got.body)
	}
	for _, odd := range []string{"text/plain", "application/octet-stream", ""} {
		up.Next(testkit.Body(200, odd, testkit.Completion))
		if got := b.chat(ask("hi")); got.status != 200 || got.body != testkit.Completion {
			t.Errorf("of type %q: %d %s", odd, got.status, got.body)
		}
	}
}
