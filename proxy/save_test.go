package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/memory"
	"signalbox/proxy/auth"
	"signalbox/proxy/save"
)

func anyone() memory.Owner { return memory.Owner{Tenant: auth.DefaultOptions().DefaultTenant} }

// stored returns the content of a context as a list of messages.
func (r *remembering) stored(id string) string {
	r.tb.Helper()
	s, err := r.store.Resolve(r.tb.Context(), anyone(), memory.Ref{ID: id})
	if err != nil {
		r.tb.Fatal(err)
	}
	defer s.Release()
	return string(s.Messages())
}

// contextIn returns x_signalbox.context of a response and the chunk that contains it; empty if
// there is none.
func contextIn(tb testing.TB, body string) (id, chunk string) {
	tb.Helper()
	for line := range strings.Lines(body) {
		data := strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		var v struct {
			Extension struct{ Context string } `json:"x_signalbox"`
		}
		if json.Unmarshal([]byte(data), &v) == nil && v.Extension.Context != "" {
			id, chunk = v.Extension.Context, data
		}
	}
	return id, chunk
}

func saving(rest, messages string) string {
	return `{"model":"small"` + rest + `,"messages":[` + messages + `]}`
}

func callChunk(delta string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

func finishChunk(why string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"` + why + `"}]}` + "\n\n"
}

func TestAnAnswerThatEndsWellBecomesAContext(t *testing.T) {
	t.Parallel()
	const said = `{"content":"hello there","role":"assistant"}`
	for name, tt := range map[string]struct {
		stream  bool
		answer  testkit.Answer
		answers string // what was stored of the answer; empty for nothing
	}{
		"whole":              {false, testkit.JSON(200, testkit.Completion), `{"content":"hello","role":"assistant"}`},
		"streamed":           {true, testkit.Stream(testkit.Event("hello"), testkit.Event(" there"), testkit.Finish, testkit.Done), said},
		"in one piece":       {true, testkit.Stream(testkit.Event("hello") + testkit.Event(" there") + testkit.Finish + testkit.Done), said},
		"calls":              {true, testkit.Stream(callChunk(`{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]}`), callChunk(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`), finishChunk("tool_calls"), testkit.Done), `{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"f"},"id":"t1","type":"function"}]}`},
		"too long":           {true, testkit.Stream(testkit.Event("hello"), finishChunk("length"), testkit.Done), ""},
		"filtered":           {true, testkit.Stream(testkit.Event("hello"), finishChunk("content_filter"), testkit.Done), ""},
		"broken off":         {true, testkit.Stream(testkit.Event("hello")), ""},
		"whole and too long": {false, testkit.JSON(200, strings.Replace(testkit.Completion, `"stop"`, `"length"`, 1)), ""},
		"an error":           {false, testkit.JSON(400, `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, tt.answer)
			r := keeping(t, oneModel(up), nil)
			talk := r.create(anyone(), memory.Draft{Content: memory.Content{Messages: []byte(`[{"role":"user","content":"before"}]`)}, Facts: []memory.Fact{{ID: "f1", Text: "A fact."}}})
			got := r.chat(saving(fmt.Sprintf(`,"stream":%v,"signalbox":{"context":%q,"save_context":{"name":"run","ttl":"10m"}}`, tt.stream, talk), `{"role":"system","content":"Be terse."},`+hi))
			id, chunk := contextIn(t, got.body)
			if tt.answers == "" {
				if id != "" {
					t.Fatalf("stored as %s: %s", id, got.body)
				}
				return
			}
			if id == "" || tt.stream && !strings.Contains(chunk, `"finish_reason":"`) {
				t.Fatalf("%d %s", got.status, got.body)
			}
			want := `[{"content":"before","role":"user"},{"content":"Be terse.","role":"system"},{"content":"hi","role":"user"},` + tt.answers + `]`
			if diff := cmp.Diff(want, r.stored(id)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			c, err := r.store.Get(t.Context(), anyone(), memory.Ref{ID: id})
			if err != nil || c.Name != "run" || c.Parent != talk+"@1" || c.TTL.String() != "10m0s" || c.FactCount != 1 {
				t.Errorf("%+v, %v", c, err)
			}
			if next := r.chat(with(quoted(id), hi)); !tt.stream && next.status != 200 {
				t.Errorf("the next agent: %d %s", next.status, next.body)
			}
		})
	}
}

