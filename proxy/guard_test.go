package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/explain"
	"signalbox/proxy/guardrail"
	"signalbox/stream/check"
	"signalbox/stream/sse"
)

const towerFact = `"facts":["The tower is 330 m high.","It was opened in 1889."]`

// What a model says about the tower; the second sentence is wrong.
const (
	towerTrue  = "The tower is 330 m high."
	towerFalse = " It was opened in 1925."
	towerRest  = " It is open today."
)

func towerStream(pieces ...string) []string {
	out := make([]string, 0, len(pieces)+2)
	for _, p := range pieces {
		out = append(out, testkit.Event(p))
	}
	return append(out, testkit.Finish, testkit.Done)
}

func towerBody() string {
	return strings.Replace(testkit.Completion, `"hello"`, `"`+towerTrue+towerFalse+towerRest+`"`, 1)
}

// guarded returns a chat request with signalbox extras.
func guarded(text, extras string) string {
	return strings.Replace(text, "{", `{"signalbox":{`+extras+`},`, 1)
}

// watched starts a bench whose default route has a guard in the mode.
func watched(tb testing.TB, mode string, up *testkit.Upstream, change ...func(*setup)) *bench {
	tb.Helper()
	return start(tb, oneModel(up), append([]func(*setup){func(s *setup) { s.guard.Mode = mode }}, change...)...)
}

// said is what a client assembles from a response, streamed or not.
type said struct {
	text, finish string
	done         bool // a stream ended in order
	guard        *guardSummary
	failed       string // message of an error event
}

type guardSummary struct {
	Mode, Verdict string
	Claims        int
	Failed        []struct {
		Text, Verdict string
		Start, End    int
		Fact          any
	}
}

