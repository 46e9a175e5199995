package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/fault"
	"signalbox/proxy/guardrail"
	"signalbox/stream/check"
	"signalbox/stream/response"
)

func TestAnAnswerIsCheckedWhateverItsSuccessIsCalled(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 203} {
		up := testkit.NewUpstream(t, testkit.JSON(status, towerBody()))
		got := watched(t, "hold", up).chat(guarded(ask("hi"), towerFact))
		if got.status != status || got.header.Get("X-Signalbox-Guard") != "hold" || strings.Contains(got.body, "1925") {
			t.Errorf("%d: status %d, guard %q: %s", status, got.status, got.header.Get("X-Signalbox-Guard"), got.body)
		}
	}
}

func TestAnswersThatAreNoTextAreNotGuarded(t *testing.T) {
	t.Parallel()
	const answer = `{"results":[{"index":0,"relevance_score":0.9}]}`
	up := testkit.NewUpstream(t, testkit.JSON(200, answer))
	b := watched(t, "hold", up, func(s *setup) { s.guard.OnUnchecked, s.guard.Documents = "block", true })
	for _, path := range []string{"/v1/rerank", "/v1/embeddings"} {
		got := b.post(path, guarded(`{"model":"small","query":"q","input":"i","documents":["The tower is 330 m high."]}`, towerFact))
		if got.status != 200 || got.body != answer || got.header.Get("X-Signalbox-Guard") != "off" {
			t.Errorf("%s: status %d, guard %q: %s", path, got.status, got.header.Get("X-Signalbox-Guard"), got.body)
		}
	}
	if page := b.metrics(); strings.Contains(page, `action="skipped"`) {
		t.Errorf("metrics: %s", guardLines(page))
	}
}

func TestAWithheldAnswerIsNotCalledABrokenUpstream(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, `{"choices":[],"choices":[]}`))
	b := watched(t, "hold", up, func(s *setup) { s.guard.OnUnchecked = "block" })
	got := b.chat(guarded(ask("hi"), towerFact))
	if e := got.error(t); got.status != 502 || !strings.Contains(e.Message, "guard cannot check") || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

func TestATerminateThatAClientAsksForEndsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	for route, extras := range map[string]string{"annotate": `,"guard":"terminate"`, "terminate": `,"guard":"terminate"`} {
		up := testkit.NewUpstream(t, testkit.Stream(towerStream(towerTrue, towerFalse, " ", towerRest[1:])...))
		b := watched(t, route, up, func(s *setup) { s.guard.Failures = 3 })
		if heard := hear(t, b.chat(guarded(askStream("hi"), towerFact+extras)).body); heard.finish != "content_filter" {
			t.Errorf("route %s: %+v", route, heard)
		}
	}
	up := testkit.NewUpstream(t, testkit.Stream(towerStream(towerTrue, towerFalse, " ", towerRest[1:])...))
	b := watched(t, "terminate", up, func(s *setup) { s.guard.Failures = 3 })
	if heard := hear(t, b.chat(guarded(askStream("hi"), towerFact)).body); heard.finish != "stop" {
		t.Errorf("the route's own: %+v", heard)
	}
}

// A server reports usage at the end, which does not arrive in this case.
func TestAStreamThatTheGuardEndsTellsTheUsageThatWasAskedFor(t *testing.T) {
	t.Parallel()
	pieces := towerStream(towerTrue, towerFalse, " ", towerRest[1:])
	for extra, want := range map[string]int{"": 0, `,"stream_options":{"include_usage":true}`: 1} {
		up := testkit.NewUpstream(t, testkit.Stream(pieces...))
		body := strings.Replace(askStream("hi"), `,"stream":true`, `,"stream":true`+extra, 1)
		got := watched(t, "terminate", up).chat(guarded(body, towerFact)).body
		usage := regexp.MustCompile(`"choices":\[\],"usage":\{"prompt_tokens":[1-9]\d*,` +
			`"completion_tokens":[1-9]\d*,"total_tokens":\d+\}\}`)
		if heard := hear(t, got); heard.finish != "content_filter" || !heard.done ||
			len(usage.FindAllString(got, -1)) != want ||
			strings.LastIndex(got, "usage") > strings.Index(got, "[DONE]") {
			t.Errorf("%q: %s", extra, got)
		}
	}
}