// Responses of the other two APIs become contexts like those of chats.
func TestAnswersOfOtherAPIsBecomeContexts(t *testing.T) {
	t.Parallel()
	const (
		responded = `{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"reasoning","summary":[]},` +
			`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"hello"}]},{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"}]}`
		calls    = `{"content":"hello","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"t1","type":"function"}]}`
		asked    = `"instructions":"Be terse.","input":[{"role":"user","content":[{"type":"input_text","text":"one"}]},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]`
		messages = `{"content":"Be terse.","role":"system"},{"content":"one","role":"user"},{"content":"two","role":"assistant"},{"content":"three","role":"user"},`
		text     = `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"hello","logprobs":null,"finish_reason":"stop"}]}`
	)
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
	}
	piece := func(s, finish string) string {
		return `data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"` + s + `","finish_reason":` + finish + "}]}\n\n"
	}
	for name, tt := range map[string]struct {
		path, body string
		answer     testkit.Answer
		want       string // of the stored messages; empty for nothing
	}{
		"a response":            {"/v1/responses", asked, testkit.JSON(200, responded), messages + calls},
		"a streamed response":   {"/v1/responses", asked + `,"stream":true`, testkit.Stream(event("response.created", `,"response":{"status":"in_progress"}`), event("response.output_text.delta", `,"delta":"hello"`), event("response.completed", `,"response":`+responded)), messages + calls},
		"one that is not whole": {"/v1/responses", asked, testkit.JSON(200, strings.Replace(responded, `"completed"`, `"incomplete"`, 1)), ""},
		"a stream that fails":   {"/v1/responses", asked + `,"stream":true`, testkit.Stream(event("response.created", `,"response":{"status":"in_progress"}`), event("response.failed", `,"response":{"status":"failed"}`)), ""},
		"a completion":          {"/v1/completions", `"prompt":"Once"`, testkit.JSON(200, text), `{"content":"Once","role":"user"},{"content":"hello","role":"assistant"}`},
		"a streamed completion": {"/v1/completions", `"prompt":"Once","stream":true`, testkit.Stream(piece("hel", "null"), piece("lo", `"stop"`), testkit.Done), `{"content":"Once","role":"user"},{"content":"hello","role":"assistant"}`},
		"one that is too long":  {"/v1/completions", `"prompt":"Once"`, testkit.JSON(200, strings.Replace(text, `"stop"`, `"length"`, 1)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := keeping(t, oneModel(testkit.NewUpstream(t, tt.answer)), nil, func(s *setup) { s.routes = toSmall })
			got := r.post(tt.path, `{"model":"small","signalbox":{"context":"`+r.keep("Known.")+`","save_context":{"name":"run"}},`+tt.body+`}`)
			id, _ := contextIn(t, got.body)
			if (id != "") != (tt.want != "") {
				t.Fatalf("stored as %q: %d %s", id, got.status, got.body)
			}
			if id == "" {
				return
			}
			want := strings.Replace(`[{"content":"Known.","role":"system"},`+tt.want+`]`, `"Known.","role":"system"},{"content":"Be terse.","role":"system"}`, `"Known.\n\nBe terse.","role":"system"}`, 1)
			if diff := cmp.Diff(want, r.stored(id)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
	r := keeping(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, strings.Replace(responded, `"function_call"`, `"web_search_call"`, 1)))), nil, func(s *setup) { s.routes = toSmall })
	if got := r.post("/v1/responses", `{"model":"small","signalbox":{"save_context":{}},`+asked+`}`); got.status != 200 || got.header.Get("X-Signalbox-Degraded") != save.NotSaved {
		t.Errorf("an answer that cannot be stored: %d %v", got.status, got.header)
	}
}

func TestTextsStandBeforeASavedTalk(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	r := keeping(t, oneModel(up), nil)
	got := r.chat(saving(`,"signalbox":{"context":`+quoted(r.keep("Known."), r.keep("Too."))+`,"save_context":{}}`, hi))
	id, _ := contextIn(t, got.body)
	if want := `[{"content":"Known.\n\nToo.","role":"system"},{"content":"hi","role":"user"},{"content":"hello","role":"assistant"}]`; id == "" || r.stored(id) != want {
		t.Errorf("%s", got.body)
	}
}

