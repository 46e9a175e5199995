package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/memory/outcomes"
	"signalbox/proxy/auth"
	"signalbox/proxy/decide"
	"signalbox/proxy/explain"
)

// learns returns a bench whose default route chooses between two models by quality; the
// configuration considers praised the better one.
func learns(tb testing.TB, change ...func(*setup)) (*bench, *outcomes.Store) {
	tb.Helper()
	up := testkit.NewUpstream(tb, testkit.JSON(200, testkit.Completion))
	models := oneModel(up)
	models[0].Skills = map[string]float64{"default": 0.8}
	models[1].Skills = map[string]float64{"default": 0.6}
	s, _, err := outcomes.Open(outcomes.Options{Limit: 1000, Tenants: 10, Waiting: 100})
	if err != nil {
		tb.Fatal(err)
	}
	all := append([]func(*setup){func(x *setup) {
		x.outcomes = s
		x.classifier.signals |= signal.MaskOf(signal.Embedding)
		x.routes = "routes: []\ndefault: {models: [big, small], by: quality}\n"
	}}, change...)
	return start(tb, models, all...), s
}

const onTaxes, onPoems = "please explain the taxes of small shops", "write poems about autumn rain again"

// deserves returns the true quality of a response: the praised model is the worse one.
func deserves(a answered) float64 {
	if a.header.Get("X-Signalbox-Model") == "big" {
		return 0.1
	}
	return 0.9
}

func (b *bench) judge(id string, score float64, header ...string) answered {
	b.tb.Helper()
	return b.post("/signalbox/v1/feedback", fmt.Sprintf(`{"request_id":%q,"outcome":%v}`, id, score), header...)
}

func TestFeedbackMovesRequestsLikeTheJudgedOnesToAnotherModel(t *testing.T) {
	t.Parallel()
	b, s := learns(t)
	if got := b.chat(ask(onTaxes)).header.Get("X-Signalbox-Model"); got != "big" {
		t.Fatalf("without feedback %s answers", got)
	}
	for range 40 {
		a := b.chat(ask(onTaxes))
		if got := b.judge(a.header.Get("X-Request-Id"), deserves(a)); got.status != http.StatusOK {
			t.Fatalf("feedback: %d %s", got.status, got.body)
		}
	}
	a := b.chat(ask(onTaxes))
	if got := a.header.Get("X-Signalbox-Model"); got != "small" {
		t.Errorf("after bad answers of big, %s answers", got)
	}
	var e explain.Explanation
	got := b.post("/signalbox/v1/explain", ask(onTaxes))
	if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Model != "small" || len(e.Candidates) != 2 {
		t.Fatalf("%v, %s", err, got.body)
	}
	for _, c := range e.Candidates {
		if o := c.Outcomes; o == nil ||
			c.Name == "big" && (o.Judged < 2 || o.Near < 2 || o.Configured != 0.8 || o.Tokens <= 0) {
			t.Errorf("explanation of %s: %+v", c.Name, o)
		}
	}
	if n := s.Len("default"); n < 20 || n > 41 {
		t.Errorf("%d outcomes", n)
	}
}

// A route without signals has a pass for the embedding alone.
func TestOutcomesCountWhereARouteNeedsNoPass(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"cost, quality_margin: 1", "latency"} {
		b, _ := learns(t, func(s *setup) { s.routes = "routes: []\ndefault: {models: [big, small], by: " + by + "}\n" })
		for range 3 {
			a := b.chat(ask(onTaxes))
			if got := b.judge(a.header.Get("X-Request-Id"), deserves(a)); got.status != http.StatusOK {
				t.Fatalf("feedback: %d %s", got.status, got.body)
			}
		}
		var e explain.Explanation
		got := b.post("/signalbox/v1/explain", ask(onTaxes))
		if err := json.Unmarshal([]byte(got.body), &e); err != nil || len(e.Candidates) != 2 {
			t.Fatalf("%v, %s", err, got.body)
		}
		for _, c := range e.Candidates {
			if c.Outcomes == nil {
				t.Errorf("by %s: nothing is expected of %s by outcomes: %s", by, c.Name, got.body)
			}
		}
	}
}

func TestFeedbackOfOneTenantDecidesNothingForAnother(t *testing.T) {
	t.Parallel()
	keys := func(s *setup) {
		s.auth = auth.Options{Mode: auth.ModeKeys, Keys: []auth.KeyOptions{
			{Name: "a", SHA256: sha("ka"), Tenant: "a"}, {Name: "b", SHA256: sha("kb"), Tenant: "b"},
		}}
	}
	b, s := learns(t, keys)
	a, other := []string{"Authorization", "Bearer ka"}, []string{"Authorization", "Bearer kb"}
	for range 40 {
		said := b.chat(ask(onTaxes), a...)
		id := said.header.Get("X-Request-Id")
		if got := b.judge(id, 1, other...); got.status != http.StatusNotFound || got.code(t) != "request_not_found" {
			t.Fatalf("feedback of another tenant: %d %s", got.status, got.body)
		}
		if got := b.judge(id, deserves(said), a...); got.status != http.StatusOK {
			t.Fatalf("feedback: %d %s", got.status, got.body)
		}
	}
	if got := b.chat(ask(onTaxes), a...).header.Get("X-Signalbox-Model"); got != "small" {
		t.Errorf("%s answers tenant a", got)
	}
	if got := b.chat(ask(onTaxes), other...).header.Get("X-Signalbox-Model"); got != "big" || s.Len("b") != 0 {
		t.Errorf("%s answers tenant b, which has %d outcomes", got, s.Len("b"))
	}
}

