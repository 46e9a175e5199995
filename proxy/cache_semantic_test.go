package proxy

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/explain"
	"signalbox/proxy/recall"
)

// bag returns an embedding of the words of a text, so that texts with most words in common are
// similar.
func bag(text string) []float32 {
	v := make([]float32, 64)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		sum := sha256.Sum256([]byte(strings.Trim(word, "?.,!")))
		v[sum[0]%64]++
	}
	var norm float64
	for _, x := range v {
		norm += float64(x * x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

func TestAQuestionInOtherWordsGetsTheAnswer(t *testing.T) {
	up := testkit.NewUpstream(t, numbered())
	b := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) {
		s.routes = `
routes:
  - {name: brief, when: {header: {name: X-Brief, equals: "yes"}}, use: {models: [small], max_tokens: 20}}
  - {name: exact, when: {header: {name: X-Exact, equals: "yes"}}, use: {models: [small], cache: exact}}
  - {name: math, when: {domain: math}, use: {models: [big]}}
default: {models: [small]}
`
	})
	n := 0
	miss := func(what, body string, header ...string) {
		t.Helper()
		b.chat(body, header...).says(t, what, "miss")
		n++
		b.kept(n)
	}
	miss("first", ask("How do I turn on the lights in the office?"))
	for _, stream := range []bool{false, true} {
		other := ask("How can I turn on the lights in the office?")
		if stream {
			other = askStream("How can I turn on the lights in the office?")
		}
		got := b.chat(other).says(t, "other words", "semantic")
		if got.content(t) != "answer 1" || got.header.Get("X-Signalbox-Model") != "small" || got.header.Get("X-Signalbox-Route") != "default" || got.header.Get("Age") == "" {
			t.Errorf("%v %s", got.header, got.body)
		}
	}
	miss("the opposite", ask("How do I turn off the lights in the office?"))
	miss("another number", ask("How do I turn on the 2 lights in the office?"))
	miss("another system prompt", strings.Replace(ask("How can I turn on the lights in the office?"), `"messages":[`, `"messages":[{"role":"system","content":"Be rude."},`, 1))
	miss("a seed", strings.Replace(ask("How can I turn on the lights in the office?"), `{`, `{"seed":1,`, 1))
	miss("a model by its name", strings.Replace(ask("How can I turn on the lights in the office?"), "auto", "small", 1))
	miss("another route, which asks for less", ask("How can I turn on the lights in the office?"), "X-Brief", "yes")
	miss("a route that takes the same request only", ask("How can I turn on the lights in the office?"), "X-Exact", "yes")
	miss("another model", ask("How can I turn on the lights in the math office?"))
	waitFor(t, "the count", func() bool { return b.counts("signalbox_cache_total", "semantic") == 2 })
}

// The embedding is computed together with the signals of the decision if those need a pass, and not
// at all if nothing needs it.
func TestTheEmbeddingCostsNoPassOfItsOwn(t *testing.T) {
	embedding := signal.MaskOf(signal.Embedding)
	up := testkit.NewUpstream(t, numbered())
	b := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) {
		s.routes = "routes: [{name: math, when: {domain: math}, use: {models: [big]}}]\ndefault: {models: [small]}"
	})
	b.chat(ask("hello")).says(t, "eligible", "miss")
	if got := b.classifier.asked(); len(got) != 1 || got[0] != embedding|signal.MaskOf(signal.Domain) {
		t.Errorf("extracted %v", got)
	}
	b.chat(strings.Replace(ask("hello"), `{`, `{"temperature":1,`, 1)).says(t, "too warm", "off")
	if got := b.classifier.asked(); len(got) != 2 || got[1].Has(signal.Embedding) {
		t.Errorf("extracted %v", got)
	}
	plain := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) { s.routes = "routes: []\ndefault: {models: [small]}" })
	plain.chat(ask("hello")).says(t, "without rules", "miss")
	if got := plain.classifier.asked(); len(got) != 1 || got[0] != embedding {
		t.Errorf("extracted %v", got)
	}
}

func TestRulesMayAskForAKnownQuestion(t *testing.T) {
	up := testkit.NewUpstream(t, numbered())
	b := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) {
		s.classifier.signals |= signal.MaskOf(signal.Cache)
		s.routes = `
routes:
  - {name: known, when: {cache: {similarity: 0.95}}, use: {models: [small]}}
default: {models: [small]}
`
	})
	b.chat(ask("How do I turn on the lights in the office today?")).says(t, "first", "miss")
	b.kept(1)
	for text, want := range map[string]string{
		"How do I turn on the lights in the office today":   "known",
		"How do I turn off the lights in the office today?": "default",
		"Why is the sky blue?":                              "default",
	} {
		got := b.post("/signalbox/v1/explain", ask(text))
		var e explain.Explanation
		if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Route != want {
			t.Errorf("%s: route %s, want %s (%s)", text, e.Route, want, got.body)
		}
		if s := e.Signals["cache"]; s.State != "evaluated" || (want == "known") != (*s.Score >= 0.95) {
			t.Errorf("%s: signal %+v", text, s)
		}
	}
	if got := b.chat(ask("How do I turn on the lights in the office today")).says(t, "known", "semantic"); got.header.Get("X-Signalbox-Route") != "known" {
		t.Errorf("route %s", got.header.Get("X-Signalbox-Route"))
	}
	b.classifier.broken = signal.MaskOf(signal.Embedding)
	if got := b.chat(ask("How is the weather")); got.header.Get("X-Signalbox-Route") != "default" || got.header.Get("X-Signalbox-Degraded") != "cache" {
		t.Errorf("without an embedding: %v", got.header)
	}
}