func TestWhatCannotBeStoredIsToldAndTheAnswerGoesOut(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		answer := testkit.JSON(200, testkit.Completion)
		if stream {
			answer = testkit.Stream(testkit.Event("hello"), testkit.Finish, testkit.Done)
		}
		full, err := memory.New(memory.Options{Quota: func(string) memory.Quota { return memory.Quota{ContextBytes: 1} }}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := keeping(t, oneModel(testkit.NewUpstream(t, answer)), nil)
		r.proxy.UseMemory(full)
		got := r.chat(saving(fmt.Sprintf(`,"stream":%v,"signalbox":{"save_context":{}}`, stream), hi))
		if got.status != 200 || !strings.Contains(got.body, "hello") || !strings.Contains(got.body, `"x_signalbox":{"degraded":["save_context"]}`) {
			t.Errorf("stream %v: %d %s", stream, got.status, got.body)
		}
		if !stream && got.header.Get("X-Signalbox-Degraded") != "save_context" {
			t.Errorf("degraded %q", got.header.Get("X-Signalbox-Degraded"))
		}
		waitFor(t, "the log line", func() bool { return strings.Contains(r.log.String(), `"unsaved"`) })
	}
}

func TestASavedContextIsNoWiderThanWhatItHolds(t *testing.T) {
	t.Parallel()
	r := keeping(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))), nil)
	owner := anyone()
	owner.Session = "s1"
	secret := r.create(owner, memory.Draft{Content: memory.Content{Text: "of the session"}, Scope: memory.SessionScope})
	got := r.chat(saving(`,"signalbox":{"session":"s1","context":"`+secret+`","save_context":{}}`, hi))
	id, _ := contextIn(t, got.body)
	if id == "" {
		t.Fatal(got.body)
	}
	if other := r.chat(with(quoted(id), hi)); other.status != http.StatusNotFound {
		t.Errorf("outside of the session: %d %s", other.status, other.body)
	}
}

// A model that contradicts a pinned fact is reported, with the place of the fact, and its response
// is not stored.
func TestFactsOfContextsAreEvidence(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event("The rent is 1200 EUR a month."), testkit.Finish, testkit.Done))
	r := keeping(t, oneModel(up), nil, func(s *setup) { s.guard.Mode = "annotate" })
	plain, pinned := r.keep("Nothing of note."), r.keep("See the facts.", "The rent is 900 EUR a month.")
	got := r.chat(saving(`,"stream":true,"signalbox":{"context":`+quoted(plain, pinned)+`,"save_context":{}}`, hi))
	if !strings.Contains(got.body, `"verdict":"contradicted"`) || !strings.Contains(got.body, `"fact":"f1","context":"`+pinned+`@1"`) {
		t.Errorf("%s", got.body)
	}
	if id, _ := contextIn(t, got.body); id != "" {
		t.Error("what failed was stored")
	}
	owner := anyone()
	owner.Session = "s9"
	if err := r.store.SetSessionFacts(t.Context(), owner, []memory.Fact{{ID: "s", Text: "The rent is 800 EUR a month."}}, 0); err != nil {
		t.Fatal(err)
	}
	got = r.chat(saving(`,"stream":true,"signalbox":{"session":"s9"}`, hi))
	if !strings.Contains(got.body, `"fact":"s"`) || strings.Contains(got.body, `"context":`) {
		t.Errorf("facts of the session: %s", got.body)
	}
	got = r.post("/signalbox/v1/verify", `{"context":"`+pinned+`","answer":"The rent is 1200 EUR a month."}`)
	if !strings.Contains(got.body, `"fact":"f1","context":"`+pinned+`@1"`) {
		t.Errorf("verify: %s", got.body)
	}
	got = r.post("/signalbox/v1/verify", `{"context":"ctx_none","answer":"The rent is 1200 EUR a month."}`)
	if e := got.error(t); got.status != 404 || e.Param == nil || *e.Param != "context" {
		t.Errorf("verify against nothing: %d %s", got.status, got.body)
	}
}