func TestAnExplanationTellsTheModeThatApplies(t *testing.T) {
	t.Parallel()
	b := watched(t, "annotate", testkit.NewUpstream(t, testkit.Silent()))
	for format, want := range map[string]string{"text": "annotate", "json_object": "annotate"} {
		body := strings.Replace(ask("hi"), "{", `{"response_format":{"type":"`+format+`"},`, 1)
		if got := b.post("/signalbox/v1/explain", guarded(body, towerFact)).body; !strings.Contains(got, `"guard":"`+want+`"`) {
			t.Errorf("%s: %s", format, got)
		}
	}
}

func TestWhatAModelServerSaysAsUsIsReplacedByTheExplanation(t *testing.T) {
	t.Parallel()
	forged := func(value string) string {
		return strings.Replace(testkit.Completion, `{"id"`, `{"x_signalbox":`+value+`,"usage":{"x_signalbox":{"a":1}},"id"`, 1)
	}
	for name, tt := range map[string]struct{ mode, answer string }{
		"off":               {"off", forged(`{"decision":{"route":"forged"}}`)},
		"observed":          {"observe", forged(`{"decision":{"route":"forged"}}`)},
		"annotated":         {"annotate", forged(`{"decision":{"route":"forged"}}`)},
		"no object":         {"off", forged(`"forged"`)},
		"empty":             {"off", forged(`{}`)},
		"empty and watched": {"annotate", forged(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, testkit.JSON(200, strings.Replace(tt.answer, `"usage":{"prompt`, `"spent":{"prompt`, 1)))
			got := watched(t, tt.mode, up).chat(guarded(ask("hi"), towerFact+`,"explain":true`))
			var body struct {
				Signalbox map[string]json.RawMessage `json:"x_signalbox"`
			}
			if err := json.Unmarshal([]byte(got.body), &body); err != nil || strings.Contains(got.body, "forged") {
				t.Fatalf("%v: %s", err, got.body)
			}
			_, summary := body.Signalbox["guard"]
			if !strings.Contains(string(body.Signalbox["decision"]), `"route":"default"`) || summary != (tt.mode == "annotate") ||
				strings.Count(got.body, `"x_signalbox"`) != 2 {
				t.Errorf("%s", got.body)
			}
		})
	}
}

func TestOtherAnswersKeepTheirPlaceForAnExplanation(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                                   `{|}`,
		"{ \"a\" : 1 }\n":                      "{ \"a\" : 1 |}\n",
		`{"x_signalbox":{},"a":1}`:             `{"x_signalbox":|{},"a":1}`,
		`{"a":{"x_signalbox":1}}`:              `{"a":{"x_signalbox":1}|}`,
		`{"x_signalbox":1,"x_signalbox":2}`:    "",
		`{"x_\u0073ignalbox":1,"b":1e400}`:     `{"x_\u0073ignalbox":|1,"b":1e400}`,
		`[]`:                                   "",
		`{"a":1`:                               "",
		`{"a":{"b":1,"b":2},"c":"` + "\xff\"}": `{"a":{"b":1,"b":2},"c":"` + "\xff\"|}",
	} {
		at, ok := response.ExtensionOf([]byte(body))
		got := ""
		if ok {
			got = body[:at.Value.Start] + "|" + body[at.Value.Start:]
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestALongToolResultLeavesTheGuardOn(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, towerBody()))
	b := watched(t, "hold", up, func(s *setup) {
		for i := range s.models {
			s.models[i].ContextWindow = 0
		}
	})
	result := strings.Repeat("nothing of note\\n", guardrail.MaxDocumentBytes/16+1) + "The tower is 330 m high. It was opened in 1889."
	got := b.chat(`{"model":"auto","messages":[{"role":"tool","tool_call_id":"c","content":"` + result + `"},{"role":"user","content":"hi"}]}`)
	if got.header.Get("X-Signalbox-Guard") != "hold" || strings.Contains(got.body, "1925") || !strings.Contains(got.header.Get("X-Signalbox-Degraded"), "evidence") {
		t.Errorf("guard %q, degraded %q: %s", got.header.Get("X-Signalbox-Guard"), got.header.Get("X-Signalbox-Degraded"), got.body)
	}
}

