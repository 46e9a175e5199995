package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

const redactRoutes = `
routes:
  - {name: plain, when: {header: {name: X-Route, equals: plain}}, use: {models: [small]}}
default: {models: [small], redact: true}
`

// piiClassifier finds two fixed values. It computes only the kind PII.
type piiClassifier struct {
	fakeClassifier

	late bool // it found nothing in time
}

func (c *piiClassifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	if c.late {
		set.Fail(need&^signal.MaskOf(signal.PII), signal.ReasonNoModel)
		set.Put(signal.PII, signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout})
		return
	}
	if c.broken != 0 || c.lazy {
		c.fakeClassifier.Extract(ctx, text, need, set)
		return
	}
	v := signal.Value{State: signal.Known, Source: "fake"}
	for i, s := range text.Segments {
		for _, x := range []struct{ kind, value string }{{"EMAIL_ADDRESS", "ann@example.com"}, {"PERSON", `Jo "JJ" Doe`}} {
			if k := strings.Index(s.Text, x.value); k >= 0 {
				v.Spans = append(v.Spans, signal.Span{Type: x.kind, Segment: i, Start: k, End: k + len(x.value), Score: 1})
				if !slices.Contains(v.Labels, x.kind) {
					v.Labels, v.Probs = append(v.Labels, x.kind), append(v.Probs, 1)
				}
			}
		}
	}
	set.Fail(need&^signal.MaskOf(signal.PII), signal.ReasonNoModel)
	set.Put(signal.PII, v)
}

func startRedacting(t *testing.T, c *piiClassifier, ups ...*testkit.Upstream) *bench {
	t.Helper()
	c.signals = signal.MaskOf(signal.PII)
	b := start(t, oneModel(ups...), func(s *setup) {
		s.routes, s.classifier = redactRoutes, &c.fakeClassifier
	})
	b.state.Signals.Classifier = c
	return b
}

const redactBody = `{"model":"auto","user":"ann@example.com","messages":[{"role":"system","content":"For ANN@EXAMPLE.COM."},{"role":"user","content":"I am Jo \"JJ\" Doe, ann@example.com"},{"role":"tool","tool_call_id":"c","content":"ann@example.com"}]%s}`

func TestTheBackendNeverSeesWhatARouteHides(t *testing.T) {
	const answer = `{"id":"c-1","choices":[{"index":0,"message":{"role":"assistant","content":"Dear [PERSON_1] ([EMAIL_1], not [EMAIL_7])","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"n\":\"[PERSON_1]\"}"}}]},"finish_reason":"stop"},` +
		`{"index":1,"message":{"role":"assistant","content":"[EMAIL_1]"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, answer, "Etag", `"x"`))
	b := startRedacting(t, &piiClassifier{}, up)
	got := b.chat(strings.Replace(redactBody, "%s", `,"n":2`, 1), "X-Mail", "ann@example.com", "X-Other", "kept")
	if got.status != http.StatusOK || got.err != nil {
		t.Fatalf("status %d, %v: %s", got.status, got.err, got.body)
	}
	const wantBody = `{"model":"Org/Small-7B","user":"[EMAIL_1]","messages":[{"role":"system","content":"For [EMAIL_1]."},{"role":"user","content":"I am [PERSON_1], [EMAIL_1]"},{"role":"tool","tool_call_id":"c","content":"[EMAIL_1]"}],"n":2}`
	sent := up.Last(t)
	if diff := cmp.Diff(wantBody, string(sent.Body)); diff != "" {
		t.Errorf("the upstream received (-want +got):\n%s", diff)
	}
	if sent.Header.Get("X-Mail") != "" || sent.Header.Get("X-Other") != "kept" {
		t.Errorf("headers %v", sent.Header)
	}
	want := strings.NewReplacer(`\"n\":\"[PERSON_1]\"`, `\"n\":\"Jo \\\"JJ\\\" Doe\"`, "[PERSON_1]", `Jo \"JJ\" Doe`, "[EMAIL_1]", "ann@example.com").Replace(answer)
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("the client received (-want +got):\n%s", diff)
	}
	if got.header.Get("Etag") != "" || !json.Valid([]byte(got.body)) {
		t.Errorf("headers %v", got.header)
	}
	if log := b.log.String(); strings.Contains(log, "ann@") || strings.Contains(log, "Doe") {
		t.Errorf("the log tells: %s", log)
	}
}

