package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/recall"
)

// threeTenants gives the tenants red, blue and green keys of the same names.
func threeTenants(s *setup) {
	s.auth.Mode = auth.ModeKeys
	for _, name := range []string{"red", "blue", "green"} {
		s.auth.Keys = append(s.auth.Keys, auth.KeyOptions{Name: name, SHA256: sha(name), Tenant: name, Role: "user"})
	}
}

// S10: nothing reveals what another tenant has asked. The request goes to the model, the response
// and explanation are those of a question that was never asked, and no response contains the key
// under which it is cached. BenchmarkS10ATenantAsksWhatAnotherHasAsked compares the times.
func TestS10WhatAnotherTenantAskedShowsInNothing(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	b := start(t, oneModel(up), caches(recall.ModeSemantic), threeTenants, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small]}" })
	const asked, words, never = "How do I turn on the lights in the office?", "How can I turn on the lights in the office?", "How do I shut off the water in the garage?"
	red := b.chat(ask(asked), "Authorization", "Bearer red").says(t, "the first", "miss")
	b.kept(1)
	hit := b.chat(ask(words), "Authorization", "Bearer red").says(t, "its own tenant", "semantic")
	explained := b.post("/signalbox/v1/explain", ask(asked), "Authorization", "Bearer blue")
	if want := b.post("/signalbox/v1/explain", ask(never), "Authorization", "Bearer blue"); explained.status != want.status {
		t.Errorf("explained with %d and %d", explained.status, want.status)
	}
	want := b.chat(ask(never), "Authorization", "Bearer blue").says(t, "what nobody asked", "miss")
	for key, question := range map[string]string{"blue": asked, "green": words} {
		n := len(up.Requests())
		got := b.chat(ask(question), "Authorization", "Bearer "+key)
		if diff := cmp.Diff(faceOf(want, "ctx_"), faceOf(got, "ctx_")); diff != "" {
			t.Errorf("%s (-never asked +asked by another):\n%s", question, diff)
		}
		if len(up.Requests()) != n+1 {
			t.Errorf("%s: the model was not asked", question)
		}
	}
	for _, a := range []answered{red, hit, want} {
		for name := range a.header {
			if !slices.Contains([]string{
				"Age", "Content-Length", "Content-Type", "Date", "Server-Timing", "X-Request-Id", "X-Signalbox-Cache", "X-Signalbox-Endpoint", "X-Signalbox-Guard",
				"X-Signalbox-Model", "X-Signalbox-Reasoning", "X-Signalbox-Route", "X-Signalbox-Degraded",
			}, name) {
				t.Errorf("an answer says %s: %q", name, a.header[name])
			}
		}
	}
}

// BenchmarkS10ATenantAsksWhatAnotherHasAsked reports the median times of questions that another
// tenant has asked, that nobody has asked, and that the tenant itself has asked, in turn.
func BenchmarkS10ATenantAsksWhatAnotherHasAsked(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(http.StatusOK, testkit.Completion))
	s := start(b, oneModel(up), caches(recall.ModeExact), threeTenants, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small]}" })
	times := map[string][]time.Duration{}
	n := 0
	send := func(what, key, text string) {
		begun := time.Now()
		s.chat(ask(text), "Authorization", "Bearer "+key)
		times[what] = append(times[what], time.Since(begun))
	}
	for b.Loop() {
		n++
		theirs, nobodys := fmt.Sprintf("question %d of red", n), fmt.Sprintf("question %d of none", n)
		send("red", "red", theirs)
		s.state.Caching.Close()
		if n%2 == 0 {
			send("another's", "blue", theirs)
			send("nobody's", "blue", nobodys)
		} else {
			send("nobody's", "blue", nobodys)
			send("another's", "blue", theirs)
		}
		s.state.Caching.Close()
		send("own", "blue", theirs)
	}
	for _, what := range []string{"another's", "nobody's", "own"} {
		slices.Sort(times[what])
		b.ReportMetric(float64(times[what][len(times[what])/2].Microseconds()), "us-"+what)
	}
}
