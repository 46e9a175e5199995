package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/memory/conversation"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/explain"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/recall"
)

// trying starts a proxy whose only route goes to small and, with a share of the conversations, to
// big.
func trying(tb testing.TB, share, action string, change ...func(*setup)) *pair {
	tb.Helper()
	p := &pair{small: okUpstream(tb), big: okUpstream(tb)}
	models := []backend.ModelOptions{
		modelOptions("small", "", reasoning.Options{}, p.small), modelOptions("big", "", reasoning.Options{}, p.big),
		modelOptions("effort", "", reasoning.Options{}, p.small),
	}
	models[1].Price.Input, models[1].Price.Output = 10, 20
	p.bench = start(tb, models, append([]func(*setup){func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small, effort], canary: {model: big, share: " + share + "}" + action + "}\n"
	}}, change...)...)
	return p
}

// side returns the arm in a response, and the model that answered.
func side(a answered) string {
	return a.header.Get("X-Signalbox-Arm") + " " + a.header.Get("X-Signalbox-Model")
}

// first returns a first turn that goes to an arm.
func (p *pair) first(arm string, header ...string) turn {
	p.tb.Helper()
	for i := range 200 {
		text := long(fmt.Sprintf("question %d", i))
		if p.chat(chatOf("", text), header...).header.Get("X-Signalbox-Arm") == arm {
			return text
		}
	}
	p.tb.Fatalf("none of 200 conversations is in arm %s", arm)
	return ""
}

func TestAShareOfTheConversationsGoesToTheCanary(t *testing.T) {
	t.Parallel()
	p := trying(t, "0.25", "")
	const n = 400
	count := map[string]int{}
	for i := range n {
		got := p.chat(ask(fmt.Sprintf("hello number %d", i)))
		if got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		count[side(got)]++
	}
	// 100 are expected; the texts are always the same, and so is the result
	if c := count["canary big"]; len(count) != 2 || count["control small"] != n-c || c < 75 || c > 125 {
		t.Errorf("%v", count)
	}
	page := p.metrics()
	for _, want := range []string{
		fmt.Sprintf(`signalbox_canary_requests_total{arm="canary",route="default",status="200"} %d`, count["canary big"]),
		fmt.Sprintf(`signalbox_canary_requests_total{arm="control",route="default",status="200"} %d`, count["control small"]),
		`signalbox_canary_tokens_total{arm="canary",kind="completion",route="default"} `,
		`signalbox_canary_cost_usd_total{arm="control",route="default"} `,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestAllOrNothingGoesToTheCanary(t *testing.T) {
	t.Parallel()
	p := trying(t, "1", "")
	for i := range 20 {
		if got := side(p.chat(ask(fmt.Sprintf("hello %d", i)))); got != "canary big" {
			t.Errorf("%s", got)
		}
	}
	if got := side(p.chat(strings.Replace(ask("hello"), "auto", "small", 1))); got != " small" {
		t.Errorf("who names a model is in an arm: %s", got)
	}
}

func TestAConversationStaysInItsArm(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*setup){"sticky": sticks, "not sticky": func(*setup) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := trying(t, "0.5", "", change)
			for arm, model := range map[string]string{decide.ArmCanary: "big", decide.ArmControl: "small"} {
				want := arm + " " + model
				turns := []turn{p.first(arm)}
				for i := range 8 {
					turns = append(turns, "assistant It is.", fmt.Sprintf("user and %d?", i))
					got := p.chat(chatOf("", turns...))
					if side(got) != want {
						t.Errorf("turn %d goes to %s, want %s", i+2, side(got), want)
					}
					if name == "sticky" && talked(got) != "kept same "+model {
						t.Errorf("turn %d: %s", i+2, talked(got))
					}
				}
				// by its name, whatever its requests leave out
				session := ""
				for i := range 200 {
					session = fmt.Sprintf("s%d", i)
					if side(p.chat(ask("hi"), "X-Signalbox-Session", session)) == want {
						break
					}
				}
				for i := range 8 {
					if got := side(p.chat(ask(fmt.Sprintf("text %d", i)), "X-Signalbox-Session", session)); got != want {
						t.Errorf("session: turn %d goes to %s, want %s", i+2, got, want)
					}
				}
			}
		})
	}
}