func TestAStreamedAnswerIsRestored(t *testing.T) {
	chunk := func(content string) string {
		return `data: {"id":"c-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + content + `"},"finish_reason":null}]}` + "\n\n"
	}
	const last = `data: {"id":"c-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	whole := chunk("Dear [PER") + chunk("SON_1], ") + chunk("[EMAIL") + chunk("_1] [") + chunk("x [EMA") + last + "data: [DONE]\n\n"
	var bytewise []string
	for i := range whole {
		bytewise = append(bytewise, whole[i:i+1])
	}
	up := testkit.NewUpstream(t, testkit.Stream(whole))
	b := startRedacting(t, &piiClassifier{}, up)
	up.Next(testkit.Stream(whole), testkit.Stream(bytewise...), testkit.Stream(strings.TrimSuffix(whole, "\n\n")))
	for range 3 {
		got := b.chat(strings.Replace(redactBody, "%s", `,"stream":true`, 1))
		if got.status != http.StatusOK || got.err != nil {
			t.Fatalf("status %d, %v: %s", got.status, got.err, got.body)
		}
		said := ""
		for event := range strings.SplitSeq(got.body, "\n\n") {
			data, _ := strings.CutPrefix(strings.TrimSpace(event), "data: ")
			var c struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			if data != "" && data != "[DONE]" {
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					t.Fatalf("%q: %v", event, err)
				}
				said += c.Choices[0].Delta.Content
			}
		}
		if want := `Dear Jo "JJ" Doe, ann@example.com [x [EMA`; said != want {
			t.Errorf("the client read %q, want %q", said, want)
		}
		if !strings.Contains(got.body, "data: [DONE]") {
			t.Error("the stream has no end")
		}
	}
}

func TestALongAnswerIsRestoredAsItComes(t *testing.T) {
	long := strings.Repeat("words and [EMAIL_1] ", 8000)
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{"choices":[{"message":{"content":"`+long+`"}}]}`))
	b := startRedacting(t, &piiClassifier{}, up)
	got := b.chat(strings.Replace(redactBody, "%s", "", 1))
	if want := `{"choices":[{"message":{"content":"` + strings.ReplaceAll(long, "[EMAIL_1]", "ann@example.com") + `"}}]}`; got.err != nil || got.body != want {
		t.Errorf("%v, %d bytes, want %d", got.err, len(got.body), len(want))
	}
}

// Such a response reaches clients unchanged, so its values must be restored all the same.
func TestAnAnswerOfAnotherTypeIsRestored(t *testing.T) {
	for _, odd := range []string{"text/plain", "application/octet-stream", "application/problem+json", ""} {
		for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
			up := testkit.NewUpstream(t, testkit.Body(status, odd, `{"text":"to [EMAIL_1]"}`))
			b := startRedacting(t, &piiClassifier{}, up)
			got := b.chat(strings.Replace(redactBody, "%s", "", 1))
			if got.status != status || got.body != `{"text":"to ann@example.com"}` {
				t.Errorf("%d of type %q: %d %s", status, odd, got.status, got.body)
			}
		}
	}
}