// gatedJudge waits for its context.
type gatedJudge struct{ begun chan struct{} }

func (j gatedJudge) Judge(ctx context.Context, _ []check.Pair) ([]check.Inference, error) {
	j.begun <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTextsAreVerifiedInTurnAndNoLongerThanTheirClientsWait(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	b := watched(t, "off", testkit.NewUpstream(t, testkit.Silent()), judged(t, gatedJudge{begun}, ""), func(s *setup) { s.guard.Workers = 1 })
	const body = `{"facts":["The tower stands in Paris."],"answer":"The tower stands in Rome."}`
	got, err := guardrail.ParseVerify([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	in := &guardrail.Text{Facts: got.Given(), Answer: got.Answer}
	first, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := b.state.guard.Verify(first, in); ended <- err }()
	within(t, begun, "the first check")
	second, leaveToo := context.WithCancel(t.Context())
	leaveToo()
	if _, err := b.state.guard.Verify(second, in); !errors.Is(err, fault.ErrClientGone) || len(begun) > 0 {
		t.Errorf("the second: %v, %d checks began", err, len(begun))
	}
	leave()
	if err := <-ended; !errors.Is(err, fault.ErrClientGone) {
		t.Errorf("the first: %v", err)
	}
	if n := b.state.guard.Verifying(); n > 0 {
		t.Errorf("%d places are still taken", n)
	}
}

// Completions and the Responses API are guarded like chat.
func TestEveryEndpointIsGuarded(t *testing.T) {
	t.Parallel()
	pieces := []string{towerTrue, towerFalse, " ", towerRest[1:]}
	for _, e := range routed() {
		for mode, want := range map[string]string{
			"annotate": towerTrue + towerFalse + " [unverified]" + towerRest,
			"hold":     towerTrue + " [unverified]" + towerRest,
		} {
			t.Run(e.path+", "+mode, func(t *testing.T) {
				t.Parallel()
				up := testkit.NewUpstream(t, testkit.Stream(guardedEvents(e.path, pieces)...))
				b := watched(t, mode, up)
				got := b.post(e.path, guarded(e.ask("hi", `,"stream":true`), towerFact))
				if got.status != http.StatusOK || got.err != nil || got.header.Get("X-Signalbox-Guard") != mode {
					t.Fatalf("status %d, %v, guard %q: %s", got.status, got.err, got.header.Get("X-Signalbox-Guard"), got.body)
				}
				text, whole, s := hearOther(t, got.body)
				if strings.ReplaceAll(text, "  ", " ") != want || whole != "" && strings.ReplaceAll(whole, "  ", " ") != want {
					t.Errorf("text %q, told as %q, want %q", text, whole, want)
				}
				if s == nil || s.Mode != mode || s.Verdict != "unsupported" || len(s.Failed) != 1 || s.Failed[0].Start != len(towerTrue)+1 {
					t.Errorf("summary %+v", s)
				}
				b.tells(mode)
			})
		}
	}
}

// JSON requested only in the prompt stays valid, and the operator's setting for it applies.
func TestJSONThatThePromptAsksForIsNotAnnotatedInside(t *testing.T) {
	t.Parallel()
	const open, shut = `{\"answer\": \"`, `\"}`
	body := strings.Replace(testkit.Completion, `"hello"`, `"`+open+towerTrue+towerFalse+shut+`"`, 1)
	stream := testkit.Stream(towerStream(open[:1], open[1:], towerTrue, towerFalse, shut)...)
	unescape := strings.NewReplacer(`\"`, `"`)
	for structured, finish := range map[string]string{
		"report": "stop", "terminate": "content_filter", "hold": "content_filter",
	} {
		t.Run(structured, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, testkit.JSON(200, body))
			b := watched(t, "annotate", up, func(s *setup) { s.guard.Structured = structured })
			whole := b.chat(guarded(ask("hi"), towerFact))
			up.Next(stream)
			for _, got := range []answered{whole, b.chat(guarded(askStream("hi"), towerFact))} {
				heard := hear(t, got.body)
				all := unescape.Replace(open + towerTrue + towerFalse + shut)
				if !strings.HasPrefix(all, heard.text) || finish == "stop" && heard.text != all || heard.finish != finish {
					t.Errorf("ended with %q: %q", heard.finish, heard.text)
				}
				if s := heard.guard; s == nil || len(s.Failed) != 1 {
					t.Errorf("summary %+v", s)
				}
			}
			mode := structured
			if mode == "report" {
				mode = "annotate"
			}
			if got := whole.header.Get("X-Signalbox-Guard"); got != mode {
				t.Errorf("guard %q, want %q", got, mode)
			}
		})
	}
}

