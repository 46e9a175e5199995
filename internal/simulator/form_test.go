package simulator_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"signalbox/internal/simulator"
)

// formCase is a line of testdata/forms*.jsonl: members of a request, and what becomes of them.
type formCase struct {
	Name string
	Form json.RawMessage
	Want string // the answer, or the field that an error names
}

// formCases reads a file of testdata.
func formCases(tb testing.TB, name string) (list []formCase) {
	tb.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c formCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			tb.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// body is a chat request of a form.
func (c formCase) body() string {
	const ask = `{"messages":[{"role":"user","content":"Hi"}],`
	return ask + strings.TrimPrefix(string(c.Form), "{")
}

func TestAnswersHaveTheFormThatIsAskedFor(t *testing.T) {
	h := newServer(t, nil).Handler()
	for _, c := range formCases(t, "forms.jsonl") {
		if got := chatText(t, h, c.body()); got != c.Want {
			t.Errorf("%s: answer %s\nwant %s", c.Name, got, c.Want)
		}
	}
	c := formCase{Form: json.RawMessage(`{"response_format":{"type":"text"}}`)}
	if got := chatText(t, h, c.body()); !strings.HasPrefix(got, "This text is simulated. ") {
		t.Errorf("text: %s", got)
	}
}

func TestAFormThatCannotBeKeptIsRefused(t *testing.T) {
	h := newServer(t, nil).Handler()
	for _, c := range formCases(t, "forms_refused.jsonl") {
		w := post(t, h, "/v1/chat/completions", c.body())
		var e struct{ Error struct{ Param string } }
		err := json.Unmarshal(w.Body.Bytes(), &e)
		if err != nil || w.Code != 400 || e.Error.Param != c.Want {
			t.Errorf("%s: status %d, param %q: %.200s", c.Name, w.Code, e.Error.Param, w.Body)
		}
	}
}

func TestAFormIsStreamedAndKeptByEveryEndpoint(t *testing.T) {
	h := newServer(t, nil).Handler()
	const schema = `{"type":"object","properties":{"a":{"type":"integer"}}}`
	for path, body := range map[string]string{
		"/v1/completions": `{"prompt":"Hi","guided_json":%s}`,
		"/v1/responses":   `{"input":"Hi","text":{"format":{"type":"json_schema","schema":%s}}}`,
	} {
		w := post(t, h, path, fmt.Sprintf(body, schema))
		if !strings.Contains(w.Body.String(), `"text":"{\"a\": 0}"`) {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	c := formCase{Form: json.RawMessage(`{"stream":true,"guided_json":` + schema + `}`)}
	w := post(t, h, "/v1/chat/completions", c.body())
	var text strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		var c struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		data := strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) > 0 {
			text.WriteString(c.Choices[0].Delta.Content)
		}
	}
	if text.String() != `{"a": 0}` {
		t.Errorf("streamed %q", text.String())
	}
}

func TestAToolThatTheQuestionNamesIsCalled(t *testing.T) {
	h := newServer(t, func(o *simulator.Options) {
		o.Answers = []simulator.Answer{{Match: "by heart", Text: "Recited."}}
	}).Handler()
	const tools = `"tools":[{"type":"function","function":{"name":"now"}},` +
		`{"type":"function","function":{"name":"get_weather"}}]`
	for _, c := range []struct{ name, question, extra, want string }{
		{"by its name", "Call get_weather for Oslo.", "", "get_weather"},
		{"in words", "Please get weather!", `,"tool_choice":"auto"`, "get_weather"},
		{"as a part of another word", "Do you know?", "", ""},
		{"not at all", "What is the weather in Oslo?", "", ""},
		{"where none may be called", "Call get_weather.", `,"tool_choice":"none"`, ""},
		{"in a question of the script", "get_weather by heart", "", ""},
	} {
		body := `{"messages":[{"role":"user","content":"` + c.question + `"}],` +
			tools + c.extra + `}`
		w := post(t, h, "/v1/chat/completions", body)
		name, finish := called(t, w.Body.Bytes())
		if name != c.want || (finish == "tool_calls") != (c.want != "") {
			t.Errorf("%s: called %q, finish_reason %q", c.name, name, finish)
		}
	}
	w := post(t, h, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Call now."},`+
		`{"role":"assistant","content":null},`+
		`{"role":"tool","tool_call_id":"x","content":"12:00"}],`+tools+`}`)
	if name, finish := called(t, w.Body.Bytes()); name != "" || finish != "stop" {
		t.Errorf("after its result %q is called again, finish_reason %q", name, finish)
	}
}

// called returns the tool that an answer calls, and its finish_reason.
func called(tb testing.TB, body []byte) (name, finish string) {
	tb.Helper()
	var got struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct{ Function struct{ Name string } } `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(body, &got); err != nil || len(got.Choices) == 0 {
		tb.Fatalf("%v: %s", err, body)
	}
	c := &got.Choices[0]
	if len(c.Message.ToolCalls) > 0 {
		name = c.Message.ToolCalls[0].Function.Name
	}
	return name, c.FinishReason
}