// hear parses a response like a client.
func hear(tb testing.TB, body string) said {
	tb.Helper()
	type message struct{ Content string }
	var out said
	read := func(data string) {
		var chunk struct {
			Choices []struct {
				Delta, Message message
				FinishReason   string `json:"finish_reason"`
			}
			Error     struct{ Message string }
			Signalbox struct{ Guard *guardSummary } `json:"x_signalbox"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			tb.Fatalf("%q: %v", data, err)
		}
		out.failed = cmp.Or(out.failed, chunk.Error.Message)
		if chunk.Signalbox.Guard != nil {
			out.guard = chunk.Signalbox.Guard
		}
		for _, c := range chunk.Choices {
			out.text += c.Delta.Content + c.Message.Content
			out.finish = cmp.Or(c.FinishReason, out.finish)
		}
	}
	if strings.HasPrefix(body, "{") {
		read(body)
		out.done = true
		return out
	}
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		switch {
		case !ok:
		case data == "[DONE]":
			out.done = true
		default:
			read(data)
		}
	}
	return out
}

func TestAnswersAreCheckedInEveryMode(t *testing.T) {
	t.Parallel()
	const whole = towerTrue + towerFalse + towerRest
	const marked = towerTrue + towerFalse + " [unverified]" + towerRest
	for mode, want := range map[string]struct{ text, whole, finish string }{
		"observe":   {whole, whole, "stop"},
		"annotate":  {marked, marked, "stop"},
		"terminate": {"", towerTrue + " ", "content_filter"},
		"hold":      {towerTrue + " [unverified]" + towerRest, towerTrue + " [unverified]" + towerRest, "stop"},
	} {
		for _, streamed := range []bool{true, false} {
			t.Run(mode+map[bool]string{true: ", streamed", false: ", whole"}[streamed], func(t *testing.T) {
				t.Parallel()
				up := testkit.NewUpstream(t, testkit.JSON(200, towerBody(), "Etag", `"x"`))
				body, text := ask("hi"), want.whole
				if streamed {
					up.Next(testkit.Stream(towerStream(towerTrue, towerFalse, " ", towerRest[1:])...))
					body, text = askStream("hi"), want.text
				}
				b := watched(t, mode, up)
				got := b.chat(guarded(body, towerFact))
				if got.status != 200 || got.err != nil || got.header.Get("X-Signalbox-Guard") != mode {
					t.Fatalf("status %d, %v, guard %q: %s", got.status, got.err, got.header.Get("X-Signalbox-Guard"), got.body)
				}
				heard := hear(t, got.body)
				if !heard.done || heard.finish != want.finish || heard.failed != "" {
					t.Errorf("ended %v with %q, error %q", heard.done, heard.finish, heard.failed)
				}
				if text != "" && heard.text != text {
					t.Errorf("text (-want +got):\n%s", gocmp.Diff(text, heard.text))
				}
				if mode == "terminate" && (!strings.HasPrefix(heard.text, towerTrue) || strings.Contains(heard.text, "today")) {
					t.Errorf("text %q", heard.text)
				}
				if (mode == "observe") != (heard.guard == nil) {
					t.Fatalf("summary %+v", heard.guard)
				}
				if s := heard.guard; s != nil && (s.Mode != mode || s.Verdict != "unsupported" || len(s.Failed) != 1 ||
					s.Failed[0].Verdict != "contradicted" || s.Failed[0].Start != len(towerTrue)+1) {
					t.Errorf("summary %+v", s)
				}
				if !streamed && mode != "observe" && got.header.Get("Etag") != "" {
					t.Error("the tag of another body is passed on")
				}
				if up.Last(t).Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("asked for encoding %q", up.Last(t).Header.Get("Accept-Encoding"))
				}
				b.tells(mode)
			})
		}
	}
}

// tells checks the log, the metrics and the degraded header for one response about the tower.
func (b *bench) tells(mode string) {
	b.tb.Helper()
	log, page := b.log.String(), b.metrics()
	for _, want := range []string{`"guard":"` + mode + `"`, `"claims_failed":1`} {
		if mode != "observe" && !strings.Contains(log, want) {
			b.tb.Errorf("the log lacks %s: %s", want, log)
		}
	}
	if strings.Contains(log, "opened in 19") {
		b.tb.Errorf("the log holds text of the answer: %s", log)
	}
	if !strings.Contains(page, `signalbox_guard_claims_total{verdict="contradicted"} 1`) || !strings.Contains(page, "signalbox_guard_check_seconds_count") {
		b.tb.Errorf("metrics: %s", guardLines(page))
	}
	action := map[string]string{"annotate": "marked", "hold": "replaced", "terminate": "cut"}[mode]
	if action != "" && !strings.Contains(page, `signalbox_guard_actions_total{action="`+action+`"} 1`) {
		b.tb.Errorf("metrics: %s", guardLines(page))
	}
}

func guardLines(page string) string {
	var out strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "signalbox_guard") && !strings.Contains(line, "_bucket") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func TestWithoutGuardOrEvidenceNotAByteChanges(t *testing.T) {
	t.Parallel()
	stream := strings.Join(towerStream(towerTrue, towerFalse), "")
	odd := "data:{\"choices\" : [ ] }\r\n\r\n: a comment\n\n" + stream
	for name, tt := range map[string]struct{ mode, extras, header string }{
		"off":                         {"off", towerFact, "off"},
		"no section":                  {"", towerFact, "off"},
		"no facts":                    {"hold", `"session":"s"`, "unchecked"},
		"facts without a word":        {"hold", `"facts":[" "]`, "unchecked"},
		"no facts, and asked to hold": {"off", `"guard":"hold"`, "unchecked"},
		"observed":                    {"observe", towerFact, "observe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, testkit.Raw(testkit.StreamHead+testkit.Chunk(odd[:31])+testkit.Chunk(odd[31:])+"0\r\n\r\n", testkit.FIN))
			b := watched(t, tt.mode, up)
			got := b.chat(guarded(askStream("hi"), tt.extras))
			if got.status != 200 || got.err != nil || got.header.Get("X-Signalbox-Guard") != tt.header {
				t.Fatalf("status %d, %v, guard %q: %s", got.status, got.err, got.header.Get("X-Signalbox-Guard"), got.body)
			}
			if diff := gocmp.Diff(odd, got.body); diff != "" {
				t.Errorf("stream (-sent +got):\n%s", diff)
			}
			skipped := strings.Contains(b.metrics(), `signalbox_guard_actions_total{action="skipped"} 1`)
			if skipped != (tt.header == "unchecked") {
				t.Errorf("counted as skipped: %v", skipped)
			}
		})
	}
}

func TestAClientMayOnlyMakeTheGuardStricter(t *testing.T) {
	t.Parallel()
	modes := guardrail.Modes()
	for i, route := range modes {
		for j, asked := range append([]string{""}, modes...) {
			up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
			b := watched(t, "off", up, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small], guard: " + route + "}\n" })
			extras := towerFact
			if asked != "" {
				extras += `,"guard":"` + asked + `"`
			}
			want := modes[max(i, j-1)]
			if got := b.chat(guarded(ask("hi"), extras)).header.Get("X-Signalbox-Guard"); got != want {
				t.Errorf("route %s, client %q: %s, want %s", route, asked, got, want)
			}
			x := b.post("/signalbox/v1/explain", guarded(ask("hi"), extras))
			if !strings.Contains(x.body, `"guard":"`+want+`"`) || strings.Contains(x.body, `"evidence":{"facts":2`) != (want != "off") {
				t.Errorf("route %s, client %q: explained as %s", route, asked, x.body)
			}
		}
	}
}

func TestARouteMayTurnTheGuardOff(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, towerBody()))
	b := watched(t, "hold", up, func(s *setup) {
		s.routes = "routes:\n  - {name: free, when: {keyword: titan}, use: {models: [small], guard: off}}\n  - {name: fixed, when: {domain: law}, answer: {text: \"330 m\"}}\ndefault: {models: [small]}\n"
	})
	for text, want := range map[string]string{"about titan": "off", "about law": "off", "about math": "hold"} {
		if got := b.chat(guarded(ask(text), towerFact)); got.header.Get("X-Signalbox-Guard") != want {
			t.Errorf("%s: guard %q: %s", text, got.header.Get("X-Signalbox-Guard"), got.body)
		}
	}
	named := strings.Replace(ask("about titan"), `"auto"`, `"small"`, 1)
	if got := b.chat(guarded(named, towerFact)).header.Get("X-Signalbox-Guard"); got != "hold" {
		t.Errorf("a named model has guard %q", got)
	}
}

func TestTooManyFactsAreRefused(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := watched(t, "off", up)
	for name, tt := range map[string]struct {
		facts  string
		status int
	}{
		"more than 512":    {`["a"` + strings.Repeat(`,"a"`, 512) + `]`, 400},
		"512":              {`["a"` + strings.Repeat(`,"a"`, 511) + `]`, 200},
		"more than 64 KiB": {`["` + strings.Repeat("a", 40<<10) + `","` + strings.Repeat("b", 30<<10) + `"]`, 413},
	} {
		got := b.chat(guarded(ask("hi"), `"facts":`+tt.facts))
		if got.status != tt.status {
			t.Errorf("%s: status %d: %.200s", name, got.status, got.body)
		}
		if tt.status != 200 && *got.error(t).Param != "signalbox.facts" {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}

func TestTerminateCancelsASilentUpstream(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stall(testkit.Event(towerTrue), testkit.Event(towerFalse), testkit.Event(towerRest)))
	b := watched(t, "terminate", up)
	got := b.chat(guarded(askStream("hi"), towerFact))
	if heard := hear(t, got.body); got.err != nil || !heard.done || heard.finish != "content_filter" {
		t.Errorf("%v: %s", got.err, got.body)
	}
	within(t, up.Gone, "cancelling the upstream")
	if e := b.state.Models[1].Endpoints[0]; e.Failures() != 0 {
		t.Error("the cut counts against the endpoint")
	}
}

func TestAClientThatLeavesAGuardedAnswerCancelsTheUpstream(t *testing.T) {
	t.Parallel()
	for _, mode := range guardrail.Modes()[1:] {
		up := testkit.NewUpstream(t, testkit.Stall(testkit.Event("The tower is")))
		b := watched(t, mode, up)
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+chatPath, strings.NewReader(guarded(askStream("hi"), towerFact)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		within(t, up.Gone, "cancelling the upstream")
		_ = res.Body.Close()
	}
}

func TestAGuardedStreamThatBreaksOffNeverEndsCleanly(t *testing.T) {
	t.Parallel()
	begun := testkit.Chunk(testkit.Event(towerTrue)) + testkit.Chunk(testkit.Event(" It is"))
	half := testkit.Chunk(testkit.Event(towerTrue)) + testkit.Chunk(testkit.Event(strings.TrimSuffix(towerFalse, ".")))
	for name, answer := range map[string]testkit.Answer{
		"reset":              testkit.Raw(testkit.StreamHead+begun, testkit.RST),
		"ended too soon":     testkit.Raw(testkit.StreamHead+begun+"0\r\n\r\n", testkit.FIN),
		"inside of an event": testkit.Raw(testkit.StreamHead+begun+testkit.Chunk(`data: {"id":"c-1","cho`)+"0\r\n\r\n", testkit.FIN),
		"silent":             testkit.Raw(testkit.StreamHead+begun, testkit.WaitGone),
		"in a false claim":   testkit.Raw(testkit.StreamHead+half, testkit.RST),
	} {
		for _, mode := range guardrail.Modes()[1:] {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				up := testkit.NewUpstream(t, answer)
				b := watched(t, mode, up, func(s *setup) { s.options.GapTimeout = option.Duration(200 * time.Millisecond) })
				got := b.chat(guarded(askStream("hi"), towerFact))
				heard := hear(t, got.body)
				if heard.done || heard.failed == "" || heard.finish != "" || !strings.HasPrefix(heard.text, towerTrue) {
					t.Errorf("done %v, error %q after %q: %d %s", heard.done, heard.failed, heard.text, got.status, got.body)
				}
			})
		}
	}
}

func TestAnUpstreamsOwnErrorEventIsNotDoubled(t *testing.T) {
	t.Parallel()
	const failure = `data: {"error":{"message":"out of memory","type":"server_error","param":null,"code":null}}` + "\n\n"
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event(towerTrue), failure))
	b := watched(t, "annotate", up)
	if got := b.chat(guarded(askStream("hi"), towerFact)); strings.Count(got.body, `"error"`) != 1 {
		t.Errorf("%v: %s", got.err, got.body)
	}
}

