package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
)

const (
	usageEvent  = `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":11,"total_tokens":18}}` + "\n\n"
	usageBeside = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":11,"total_tokens":18}}` + "\n\n"
	contentOf   = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"\"usage\":null, {\"usage\": 1}"},"finish_reason":null}],"x":{"usage":null}`
)

// The client does not see what the proxy requests for itself; the rest of the stream is what the
// server sent.
func TestUsageThatOnlyTheProxyAskedForStaysThere(t *testing.T) {
	t.Parallel()
	const asks = `,"stream_options":{"include_usage":true}`
	chunk := contentOf + "}\n\n"
	for _, tt := range []struct {
		name         string
		limit        bool
		setting      string
		extra        string // of the request
		sent, seen   string
		wants        bool // the server is asked
		tokens       int64
		path, prompt string
	}{
		{name: "a limit on tokens", limit: true, sent: chunk + testkit.Finish + usageEvent + testkit.Done, seen: chunk + testkit.Finish + testkit.Done, wants: true, tokens: 18},
		{name: "null in all others", limit: true, sent: contentOf + `,"usage":null}` + "\n\n" + testkit.Finish + usageEvent + testkit.Done, seen: chunk + testkit.Finish + testkit.Done, wants: true, tokens: 18},
		{name: "null in front", limit: true, sent: `data: { "usage" : null , "id":"c"}` + "\r\n\r\n" + testkit.Finish + usageEvent + testkit.Done, seen: `data: {  "id":"c"}` + "\r\n\r\n" + testkit.Finish + testkit.Done, wants: true, tokens: 18},
		{name: "no limit", sent: chunk + testkit.Finish + testkit.Done, seen: chunk + testkit.Finish + testkit.Done},
		{name: "no limit, and the server tells it all the same", sent: chunk + testkit.Finish + usageEvent + testkit.Done, seen: chunk + testkit.Finish + usageEvent + testkit.Done, tokens: 18},
		{name: "always", setting: backend.UsageAlways, sent: chunk + testkit.Finish + usageEvent + testkit.Done, seen: chunk + testkit.Finish + testkit.Done, wants: true, tokens: 18},
		{name: "never", setting: backend.UsageNever, limit: true, sent: chunk + testkit.Finish + testkit.Done, seen: chunk + testkit.Finish + testkit.Done},
		{name: "the client asks too", limit: true, extra: asks, sent: chunk + testkit.Finish + usageEvent + testkit.Done, seen: chunk + testkit.Finish + usageEvent + testkit.Done, wants: true, tokens: 18},
		{name: "the client asks not to", limit: true, extra: `,"stream_options":{"include_usage":false}`, sent: chunk + testkit.Finish + usageEvent + testkit.Done, seen: chunk + testkit.Finish + testkit.Done, wants: true, tokens: 18},
		{name: "beside a choice it is the server's own", limit: true, sent: `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}` + "\n\n" + testkit.Done, seen: `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}` + "\n\n" + testkit.Done, wants: true},
		{name: "beside the end of a choice", limit: true, sent: chunk + usageBeside + testkit.Done, seen: chunk + usageBeside + testkit.Done, wants: true, tokens: 18},
		{name: "beside the end of a choice, unasked", setting: backend.UsageNever, limit: true, sent: chunk + usageBeside + testkit.Done, seen: chunk + usageBeside + testkit.Done, tokens: 18},
		{name: "no usage comes", limit: true, sent: chunk + testkit.Finish + testkit.Done, seen: chunk + testkit.Finish + testkit.Done, wants: true},
		{name: "a completion", limit: true, path: "/v1/completions", sent: `data: {"choices":[{"index":0,"text":"a","finish_reason":"stop"}],"usage":null}` + "\n\n" + usageEvent + testkit.Done, seen: `data: {"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}` + "\n\n" + testkit.Done, wants: true, tokens: 18},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, testkit.Stream(tt.sent))
			models := oneModel(up)
			for i := range models {
				models[i].StreamUsage = tt.setting
			}
			rate := auth.RateOptions{RPM: 1000}
			if tt.limit {
				rate.TPM = 100_000
			}
			b := start(t, models, limited(rate))
			path, body := chatPath, `{"model":"auto","stream":true`+tt.extra+`,"messages":[{"role":"user","content":"hi"}]}`
			if tt.path != "" {
				path, body = tt.path, `{"model":"auto","stream":true,"prompt":"hi"}`
			}
			got := b.post(path, body, "Authorization", "Bearer limited")
			if diff := cmp.Diff(tt.seen, got.body); diff != "" || got.err != nil {
				t.Errorf("%v, stream (-want +got):\n%s", got.err, diff)
			}
			if asked := strings.Contains(string(up.Last(t).Body), `"include_usage":true`); asked != tt.wants {
				t.Errorf("the server was asked for usage: %v, by %s", asked, up.Last(t).Body)
			}
			waitFor(t, "the record", func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) })
			if told := strings.Contains(b.log.String(), `"completion_tokens":11`); told != (tt.tokens == 18) {
				t.Errorf("the log says %s", b.log.String())
			}
		})
	}
}

// If nothing else changes a body, only the request for usage does.
func TestTheQuestionForUsageIsAllThatChanges(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Finish+usageEvent+testkit.Done))
	models := oneModel(up)
	for i := range models {
		models[i].ServedAs, models[i].StreamUsage = "", backend.UsageAlways
	}
	b := start(t, models)
	for sent, want := range map[string]string{
		`{"model":"small", "stream" :true,"seed":1.0,"messages":[{"role":"user","content":"hi"}] }`:                                                `{"model":"small", "stream" :true,"seed":1.0,"messages":[{"role":"user","content":"hi"}],"stream_options":{"include_usage":true} }`,
		`{"model":"small","stream_options":{"continuous_usage_stats":false, "x":1e400},"stream":true,"messages":[{"role":"user","content":"hi"}]}`: `{"model":"small","stream_options":{"continuous_usage_stats":false, "x":1e400,"include_usage":true},"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"small","stream_options":null,"stream":true,"messages":[{"role":"user","content":"hi"}]}`:                                        `{"model":"small","stream_options":{"include_usage":true},"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"small","messages":[{"role":"user","content":"hi"}]}`:                                                                            `{"model":"small","messages":[{"role":"user","content":"hi"}]}`,
	} {
		b.chat(sent)
		if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sent, diff)
		}
	}
}

// Cached tokens are counted separately there, and as a part of the prompt here.
func TestAMessageOfTheServersOwnIsCountedWhole(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"input_tokens":100,"cache_creation_input_tokens":400,"cache_read_input_tokens":9500,"output_tokens":5}`
	up := testkit.NewUpstream(t, testkit.JSON(200, `{"id":"msg_1","type":"message","role":"assistant","model":"m",`+
		`"content":[{"type":"text","text":"x"}],"stop_reason":"max_tokens","stop_sequence":null,`+usage+`}`))
	models := oneModel(up)
	for i := range models {
		models[i].Messages = backend.MessagesPass
	}
	b := start(t, models, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small]}" })
	b.message(askMessage("hi", ""))
	if up.Last(t).Path != downstream.MessagesPath {
		t.Fatalf("%s was asked", up.Last(t).Path)
	}
	waitFor(t, "the record", func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) })
	for kind, want := range map[string]string{"prompt": "10000", "cached": "9500", "completion": "5"} {
		if line := `signalbox_tokens_total{kind="` + kind + `"} ` + want; !strings.Contains(b.metrics(), line) {
			t.Errorf("%s is missing", line)
		}
	}
}
