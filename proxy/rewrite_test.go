package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
	"signalbox/proxy/reasoning"
)

// Each case gives the body that a client sends and the exact bytes that the upstream receives.
func TestTheUpstreamReceivesTheseBytes(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes:
  - {name: think, when: {header: {name: X-Route, equals: think}}, use: {models: [big], reasoning: high}}
  - {name: calm, when: {header: {name: X-Route, equals: calm}}, use: {models: [big], reasoning: low}}
  - {name: force, when: {header: {name: X-Route, equals: force}}, use: {models: [big], reasoning: none, max_tokens: 50, override: true}}
  - {name: effort, when: {header: {name: X-Route, equals: effort}}, use: {models: [effort], reasoning: medium}}
  - {name: auto, when: {header: {name: X-Route, equals: auto}}, use: {models: [effort], reasoning: auto, max_tokens: auto}}
  - {name: vague, when: {header: {name: X-Route, equals: vague}}, use: {models: [same], prompt: mathematician}}
  - {name: prefix, when: {header: {name: X-Route, equals: prefix}}, use: {models: [same], prompt: {name: mathematician, mode: prefix}}}
  - {name: always, when: {header: {name: X-Route, equals: always}}, use: {models: [same], prompt: {name: mathematician, mode: always}}}
  - {name: limit, when: {header: {name: X-Route, equals: limit}}, use: {models: [same], max_tokens: 700}}
  - {name: room, when: {header: {name: X-Route, equals: room}}, use: {models: [narrow], max_tokens: 5000}}
  - {name: full, when: {header: {name: X-Route, equals: full}}, use: {models: [full], max_tokens: auto}}
default: {models: [same]}
`
	narrow, full := modelOptions("narrow", "auto", reasoning.Options{}, up), modelOptions("full", "auto", reasoning.Options{}, up)
	narrow.ContextWindow, full.ContextWindow = 1000, 100
	models := append(oneModel(up), modelOptions("same", "auto", reasoning.Options{}, up), narrow, full)
	b := start(t, models, func(s *setup) { s.routes = routes })
	const odd = `{ "seed":12345678901234567890,"temperature":1.0,"top_p":1e400, "model" : "auto","messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9 \ud83d\ude42"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}],"x":null}],"tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}],"guided_json":{"z":1},"stop":"x"}`
	tests := []struct{ name, route, body, want string }{
		{"nothing to change, nothing changed", "", odd, odd},
		{
			"the proxy's own object is taken out, and nothing else", "",
			`{"model":"auto","signalbox":{"session":"s"},"messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
		},
		{
			"only the model's name changes", "calm", strings.Replace(odd, `"stop":"x"`, `"chat_template_kwargs":{"enable_thinking":true}`, 1),
			strings.Replace(strings.Replace(odd, `"stop":"x"`, `"chat_template_kwargs":{"enable_thinking":true}`, 1), `"auto"`, `"Org/Big-70B"`, 1),
		},
		{
			"reasoning in a template's dialect", "think",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"Org/Big-70B","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"enable_thinking":true}}`,
		},
		{
			"low effort is off in a dialect of on and off, and other arguments stay", "calm",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"date":"today"}}`,
			`{"model":"Org/Big-70B","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"date":"today","enable_thinking":false}}`,
		},
		{
			"a client's own effort wins", "effort",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"low"}`,
			`{"model":"effort","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"low"}`,
		},
		{
			"unless the route overrides it, with its limit", "force",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"enable_thinking":true},"max_completion_tokens":9}`,
			`{"model":"Org/Big-70B","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"enable_thinking":false},"max_completion_tokens":50}`,
		},
		{
			"an effort at the top level", "effort",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"effort","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"medium"}`,
		},
		{
			"automatic effort and limit, within the window", "auto",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"effort","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"high","max_tokens":8186}`,
		},
		{
			"an automatic limit leaves the client's alone", "auto",
			`{"model":"auto","max_tokens":3,"messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"effort","max_tokens":3,"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"high"}`,
		},
		{
			"a limit", "limit",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"max_tokens":700}`,
		},
		{
			"a limit is fitted into the window", "room",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"max_tokens":994}`,
		},
		{
			"no limit where the window is all but full", "full",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
		},
		{
			"a prompt where there was none", "vague",
			`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"system","content":"You are a careful \"mathematician\"."},{"role":"user","content":"hi"}]}`,
		},
		{
			"a vague prompt is replaced, however it is spelled", "vague",
			`{"model":"auto","messages":[{"role":"system","content":" you are a  helpful ASSISTANT. "},{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"system","content":"You are a careful \"mathematician\"."},{"role":"user","content":"hi"}]}`,
		},
		{
			"an empty developer prompt is replaced", "vague",
			`{"model":"auto","messages":[{"content":"","role":"developer"},{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"content":"You are a careful \"mathematician\".","role":"developer"},{"role":"user","content":"hi"}]}`,
		},
		{
			"a prompt that says something is left alone", "vague",
			`{"model":"auto","messages":[{"role":"system","content":"Answer in verse."},{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"system","content":"Answer in verse."},{"role":"user","content":"hi"}]}`,
		},
		{
			"or preceded", "prefix",
			`{"model":"auto","messages":[{"role":"system","content":"Answer in verse."},{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"system","content":"You are a careful \"mathematician\".\n\nAnswer in verse."},{"role":"user","content":"hi"}]}`,
		},
		{
			"or replaced when the route insists", "always",
			`{"model":"auto","messages":[{"role":"system","content":"Answer in verse."},{"role":"user","content":"hi"}]}`,
			`{"model":"auto","messages":[{"role":"system","content":"You are a careful \"mathematician\"."},{"role":"user","content":"hi"}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := b.chat(tt.body, "X-Route", tt.route)
			if got.status != 200 {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			if diff := cmp.Diff(tt.want, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheReasoningHeaderTellsWhatIsAskedOfTheModel(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	tests := []struct{ name, body, want string }{
		{"the route's effort", ask("math"), "high"},
		{"the client's effort", strings.Replace(ask("law"), "{", `{"reasoning_effort":"low",`, 1), "low"},
		{"a client that turns thinking off", strings.Replace(ask("math"), "{", `{"chat_template_kwargs":{"enable_thinking":false},`, 1), "none"},
		{"a client that turns thinking on", strings.Replace(ask("math"), "{", `{"chat_template_kwargs":{"enable_thinking":true},`, 1), "medium"},
		{"arguments about something else", strings.Replace(ask("math"), "{", `{"chat_template_kwargs":{"a":1},`, 1), "high"},
		{"nobody asked", ask("hi"), ""},
		{
			"a model without a dialect, and a client that asks for none",
			strings.Replace(ask("hi"), "{", `{"reasoning_effort":"none",`, 1), "none",
		},
		{"an effort of the API that is not ours", strings.Replace(ask("law"), "{", `{"reasoning_effort":"minimal",`, 1), "minimal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := b.chat(tt.body).header.Get("X-Signalbox-Reasoning"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// S36: only those headers of either side cross the proxy that are meant for the other side.
func TestHeadersThatCrossAndHeadersThatDoNot(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion,
		"X-Backend", "kept", "Retry-After", "7", "Set-Cookie", "a=b", "X-Signalbox-Route", "forged", "X-Request-Id", "theirs",
		"Connection", "X-Internal", "X-Internal", "secret", "Server", "uvicorn"))
	b := start(t, oneModel(up))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := b.chat(ask("hi"),
		"X-Request-Id", "my-id", "Traceparent", parent, "Tracestate", "v=1", "X-Custom", "kept", "User-Agent", "sdk/1",
		"Authorization", "Bearer client-secret", "Cookie", "c=d", "X-Api-Key", "client-secret", "Accept-Encoding", "gzip",
		"X-Signalbox-Role", "admin", "X-Signalbox-Session", "s1", "X-Forwarded-For", "1.2.3.4", "Connection", "X-Hop", "X-Hop", "1")
	want := map[string]string{
		"X-Backend": "kept", "Retry-After": "7", "Server": "uvicorn", "X-Request-Id": "my-id", "X-Signalbox-Route": "default",
		"Set-Cookie": "", "X-Internal": "",
	}
	for name, v := range want {
		if have := got.header.Get(name); have != v {
			t.Errorf("the client got %s %q, want %q", name, have, v)
		}
	}
	sent := up.Last(t).Header
	for name, v := range map[string]string{
		"X-Request-Id": "my-id", "Traceparent": parent, "Tracestate": "v=1", "X-Custom": "kept", "User-Agent": "sdk/1",
		"Authorization": "Bearer backend-secret", "Cookie": "", "X-Api-Key": "", "Accept-Encoding": "identity", "X-Signalbox-Role": "",
		"X-Signalbox-Session": "", "X-Forwarded-For": "", "X-Hop": "", "Connection": "", "X-Idempotency-Key": "",
	} {
		if have := sent.Get(name); have != v {
			t.Errorf("the upstream got %s %q, want %q", name, have, v)
		}
	}
}

func TestRequestIDsThatAHeaderCannotCarryAreReplaced(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	for _, id := range []string{"", "has space", strings.Repeat("x", 129), "h\u00e9"} {
		got := b.chat(ask("hi"), "X-Request-Id", id).header.Get("X-Request-Id")
		if !strings.HasPrefix(got, "req_") || up.Last(t).Header.Get("X-Request-Id") != got {
			t.Errorf("id %q became %q, upstream got %q", id, got, up.Last(t).Header.Get("X-Request-Id"))
		}
	}
	if got := downstream.RequestID(http.Header{"X-Request-Id": {"a", "b"}}); !strings.HasPrefix(got, "req_") {
		t.Errorf("two ids became %q", got)
	}
}