func TestACompressedAnswerIsNotTakenForAChecked(t *testing.T) {
	t.Parallel()
	for unchecked, want := range map[string]struct {
		status int
		header string
	}{"pass": {200, "unchecked"}, "block": {502, ""}} {
		up := testkit.NewUpstream(t, testkit.JSON(200, "\x1f\x8b compressed", "Content-Encoding", "br"))
		b := watched(t, "hold", up, func(s *setup) { s.guard.OnUnchecked = unchecked })
		got := b.chat(guarded(ask("hi"), towerFact))
		if got.status != want.status || want.header != "" && got.header.Get("X-Signalbox-Guard") != want.header {
			t.Errorf("%s: status %d, guard %q: %s", unchecked, got.status, got.header.Get("X-Signalbox-Guard"), got.body)
		}
	}
}

func TestABodyThatCannotBeReadIsNotTakenForAChecked(t *testing.T) {
	t.Parallel()
	const odd = `{"choices":[],"choices":[]}`
	for unchecked, want := range map[string]int{"pass": 200, "block": 502} {
		up := testkit.NewUpstream(t, testkit.JSON(200, odd))
		b := watched(t, "hold", up, func(s *setup) { s.guard.OnUnchecked = unchecked })
		got := b.chat(guarded(ask("hi"), towerFact))
		if got.status != want || want == 200 && (got.body != odd || got.header.Get("X-Signalbox-Guard") != "unchecked") {
			t.Errorf("%s: status %d, guard %q: %s", unchecked, got.status, got.header.Get("X-Signalbox-Guard"), got.body)
		}
	}
}

