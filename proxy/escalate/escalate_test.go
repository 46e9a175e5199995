package escalate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/rules"
	"signalbox/stream/response"
)

// all looks for every sign, and for a mean log-probability below -1.
func all() *rules.Escalate {
	e := &rules.Escalate{Logprobs: true, MinLogprob: -1}
	for _, s := range rules.Signs() {
		e.When = append(e.When, rules.Sign(s))
	}
	return e
}

func request(tb testing.TB, api openai.API, members string) *openai.Request {
	tb.Helper()
	body := `{"model":"auto","messages":[{"role":"user","content":"hi"}]` + members + `}`
	if api == openai.Response {
		body = `{"model":"auto","input":"hi"` + members + `}`
	}
	req, err := openai.Parse(api, []byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return req
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// said returns a chat completion as a body and as a stream.
func said(message, finish, choiceMembers string) (body, stream string) {
	body = fmt.Sprintf(
		`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":%s,`+
			`"finish_reason":%q%s}],"usage":{"prompt_tokens":3,"completion_tokens":7}}`,
		message,
		finish,
		choiceMembers,
	)
	delta := strings.ReplaceAll(message, `"tool_calls":[{`, `"tool_calls":[{"index":0,`)
	stream = fmt.Sprintf(
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"+
			"\"delta\":%s,\"finish_reason\":null%s}]}\n\n"+
			"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\","+
			"\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n"+
			"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[],"+
			"\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n",
		delta,
		choiceMembers,
		finish,
	)
	return body, stream
}

func judgeBody(req *openai.Request, body string) *Answer {
	a := New(req.API, Expect(req))
	a.Body([]byte(body))
	return a
}

// judgeStream feeds a stream in pieces of a size.
func judgeStream(req *openai.Request, stream string, size int) *Answer {
	a := New(req.API, Expect(req))
	s := response.NewStream()
	s.Reset(response.StreamOptions{API: req.API})
	for len(stream) > 0 {
		n := min(size, len(stream))
		s.Feed([]byte(stream[:n]))
		for c := s.Next(); c != nil; c = s.Next() {
			a.Put(c)
		}
		stream = stream[n:]
	}
	s.End(io.EOF)
	for c := s.Next(); c != nil; c = s.Next() {
		a.Put(c)
	}
	return a
}

const (
	tools = `,"tools":[{"type":"function","function":{"name":"add",` +
		`"parameters":{"type":"object","properties":{"a":{"type":"integer"},` +
		`"b":{"$ref":"#/$defs/n"}},"required":["a","b"],"additionalProperties":false,` +
		`"$defs":{"n":{"type":["integer","null"]}}}}},{"type":"function",` +
		`"function":{"name":"now"}}]`
	form = `,"response_format":{"type":"json_schema","json_schema":{"name":"x",` +
		`"schema":{"type":"object","properties":{"kind":{"enum":["a","b"]},"n":{"type":"array",` +
		`"items":{"type":"number","minimum":0},"maxItems":2}},"required":["kind"]}}}`
)

func content(text string) string { return `{"role":"assistant","content":` + quote(text) + `}` }

func calls(name, arguments string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":` + quote(
		name,
	) + `,"arguments":` + quote(
		arguments,
	) + `}}]}`
}

func TestSignsOfAChat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request, message, finish, members string
		want                              rules.Sign
	}{
		"an answer":        {"", content("It is 4."), "stop", "", ""},
		"cut at the limit": {"", content("It is"), "length", "", rules.SignLength},
		"nothing":          {"", content(""), "stop", "", rules.SignEmpty},
		"blanks":           {"", content(" \n"), "stop", "", rules.SignEmpty},
		"thoughts and nothing else": {"", `{"role":"assistant","content":null,` +
			`"reasoning_content":"Hm."}`, "stop", "", rules.SignEmpty},
		"a refusal in words": {"", content("I'm sorry, but I can't help with that."), "stop", "", rules.SignRefusal},
		"a refusal in its own field": {"", `{"role":"assistant","content":null,` +
			`"refusal":"No."}`, "stop", "", rules.SignRefusal},
		"ended by a filter":             {"", content("It"), "content_filter", "", rules.SignRefusal},
		"a call that fits":              {tools, calls("add", `{"a":1,"b":null}`), "tool_calls", "", ""},
		"a call without parameters":     {tools, calls("now", ""), "tool_calls", "", ""},
		"a call that is cut":            {tools, calls("add", `{"a":1,`), "tool_calls", "", rules.SignToolCall},
		"a call that lacks an argument": {tools, calls("add", `{"a":1}`), "tool_calls", "", rules.SignToolCall},
		"a call with another type":      {tools, calls("add", `{"a":"1","b":2}`), "tool_calls", "", rules.SignToolCall},
		"a call with a fraction":        {tools, calls("add", `{"a":1.5,"b":2}`), "tool_calls", "", rules.SignToolCall},
		"a call with one argument more": {tools, calls("add", `{"a":1,"b":2,"c":3}`), "tool_calls", "", rules.SignToolCall},
		"a call of no tool":             {tools, calls("sub", `{}`), "tool_calls", "", rules.SignToolCall},
		"calls of one index": {
			tools, strings.Replace(calls("now", "{}"), `}}]}`, `}},{"index":0,"id":"c2","function":{"name":"now",`+
				`"arguments":"{}"}}]}`, 1), "tool_calls", "", "",
		},
		"a call where no tools are listed": {"", calls("sub", `{}`), "tool_calls", "", ""},
		"JSON as asked for":                {form, content(`{"kind":"a","n":[1,2.5]}`), "stop", "", ""},
		"JSON in a fence":                  {form, content("```json\n{\"kind\":\"a\"}\n```"), "stop", "", rules.SignJSON},
		"JSON of another kind":             {form, content(`{"kind":"c"}`), "stop", "", rules.SignJSON},
		"JSON with too many items":         {form, content(`{"kind":"a","n":[1,2,3]}`), "stop", "", rules.SignJSON},
		"JSON out of bounds":               {form, content(`{"kind":"a","n":[-1]}`), "stop", "", rules.SignJSON},
		"no JSON":                          {`,"response_format":{"type":"json_object"}`, content("kind: a"), "stop", "", rules.SignJSON},
		"JSON without a schema":            {`,"response_format":{"type":"json_object"}`, content(`{"x":1}`), "stop", "", ""},
		"a call in place of JSON":          {tools + form, calls("now", "{}"), "tool_calls", "", ""},
		"sure": {"", content("Four."), "stop", `,"logprobs":{"content":[{"token":"Four","logprob":-0.5},{"token":".",` +
			`"logprob":-1.4}]}`, ""},
		"not sure": {"", content("Four."), "stop", `,"logprobs":{"content":[{"token":"Four",` +
			`"logprob":-1.5},{"token":".",` +
			`"logprob":-0.6}]}`, rules.SignLogprob},
		"no log-probabilities": {"", content("Four."), "stop", `,"logprobs":null`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(t, openai.Chat, c.request)
			body, stream := said(c.message, c.finish, c.members)
			a := judgeBody(req, body)
			if got := a.Judge(all()); got != c.want {
				t.Errorf("the body shows %q, want %q", got, c.want)
			}
			if a.Usage.Output != 7 || a.Usage.Input != 3 {
				t.Errorf("usage of the body: %+v", a.Usage)
			}
			for _, size := range []int{1, 7, 1 << 20} {
				a = judgeStream(req, stream, size)
				if got := a.Judge(all()); got != c.want {
					t.Errorf("the stream in pieces of %d shows %q, want %q", size, got, c.want)
				}
				if a.Usage.Output != 7 {
					t.Errorf("usage of the stream: %+v", a.Usage)
				}
			}
			if got := judgeBody(req, body).Judge(&rules.Escalate{}); got != "" {
				t.Errorf("looking for nothing finds %q", got)
			}
		})
	}
}