func TestAnExplainedAnswerIsRestoredAsWell(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{"choices":[{"message":{"content":"[EMAIL_1]"}}]}`))
	b := startRedacting(t, &piiClassifier{}, up)
	got := b.chat(strings.Replace(redactBody, "%s", `,"signalbox":{"explain":true}`, 1))
	if !strings.HasPrefix(got.body, `{"choices":[{"message":{"content":"ann@example.com"}}]`) || !strings.Contains(got.body, `"x_signalbox"`) || !json.Valid([]byte(got.body)) {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if strings.Contains(string(up.Last(t).Body), "ann@") {
		t.Errorf("the upstream received %s", up.Last(t).Body)
	}
}

func TestAnUpstreamErrorIsRestored(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusBadRequest, `{"error":{"message":"bad [EMAIL_1]"}}`))
	b := startRedacting(t, &piiClassifier{}, up)
	if got := b.chat(strings.Replace(redactBody, "%s", "", 1)); got.status != http.StatusBadRequest || got.body != `{"error":{"message":"bad ann@example.com"}}` {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

func TestWhereNothingIsHiddenTheBytesAreKept(t *testing.T) {
	const answer = `{"choices":[{"message":{"content":"[EMAIL_1]"}}]}`
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, answer))
	b := startRedacting(t, &piiClassifier{}, up)
	for _, body := range []string{
		`{"model":"auto", "messages":[{"role":"user","content":"nothing \u0041 here"}]}`,
		`{"model":"auto", "messages":[{"role":"user","content":null}]}`,
	} {
		got := b.chat(body)
		if got.status != http.StatusOK || got.body != answer {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		if want := strings.Replace(body, `"auto"`, `"Org/Small-7B"`, 1); string(up.Last(t).Body) != want {
			t.Errorf("the upstream received %s", up.Last(t).Body)
		}
	}
	b.chat(strings.Replace(redactBody, "%s", "", 1), "X-Route", "plain")
	if sent := string(up.Last(t).Body); !strings.Contains(sent, "ann@example.com") {
		t.Errorf("a route that hides nothing sent %s", sent)
	}
}

// What cannot be redacted is not sent.
func TestWithoutTheSignalNothingIsSent(t *testing.T) {
	tests := []struct {
		name string
		c    *piiClassifier
		code string
	}{
		{
			"no model",
			&piiClassifier{fakeClassifier: fakeClassifier{broken: signal.MaskOf(signal.PII)}},
			"signal_unavailable",
		},
		{
			"an invalid output",
			&piiClassifier{
				fakeClassifier: fakeClassifier{broken: signal.MaskOf(signal.PII), why: signal.ReasonInvalid},
			},
			"signal_unavailable",
		},
		{
			"a classifier that leaves it out",
			&piiClassifier{fakeClassifier: fakeClassifier{lazy: true}},
			"signal_unavailable",
		},
		{
			"too late",
			&piiClassifier{
				fakeClassifier: fakeClassifier{broken: signal.MaskOf(signal.PII), why: signal.ReasonTimeout},
			},
			"overloaded",
		},
		{
			"too busy",
			&piiClassifier{
				fakeClassifier: fakeClassifier{broken: signal.MaskOf(signal.PII), why: signal.ReasonOverload},
			},
			"overloaded",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
			b := startRedacting(t, tt.c, up)
			got := b.chat(strings.Replace(redactBody, "%s", "", 1))
			if got.status != http.StatusServiceUnavailable || got.code(t) != tt.code {
				t.Errorf("status %d: %s", got.status, got.body)
			}
			if n := len(up.Requests()); n > 0 {
				t.Errorf("the upstream received %d requests", n)
			}
		})
	}
}

// A tool result that an idle machine would read in time is worth a retry, which continues after
// what was read: the client is told which signal was late and how long to wait.
func TestALongResultThatWasLateSaysWhatAndWhenToRetry(t *testing.T) {
	t.Parallel()
	const routes = "routes:\n  - {name: p, when: {pii: true}, on_unknown: match, block: {message: no}}\n" +
		"default: {models: [small]}\n"
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	c := &piiClassifier{late: true}
	c.signals = signal.MaskOf(signal.PII)
	b := start(t, oneModel(up), func(s *setup) { s.routes, s.classifier = routes, &c.fakeClassifier })
	b.state.Signals.Classifier, b.state.Signals.Patience = c, 10*time.Second
	got := b.chat(`{"model":"auto","messages":[{"role":"user","content":"read it"},` +
		`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"read","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c","content":"` + strings.Repeat("quiet ", 20_000) + `"}]}`)
	if got.status != http.StatusServiceUnavailable || got.code(t) != "overloaded" ||
		!strings.Contains(got.body, "the signal pii was not ready in time: the server was too busy to read all 1200") ||
		!strings.Contains(got.body, "Try again in 4 s") || got.header.Get("Retry-After") != "4" {
		t.Errorf("status %d, Retry-After %q: %s", got.status, got.header.Get("Retry-After"), got.body)
	}
}

// A text that is too long for the available time will be so again: the client is told not to retry.
func TestATextTooLongToBeReadIsRefusedForGood(t *testing.T) {
	t.Parallel()
	long := strings.Replace(
		redactBody,
		"%s",
		`,"prediction":{"type":"content","content":"`+strings.Repeat("quiet ", 20_000)+`"}`,
		1,
	)
	const (
		onCondition = "routes:\n  - {name: p, when: {pii: true}, use: {models: [small], redact: true}}\n" +
			"default: {models: [small], redact: true}\n"
		blocks = "routes:\n  - {name: p, when: {pii: true}, block: {message: no}}\ndefault: {models: [small]}\n"
	)
	short := strings.Replace(redactBody, "%s", "", 1)
	const tooLarge = http.StatusRequestEntityTooLarge
	for name, tt := range map[string]struct {
		routes, body string
		status       int
		code         string
	}{
		"a route that hides":   {redactRoutes, long, tooLarge, "request_too_large"},
		"a condition on it":    {onCondition, long, tooLarge, "request_too_large"},
		"a condition to block": {blocks, long, tooLarge, "request_too_large"},
		"a text that is short": {redactRoutes, short, http.StatusServiceUnavailable, "overloaded"},
		"a short one to block": {blocks, short, http.StatusServiceUnavailable, "overloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
			c := &piiClassifier{late: true}
			c.signals = signal.MaskOf(signal.PII)
			b := start(t, oneModel(up), func(s *setup) { s.routes, s.classifier = tt.routes, &c.fakeClassifier })
			b.state.Signals.Classifier, b.state.Signals.Patience = c, 2*time.Second
			got := b.chat(tt.body)
			if got.status != tt.status || got.code(t) != tt.code {
				t.Errorf("status %d: %s", got.status, got.body)
			}
			if retry := got.header.Get("Retry-After") != ""; retry != (tt.status == http.StatusServiceUnavailable) {
				t.Errorf("Retry-After: %q", got.header.Get("Retry-After"))
			}
			if tt.status == http.StatusServiceUnavailable && !strings.Contains(got.body, "the signal pii was not ready") {
				t.Errorf("what was late is not named: %s", got.body)
			}
			if tt.status != http.StatusServiceUnavailable && !strings.Contains(got.body, "about 80000 are") {
				t.Errorf("the limit is not named: %s", got.body)
			}
			if n := len(up.Requests()); n > 0 {
				t.Errorf("the upstream received %d requests", n)
			}
		})
	}
}

func TestAFallbackIsHiddenFromAsWell(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{"choices":[{"message":{"content":"[EMAIL_1]"}}]}`))
	up.Next(testkit.JSON(http.StatusServiceUnavailable, `{"error":{}}`))
	second := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{"choices":[{"message":{"content":"[EMAIL_1]"}}]}`))
	b := startRedacting(t, &piiClassifier{}, up, second)
	if got := b.chat(strings.Replace(redactBody, "%s", "", 1)); !strings.Contains(got.body, "ann@example.com") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	for _, r := range slices.Concat(up.Requests(), second.Requests()) {
		if strings.Contains(strings.ToLower(string(r.Body)), "ann@") {
			t.Errorf("an upstream received %s", r.Body)
		}
	}
}

func TestEveryEndpointHidesAndRestores(t *testing.T) {
	t.Parallel()
	for _, e := range routed() {
		up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, strings.Replace(e.whole, "hello", "Dear [PERSON_1] ([EMAIL_1])", 1)))
		b := startRedacting(t, &piiClassifier{}, up)
		const said = `I am Jo "JJ" Doe, ann@example.com`
		got := b.post(e.path, e.ask(said, `,"user":"ANN@example.com"`))
		if !strings.Contains(got.body, `"Dear Jo \"JJ\" Doe (ann@example.com)"`) || !json.Valid([]byte(got.body)) {
			t.Errorf("%s: status %d: %s", e.path, got.status, got.body)
		}
		if sent := strings.ToLower(string(up.Last(t).Body)); strings.Contains(sent, "ann@") || strings.Contains(sent, "doe") {
			t.Errorf("%s received %s", e.path, sent)
		}
		var pieces []string
		for _, event := range e.events {
			pieces = append(pieces, strings.NewReplacer(`"hel"`, `"[EMA"`, `"lo"`, `"IL_1] [x"`, `"hello"`, `"[EMAIL_1] [x"`).Replace(event))
		}
		up.Next(testkit.Stream(pieces...))
		got = b.post(e.path, e.ask(said, `,"stream":true`))
		if strings.Count(got.body, "ann@example.com") != strings.Count(strings.Join(pieces, ""), "IL_1]") || strings.Contains(got.body, "EMA") || got.err != nil {
			t.Errorf("%s: %v: %s", e.path, got.err, got.body)
		}
	}
}

// The second turn names another person, and the server still uses the first one's placeholder.
func TestATurnThatGoesOnGetsNoValueOfAnotherTurn(t *testing.T) {
	t.Parallel()
	for _, e := range routed() {
		if e.path != "/v1/responses" {
			continue
		}
		answer := strings.Replace(e.whole, "hello", "[EMAIL_1], [PERSON_1]", 1)
		up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, answer))
		b := startRedacting(t, &piiClassifier{}, up)
		const said = "ann@example.com"
		if got := b.post(e.path, e.ask(said, "")); !strings.Contains(got.body, `"ann@example.com, [PERSON_1]"`) {
			t.Errorf("the first turn: status %d: %s", got.status, got.body)
		}
		if got := b.post(e.path, e.ask(said, `,"conversation":"c"`)); !strings.Contains(got.body, `"[EMAIL_1], [PERSON_1]"`) {
			t.Errorf("the next turn: status %d: %s", got.status, got.body)
		}
		if sent := string(up.Last(t).Body); strings.Contains(sent, "ann@") || !strings.Contains(sent, `"[EMAIL_`) {
			t.Errorf("the server received %s", sent)
		}
	}
}

// A tool result returns on the route that made the call, although the rules of another route have
// not computed the signal that it redacts by.
func TestAResultOfAToolIsHiddenOnTheRouteOfItsCall(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	c := &piiClassifier{}
	c.signals = signal.MaskOf(signal.PII)
	b := start(t, oneModel(up), sticks, func(s *setup) {
		s.routes = "routes: [{name: long, when: {tokens: {gt: 500}}, use: {models: [big]}}]\ndefault: {models: [small], redact: true}\n"
		s.classifier = &c.fakeClassifier
	})
	b.state.Signals.Classifier = c
	b.chat(chatOf("", "user hi"))
	got := b.chat(chatOf("", "user hi", "assistant calls", "tool ann@example.com"+strings.Repeat(" and so on", 400)))
	if sent := string(up.Last(t).Body); got.status != http.StatusOK || strings.Contains(sent, "ann@") || !strings.Contains(sent, "[EMAIL_1]") {
		t.Errorf("status %d, %s for %.300s", got.status, got.body, sent)
	}
}