func TestAnEventThatIsTooLongToBeReadCutsTheStream(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event(towerTrue), testkit.Event(strings.Repeat("a", sse.DefaultMaxEventBytes)), testkit.Finish, testkit.Done))
	b := watched(t, "hold", up)
	if heard := hear(t, b.chat(guarded(askStream("hi"), towerFact)).body); heard.done || heard.failed == "" || heard.text != towerTrue {
		t.Errorf("done %v, error %q after %.100q", heard.done, heard.failed, heard.text)
	}
}

func TestJSONIsNeverAnnotatedInside(t *testing.T) {
	t.Parallel()
	for _, format := range []string{
		`"response_format":{"type":"json_object"}`,
		`"response_format":{"type":"json_schema","json_schema":{}}`,
		`"guided_regex":"a"`, `"guided_grammar":"a"`, `"structured_outputs":{"choice":["a"]}`,
	} {
		for _, streamed := range []bool{true, false} {
			up := testkit.NewUpstream(t, testkit.JSON(200, towerBody()))
			body := ask("hi")
			if streamed {
				up.Next(testkit.Stream(towerStream(towerTrue, towerFalse, towerRest)...))
				body = askStream("hi")
			}
			b := watched(t, "annotate", up)
			got := b.chat(guarded(strings.Replace(body, "{", "{"+format+",", 1), towerFact))
			heard := hear(t, got.body)
			if heard.text != towerTrue+towerFalse+towerRest || heard.finish != "stop" {
				t.Errorf("%s: ended with %q: %q", format, heard.finish, heard.text)
			}
			if mode := got.header.Get("X-Signalbox-Guard"); mode != "annotate" {
				t.Errorf("%s: guard %q", format, mode)
			}
			if s := heard.guard; s == nil || s.Mode != "annotate" || len(s.Failed) != 1 {
				t.Errorf("%s: summary %+v", format, s)
			}
			if told := strings.Count(got.body, `"x_signalbox"`); streamed && told != 2 {
				t.Errorf("%s: %d chunks tell, want one behind the claim and the last", format, told)
			}
		}
	}
}

