package proxy

import (
	"net/http"
	"testing"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/memory"
	"signalbox/proxy/recall"
)

// about returns a question about contexts.
func about(pointers, question string) string {
	return with(pointers, `{"role":"user","content":"`+question+`"}`)
}

// A response about one version of a context is never used for another version, or with other facts.
func TestAnswersAboutContextsHoldForTheirVersions(t *testing.T) {
	t.Parallel()
	r := keeping(t, oneModel(testkit.NewUpstream(t, numbered())), nil, caches(recall.ModeSemantic), func(s *setup) { s.routes = toSmall })
	n := 0
	miss := func(what, body string, header ...string) {
		t.Helper()
		r.chat(body, header...).says(t, what, "miss")
		n++
		r.kept(n)
	}
	lease, other := r.keep("The rent is 900 euros."), r.keep("The rent is 900 euros.")
	latest, first := quoted(lease), quoted(lease+"@1")
	miss("first", about(latest, lights))
	if got := r.chat(about(latest, lights)).says(t, "the same", "exact"); got.content(t) != "answer 1" || got.header.Get("X-Signalbox-Context-Version") != lease+"@1" {
		t.Errorf("%v %s", got.header, got.body)
	}
	r.chat(about(first, lights)).says(t, "the version by its number", "exact")
	r.chat(about(latest, otherLights)).says(t, "in other words", "semantic")
	miss("another context of the same text", about(quoted(other), lights))
	miss("two contexts", about(quoted(lease, other), lights))
	miss("in another order", about(quoted(other, lease), lights))
	miss("without any", about(`[]`, lights))
	if _, err := r.store.Append(t.Context(), anyone(), memory.Ref{ID: lease}, memory.Content{Text: " From May on 950."}); err != nil {
		t.Fatal(err)
	}
	miss("a new version", about(latest, lights))
	r.chat(about(latest, lights)).says(t, "the new version again", "exact")
	if got := r.chat(about(first, otherLights)).says(t, "the old one in other words", "semantic"); got.content(t) != "answer 1" {
		t.Errorf("%s", got.body)
	}
	if _, err := r.store.SetFacts(t.Context(), anyone(), memory.Ref{ID: other}, []memory.Fact{{ID: "f1", Text: "The rent is 900 euros."}}); err != nil {
		t.Fatal(err)
	}
	miss("facts that were pinned to it", about(quoted(other), lights))
	r.chat(about(latest, lights), "X-Signalbox-Session", "s1").says(t, "a session that nothing depends on", "exact")
	session := anyone()
	session.Session = "s1"
	if err := r.store.SetSessionFacts(t.Context(), session, []memory.Fact{{ID: "f1", Text: "Rents are paid in euros."}}, 0); err != nil {
		t.Fatal(err)
	}
	miss("facts of the session", about(latest, lights), "X-Signalbox-Session", "s1")
	r.chat(about(latest, lights), "X-Signalbox-Session", "s1").says(t, "the same facts", "exact")
	r.chat(about(latest, lights)).says(t, "without the session", "exact")
}

// The verdicts of a context affect decisions. When they become known later, no earlier response may
// be used.
func TestAStoredAnswerIsNoWayAroundALaterVerdict(t *testing.T) {
	t.Parallel()
	r := keeping(t, oneModel(testkit.NewUpstream(t, numbered())), nil, caches(recall.ModeExact), func(s *setup) {
		s.routes = "routes: [{name: safe, when: {injection: true}, on_unknown: skip, block: {message: \"No.\"}}]\ndefault: {models: [small]}\n"
		s.classifier.signals |= signal.MaskOf(signal.Injection)
	})
	attack := r.keep("an unread jailbreak")
	body := about(quoted(attack), "what does it say")
	r.chat(body).says(t, "while nobody has read it", "miss")
	r.state.Caching.Close()
	owner := anyone()
	snap, err := r.store.Resolve(t.Context(), owner, memory.Ref{ID: attack})
	if err != nil {
		t.Fatal(err)
	}
	before := snap.Digest
	snap.Release()
	bad := r.keep("a jailbreak")
	if snap, err = r.store.Resolve(t.Context(), owner, memory.Ref{ID: bad}); err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	if snap.Digest == before {
		t.Error("an unknown verdict and a bad one look alike")
	}
	if got := r.chat(about(quoted(bad), "what does it say")); got.status != http.StatusBadRequest {
		t.Errorf("an attack: %d %s", got.status, got.body)
	}
}