// A fact without an id is named by its position in its list.
func TestFactsWithoutIDsAreNamedByTheirPlace(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event("The rent is 1200 EUR a month."), testkit.Finish, testkit.Done))
	r := keeping(t, oneModel(up), nil, func(s *setup) { s.guard.Mode = "annotate" })
	facts := []memory.Fact{{Text: "The pets are quiet."}, {Text: "The rent is 900 EUR a month."}}
	pinned := r.create(anyone(), memory.Draft{Content: memory.Content{Text: "See the facts."}, Facts: facts})
	owner := anyone()
	owner.Session = "s9"
	if err := r.store.SetSessionFacts(t.Context(), owner, facts, 0); err != nil {
		t.Fatal(err)
	}
	const given = `"facts":["The sky is blue.","The door is red."]`
	for name, c := range map[string]struct{ path, body, want string }{
		"of a context alone": {
			chatPath, with(quoted(pinned), hi), `"fact":"facts[1]","context":"` + pinned + `@1"`,
		},
		"of a context beside others": {
			chatPath, saving(`,"signalbox":{`+given+`,"context":`+quoted(pinned)+`}`, hi),
			`"fact":"facts[1]","context":"` + pinned + `@1"`,
		},
		"of a session": {
			chatPath, saving(`,"signalbox":{`+given+`,"session":"s9"}`, hi), `"fact":"session.facts[1]"}`,
		},
		"of the request beside others": {
			chatPath,
			saving(`,"signalbox":{"facts":["The sky is blue.","The rent is 900 EUR a `+
				`month."],"context":`+quoted(r.keep("No."))+`}`, hi),
			`"fact":1}`,
		},
		"of a context, in verification": {
			"/signalbox/v1/verify",
			`{` + given + `,"context":"` + pinned + `","answer":"The rent is 1200 EUR a month."}`,
			`"fact":"facts[1]","context":"` + pinned + `@1"`,
		},
		"a text, in verification": {
			"/signalbox/v1/verify",
			`{` + given + `,"context":"` + r.keep("The rent is 900 EUR a month.") + `","answer":"The rent is 1200 EUR a ` +
				`month."}`,
			`"fact":"content","context":"ctx_`,
		},
	} {
		body := strings.Replace(c.body, `{`, `{"stream":true,`, 1)
		if c.path != chatPath {
			body = c.body
		}
		if got := r.post(c.path, body); !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}

func TestObservedFailuresAreStored(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event("The rent is 1200 EUR a month."), testkit.Finish, testkit.Done))
	r := keeping(t, oneModel(up), nil, func(s *setup) { s.guard.Mode = "observe" })
	got := r.chat(saving(`,"stream":true,"signalbox":{"guard":"observe","context":`+quoted(r.keep("See.", "The rent is 900 EUR a month."))+`,"save_context":{}}`, hi))
	if id, _ := contextIn(t, got.body); id == "" || !strings.Contains(got.body, `"verdict":"unsupported"`) {
		t.Errorf("%s", got.body)
	}
}

// The content of contexts is redacted like the request, and restored.
func TestContextsAreRedactedToo(t *testing.T) {
	t.Parallel()
	const placeholder = "[EMAIL_1]"
	for _, stream := range []bool{false, true} {
		answer := testkit.JSON(200, strings.Replace(testkit.Completion, "hello", placeholder, 1))
		if stream {
			answer = testkit.Stream(testkit.Event("[EMA"), testkit.Event("IL_1]"), testkit.Finish, testkit.Done)
		}
		for name, c := range map[string]struct {
			text, asks string
			hidden     bool
		}{
			"in the context":               {"Write to ann@example.com.", "hi", true},
			"in a context nobody has read": {"unread ann@example.com", "hi", true},
			"in both":                      {"Write to ann@example.com.", "I am ann@example.com", true},
			"in the request":               {"nothing", "I am ann@example.com", true},
			"nowhere":                      {"nothing", "hi", false},
		} {
			up := testkit.NewUpstream(t, answer)
			r := keeping(t, oneModel(up), nil, func(s *setup) { s.routes = redactRoutes; s.classifier.signals = signal.MaskOf(signal.PII) })
			r.state.Signals.Classifier = &piiClassifier{fakeClassifier: fakeClassifier{signals: signal.MaskOf(signal.PII)}}
			id := r.keep(c.text)
			got := r.chat(fmt.Sprintf(`{"model":"auto","stream":%v,"signalbox":{"context":%q},"messages":[{"role":"user","content":%q}]}`, stream, id, c.asks), "X-Mail", "ann@example.com")
			sent := up.Last(t)
			if got.status != 200 || strings.Contains(string(sent.Body), "ann@") || strings.Contains(string(sent.Body), placeholder) != c.hidden {
				t.Errorf("%s, stream %v: %d %s, sent %s", name, stream, got.status, got.body, sent.Body)
			}
			if c.hidden != (sent.Header.Get("X-Mail") == "") || c.hidden != strings.Contains(got.body, "ann@example.com") {
				t.Errorf("%s, stream %v: header %q, answered %s", name, stream, sent.Header.Get("X-Mail"), got.body)
			}
		}
	}
}