// A request that names the previous response does not contain the beginning of the conversation.
func TestAChainOfResponsesStaysInItsArm(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := testkit.NewUpstream(t, func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		testkit.JSON(200, fmt.Sprintf(`{"id":"resp_%d","object":"response","status":"completed","output":[],`+
			`"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}`, n.Add(1)))(u, w, r)
	})
	p := trying(t, "0.5", "", sticks, func(s *setup) {
		for i := range s.models {
			s.models[i].Endpoints[0].URL = server.URL()
		}
	})
	respond := func(text, previous string) (id, went string) {
		body := `{"model":"auto","input":"` + text + `"`
		if previous != "" {
			body += `,"previous_response_id":"` + previous + `"`
		}
		got := p.post("/v1/responses", body+"}")
		var answer struct{ ID string }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK {
			t.Fatalf("status %d: %s (%v)", got.status, got.body, err)
		}
		return answer.ID, side(got)
	}
	seen := map[string]int{}
	for i := range 6 {
		id, arm := respond(fmt.Sprintf("conversation %d", i), "")
		seen[arm]++
		for j := range 6 {
			var got string
			if id, got = respond(fmt.Sprintf("turn %d", j), id); got != arm {
				t.Errorf("turn %d of conversation %d goes to %s, the first went to %s", j+2, i, got, arm)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("all conversations went to %v", seen)
	}
}

func TestResultsOfToolsGoToTheModelThatAskedForThem(t *testing.T) {
	t.Parallel()
	talks := conversation.New(nil, "")
	var was setup
	p := trying(t, "0.5", "", sticks, func(s *setup) { s.talks = talks; was = *s })
	turns := []turn{p.first(decide.ArmCanary), "assistant calls", "tool 42"}
	p.chat(chatOf("", turns...)).goes(t, "in its arm", "kept tool_result big")
	p.chat(chatOf("", turns[0])).goes(t, "the first turn again", "new  big")
	// A tool result goes to the model that made the call, whatever the share is by now.
	was.routes = strings.Replace(was.routes, "0.5", "0.000001", 1)
	next, old := p.newState(was, 2), p.state
	p.proxy.Swap(next)
	p.state = next
	old.Close()
	p.chat(chatOf("", turns...)).goes(t, "behind a smaller share", "kept tool_result big")
	p.chat(chatOf("", turns[0], "assistant It is.", "user why?")).
		goes(t, "a turn behind a smaller share", "moved rules small")
}

// A tool result may be so long that the rules would lead elsewhere.
func TestALongResultOfAToolStaysWithTheCanary(t *testing.T) {
	t.Parallel()
	p := trying(t, "1", "", sticks, func(s *setup) {
		s.routes = "routes:\n  - {name: long, when: {tokens: {gt: 2000}}, use: {models: [effort]}}\n" + strings.TrimPrefix(s.routes, "routes: []\n")
	})
	p.chat(chatOf("", "user hi")).goes(t, "the first turn", "new  big")
	p.chat(chatOf("", "user hi", "assistant calls", "tool "+strings.Repeat("so long ", 2000))).
		goes(t, "a long result", "kept tool_result big")
	p.chat(chatOf("", "user hi", "assistant So.", "user "+strings.Repeat("so long ", 2000))).
		goes(t, "a long question", "moved rules effort")
}

func TestWhoCannotGoToTheCanaryIsInNoArm(t *testing.T) {
	t.Parallel()
	p := trying(t, "1", "", withKeys(auth.KeyOptions{Name: "all"}, auth.KeyOptions{Name: "little", Models: []string{"small", "effort"}}))
	if got := side(p.chat(ask("hi"), "Authorization", "Bearer little")); got != " small" {
		t.Errorf("who may not use it: %q", got)
	}
	if got := side(p.chat(ask("hi"), "Authorization", "Bearer all")); got != "canary big" {
		t.Errorf("who may: %q", got)
	}
	narrow := trying(t, "1", "", func(s *setup) { s.models[1].ContextWindow = 64 })
	if got := side(narrow.chat(ask(strings.Repeat("so and so ", 100)))); got != " small" {
		t.Errorf("what does not fit: %q", got)
	}
	if got := side(narrow.chat(ask("hi"))); got != "canary big" {
		t.Errorf("what fits: %q", got)
	}
}

// An unavailable canary must not cause refusals, and its requests stay in its arm; otherwise it
// would look better than it is.
func TestWhereTheCanaryIsAwayTheOthersAnswer(t *testing.T) {
	t.Parallel()
	p := trying(t, "1", "")
	p.big.Close()
	got := p.chat(ask("hi"))
	if side(got) != "canary small" || got.status != http.StatusOK || got.header.Get("X-Signalbox-Degraded") != "fallback" {
		t.Errorf("status %d, %s, degraded %q", got.status, side(got), got.header.Get("X-Signalbox-Degraded"))
	}
}

func TestAnswersOfTheCanaryAreNotKeptForOthers(t *testing.T) {
	t.Parallel()
	p := trying(t, "0.5", ", cache: semantic", caches(recall.ModeSemantic))
	const asked = "How do I turn on the lights in the office today"
	chat := func(mark string) answered { return p.chat(ask(asked + mark)) }
	// One of the spellings is in each arm; all ask the same.
	var canary, control, other string
	for _, mark := range []string{"", "?", "!", ".", "??", "!!", "...", "?!"} {
		var e explain.Explanation
		if err := json.Unmarshal([]byte(p.post("/signalbox/v1/explain", ask(asked+mark)).body), &e); err != nil {
			t.Fatal(err)
		}
		if e.Canary.Arm == decide.ArmCanary {
			canary = mark
		} else {
			other, control = control, mark
		}
	}
	chat(canary).says(t, "in the canary's arm", "miss")
	chat(control).says(t, "what the canary was asked", "miss")
	p.kept(1)
	if got := chat(canary).says(t, "what the other was asked", "miss"); side(got) != "canary big" {
		t.Errorf("in the canary's arm: %s", side(got))
	}
	for mark, result := range map[string]string{control: "exact", other: "semantic"} {
		if got := chat(mark).says(t, "again", result); side(got) != " small" {
			t.Errorf("from the cache: %s", side(got))
		}
	}
}

func TestExplainAndTheLogTellTheArm(t *testing.T) {
	t.Parallel()
	l := startLogged(t, "routes: []\ndefault: {models: [small], canary: {model: big, share: 1}}\n")
	if got := l.post("/signalbox/v1/explain", ask("hi")); !strings.Contains(got.body, `"canary":{"model":"big","share":1,"arm":"canary"}`) ||
		!strings.Contains(got.body, `"models":["big","small"]`) {
		t.Errorf("explained as %s", got.body)
	}
	l.chat(ask("hi"))
	text, lines := l.lines(t)
	if e := lines[0]; e.Arm != "canary" || e.Action.Canary != "big 1" || e.Chosen != "big" || e.Model != "big" {
		t.Errorf("logged as %s", text)
	}
	now, err := l.proxy.Redecide(t.Context(), lines[0])
	if err != nil || now.Chosen != "" || now.Action.Canary != "big 1" {
		t.Errorf("decided again: %+v, %v", now, err)
	}
}

func TestACanaryBesideAMirrorAndExploration(t *testing.T) {
	t.Parallel()
	p := trying(t, "0.5", ", mirror: {model: effort, share: 1}")
	p.first(decide.ArmControl)
	p.first(decide.ArmCanary)
	waitFor(t, "copies", func() bool { return p.counts("signalbox_mirror_total", "answered") >= 2 })

	b, _ := learns(t, func(s *setup) {
		s.models = append(s.models, modelOptions("new", "", reasoning.Options{}, okUpstream(t)))
		s.routes = "routes: []\ndefault: {models: [big, small], by: quality, canary: {model: new, share: 0.5}}\n"
		s.explore = decide.ExploreOptions{Share: 0.5, MaxQualityLoss: 1}
	})
	went := map[string]int{}
	for i := range 120 {
		a := b.chat(ask(fmt.Sprintf("%s %d", onTaxes, i)))
		went[side(a)]++
		if got := b.judge(a.header.Get("X-Request-Id"), 0.5); got.status != http.StatusOK {
			t.Errorf("feedback on %s: %d %s", side(a), got.status, got.body)
		}
	}
	if went["canary new"] < 25 || went["control big"] < 5 || went["control small"] < 1 || len(went) != 3 {
		t.Errorf("requests went to %v", went)
	}
}

// With a single control model there is nothing to choose, but both arms are rated.
func TestFeedbackOnBothArmsCountsWhereOneModelIsTheControl(t *testing.T) {
	t.Parallel()
	for name, route := range map[string]string{
		"one model": "models: [small]", "models in order": "models: [small, effort]",
	} {
		b, s := learns(t, func(s *setup) {
			s.routes = "routes: []\ndefault: {" + route + ", canary: {model: big, share: 0.5}}\n"
		})
		went := map[string]int{}
		for i := range 60 {
			a := b.chat(ask(fmt.Sprintf("%s %d", onTaxes, i)))
			went[side(a)]++
			got := b.judge(a.header.Get("X-Request-Id"), 0.5)
			if want := `"model":"` + a.header.Get("X-Signalbox-Model") + `"`; got.status != http.StatusOK ||
				!strings.Contains(got.body, want) {
				t.Errorf("%s: feedback on %s: %d %s", name, side(a), got.status, got.body)
			}
		}
		if n := s.Len(auth.DefaultOptions().DefaultTenant); n != 60 || went["canary big"] < 5 ||
			went["control small"] < 5 || len(went) != 2 {
			t.Errorf("%s: %d outcomes, requests went to %v", name, n, went)
		}
	}
}
