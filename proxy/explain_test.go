package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/testkit"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/explain"
)

// explained calls the explain endpoint.
func (b *bench) explained(t *testing.T, body string) *explain.Explanation {
	t.Helper()
	got := b.post("/signalbox/v1/explain", body)
	var e explain.Explanation
	if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", got.status, err, got.body)
	}
	return &e
}

// withSystem returns a request with a system prompt.
func withSystem(system, text, rest string) string {
	return `{"model":"auto"` + rest + `,"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + text + `"}]}`
}

func TestExplainTellsWhatIsSent(t *testing.T) {
	const use = `
routes:
  - {name: kept, when: {domain: math}, use: {models: [big], prompt: mathematician, reasoning: high, max_tokens: 700}}
  - {name: prefixed, when: {domain: law}, use: {models: [effort], prompt: {name: mathematician, mode: prefix}, reasoning: auto}}
default: {models: [small]}
`
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{}`))
	b := start(t, oneModel(up), func(s *setup) { s.routes = use })
	big := func(prompt string) *explain.Sent {
		return &explain.Sent{Model: "big", Reasoning: "high", MaxTokens: 700, Limit: "route", Prompt: prompt}
	}
	for _, c := range []struct {
		name, body string
		want       *explain.Sent
	}{
		{"a prompt where there was none", ask("math"), big("inserted")},
		{"a prompt in place of a vague one", withSystem("You are a helpful assistant.", "math", ""), big("replaced")},
		{"a specific prompt", withSystem("Answer in rhymes.", "math", ""), big("kept")},
		{
			"a prompt before a specific one", withSystem("Answer in rhymes.", "law", ""),
			&explain.Sent{Model: "effort", Reasoning: "high", ReasoningBy: "complexity", Prompt: "prefixed"},
		},
		{
			"the client's own limit and effort",
			withSystem("Answer in rhymes.", "law", `,"max_tokens":9,"reasoning_effort":"low"`),
			&explain.Sent{Model: "effort", Reasoning: "low", MaxTokens: 9, Limit: "client", Prompt: "prefixed"},
		},
		{"nothing", ask("hello"), &explain.Sent{Model: "small"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, b.explained(t, c.body).Sent); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
	if n := len(up.Requests()); n != 0 {
		t.Errorf("%d requests were forwarded", n)
	}
}

func TestExplainTellsWhyASignalWasNotComputed(t *testing.T) {
	t.Parallel()
	const routes = `
routes:
  - {name: titan, when: {keyword: titan}, block: {message: m}}
  - {name: guests, when: {all: [{role: guest}, {jailbreak: true}]}, block: {message: m}}
  - {name: staff, when: {role: staff}, use: {models: [effort], reasoning: auto}}
  - {name: math, when: {domain: math}, use: {models: [big]}}
default: {models: [small]}
`
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{}`))), func(s *setup) { s.routes = routes })
	reasons := func(text string) map[string]string {
		out := map[string]string{}
		for name, s := range b.explained(t, ask(text)).Signals {
			if s.State == "skipped" {
				out[name] = s.Reason
			}
		}
		return out
	}
	const behind = "used only by routes after titan"
	if diff := cmp.Diff(map[string]string{"jailbreak": behind, "domain": behind, "complexity": behind}, reasons("titan")); diff != "" {
		t.Errorf("of a route that needs no model (-want +got):\n%s", diff)
	}
	const settled, unwanted = "not needed to decide any condition", "used only by actions of routes that did not apply"
	if diff := cmp.Diff(map[string]string{"jailbreak": settled, "complexity": unwanted}, reasons("math")); diff != "" {
		t.Errorf("of a route that needs one signal (-want +got):\n%s", diff)
	}
}

func TestExplainListsCandidatesAndBlockers(t *testing.T) {
	t.Parallel()
	const routes = `
routes:
  - {name: titan, when: {keyword: titan}, block: {message: m}}
  - {name: math, when: {all: [{domain: math}, {role: staff}]}, use: {models: [big]}}
default: {models: [tiny, big, small], by: cost, quality_margin: 1}
`
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{}`))), func(s *setup) {
		s.routes = routes
		tiny := s.models[0]
		tiny.Name, tiny.ContextWindow = "tiny", 16
		s.models[1].Price = choose.Price{Input: 0.1, Output: 0.2}
		s.models = append(s.models, tiny)
	})
	e := b.explained(t, ask("math "+strings.Repeat("and more math ", 40)))
	want := []explain.Candidate{
		{Name: "small"},
		{Name: "big"},
		{Name: "tiny", Left: "its context window is too small for the prompt", Out: true},
	}
	figures := cmpopts.IgnoreFields(explain.Candidate{}, "Quality", "Cost", "Seconds")
	if diff := cmp.Diff(want, e.Candidates, figures); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if small, big := e.Candidates[0].Cost, e.Candidates[1].Cost; small == nil || big == nil || *small >= *big {
		t.Errorf("costs %v and %v", small, big)
	}
	if diff := cmp.Diff([]string{"small", "big"}, e.Models); diff != "" || e.Model != "small" || e.By != "cost" || e.Outcome != "default" {
		t.Errorf("model %q by %q, %s, models (-want +got):\n%s", e.Model, e.By, e.Outcome, diff)
	}
	if diff := cmp.Diff([]string{"role is staff"}, e.Routes[1].Blockers); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}

func TestAnAnswerExplainsTheModelThatGaveIt(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{"choices":[]}`))
	up.Next(testkit.JSON(http.StatusServiceUnavailable, `{"error":{}}`))
	b := start(t, oneModel(up))
	got := b.chat(strings.Replace(ask("math"), `{`, `{"signalbox":{"explain":true},`, 1))
	var answer struct {
		X struct{ Decision explain.Explanation } `json:"x_signalbox"`
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		t.Fatalf("status %d, %v: %s", got.status, err, got.body)
	}
	e := &answer.X.Decision
	if e.Model != "big" || e.Sent == nil ||
		e.Sent.Model != "small" || e.Sent.Reasoning != "" || e.Sent.Prompt != "inserted" {
		t.Errorf("chosen %q, sent %+v", e.Model, e.Sent)
	}
}

