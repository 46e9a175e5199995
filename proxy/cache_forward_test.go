package proxy

import (
	"net/http"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/engine"
	"signalbox/proxy/recall"
)

// private responds with the caller's name, and refuses an unknown credential.
func private() testkit.Answer {
	return func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		known := map[string]string{"Bearer alice": "of alice", "Bearer bob": "of bob"}
		who := known[r.Header.Get("Authorization")]
		if who == "" {
			testkit.JSON(http.StatusUnauthorized,
				`{"error":{"message":"no","type":"x","param":null,"code":null}}`)(u, w, r)
			return
		}
		testkit.JSON(http.StatusOK,
			`{"id":"c","choices":[{"index":0,"finish_reason":"stop",`+
				`"message":{"role":"assistant","content":"`+who+`"}}]}`)(u, w, r)
	}
}

// passesOn makes every endpoint identify callers by their own credentials.
func passesOn(s *setup) {
	for i := range s.models {
		for j := range s.models[i].Endpoints {
			s.models[i].Endpoints[j].APIKey, s.models[i].Endpoints[j].ForwardAuth = "", true
		}
	}
}

// S8: when the model server identifies the caller, a response is only for callers with the same
// credentials, for exact and semantic hits.
func TestAnAnswerToForwardedCredentialsIsForNobodyElse(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, private())
	b := start(t, oneModel(up), passesOn, caches(recall.ModeSemantic))
	same := ask("How do I turn on the lights in the office?")
	other := ask("How can I turn on the lights in the office?")
	b.chat(same, "Authorization", "Bearer alice").says(t, "alice", "miss")
	b.kept(1)
	b.chat(same, "Authorization", "Bearer alice").says(t, "alice again", "exact")
	b.chat(other, "Authorization", "Bearer alice").says(t, "alice in other words", "semantic")
	for name, body := range map[string]string{"the same words": same, "other words": other} {
		for _, header := range [][]string{
			{"Authorization", "Bearer wrong"},
			{"Authorization", ""},
			nil,
		} {
			got := b.chat(body, header...)
			if got.status != http.StatusUnauthorized {
				t.Errorf("%s with %q: status %d from the cache (%s): %s",
					name, header, got.status, got.header.Get("X-Signalbox-Cache"), got.body)
			}
		}
		if got := b.chat(body, "Authorization", "Bearer bob"); got.content(t) != "of bob" {
			t.Errorf("%s: bob got the answer %q", name, got.content(t))
		}
	}
}

// When no endpoint receives credentials, they do not affect responses and do not separate callers.
func TestCredentialsThatEndHerePartNoAnswers(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, numbered())), caches(recall.ModeExact))
	b.chat(ask("hi"), "Authorization", "Bearer one").says(t, "one", "miss")
	b.kept(1)
	b.chat(ask("hi"), "Authorization", "Bearer two").says(t, "two", "exact")
}

// The stand-in for a credential in keys of a shared store cannot be found by trying credentials.
func TestACredentialStandsInKeysUnderASecret(t *testing.T) {
	t.Parallel()
	a, again, b := engine.NewSalts([]byte("one")), engine.NewSalts([]byte("one")), engine.NewSalts([]byte("two"))
	if got := a.Credential("Bearer x"); got != again.Credential("Bearer x") ||
		got == a.Credential("Bearer y") {
		t.Errorf("%q is not of the credential alone", got)
	}
	if a.Credential("x") == b.Credential("x") || a.Credential("x") == a.Of("x") {
		t.Error("the secret, or the use, does not count")
	}
}
