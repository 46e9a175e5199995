package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/memory/outcomes"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/explain"
	"signalbox/proxy/reasoning"
)

// thinks returns a bench of a model whose effort is chosen by outcomes. Without reasoning it is
// good at poems and bad at taxes, where reasoning helps; responses about taxes are long.
func thinks(tb testing.TB, change ...func(*setup)) (*bench, *outcomes.Store, *testkit.Upstream) {
	tb.Helper()
	up := testkit.NewUpstream(tb, testkit.JSON(200, testkit.Completion))
	models := []backend.ModelOptions{modelOptions("thinker", "", reasoning.Options{Dialect: "reasoning_effort"}, up)}
	s, _, err := outcomes.Open(outcomes.Options{Limit: 3000, Tenants: 10, Waiting: 100})
	if err != nil {
		tb.Fatal(err)
	}
	all := append([]func(*setup){func(x *setup) {
		x.outcomes = s
		x.classifier.signals |= signal.MaskOf(signal.Embedding)
		x.routes = "routes: []\ndefault: {models: [thinker], reasoning: auto, max_tokens: auto}\n"
	}}, change...)
	return start(tb, models, all...), s, up
}

// teach rates n responses at an effort to requests like text.
func teach(tb testing.TB, s *outcomes.Store, n int, text, effort string, score float64, tokens int) {
	tb.Helper()
	for i := range n {
		o := outcomes.Outcome{
			Tenant: "default", ID: fmt.Sprint(text, effort, i), Model: "thinker", Effort: effort, Prior: 0.5,
			Score: score, Weight: 1, Tokens: tokens,
		}
		if err := s.Add(o, bag(text)); err != nil {
			tb.Fatal(err)
		}
	}
}

// sentEffort returns the effort last sent to the model server.
func sentEffort(tb testing.TB, up *testkit.Upstream) (effort string, limit int) {
	tb.Helper()
	var body struct {
		Effort string `json:"reasoning_effort"`
		Limit  int    `json:"max_tokens"`
	}
	if err := json.Unmarshal(up.Last(tb).Body, &body); err != nil {
		tb.Fatal(err)
	}
	return body.Effort, body.Limit
}

func (b *bench) explainedSent(body string) *explain.Explanation {
	b.tb.Helper()
	got := b.post("/signalbox/v1/explain", body)
	e := new(explain.Explanation)
	if err := json.Unmarshal([]byte(got.body), e); err != nil || e.Sent == nil {
		b.tb.Fatalf("%v: %d %s", err, got.status, got.body)
	}
	return e
}

func TestTheLeastEffortThatOutcomesCallGoodEnoughIsAskedFor(t *testing.T) {
	t.Parallel()
	b, s, up := thinks(t)
	teach(t, s, 600, onPoems, "none", 0.9, 100)
	teach(t, s, 600, onPoems, "high", 0.9, 3000)
	teach(t, s, 40, onTaxes, "none", 0.2, 200)
	teach(t, s, 40, onTaxes, "high", 0.9, 2000)
	for text, want := range map[string]struct {
		effort string
		limit  int // 1.5 times what all answers had
	}{onPoems: {"none", 256}, onTaxes: {"high", 3000}} {
		a := b.chat(ask(text))
		effort, limit := sentEffort(t, up)
		if effort != want.effort || a.header.Get("X-Signalbox-Reasoning") != want.effort {
			t.Errorf("%s: effort %q, the header says %q", text, effort, a.header.Get("X-Signalbox-Reasoning"))
		}
		if near := float64(limit) / float64(want.limit); near < 0.85 || near > 1.4 {
			t.Errorf("%s: limit %d, want about %d", text, limit, want.limit)
		}
		e := b.explainedSent(ask(text))
		if e.Sent.ReasoningBy != "outcomes" || e.Sent.Reasoning != want.effort || e.Sent.Limit != "outcomes" {
			t.Errorf("%s: explained as %+v", text, e.Sent)
		}
		o := e.Candidates[0].Outcomes
		if o == nil || len(o.Efforts) != 4 || o.Efforts[0].Effort != "none" || o.Efforts[0].Judged != 640 || o.Efforts[1].Judged != 0 {
			t.Errorf("%s: outcomes by effort: %+v", text, o)
		}
	}
}