func TestBadFeedbackIsRefusedByField(t *testing.T) {
	t.Parallel()
	b, _ := learns(t)
	id := b.chat(ask(onPoems)).header.Get("X-Request-Id")
	for name, c := range map[string]struct{ body, param string }{
		"no id":        {`{"outcome":1}`, "request_id"},
		"no outcome":   {`{"request_id":"ID"}`, "outcome"},
		"too high":     {`{"request_id":"ID","outcome":1.5}`, "outcome"},
		"both":         {`{"request_id":"ID","outcome":1,"rating":"up"}`, "rating"},
		"a word":       {`{"request_id":"ID","rating":"great"}`, "rating"},
		"a long label": {`{"request_id":"ID","rating":"up","label":"` + strings.Repeat("x", 129) + `"}`, "label"},
		"no object":    {`[]`, ""},
		"a spare word": {`{"request_id":"ID","rating":"up"} x`, ""},
		"a wrong key":  {`{"request_id":"ID","ratings":"up"}`, ""},
	} {
		got := b.post("/signalbox/v1/feedback", strings.Replace(c.body, "ID", id, 1))
		var e struct {
			Error struct {
				Param *string `json:"param"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		} else if p := e.Error.Param; c.param != "" && (p == nil || *p != c.param) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	got := b.post("/signalbox/v1/feedback", `{"request_id":"`+id+`","rating":"up","label":"kept"}`)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"label":"kept"`) {
		t.Errorf("good feedback: %d %s", got.status, got.body)
	}
}

func TestWithoutOutcomesFeedbackIsRefusedAndNoEmbeddingIsAskedFor(t *testing.T) {
	t.Parallel()
	b, _ := learns(t, func(s *setup) { s.outcomes = nil })
	a := b.chat(ask(onPoems))
	if got := b.judge(
		a.header.Get("X-Request-Id"),
		1,
	); got.status != http.StatusNotFound ||
		got.code(t) != "feedback_off" {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, m := range b.classifier.asked() {
		if m.Has(signal.Embedding) {
			t.Errorf("asked for %v", m.Kinds())
		}
	}
}

func TestExplorationFindsABetterModelWhoseAnswersNobodyKnew(t *testing.T) {
	t.Parallel()
	b, s := learns(t, func(x *setup) { x.explore = decide.ExploreOptions{Share: 0.5, MaxQualityLoss: 1} })
	good := func(a answered) float64 { // the praised model is no disappointment
		if a.header.Get("X-Signalbox-Model") == "small" {
			return 1
		}
		return 0.8
	}
	for n, found := 0, 0; found < 2; n++ { // draws are random: how many it takes is chance
		a := b.chat(ask(onPoems))
		b.judge(a.header.Get("X-Request-Id"), good(a))
		if n%10 != 9 {
			continue
		}
		var e explain.Explanation
		got := b.post("/signalbox/v1/explain", ask(onPoems))
		err := json.Unmarshal([]byte(got.body), &e)
		if found++; e.Model != "small" {
			found = 0
		}
		if err != nil || n >= 800 && found == 0 {
			t.Fatalf("after %d answers: %v, %s", n+1, err, got.body)
		}
	}
	var out bytes.Buffer
	if err := s.Export(&out, ""); err != nil || !strings.Contains(out.String(), `"chance":0.`) {
		t.Errorf("%v, no chance in %.300s", err, out.String())
	}
}

func TestTheEmbeddingComesFromThePassOfTheDecision(t *testing.T) {
	t.Parallel()
	b, _ := learns(t)
	b.chat(ask(onPoems))
	if got := b.classifier.asked(); len(got) != 1 || !got[0].Has(signal.Embedding) || !got[0].Has(signal.Domain) {
		t.Errorf("passes: %v", got)
	}
}

func TestOfAClientThatLeavesBeforeTheDecisionNothingIsLearnt(t *testing.T) {
	t.Parallel()
	running, ended := make(chan struct{}, 1), make(chan time.Time, 1)
	b, s := learns(t, func(x *setup) { x.classifier.blocking, x.classifier.left = running, ended })
	leave := b.leaveable(ask(onTaxes), "")
	within(t, running, "the classification")
	leave()
	waitFor(t, "a log line", func() bool {
		return strings.Contains(b.log.String(), `"status":499`) || strings.Contains(b.log.String(), `"msg":"panic"`)
	})
	if strings.Contains(b.log.String(), `"msg":"panic"`) || s.Len("") > 0 {
		t.Errorf("log %s", b.log.String())
	}
}
