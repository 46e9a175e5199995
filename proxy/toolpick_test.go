package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

const officeTools = `[
	{"type": "function", "function": {"name": "get_weather", "description": "The weather at a place"}},
	{"type": "function", "function": {"name": "send_mail", "description": "Sends a mail"}},
	{"type": "function", "function": {"name": "book_flight", "description": "Books a flight"}},
	{"type": "function", "function": {"name": "pause",  "description": "Waits"}}]`

// offered returns the names of the tools in a body.
func offered(t *testing.T, body []byte) []string {
	t.Helper()
	type named struct{ Name string }
	var b struct {
		Tools []struct {
			named
			Type     string
			Function named
		}
		Functions []named
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range b.Tools {
		switch {
		case x.Function.Name != "":
			out = append(out, x.Function.Name)
		case x.Name != "":
			out = append(out, x.Name)
		default:
			out = append(out, x.Type)
		}
	}
	for _, x := range b.Functions {
		out = append(out, x.Name)
	}
	return out
}

func TestOnlyToolsThatAConversationCanNeedAreOffered(t *testing.T) {
	flat := strings.NewReplacer(`"function": {`, ``, `}}`, `}`).Replace(officeTools)
	chat := func(messages, more string) string {
		return `{"model": "auto", "messages": [` + messages + `], "tools": ` + officeTools + more + `}`
	}
	response := func(more string) string {
		return `{"model": "auto", "input": "How is the weather?", "tools": ` + flat + more + `}`
	}
	weather := `{"role": "user", "content": "How is the weather?"}`
	for name, tc := range map[string]struct {
		path, body string
		want       []string
		header     string
	}{
		"one turn": {"/v1/chat/completions", chat(weather, ""), []string{"get_weather", "pause"}, "2/4"},
		"two turns": {
			"/v1/chat/completions",
			chat(weather+`, {"role": "assistant", "content": "Fine."}, {"role": "user", "content": "Mail that to Ann."}`, ""),
			[]string{"get_weather", "send_mail", "pause"},
			"3/4",
		},
		"a tool that was called": {
			"/v1/chat/completions",
			chat(`{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "book_flight", "arguments": "{}"}}]},
				{"role": "tool", "tool_call_id": "1", "content": "done"}, `+weather, ""),
			[]string{"get_weather", "book_flight", "pause"},
			"3/4",
		},
		"a tool that is forced": {
			"/v1/chat/completions", chat(weather, `, "tool_choice": {"type": "function", "function": {"name": "send_mail"}}`),
			[]string{"get_weather", "send_mail", "pause"},
			"3/4",
		},
		"nothing can be told": {
			"/v1/chat/completions", chat(`{"role": "user", "content": "Go on"}`, ""),
			[]string{"get_weather", "send_mail", "book_flight", "pause"},
			"",
		},
		"functions": {
			"/v1/chat/completions",
			`{"model": "auto", "messages": [` + weather + `], "functions": ` + strings.ReplaceAll(flat, `"type": "function", `, "") + `}`,
			[]string{"get_weather", "pause"},
			"2/4",
		},
		"responses": {
			"/v1/responses",
			`{"model": "auto", "input": "How is the weather?", "tools": ` + strings.Replace(flat, "[", `[{"type": "web_search"}, `, 1) + `}`,
			[]string{"web_search", "get_weather", "pause"},
			"3/5",
		},
		"a response that goes on": {
			"/v1/responses", response(`, "previous_response_id": "resp_1"`), []string{"get_weather", "send_mail", "book_flight", "pause"}, "",
		},
		"the next turn of a conversation": {
			"/v1/responses", response(`, "conversation": {"id": "conv_1"}`), []string{"get_weather", "send_mail", "book_flight", "pause"}, "",
		},
		"an item that the server keeps": {
			"/v1/responses",
			strings.Replace(response(""), `"How is the weather?"`, `[{"type": "item_reference", "id": "msg_1"},`+
				` {"role": "user", "content": "How is the weather?"}]`, 1),
			[]string{"get_weather", "send_mail", "book_flight", "pause"},
			"",
		},
		"no tools": {"/v1/chat/completions", ask("How is the weather?"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
			b := start(t, oneModel(up), func(s *setup) {
				s.routes = "routes: []\ndefault: {models: [small], tools: {keep: 1, always: pause}}\n"
			})
			got := b.post(tc.path, tc.body)
			if got.status != 200 {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			if d := cmp.Diff(tc.want, offered(t, up.Last(t).Body)); d != "" {
				t.Errorf("offered (-want +got):\n%s", d)
			}
			if h := got.header.Get("X-Signalbox-Tools"); h != tc.header {
				t.Errorf("header %q, want %q", h, tc.header)
			}
		})
	}
}

func TestAShareOfTheToolsIsSentInBrief(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small], tools: {keep: 1, share: 0.6, always: pause}}\n"
	})
	said := `{"role": "user", "content": "Book me a flight. How is the weather?"}`
	call := `, {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "send_mail", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "1", "content": "The flight is booked, pause."}`
	for _, messages := range []string{said, said + call} {
		got := b.post("/v1/chat/completions", `{"model": "auto", "messages": [`+messages+`], "tools": `+officeTools+`}`)
		if got.status != 200 {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		var sent struct {
			Tools []struct {
				Function struct{ Name, Description string }
			}
		}
		if err := json.Unmarshal(up.Last(t).Body, &sent); err != nil {
			t.Fatal(err)
		}
		about := map[string]string{}
		for _, x := range sent.Tools {
			about[x.Function.Name] = x.Function.Description
		}
		if len(about) != len(sent.Tools) || about["get_weather"] != "The weather at a place" || about["pause"] != "Waits" {
			t.Errorf("offered %v", about)
		}
		if d, ok := about["book_flight"]; !ok || d != "" {
			t.Errorf("what fits second is not brief: %v", about)
		}
		if _, ok := about["send_mail"]; ok != (messages != said) {
			t.Errorf("what was not called is offered, or what was is not: %v", about)
		}
	}
}

// A model without its tools, or with an empty list, which servers refuse, is worse than a longer
// prompt.
func TestAShareLeavesTheBestTool(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small], tools: {keep: 1, share: 0.01}}\n"
	})
	weather := `{"name": "get_weather", "description": "The weather at a place"}`
	mail := `{"name": "send_mail", "description": "Sends a mail"}`
	const messages = `{"model": "auto", "messages": [{"role": "user", "content": "How is the weather?"}], `
	for name, tc := range map[string]struct {
		more string
		want []string
	}{
		"one":                  {`"functions": [` + weather + `]}`, []string{"get_weather"}},
		"two":                  {`"functions": [` + mail + `, ` + weather + `]}`, []string{"get_weather"}},
		"tools that are null":  {`"tools": null, "functions": [` + mail + `, ` + weather + `]}`, []string{"get_weather"}},
		"tools that are empty": {`"tools": [], "functions": [` + mail + `, ` + weather + `]}`, []string{"get_weather"}},
		"none at all":          {`"tools": [], "functions": []}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.post("/v1/chat/completions", messages+tc.more)
			if got.status != 200 {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			if d := cmp.Diff(tc.want, offered(t, up.Last(t).Body)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