func TestAnExplanationTellsWhichEffortsWereCompared(t *testing.T) {
	t.Parallel()
	b, s, _ := thinks(t)
	efforts := func() []explain.EffortOutcomes {
		return b.explainedSent(ask(onPoems + ", number 17 of 5")).Candidates[0].Outcomes.Efforts
	}
	for i := range 300 {
		text := fmt.Sprintf("%s, number %d of %d", onPoems, i, i%7)
		teach(t, s, 1, text, "none", 0.9, 100)
		teach(t, s, 1, text, "high", 0.9, 3000)
		if i != 40 {
			continue
		}
		for _, x := range efforts() {
			if x.Calibrated || x.Doubt != 0 {
				t.Errorf("of few outcomes: %+v", x)
			}
		}
	}
	for _, x := range efforts() {
		if known := x.Judged > 0; x.Calibrated != known {
			t.Errorf("%s: calibrated is %v, outcomes are known: %v", x.Effort, x.Calibrated, known)
		}
		if compared := x.Effort == "high"; compared != (x.Doubt > 0) { // with none, the reference
			t.Errorf("%s: a doubt of %v", x.Effort, x.Doubt)
		}
	}
}

func TestWithTooFewOutcomesEffortAndLimitAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	b, s, up := thinks(t)
	none := b.explainedSent(ask(onPoems))
	teach(t, s, 4, onPoems, "none", 1, 100)
	teach(t, s, 4, onPoems, "high", 1, 3000)
	few := b.explainedSent(ask(onPoems))
	for name, e := range map[string]*explain.Explanation{"without": none, "with few": few} {
		if x := e.Sent; x.ReasoningBy != "complexity" || x.Reasoning != "high" || x.Limit != "auto" || x.MaxTokens != none.Sent.MaxTokens {
			t.Errorf("%s: %+v", name, x)
		}
	}
	b.chat(ask(onPoems))
	if effort, limit := sentEffort(t, up); effort != "high" || limit != none.Sent.MaxTokens {
		t.Errorf("effort %s, limit %d", effort, limit)
	}
}

func TestWhatAClientSaysOfReasoningStandsOverOutcomes(t *testing.T) {
	t.Parallel()
	b, s, up := thinks(t)
	teach(t, s, 40, onPoems, "none", 0.9, 100)
	teach(t, s, 40, onPoems, "high", 0.9, 3000)
	b.chat(strings.Replace(ask(onPoems), "{", `{"reasoning_effort":"medium",`, 1))
	if effort, _ := sentEffort(t, up); effort != "medium" {
		t.Errorf("effort %s", effort)
	}
}

func TestFeedbackOfAnEffortIsThatOfTheEffort(t *testing.T) {
	t.Parallel()
	b, _, _ := thinks(t)
	for range 30 {
		for _, effort := range []string{"none", "high"} {
			a := b.chat(strings.Replace(ask(onTaxes), "{", `{"reasoning_effort":"`+effort+`",`, 1))
			score := 0.0
			if effort == "high" {
				score = 1
			}
			if got := b.judge(a.header.Get("X-Request-Id"), score); got.status != http.StatusOK &&
				got.status != http.StatusNotFound {
				t.Fatalf("feedback: %d %s", got.status, got.body)
			}
		}
	}
	e := b.explainedSent(ask(onTaxes))
	if e.Sent.ReasoningBy != "outcomes" || e.Sent.Reasoning != "high" {
		t.Errorf("%+v, %+v", e.Sent, e.Candidates[0].Outcomes)
	}
}

func TestEffortsAreExploredSoThatTheyBecomeKnown(t *testing.T) {
	t.Parallel()
	b, _, up := thinks(t, func(x *setup) { x.explore = decide.ExploreOptions{Share: 1, MaxQualityLoss: 0.05} })
	asked := map[string]int{}
	for asked["none"] < 100 && asked["none"]+asked["high"] < 3000 {
		a := b.chat(ask(onPoems))
		effort, _ := sentEffort(t, up)
		asked[effort]++
		b.judge(a.header.Get("X-Request-Id"), 0.9) // reasoning does not help
	}
	if asked["none"] < 100 {
		t.Errorf("efforts: %v", asked)
	}
	if e := b.explainedSent(ask(onPoems)); e.Sent.Reasoning != "none" || e.Sent.ReasoningBy != "outcomes" {
		t.Errorf("after exploring: %+v", e.Sent)
	}
}
