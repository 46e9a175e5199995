package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/recent"
)

// looked returns a proxy whose decisions are viewed. Among its models, big is the dearest.
func looked(t *testing.T) (*bench, setup) {
	t.Helper()
	up := testkit.NewUpstream(
		t,
		testkit.JSON(http.StatusOK, `{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":500}}`),
	)
	models := oneModel(up)
	models[0].Price = choose.Price{Input: 10, Output: 20}
	var made setup
	b := start(t, models, func(s *setup) { made = *s })
	made.models = models
	return b, made
}

// until waits until there are n decisions after seq and returns them.
func (b *bench) until(seq uint64, n int) []*recent.Seen {
	b.tb.Helper()
	for end := time.After(patience); ; {
		list, _, more := b.proxy.Recent().After(seq, 1000)
		if len(list) >= n {
			return list
		}
		select {
		case <-more:
		case <-end:
			b.tb.Fatalf("%d decisions, want %d", len(list), n)
		}
	}
}

func TestADecisionIsShownWithItsWayThroughTheRules(t *testing.T) {
	t.Parallel()
	b, _ := looked(t)
	b.chat(ask("some law please"), "X-Request-Id", "r-law", "X-Greet", "no")
	b.chat(ask("about titan"), "X-Request-Id", "r-titan")
	b.chat(ask("hello"), "X-Request-Id", "r-greet", "X-Greet", "yes")
	list := b.until(0, 3)
	if s := list[0]; s.Routes != nil || s.Signals != nil || s.Decision.Route != "law" || s.TookMs <= 0 ||
		s.FirstMs <= 0 {
		t.Errorf("in the list: %+v", s)
	}
	law := b.proxy.Recent().Find("r-law")
	values := map[string]string{}
	for _, r := range law.Routes {
		values[r.Name] = r.Value
	}
	want := map[string]string{
		"titan":           "false",
		"block-jailbreak": "false",
		"greet":           "false",
		"math":            "false",
		"law":             "true",
	}
	if fmt.Sprint(values) != fmt.Sprint(want) {
		t.Errorf("routes: %v, want %v", values, want)
	}
	if d := law.Signals["domain"]; d.State != "evaluated" || d.Value != "law" || *d.Score != 0.9 {
		t.Errorf("domain: %+v", d)
	}
	if law.Cost == nil || *law.Cost != (1000*1+500*2)/1e6 || *law.Baseline != (1000*10+500*20)/1e6 {
		t.Errorf("cost %v of %v", law.Cost, law.Baseline)
	}
	titan := b.proxy.Recent().Find("r-titan")
	if d := titan.Signals["domain"]; titan.Message != "Not in writing." || d.State != "skipped" || d.Reason == "" ||
		titan.Cost != nil {
		t.Errorf("titan: %+v with %+v", titan, d)
	}
	if greet := b.proxy.Recent().Find("r-greet"); greet.Routes[2].Value != "true" {
		t.Errorf("a header that decided: %+v", greet.Routes)
	}
	if b.proxy.Recent().Find("r-none") != nil {
		t.Error("found what was never asked")
	}
	tally := b.proxy.Recent().Tally()
	if len(tally.Spent) != 1 || tally.Spent[0].Model != "effort" || tally.Spent[0].Prompt != 1000 ||
		tally.Spent[0].Baseline != *law.Baseline {
		t.Errorf("spent: %+v", tally.Spent)
	}
}

func TestAStreamWithoutUsageIsCountedAsUntold(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(contentOf+"}\n\n", testkit.Finish, testkit.Done))
	b := start(t, oneModel(up))
	b.chat(askStream("some law please"))
	b.until(0, 1)
	if s := b.proxy.Recent().Tally().Spent; len(s) != 1 || s[0].Requests != 1 || s[0].Untold != 1 || s[0].Cost != 0 {
		t.Errorf("spent: %+v", s)
	}
}

func TestTextIsShownOnlyWhileItMayBe(t *testing.T) {
	t.Parallel()
	b, s := looked(t)
	holds := func(word string) bool {
		list, _, _ := b.proxy.Recent().After(0, 1000)
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), word)
	}
	b.chat(ask("geheim one"), "X-Request-Id", "r-1")
	b.until(0, 1)
	b.proxy.Recent().Prompts(true)
	if holds("geheim") {
		t.Error("the text of a request is kept that came before it was allowed")
	}
	b.chat(ask("geheim two"), "X-Request-Id", "r-2")
	b.until(0, 2)
	if !holds("geheim two") {
		t.Error("the text is not shown")
	}
	b.proxy.Swap(b.newState(s, 2))
	if !holds("geheim two") {
		t.Error("the text is gone with the configuration")
	}
	b.proxy.Recent().Prompts(false)
	if holds("geheim") || b.proxy.Recent().Find("r-2").Decision.Prompt != nil {
		t.Error("the text is shown though it may not be any more")
	}
}

func TestDecisionsLookTheSameWhenTheirConfigurationIsReplaced(t *testing.T) {
	t.Parallel()
	b, s := looked(t)
	b.chat(ask("some math please"), "X-Request-Id", "r-old")
	b.until(0, 1)
	before, err := json.Marshal(b.proxy.Recent().Find("r-old"))
	if err != nil {
		t.Fatal(err)
	}
	s.auth = auth.DefaultOptions()
	b.proxy.Swap(b.newState(s, 2))
	after, err := json.Marshal(b.proxy.Recent().Find("r-old"))
	if err != nil || string(before) != string(after) {
		t.Errorf("shown differently after a reload:\n%s\n%s", before, after)
	}
	b.chat(ask("law"), "X-Request-Id", "r-new")
	if b.until(1, 1); b.proxy.Recent().Find("r-new").Decision.Generation != 2 {
		t.Error("the new decision is not of the new state")
	}
}

// BenchmarkRecentKept measures what a request costs whose decision is kept.
func BenchmarkRecentKept(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(http.StatusOK, "{}"))
	p := start(b, oneModel(up))
	req, err := openai.ParseChat([]byte(ask("some law please")), openai.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	o := &exchange.Exchange{Req: req}
	if o.Decision, err = p.state.Decide(b.Context(), Principal{}, req, http.Header{}, nil, nil); err != nil {
		b.Fatal(err)
	}
	o.Model = p.state.ByName["effort"]
	o.Endpoint, o.Tally.Usage.Input = o.Model.Endpoints[0], 100
	w := &downstream.Writer{ID: "r", Start: time.Now()}
	ctx := recent.Shown(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		p.proxy.records.Note(ctx, &p.state.book, w, o, http.StatusOK)
	}
}
