package proxy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/decisionlog"
)

// The line of a request reports its cost: the caller, the usage, how it ended, and the cost at the
// price of the dearest model.
func TestALineTellsWhatItsRequestCost(t *testing.T) {
	t.Parallel()
	l := startLogged(t, "")
	who, err := auth.New(auth.Options{
		Mode: auth.ModeKeys, DefaultTenant: "acme", Keys: []auth.KeyOptions{{Name: "ann", SHA256: sumOf("ann")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.state.auth = who
	l.state.book.Priciest.Input, l.state.book.Priciest.Output = 10, 20
	const usage = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,` +
		`"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\n"
	l.up.Next(
		testkit.Stream(testkit.Event("hello"), testkit.Finish, usage, testkit.Done),
		testkit.JSON(http.StatusBadRequest, `{"error":{"message":"no","type":"invalid_request_error"}}`),
	)
	l.chat(`{"model":"small","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
		"X-Request-Id", "streamed", "Authorization", "Bearer ann")
	l.chat(ask("hello"), "X-Request-Id", "refused", "Authorization", "Bearer ann")
	l.chat(ask("titan"), "X-Request-Id", "blocked", "Authorization", "Bearer ann")
	text, lines := l.lines(t)
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), text)
	}
	type told struct {
		Tenant, Key, Finish, Error string
		Status                     int
		Tokens                     *decisionlog.Tokens
		Cost, Baseline             float64
		Streamed                   bool
	}
	got := make(map[string]told)
	for _, e := range lines {
		if e.TookMs <= 0 || e.TTFTMs < 0 || e.TTFTMs > e.TookMs {
			t.Errorf("%s: %v ms to the first token, %v ms in all", e.ID, e.TTFTMs, e.TookMs)
		}
		got[e.ID] = told{e.Request.Tenant, e.Key, e.Finish, e.Error, e.Status, e.Tokens, e.Cost, e.Baseline, e.TTFTMs > 0}
	}
	want := map[string]told{
		"streamed": {
			"acme", "ann", "stop", "", http.StatusOK,
			&decisionlog.Tokens{Prompt: 9, Cached: 2, Completion: 4, Reasoning: 3}, 17e-6, 170e-6, true,
		},
		"refused": {"acme", "ann", "", "", http.StatusBadRequest, nil, 0, 0, false},
		"blocked": {"acme", "ann", "", "content_policy_violation", http.StatusBadRequest, nil, 0, 0, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
