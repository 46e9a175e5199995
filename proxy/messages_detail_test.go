package proxy

import (
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
)

func TestTheDetailOfAnErrorIsItsMessage(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		`"Field required"`: "Field required",
		`[{"loc":["body","x",0],"msg":"Field required","input":"secret"},{"msg":"late"}]`: "body.x.0: Field required; late",
		`"` + strings.Repeat("é", 2000) + `"`:                                             strings.Repeat("é", 512) + "...",
		`[{},["a"],{}]`:                                                                   "the model server reports an error",
		`{"x":1}`:                                                                         "the model server reports an error",
	} {
		up := testkit.NewUpstream(t, testkit.JSON(422, `{"detail":`+detail+`}`))
		b := start(t, oneModel(up))
		if got := b.message(askMessage("hi", "")); got.status != 422 || got.failure(t) != "invalid_request_error: "+want {
			t.Errorf("detail %.100s: %d %s", detail, got.status, got.body)
		}
	}
}

// A tool's schema is one level deeper in the chat that is parsed.
func TestAnErrorOfTheChatNamesTheFieldOfTheMessage(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))))
	b.state.limits.MaxDepth = 8
	schema := strings.Repeat(`{"a":`, 5) + "1" + strings.Repeat("}", 5)
	body := askMessage("hi", `,"tools":[{"name":"f","input_schema":`+schema+`}]`)
	const want = "tools.0.input_schema.a.a.a.a nested deeper than 8 levels"
	if got := b.message(body); got.status != 400 || got.failure(t) != "invalid_request_error: "+want {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := b.post("/signalbox/v1/explain", body, "Anthropic-Version", "2023-06-01")
	if got.status != 400 || !strings.Contains(got.body, "input_schema.a.a.a.a nested") {
		t.Errorf("explained: %d %s", got.status, got.body)
	}
}

// The body of an error is the proxy's own, and the server's headers about its body do not apply to
// it.
func TestAnErrorHasNoHeadersOfTheBodyThatItStandsFor(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, "\x1f\x8b\x08 no message",
		"Content-Encoding", "gzip", "ETag", `"x"`, "Cache-Control", "public, max-age=60"))
	b := start(t, oneModel(u))
	got := b.post(downstream.MessagesPath, askMessage("hi", ""), "Accept-Encoding", "identity")
	if got.status != http.StatusBadGateway || !strings.HasPrefix(got.body, "{") {
		t.Fatalf("%d %q", got.status, got.body)
	}
	for _, name := range []string{"Content-Encoding", "Etag", "Cache-Control"} {
		if v := got.header.Get(name); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
}
