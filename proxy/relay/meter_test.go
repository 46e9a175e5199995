package relay

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/stream/response"
)

// The pace of a stream is that of its tokens; an event may carry several.
func TestThePaceOfAStreamIsThatOfItsTokens(t *testing.T) {
	t.Parallel()
	o := telemetry.Options{Log: "error", LogFormat: "text", Prometheus: true}
	tel, err := telemetry.New(t.Context(), o, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	metrics := func() string {
		page := httptest.NewRecorder()
		tel.Handler().ServeHTTP(page, &http.Request{Method: http.MethodGet, Header: http.Header{}})
		return page.Body.String()
	}
	begun := time.Now()
	of := func(model, text string, usage int) {
		m := meter{metrics: tel.Metrics, model: model, first: begun, last: begun.Add(time.Second)}
		m.Note(new(response.Reader).Read([]byte(`{"choices":[{"delta":{"content":"` + text + `"}}]}`)))
		m.Usage.Output = usage
		m.pace()
	}
	of("told", "some words in one event", 11)
	of("estimated", strings.Repeat("text", 6), 0)
	of("one", "a", 0)
	for model, want := range map[string]float64{"told": 0.1, "estimated": 0.2} {
		line := fmt.Sprintf("signalbox_inter_token_seconds_sum{model=%q} %v\n", model, want)
		if page := metrics(); !strings.Contains(page, line) {
			t.Errorf("%s: %q is missing in\n%s", model, line, page)
		}
	}
	if page := metrics(); strings.Contains(page, `signalbox_inter_token_seconds_sum{model="one"}`) {
		t.Error("an answer of one token has a pace")
	}
}
