package proxy

import (
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/resolve"
)

func TestAnUnknownModelIsToldTheNearestName(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	b := start(t, oneModel(up))
	for asked, want := range map[string]string{
		"smal":                      `unknown model "smal"; did you mean "small"?`,
		"Small":                     `unknown model "Small"; did you mean "small"?`,
		"atuo":                      `unknown model "atuo"; did you mean "auto"?`,
		"gpt-4o":                    `unknown model "gpt-4o"; GET /v1/models lists the available models`,
		strings.Repeat("small", 20): "lists the available models",
	} {
		got := b.post(chatPath, `{"model":"`+asked+`","messages":[{"role":"user","content":"hi"}]}`)
		if e := got.error(t); got.status != http.StatusNotFound || !strings.HasSuffix(e.Message, want) {
			t.Errorf("%s: %d %s", asked, got.status, got.body)
		}
	}
	if n := len(up.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestNoNameIsToldThatTheCallerMayNotAskFor(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))),
		withKeys(auth.KeyOptions{Name: "little", Models: []string{"big"}}))
	body := `{"model":"smal","messages":[{"role":"user","content":"hi"}]}`
	got := b.post(chatPath, body, "Authorization", "Bearer little")
	if got.status != http.StatusNotFound || strings.Contains(got.body, "small") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestASessionThatIsNamedTwiceIsTheSame(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))))
	body := `{"model":"small","signalbox":{"session":"a"},"messages":[{"role":"user","content":"hi"}]}`
	if got := b.post(chatPath, body, "X-Signalbox-Session", "a"); got.status != http.StatusOK {
		t.Errorf("the same: %d %s", got.status, got.body)
	}
	got := b.post(chatPath, body, "X-Signalbox-Session", "b")
	if e := got.error(t); got.status != http.StatusBadRequest || e.Param == nil || *e.Param != "signalbox.session" {
		t.Errorf("another: %d %s", got.status, got.body)
	}
}

// The session is looked up several times for every request.
func TestToLookForASessionAllocatesNothing(t *testing.T) {
	req, h := new(openai.Request), http.Header{"X-Signalbox-Session": {"a"}}
	if n := testing.AllocsPerRun(100, func() { _ = resolve.Session(req, h) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