// The guard treats a cached response like an upstream's, and a response in which it found something
// is not cached.
func TestAStoredAnswerPassesTheGuard(t *testing.T) {
	const fact, right, wrong = "The tower is 330 m high.", "The tower is 330 m high.", "The tower is 240 m high."
	asked := func(text, fact string, stream bool) string {
		body := strings.Replace(ask(text), `{`, `{"signalbox":{"facts":["`+fact+`"],"guard":"hold"},`, 1)
		if stream {
			body = strings.Replace(body, `{`, `{"stream":true,`, 1)
		}
		return body
	}
	says := func(text string) testkit.Answer {
		return testkit.JSON(200, strings.Replace(testkit.Completion, "hello", text, 1))
	}
	up := testkit.NewUpstream(t, says(right))
	b := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) { s.routes = "routes: []\ndefault: {models: [small]}" })

	up.Next(says(wrong), says(wrong))
	for range 2 {
		if got := b.chat(asked("How high is the tower?", fact, false)).says(t, "an answer that fails", "miss"); !strings.Contains(got.body, `"verdict":"unsupported"`) {
			t.Errorf("%s", got.body)
		}
	}
	b.state.Caching.Close()
	if n := b.counts("signalbox_cache_kept_total", recall.StoreKept); n != 0 {
		t.Fatalf("%d answers were kept that the guard found something in", n)
	}
	b.chat(asked("How high is the tower?", fact, false)).says(t, "an answer that passes", "miss")
	b.kept(1)
	for _, stream := range []bool{false, true} {
		got := b.chat(asked("How high is the tower?", fact, stream)).says(t, "given again", "exact")
		if got.header.Get("X-Signalbox-Guard") != "hold" || !strings.Contains(got.body, `"verdict":"supported"`) || got.content(t) != right {
			t.Errorf("%v %s", got.header, got.body)
		}
	}
	b.chat(asked("How high is the tower?", "The tower is 240 m high.", false)).says(t, "against other facts", "miss")

	// The guard may come to another verdict since, for example with another model.
	id := b.memoOf(asked("How tall is the tower?", fact, true))
	bad := testkit.Event(wrong) + testkit.Finish + testkit.Done
	for _, a := range []*cache.Answer{
		{ContentType: "application/json", Data: []byte(strings.Replace(testkit.Completion, "hello", wrong, 1))},
		{ContentType: "text/event-stream", Data: []byte(bad), Pieces: []cache.Piece{{End: len(bad)}}},
	} {
		a.Model, a.Route, a.Made = "small", "default", time.Now()
		if err := b.state.Caching.Cache.Keep(t.Context(), id, "small", nil, a); err != nil {
			t.Fatal(err)
		}
		got := b.chat(asked("How tall is the tower?", fact, a.Streamed())).says(t, "one that fails now", "exact")
		if strings.Contains(got.content(t), "240") || !strings.Contains(got.body, `"verdict":"unsupported"`) {
			t.Errorf("%s", got.body)
		}
	}
}

func TestACacheThatIsOffCostsNothing(t *testing.T) {
	up := testkit.NewUpstream(t, numbered())
	b := start(t, oneModel(up), caches(recall.ModeOff))
	if b.state.Caching != nil {
		t.Fatal("a cache that no route uses was set up")
	}
	b.chat(ask("hi")).says(t, "off", "off")
	if counted(b.metrics(), "signalbox_cache_total") {
		t.Error("a request was counted that no cache saw")
	}
	o, h := &exchange.Exchange{Surface: &surfaces[0]}, http.Header{}
	w := downstream.New(httptest.NewRecorder(), &http.Request{Header: h})
	if n := testing.AllocsPerRun(100, func() {
		_, _ = b.proxy.recall(t.Context(), b.state, w, Principal{}, h, o)
		_, _ = b.state.recallSimilar(t.Context(), w, o)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkExactHit(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	p := start(b, oneModel(up), caches(recall.ModeExact))
	p.chat(ask("hello, how are you today"))
	p.kept(1)
	hammer(b, p.URL, ask("hello, how are you today"))
}

func BenchmarkSemanticHit(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	p := start(b, oneModel(up), caches(recall.ModeSemantic))
	p.chat(ask("How do I turn on the lights in the office?"))
	p.kept(1)
	hammer(b, p.URL, ask("How can I turn on the lights in the office?"))
}