func TestAnOperatorSaysWhatAnnotateDoesWithJSON(t *testing.T) {
	t.Parallel()
	const form = `{"response_format":{"type":"json_object"},`
	stream := towerStream(towerTrue, towerFalse, " ", towerRest[1:])
	for structured, want := range map[string]string{
		"terminate": towerTrue + towerFalse,
		"hold":      towerTrue,
	} {
		up := testkit.NewUpstream(t, testkit.Stream(stream...))
		b := watched(t, "annotate", up, func(s *setup) { s.guard.Structured = structured })
		got := b.chat(guarded(strings.Replace(askStream("hi"), "{", form, 1), towerFact))
		heard := hear(t, got.body)
		shown := strings.TrimSpace(heard.text)
		if heard.finish != "content_filter" || !strings.HasPrefix(want, shown) {
			t.Errorf("%s: ended with %q: %q", structured, heard.finish, heard.text)
		}
		if mode := got.header.Get("X-Signalbox-Guard"); mode != structured {
			t.Errorf("%s: guard %q", structured, mode)
		}
	}
}

func TestHiddenValuesAreBackBeforeTheCheck(t *testing.T) {
	t.Parallel()
	for _, streamed := range []bool{true, false} {
		up := testkit.NewUpstream(t, testkit.JSON(200, strings.Replace(testkit.Completion, "hello", "[EMAIL_1] holds 12 shares. [EMAIL_1] holds 99 shares.", 1)))
		body := ask("I am ann@example.com")
		if streamed {
			up.Next(testkit.Stream(towerStream("[EMA", "IL_1] holds 12 shares.", " [EMAIL_1] holds 99 shares.")...))
			body = askStream("I am ann@example.com")
		}
		c := &piiClassifier{}
		b := startRedacting(t, c, up)
		o := guardrail.DefaultOptions()
		o.Mode = "annotate"
		b.state.guard.Close()
		var err error
		if b.state.guard, err = guardrail.New(o, guardrail.Claims{}, b.tel.Metrics); err != nil {
			t.Fatal(err)
		}
		got := b.chat(guarded(body, `"facts":["ann@example.com holds 12 shares."]`))
		heard := hear(t, got.body)
		want := "ann@example.com holds 12 shares. ann@example.com holds 99 shares. [unverified]"
		if heard.text != want {
			t.Errorf("streamed %v: %q, want %q", streamed, heard.text, want)
		}
		if s := heard.guard; s == nil || len(s.Failed) != 1 || s.Failed[0].Start != len("ann@example.com holds 12 shares. ") {
			t.Errorf("streamed %v: summary %+v", streamed, s)
		}
	}
}