func TestChoicesOfAStreamMayTakeTurns(t *testing.T) {
	var stream strings.Builder
	for i, text := range []string{"a", "b", "c", "a", "b", "c"} {
		fmt.Fprintf(&stream, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":%d,\"delta\":%s}]}\n\n",
			2-i%3, content(text)) // the last one first
	}
	a := judgeStream(request(t, openai.Chat, `,"n":3`), stream.String()+"data: [DONE]\n\n", 64)
	if got := a.Text(); got != "ccbbaa" {
		t.Errorf("texts %q", got)
	}
}

func TestSignsOfAResponse(t *testing.T) {
	t.Parallel()
	const flat = `,"tools":[{"type":"function","name":"add","parameters":{"type":"object",` +
		`"required":["a"]}}],"text":{"format":{"type":"json_schema","name":"x",` +
		`"schema":{"required":["k"]}}}`
	text := func(s string) string {
		return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(s) + `}]}`
	}
	for name, c := range map[string]struct {
		output, status string
		want           rules.Sign
	}{
		"an answer":   {`{"type":"reasoning","summary":[]},` + text(`{"k":1}`), `"completed"`, ""},
		"broken JSON": {text(`{"j":1}`), `"completed"`, rules.SignJSON},
		"nothing":     {`{"type":"reasoning","summary":[]}`, `"completed"`, rules.SignEmpty},
		"cut": {text(`{"k":1}`), `"incomplete","incomplete_details":{"reason":"max_` +
			`output_tokens"}`, rules.SignLength},
		"a refusal":       {`{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`, `"completed"`, rules.SignRefusal},
		"a call":          {`{"type":"function_call","name":"add","arguments":"{\"a\":1}"}`, `"completed"`, ""},
		"a call that not": {`{"type":"function_call","name":"add","arguments":"{}"}`, `"completed"`, rules.SignToolCall},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(t, openai.Response, flat)
			body := `{"id":"r","object":"response","status":` + c.status + `,"output":[` + c.output + `],"usage":{"input_tokens":3,"output_tokens":7}}`
			if got := judgeBody(req, body).Judge(all()); got != c.want {
				t.Errorf("the body shows %q, want %q", got, c.want)
			}
			end := "response.completed"
			if strings.Contains(c.status, "incomplete") {
				end = "response.incomplete"
			}
			stream := "event: response.output_text.delta\ndata: " +
				"{\"type\":\"response.output_text.delta\",\"output_index\":0," +
				"\"content_index\":0,\"delta\":\"not JSON\"}\n\n" +
				"event: " + end + "\ndata: {\"type\":\"" + end + "\",\"response\":" + body + "}\n\n"
			if got := judgeStream(req, stream, 5).Judge(all()); got != c.want {
				t.Errorf("the stream shows %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnAnswerThatCannotBeReadShowsNoSign(t *testing.T) {
	t.Parallel()
	a := judgeBody(request(t, openai.Chat, form), `{"choices":[{"index":0,"index":1}]}`)
	if got := a.Judge(all()); got != "" || a.Readable() {
		t.Errorf("it shows %q, readable %t", got, a.Readable())
	}
	for _, body := range []string{"", `{"choices":[{"index":0,"message":{"content":"{"}}`, "<html>"} {
		a = judgeBody(request(t, openai.Chat, form), body)
		if got := a.Judge(&rules.Escalate{}); got != SignFailed || !a.Failed {
			t.Errorf("%q shows %q", body, got)
		}
	}
	a = judgeStream(request(t, openai.Chat, ""), "data: {\"error\":{\"message\":\"out of memory\"}}\n\n", 9)
	if got := a.Judge(&rules.Escalate{}); got != SignFailed {
		t.Errorf("an error in the stream shows %q", got)
	}
}

// A schema that refers to itself twice at each level would take 2^depth comparisons.
func TestASchemaCannotTakeForever(t *testing.T) {
	t.Parallel()
	twice := `{"$defs":{"a":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/a"}}},` +
		`{"properties":{"x":{"$ref":"#/$defs/a"}}}]}},"$ref":"#/$defs/a"}`
	loop := `{"$ref":"#"}`
	deep := strings.Repeat(`{"x":`, 200) + "1" + strings.Repeat("}", 200)
	for _, form := range []string{twice, loop} {
		var at any
		if err := json.Unmarshal([]byte(form), &at); err != nil {
			t.Fatal(err)
		}
		var v any
		_ = json.Unmarshal([]byte(deep), &v)
		s := schema{root: at, steps: maxSteps}
		if !s.accepts(at, v) || s.steps >= 0 || s.steps < -1000*maxSteps {
			t.Errorf("%d steps are left of %d", s.steps, maxSteps)
		}
	}
}

func TestRefusalsBeginAnAnswer(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"I'm sorry, but I can't assist with that.", "I’m sorry, I cannot help with this " +
			"request.", "Sorry, but I am unable to provide that information.",
		"I cannot provide instructions for that.", "Unfortunately, I can't share the text.", "I apologize, but I cannot fulfill this request.",
		"As an AI language model, I don't have feelings.", "Lo siento, pero no puedo ayudar " +
			"con eso.", "Es tut mir leid, aber ich kann dabei nicht helfen.",
		"I can't help but I can point you to those who do.", "I won't give instructions for that.",
		"I can't help, but here is a number to call.", "I cannot give in-depth advice on this.",
		"I can't help but maybe a doctor can.", "I can't give up customer data.", "I can't give up-to-date prices.",
		"I can't help but think that is unsafe, so I won't answer.",
		"I can’t help with that.", "We are not able to discuss this.",
	} {
		if !Refuses(s) {
			t.Errorf("%q is no refusal", s)
		}
	}
	for _, s := range []string{
		"", "It is 4.", "I'm sorry to hear that. Here is what you can do:", "Sorry for the delay! The answer is 4.", "I can help with that.",
		"The model said: I'm sorry, but I can't assist with that.", "I cannot stress enough " +
			"how important tests are.", "Unfortunately, the proof is long. First,",
		"I can't help but notice that x is 4.", "I’m sorry, I cannot help but laugh.",
		"I won't give up on this proof.",
		"We will not give in to pressure, she wrote.", "You cannot divide by zero.",
		"I am not able-bodied? That phrase means",
	} {
		if Refuses(s) {
			t.Errorf("%q is a refusal", s)
		}
	}
}

func FuzzJudge(f *testing.F) {
	body, stream := said(calls("add", `{"a":1}`), "tool_calls", `,"logprobs":{"content":[{"logprob":-1}]}`)
	f.Add(tools, body, stream)
	f.Add(form, body, stream)
	f.Fuzz(func(t *testing.T, members, body, stream string) {
		req, err := openai.Parse(
			openai.Chat,
			[]byte(`{"model":"auto","messages":[{"role":"user","content":"hi"}]`+members+`}`),
			openai.Limits{},
		)
		if err != nil {
			t.Skip()
		}
		for _, a := range []*Answer{judgeBody(req, body), judgeStream(req, stream, 11)} {
			a.Judge(all())
			if mean, ok := a.Logprob(); ok && math.IsNaN(mean) {
				t.Error("a mean that is no number")
			}
		}
	})
}

// The response of a server that never ends uses bounded memory.
func TestOfAnEndlessAnswerNothingIsKept(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("word ", 20_000)
	for name, delta := range map[string]string{
		"text":      `{"content":` + quote(piece) + `}`,
		"a refusal": `{"refusal":` + quote(piece) + `}`,
		"a call":    `{"tool_calls":[{"index":0,"function":{"arguments":` + quote(piece) + `}}]}`,
	} {
		a := New(openai.Chat, &Expected{})
		s := response.NewStream()
		s.Reset(response.StreamOptions{API: openai.Chat})
		event := []byte(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta +
			`,"finish_reason":null}]}` + "\n\n")
		put := func(n int) {
			for range n {
				s.Feed(event)
				for c := s.Next(); c != nil; c = s.Next() {
					a.Put(c)
				}
			}
		}
		if put(80); a.Long() || !a.Readable() || len(a.choices) != 1 {
			t.Errorf("%s of 8 MB: long %v, readable %v, choices %d", name, a.Long(), a.Readable(), len(a.choices))
		}
		if put(5); !a.Long() || a.Readable() || len(a.choices) > 0 || a.Text() != "" || a.Judge(all()) != "" {
			t.Errorf("%s of 8.5 MB: long %v, readable %v, choices %d", name, a.Long(), a.Readable(), len(a.choices))
		}
	}
}