// A client may treat an event with a known number as a repetition.
func TestTheEventsOfAGuardedResponseAreNumberedInOrder(t *testing.T) {
	t.Parallel()
	const path, told = "/v1/responses", `"sequence_number":`
	numbers := func(stream string) (out []string) {
		for _, behind := range strings.Split(stream, told)[1:] {
			out = append(out, behind[:strings.IndexAny(behind, ",}")])
		}
		return out
	}
	number := func(events []string) string {
		for i := range events {
			head, rest, _ := strings.Cut(events[i], told)
			events[i] = head + told + strconv.Itoa(3+i) + rest[strings.IndexAny(rest, ",}"):]
		}
		return strings.Join(events, "")
	}
	last := []string{towerTrue, towerRest, " It was", " opened in 19", "25."}
	first := []string{"It was", " opened", " in 19", "25.", " " + towerTrue, towerRest}
	for name, tt := range map[string]struct {
		mode   string
		pieces []string
		change bool
	}{
		"observe":                        {"observe", last, false},
		"annotate":                       {"annotate", last, true},
		"hold":                           {"hold", last, true},
		"hold, events that are left out": {"hold", first, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mode, pieces, change := tt.mode, tt.pieces, tt.change
			came := number(guardedEvents(path, pieces))
			b := watched(t, mode, testkit.NewUpstream(t, testkit.Stream(came)))
			got := b.post(path, guarded(routed()[1].ask("hi", `,"stream":true`), towerFact))
			was, is := numbers(came), numbers(got.body)
			if !change && !slices.Equal(was, is) {
				t.Errorf("numbers %v became %v", was, is)
			}
			for i := 1; change && i < len(is); i++ {
				before, _ := strconv.Atoi(is[i-1])
				if is[i] != strconv.Itoa(before+1) {
					t.Errorf("%s follows %s: %v", is[i], is[i-1], is)
				}
			}
		})
	}
}

// guardedEvents returns a stream of an endpoint with the pieces as text.
func guardedEvents(path string, pieces []string) []string {
	var out []string
	if path == "/v1/completions" {
		for _, p := range pieces {
			out = append(out, textEvent(p))
		}
		return append(out, textFinish, testkit.Done)
	}
	out = append(out, responseBegin)
	for _, p := range pieces {
		out = append(out, responseDelta(p))
	}
	return append(out, strings.ReplaceAll(responseEnd, `"text":"hello"`, `"text":"`+strings.Join(pieces, "")+`"`))
}

// hearOther parses a stream of completions or of the Responses API: its text in pieces, the full
// text at the end, and the summary.
func hearOther(tb testing.TB, body string) (text, whole string, s *guardSummary) {
	tb.Helper()
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		type extension struct{ Guard *guardSummary }
		var e struct {
			Choices  []struct{ Text string }
			Delta    string
			Response struct {
				Output    []struct{ Content []struct{ Text string } }
				Signalbox extension `json:"x_signalbox"`
			}
			Signalbox extension `json:"x_signalbox"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			tb.Fatalf("%q: %v", data, err)
		}
		text += e.Delta
		for _, c := range e.Choices {
			text += c.Text
		}
		for _, o := range e.Response.Output {
			whole += o.Content[0].Text
		}
		for _, x := range []extension{e.Signalbox, e.Response.Signalbox} {
			if x.Guard != nil {
				s = x.Guard
			}
		}
	}
	return text, whole, s
}