func TestAnExplanationStandsBesideTheSummary(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, towerBody()))
	for mode, wanted := range map[string]bool{"annotate": true, "observe": false} {
		b := watched(t, mode, up)
		got := b.chat(guarded(ask("hi"), towerFact+`,"explain":true`))
		var body struct {
			Signalbox struct {
				Guard    *guardSummary
				Decision *explain.Explanation
			} `json:"x_signalbox"`
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil {
			t.Fatalf("%v: %s", err, got.body)
		}
		d := body.Signalbox.Decision
		if (body.Signalbox.Guard != nil) != wanted || d == nil || d.Guard != mode || strings.Count(got.body, `"x_signalbox"`) != 1 {
			t.Errorf("%s: %s", mode, got.body)
		} else if diff := gocmp.Diff(&guardrail.Evidence{Facts: 2}, d.Evidence); diff != "" {
			t.Errorf("%s: evidence (-want +got):\n%s", mode, diff)
		}
	}
}

func TestObserveTellsItsVerdictsOnRequest(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(towerStream(towerTrue, towerFalse)...))
	b := watched(t, "observe", up)
	heard := hear(t, b.chat(guarded(askStream("hi"), towerFact+`,"guard":"observe"`)).body)
	if heard.guard == nil || heard.guard.Verdict != "unsupported" || heard.text != towerTrue+towerFalse {
		t.Errorf("%+v", heard)
	}
}

// sayingJudge contradicts claims that contain the word false.
type sayingJudge struct{ err error }

func (j sayingJudge) Judge(_ context.Context, pairs []check.Pair) ([]check.Inference, error) {
	out := make([]check.Inference, len(pairs))
	for i, p := range pairs {
		out[i] = check.Inference{Entailment: 0.98, Neutral: 0.01, Contradiction: 0.01}
		if strings.Contains(p.Claim, "Rome") {
			out[i] = check.Inference{Entailment: 0.01, Neutral: 0.01, Contradiction: 0.98}
		}
	}
	return out, j.err
}

func judged(tb testing.TB, j check.Judge, lacking string) func(*setup) {
	tb.Helper()
	c, err := check.New(check.Options{Judge: j})
	if err != nil {
		tb.Fatal(err)
	}
	return func(s *setup) {
		s.claims = guardrail.Claims{Checker: c, Lacking: func() string { return lacking }, Wanted: true}
	}
}

func TestAModelReadsWhatNumbersCannotTell(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(towerStream("The tower stands in Paris.", " The tower stands in Rome.")...))
	b := watched(t, "annotate", up, judged(t, sayingJudge{}, ""), func(s *setup) {
		// so that a busy machine does not change the result
		s.guard.MaxHold = option.Duration(time.Minute)
	})
	got := b.chat(guarded(askStream("hi"), `"facts":[{"id":"place","text":"The tower stands in Paris."}]`))
	heard := hear(t, got.body)
	if heard.text != "The tower stands in Paris. The tower stands in Rome. [unverified]" || got.header.Get("X-Signalbox-Degraded") != "" {
		t.Errorf("degraded %q: %q", got.header.Get("X-Signalbox-Degraded"), heard.text)
	}
	if s := heard.guard; s == nil || len(s.Failed) != 1 || s.Failed[0].Fact != "place" {
		t.Errorf("summary %+v", s)
	}
}

func TestAGuardWithoutAModelSaysSo(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := watched(t, "observe", up, func(s *setup) { s.claims.Wanted = true })
	if got := b.chat(guarded(ask("hi"), towerFact)).header.Get("X-Signalbox-Degraded"); got != "grounding" {
		t.Errorf("degraded %q", got)
	}
	if got := b.chat(ask("hi")).header.Get("X-Signalbox-Degraded"); got != "" {
		t.Errorf("degraded %q without anything to check", got)
	}
	if got := b.do(http.MethodGet, "/readyz", "").body; !strings.Contains(got, "compares only numbers") {
		t.Errorf("readyz: %s", got)
	}
}

// A server that has a whole short stream ready may declare its length.
func TestAStreamOfATellingLengthIsMarkedToItsEnd(t *testing.T) {
	t.Parallel()
	const said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Refunds are paid within 15 days.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	up := testkit.NewUpstream(t, func(_ *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(said)))
		_, _ = io.WriteString(w, said)
	})
	b := start(t, oneModel(up))
	got := b.chat(`{"model":"small","stream":true,"messages":[{"role":"user","content":"x"}],"signalbox":{"guard":"annotate","facts":["Refunds are paid within 5 days."]}}`)
	if got.err != nil || !strings.Contains(got.body, "[unverified]") || !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
		t.Errorf("%v after %s", got.err, got.body)
	}
}