func TestClassifyRefusesWhatIsNoText(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	got := b.post("/signalbox/v1/classify", `{"input":["a",null]}`)
	if e := got.error(t); got.status != 400 || e.Param == nil || *e.Param != "input[1]" {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.post("/signalbox/v1/classify", `{"input":null}`); got.status != 400 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.post("/signalbox/v1/classify", `{"input":["a",""]}`); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// withoutDecision removes the only x_signalbox from a stream and returns the event that contained
// it.
func withoutDecision(t *testing.T, stream string) (rest, event string) {
	t.Helper()
	const lead = `,"x_signalbox":`
	before, after, ok := strings.Cut(stream, lead)
	if !ok || strings.Contains(after, lead) {
		t.Fatalf("not one x_signalbox in %s", stream)
	}
	var own json.RawMessage
	if err := json.NewDecoder(strings.NewReader(after)).Decode(&own); err != nil {
		t.Fatalf("%v in %s", err, stream)
	}
	after = after[len(own):]
	var told struct{ Decision *explain.Explanation }
	if err := json.Unmarshal(own, &told); err != nil || told.Decision == nil || told.Decision.Sent == nil ||
		told.Decision.Sent.Model != "small" {
		t.Errorf("told %s (%v)", own, err)
	}
	end, _, _ := strings.Cut(after, "\n\n")
	return before + after, before[strings.LastIndex(before, "\n\n")+2:] + lead + string(own) + end
}

func TestAStreamEndsWithItsExplanation(t *testing.T) {
	t.Parallel()
	chat := endpoint{
		path: chatPath, events: []string{testkit.Event("hel"), testkit.Event("lo"), testkit.Finish, testkit.Done},
		ask: func(text, more string) string { return strings.Replace(ask(text), "{", "{"+more[1:]+",", 1) },
	}
	for _, e := range append(routed(), chat) {
		up := testkit.NewUpstream(t, testkit.Stream(e.events...))
		b := start(t, oneModel(up))
		plain := b.post(e.path, e.ask("hi", `,"stream":true`))
		got := b.post(e.path, e.ask("hi", `,"stream":true,"signalbox":{"explain":true}`))
		rest, event := withoutDecision(t, got.body)
		if diff := cmp.Diff(plain.body, rest); diff != "" {
			t.Errorf("%s: other bytes (-want +got):\n%s", e.path, diff)
		}
		if !strings.Contains(event, `"finish_reason":"stop"`) && !strings.Contains(event, `"type":"response.completed"`) {
			t.Errorf("%s: told in %s", e.path, event)
		}
	}
	up := testkit.NewUpstream(t, testkit.Stream(chat.events...))
	got := start(t, oneModel(up)).message(askMessage("hi", `,"stream":true,"signalbox":{"explain":true}`))
	if _, event := withoutDecision(t, got.body); !strings.HasPrefix(event, "event: message_delta\n") {
		t.Errorf("told in %s", event)
	}
}

func TestAStreamIsExplainedBesideItsVerdict(t *testing.T) {
	t.Parallel()
	pieces := []string{towerTrue, towerFalse, " ", towerRest[1:]}
	for _, mode := range []string{"annotate", "terminate", "hold"} {
		for _, path := range []string{chatPath, "/v1/completions", "/v1/responses", downstream.MessagesPath} {
			body, events := askStream("hi"), towerStream(pieces...)
			switch path {
			case downstream.MessagesPath:
				body = askMessage("hi", `,"stream":true`)
			case "/v1/completions":
				body, events = routed()[0].ask("hi", `,"stream":true`), guardedEvents(path, pieces)
			case "/v1/responses":
				body, events = routed()[1].ask("hi", `,"stream":true`), guardedEvents(path, pieces)
			}
			up := testkit.NewUpstream(t, testkit.Stream(events...))
			got := watched(t, mode, up).post(path, guarded(body, towerFact+`,"explain":true`), "Anthropic-Version", "2023-06-01")
			_, event := withoutDecision(t, got.body)
			if !strings.Contains(event, `,"guard":{"mode":"`+mode+`","verdict":"unsupported"`) {
				t.Errorf("%s, %s: told in %s", mode, path, event)
			}
		}
	}
}

func TestAStreamIsExplainedBesideWhatWasSaved(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event("hello"), testkit.Finish, testkit.Done))
	got := keeping(t, oneModel(up), nil).chat(saving(`,"stream":true,"signalbox":{"explain":true,"save_context":{}}`, hi))
	if _, event := withoutDecision(t, got.body); !strings.Contains(event, `"x_signalbox":{"context":"`) {
		t.Errorf("told in %s", event)
	}
}
