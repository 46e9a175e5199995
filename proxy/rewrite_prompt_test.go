package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

// Each case gives the messages that a client sends and exactly those that the upstream receives,
// for each mode of a route's prompt; P stands for the prompt as JSON.
func TestTheUpstreamReceivesThisPrompt(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes:
  - {name: r, when: {header: {name: X-Mode, equals: replace}}, use: {models: [small], prompt: {name: mathematician, position: after_context}}}
  - {name: p, when: {header: {name: X-Mode, equals: prefix}}, use: {models: [small], prompt: {name: mathematician, mode: prefix, position: before}}}
  - {name: a, when: {header: {name: X-Mode, equals: always}}, use: {models: [small], prompt: {name: mathematician, mode: always}}}
default: {models: [small]}
`
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = routes
		s.options.VaguePrompts = []string{"Be nice", "Du bist ein Assistent."}
	})
	const user = `{"role":"user","content":"hi"}`
	tests := []struct{ name, messages, replace, prefix, always string }{
		{"none", user, `{"role":"system","content":"P"},` + user, `{"role":"system","content":"P"},` + user, `{"role":"system","content":"P"},` + user},
		{
			"empty", `{"role":"system","content":""},` + user,
			`{"role":"system","content":"P"},` + user, `{"role":"system","content":"P"},` + user, `{"role":"system","content":"P"},` + user,
		},
		{
			"blank in parts", `{"role":"system","content":[{"type":"text","text":" \n"}]},` + user,
			`{"role":"system","content":[{"type":"text","text":"P"}]},` + user, `{"role":"system","content":[{"type":"text","text":"P"}]},` + user,
			`{"role":"system","content":[{"type":"text","text":"P"}]},` + user,
		},
		{
			"null", `{"content":null,"role":"system"},` + user,
			`{"content":"P","role":"system"},` + user, `{"content":"P","role":"system"},` + user, `{"content":"P","role":"system"},` + user,
		},
		{
			"vague, of a developer", `{"role":"developer","content":"du bist  ein ASSISTENT!"},` + user,
			`{"role":"developer","content":"P"},` + user, `{"role":"developer","content":"P"},` + user, `{"role":"developer","content":"P"},` + user,
		},
		{
			"specific", `{"role":"system","content":"Answer in v\u0065rse."},` + user,
			`{"role":"system","content":"Answer in v\u0065rse."},` + user, `{"role":"system","content":"P\n\nAnswer in v\u0065rse."},` + user, `{"role":"system","content":"P"},` + user,
		},
		{
			"specific in parts, some of them kept for caching", `{"role":"system","content":[{"type":"text","text":"Be nice"},{"type":"text","text":"and brief","cache_control":{"type":"ephemeral"}}]},` + user,
			`{"role":"system","content":[{"type":"text","text":"Be nice"},{"type":"text","text":"and brief","cache_control":{"type":"ephemeral"}}]},` + user,
			`{"role":"system","content":[{"type":"text","text":"P\n\nBe nice"},{"type":"text","text":"and brief","cache_control":{"type":"ephemeral"}}]},` + user,
			`{"role":"system","content":[{"type":"text","text":"P"}]},` + user,
		},
		{
			"vague in two messages", `{"role":"system","content":"Be nice."},{"role":"developer","content":""},` + user,
			`{"role":"system","content":"P"},` + user, `{"role":"system","content":"P"},` + user, `{"role":"system","content":"P"},` + user,
		},
		{
			"vague, then specific", `{"role":"system","content":"Be nice."},{"role":"developer","content":"Answer in verse."},` + user,
			`{"role":"system","content":"Be nice."},{"role":"developer","content":"Answer in verse."},` + user,
			`{"role":"system","content":"P\n\nBe nice."},{"role":"developer","content":"Answer in verse."},` + user,
			`{"role":"system","content":"P"},` + user,
		},
		{
			"specific again in the middle of a conversation", `{"role":"system","content":"Be nice."},` + user + `,{"role":"system","content":"The user is Ann."}`,
			`{"role":"system","content":"P"},` + user + `,{"role":"system","content":"The user is Ann."}`,
			`{"role":"system","content":"P"},` + user + `,{"role":"system","content":"The user is Ann."}`,
			`{"role":"system","content":"P"},` + user + `,{"role":"system","content":"The user is Ann."}`,
		},
		{
			"vague by default only", `{"role":"system","content":"You are a helpful assistant"},` + user,
			`{"role":"system","content":"You are a helpful assistant"},` + user, `{"role":"system","content":"P\n\nYou are a helpful assistant"},` + user,
			`{"role":"system","content":"P"},` + user,
		},
	}
	for _, tt := range tests {
		for mode, want := range map[string]string{"replace": tt.replace, "prefix": tt.prefix, "always": tt.always} {
			t.Run(tt.name+", "+mode, func(t *testing.T) {
				if got := b.chat(`{"model":"auto","messages":[`+tt.messages+`]}`, "X-Mode", mode); got.status != 200 {
					t.Fatalf("status %d: %s", got.status, got.body)
				}
				prompt := strings.ReplaceAll(want, `"P`, `"You are a careful \"mathematician\".`)
				if diff := cmp.Diff(`{"model":"Org/Small-7B","messages":[`+prompt+`]}`, string(up.Last(t).Body)); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestTheUpstreamReceivesWhatARouteSets(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes:
  - name: body
    when: {header: {name: X-Set, equals: body}}
    use: {models: [effort], reasoning: high, max_tokens: auto, set: {body: {temperature: 0.0, stop: ["a", "ü"], metadata: {b: 1, a: {c: null}}, max_tokens: 7, "odd \"name\"": "5"}}}
  - {name: headers, when: {header: {name: X-Set, equals: headers}}, use: {models: [small], set: {headers: {x-team: blue, X-Custom: "of the route, with ümlaut", User-Agent: signalbox}}}}
default: {models: [small]}
`
	b := start(t, oneModel(up), func(s *setup) { s.routes = routes })
	b.chat(`{"temperature": 1.0 ,"model":"auto","messages":[{"role":"user","content":"hi"}],"metadata":{"z":1}}`, "X-Set", "body")
	want := `{"temperature": 0 ,"model":"effort","messages":[{"role":"user","content":"hi"}],"metadata":{"b":1,"a":{"c":null}},` +
		`"reasoning_effort":"high","stop":["a","ü"],"max_tokens":7,"odd \"name\"":"5"}`
	if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	const plain = `{"model":"auto","messages":[{"role":"user","content":"hi"}]}`
	b.chat(plain, "X-Set", "headers", "X-Custom", "of the client", "X-Custom", "and again", "User-Agent", "sdk")
	got := up.Last(t)
	for name, v := range map[string][]string{
		"X-Team": {"blue"}, "X-Custom": {"of the route, with ümlaut"}, "User-Agent": {"signalbox"}, "X-Set": {"headers"}, "Authorization": {"Bearer backend-secret"},
	} {
		if diff := cmp.Diff(v, got.Header[name]); diff != "" {
			t.Errorf("header %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(strings.Replace(plain, "auto", "Org/Small-7B", 1), string(got.Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}
