package app

import (
	"os"
	"testing"

	"signalbox/internal/config"
)

func TestTheShapeOfAConversationRoutes(t *testing.T) {
	const text = `models: [{name: small, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]
routes:
  - {name: loop, when: {conversation: {tool_loop: true, turns: {lt: 3}}}, answer: {text: loop}}
  - {name: long, when: {conversation: {turns: {gte: 3}}}, answer: {text: long}}
  - {name: rest, when: true, answer: {text: rest}}
default: {models: [small]}
`
	cfg, _, err := config.Parse("test.yaml", []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, memoryOnly(flags(t)))
	const (
		user   = `{"role":"user","content":"a"},`
		answer = `{"role":"assistant","content":"b"},`
		call   = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},`
		result = `{"role":"tool","tool_call_id":"c","content":"r"}`
		last   = `{"role":"user","content":"z"}`
	)
	for messages, want := range map[string]string{
		last: "rest", user + call + result: "loop", user + answer + last: "rest",
		user + answer + user + answer + last: "long", user + answer + user + answer + user + call + result: "long",
	} {
		a := s.post(t, "/v1/chat/completions", `{"model":"auto","messages":[`+messages+`]}`)
		if got := a.header.Get("x-signalbox-route"); got != want {
			t.Errorf("%s: route %q, want %q", messages, got, want)
		}
	} // Claude Code puts a reminder behind the result, and a browser a picture into it.
	for _, beside := range []string{
		`{"type":"tool_result","tool_use_id":"c","content":"r"},{"type":"text","text":"<system-reminder>go ` +
			`on</system-reminder>"}`,
		`{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url",` +
			`"url":"https://example.com/a.png"}}]}`,
	} {
		a := s.post(t, "/v1/messages", `{"model":"auto","max_tokens":9,"messages":[{"role":"user","content":"a"},`+
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},`+
			`{"role":"user","content":[`+beside+`]}]}`)
		if got := a.header.Get("x-signalbox-route"); got != "loop" {
			t.Errorf("%s: route %q, want loop", beside, got)
		}
	}
}
