package proxy

import (
	"net/http"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/recall"
	"signalbox/proxy/trial"
)

// unchanged ends the log, which must have at least that many lines, and returns it. It fails the
// test if a line is decided differently by the proxy that wrote it.
func (l *logged) unchanged(t *testing.T, lines int) []*decisionlog.Entry {
	t.Helper()
	text, list := l.lines(t)
	if len(list) < lines {
		t.Fatalf("%d lines, want at least %d:\n%s", len(list), lines, text)
	}
	for i, d := range list {
		got, err := l.proxy.Redecide(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Missing) > 0 || got.Route != d.Route || got.Outcome != d.Outcome ||
			got.Action.Verb != d.Action.Verb ||
			got.Chosen != "" && got.Chosen != d.Tried() {
			t.Errorf("line %d: %+v, tried %q, logged as\n%s", i, got, d.Tried(), text)
		}
	}
	return list
}

func TestAnEscalatedConversationIsDecidedAsBefore(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion), sticks)
	l := logDecisions(t, p.bench)
	l.chat(chatOf("", "user hi")).ends(t, "escalated length small big", "hello")
	l.chat(chatOf("", "user hi", "assistant hello", "user and now?")).goes(t, "the second turn", "kept prefill big")
	l.unchanged(t, 2)
}

func TestAnEscalationThatFailedIsDecidedAsBefore(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(http.StatusBadRequest, "{}"))
	l := logDecisions(t, p.bench)
	if got := l.chat(ask("hi")); got.header.Get("X-Signalbox-Escalation") != trial.Failed {
		t.Fatalf("escalated as %q", became(got))
	}
	l.unchanged(t, 1)
}

func TestWhatAKeyMayUseIsDecidedAsBefore(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	l := logDecisions(t, start(t, oneModel(up), withKeys(
		auth.KeyOptions{Name: "all"}, auth.KeyOptions{Name: "little", Models: []string{"small"}},
	), func(s *setup) { s.routes = "routes: []\ndefault: {models: [big, small]}\n" }))
	for _, key := range []string{"all", "little"} {
		l.chat(ask("hi"), "Authorization", "Bearer "+key)
	}
	l.unchanged(t, 2)
	d := entry()
	d.Key = "little"
	if got, err := l.proxy.Redecide(t.Context(), d); err != nil || got.Chosen != "small" {
		t.Errorf("the first that the key may use is %q, %v", got.Chosen, err)
	}
}

func TestWhatTheCacheGaveIsDecidedAsBefore(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, numbered())
	b := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) {
		s.routes = "routes: [{name: law, when: {any: [{keyword: titan}, {domain: law}]}, " +
			"use: {models: [big], cache: semantic}}]\n" +
			"default: {models: [small]}\n"
	})
	l := logDecisions(t, b)
	waitFor(t, "a response from the cache", func() bool {
		return l.chat(ask("some law please")).header.Get("X-Signalbox-Cache") == recall.Exact
	})
	lines := l.unchanged(t, 2)
	l.state.Signals.Identity.Config = "beef"
	if got, err := l.proxy.Redecide(t.Context(), lines[len(lines)-1]); err != nil || len(got.Missing) == 0 {
		t.Errorf("under another configuration: %+v, %v", got, err)
	}
}

func TestABudgetThatPutAModelInFrontIsNotForeseen(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]string{
		"": "big", "less_effort": "big", "cheaper": "", "cheaper,less_effort": "",
	} {
		d := entry()
		d.Budget = why
		if got := again(t, d, "routes: []\ndefault: {models: [big, small]}\n", nil); got.Chosen != want {
			t.Errorf("budget %q: the model is %q, want %q", why, got.Chosen, want)
		}
	}
}
