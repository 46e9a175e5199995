package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/knn"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

const hrIntents = `signals:
  intents:
    - name: hr_bot
      examples: ["How do I file a travel reimbursement?", "How many vacation days do I have left?", "Who approves my parental leave?", "Where do I find my payslip?", "Can I carry over unused holidays?"]
    - name: it_desk
      examples: ["My laptop does not start any more.", "I forgot my password.", "The printer on the third floor is out of paper.", "How do I connect to the VPN?", "Please install a new text editor for me."]
routes:
  - {name: hr, when: {intent: hr_bot}, answer: {text: hr}}
  - {name: it, when: {intent: it_desk}, answer: {text: it}}
`

func TestPrivateIntentsRouteAndLearn(t *testing.T) {
	needModels(t)
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := "telemetry: {log: error}\n" +
		"models: [{name: small, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]\n" + hrIntents + "default: {models: [small]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, memoryOnly(flags(t)))
	route := func(prompt string) string {
		return s.post(t, "/v1/chat/completions", chat("auto", prompt)).header.Get("x-signalbox-route")
	}
	if got := route("How do I get my travel expenses reimbursed?"); got != "hr" {
		t.Errorf("a question about expenses went to %q, want hr", got)
	}
	if got := route("I cannot log in, I forgot the password of my account"); got != "it" {
		t.Errorf("a question about a password went to %q, want it", got)
	}
	const odd = "The zebra in the lobby wants its badge renewed"
	if got := route(odd); got == "hr" {
		t.Fatalf("%q is hr before anybody said so", odd)
	}
	got := s.post(t, "/signalbox/v1/intents/hr_bot/examples", `{"examples":["`+odd+`"]}`)
	if got.status != http.StatusOK || got.body != `{"added":1,"examples":6,"intent":"hr_bot"}` {
		t.Fatalf("adding an example: %d %s", got.status, got.body)
	}
	if got := route(odd); got != "hr" {
		t.Errorf("%q went to %q after it became an example of hr", odd, got)
	}
	reload := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := do(t, http.MethodPost, s.admin+"/-/reload", ""); got.status != http.StatusNoContent {
			t.Fatalf("reload: %d %s", got.status, got.body)
		}
	}
	for name, change := range map[string]func(string) string{
		"that changes nothing":        func(s string) string { return s },
		"that changes another intent": func(s string) string { return strings.Replace(s, "the VPN", "the wireless network", 1) },
		"after one without intents": func(s string) string {
			reload(strings.Replace(s, hrIntents, "", 1))
			return s
		},
	} {
		reload(change(text))
		if got := route(odd); got != "hr" {
			t.Errorf("a reload %s forgot the example: route %q", name, got)
		}
	}
	list := do(t, http.MethodGet, s.url+"/signalbox/v1/intents", "")
	if !strings.Contains(list.body, `{"name":"hr_bot","examples":6,"live":1,`) {
		t.Errorf("list: %s", list.body)
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"an empty one":              {`{"examples":[" "]}`, http.StatusBadRequest},
		"one of another intent":     {`{"examples":["I forgot my password."]}`, http.StatusBadRequest},
		"one that is there already": {`{"examples":["` + odd + `"]}`, http.StatusOK},
	} {
		if got := s.post(t, "/signalbox/v1/intents/hr_bot/examples", c.body); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.status)
		}
	}
}

func TestAConversationLeavesAPrivateIntent(t *testing.T) {
	t.Parallel()
	needModels(t)
	up := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	intents, _, _ := strings.Cut(hrIntents, "routes:")
	cfg, _, err := config.Parse(filepath.Join(t.TempDir(), "test.yaml"), []byte(intents+`
models: [{name: small, endpoints: [{name: a, url: '`+up.URL()+`'}]}]
routes:
  - {name: hr, when: {intent: hr_bot}, use: {models: [small]}}
  - {name: math, when: {domain: math}, use: {models: [small]}}
  - {name: law, when: {domain: law}, use: {models: [small]}}
default: {models: [small]}
`), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, memoryOnly(flags(t)))
	type turn struct{ text, route string }
	const days, derivative = "How many vacation days do I have left?", "What is the derivative of x^3 * sin(x)?"
	for name, turns := range map[string][]turn{
		"a change of subject": {
			{days, "hr"},
			{derivative, "math"},
			{"What must a plaintiff prove in a negligence case?", "law"},
			{"What is the capital of France?", "default"},
			{"Write a poem about the sea.", "default"},
			{"Give me a recipe for pancakes.", "default"},
			{"Who approves my parental leave?", "hr"},
		},
		"a follow-up": {
			{days, "hr"},
			{"and for part-time staff?", "hr"},
			{"why?", "hr"},
			{"can you explain that in more detail?", "hr"},
			{derivative, "math"},
			{"why?", "math"},
		},
		"an intent in a turn that leans on one without": {
			{"I work here since March.", "default"},
			{"So how many vacation days do I have left then?", "hr"},
			{"and for part-time staff?", "hr"},
			{"why?", "hr"},
			{derivative, "math"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said, texts []string
			for _, turn := range turns {
				said = append(said, `{"role":"user","content":"`+turn.text+`"}`)
				got := s.post(t, "/v1/chat/completions", `{"model":"auto","messages":[`+strings.Join(said, ",")+`]}`)
				if route := got.header.Get("x-signalbox-route"); got.status != http.StatusOK || route != turn.route {
					t.Errorf("%q went to %q (%s), want %q: %d %s", turn.text, route,
						got.header.Get("x-signalbox-conversation-reason"), turn.route, got.status, got.body)
				}
				said = append(said, `{"role":"assistant","content":"It is so."}`)
				texts = append(texts, turn.text)
			}
			v := talked(t, s.app.classifier.Load(), signal.MaskOf(signal.Intent), texts...).Value(signal.Intent)
			if follows := texts[len(texts)-1] == "why?"; v.State != signal.Known || (v.Leans > .5) != follows {
				t.Errorf("the last turn has the intent %q, leans %.2f", v.Label, v.Leans)
			}
		})
	}
}

func TestIntentsWithoutAModelAreUnknown(t *testing.T) {
	cfg, err := load(t, hrIntents)
	if err != nil {
		t.Fatal(err)
	}
	cfg.File = ""
	s := serve(t, cfg, config.Settings{Library: filepath.Join(t.TempDir(), "libonnxruntime.so")})
	v := *s.app.Extract(t.Context(), "Where is my payslip?", signal.MaskOf(signal.Intent)).Value(signal.Intent)
	if v.State != signal.Unknown || v.Reason != signal.ReasonNoModel || v.Label != "" {
		t.Errorf("intent is %+v, want unknown for no_model", v)
	}
	list := do(t, http.MethodGet, s.url+"/signalbox/v1/intents", "")
	if want := `{"intents":[{"name":"hr_bot","examples":5,"live":0,"negatives":0,"threshold":0,"auto":true},{"name":"it_desk",`; !strings.HasPrefix(list.body, want) {
		t.Errorf("list: %s, want %s...", list.body, want)
	}
	for name, want := range map[string]struct {
		status int
		code   string
	}{
		"hr_bot": {http.StatusServiceUnavailable, "signal_unavailable"},
		"nobody": {http.StatusNotFound, "intent_not_found"},
	} {
		got := s.post(t, "/signalbox/v1/intents/"+name+"/examples", `{"examples":["Who pays for my train?"]}`)
		if got.status != want.status || !strings.Contains(got.body, want.code) {
			t.Errorf("an example for %s: %d %s, want %d %s", name, got.status, got.body, want.status, want.code)
		}
	}
	ready := do(t, http.MethodGet, s.url+"/readyz", "")
	if !strings.Contains(ready.body, "no model for intent") {
		t.Errorf("readyz does not say that intents do not work: %s", ready.body)
	}
}

// letters embeds a text by how often it has each letter.
func letters(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 27)
		out[i][26] = 1
		for _, r := range strings.ToLower(text) {
			if r >= 'a' && r <= 'z' {
				out[i][r-'a']++
			}
		}
	}
	return out, nil
}

func TestExamplesOutliveEveryKindOfReload(t *testing.T) {
	n := &neural{examples: knn.NewCache("")}
	cfg, err := load(t, hrIntents)
	if err != nil {
		t.Fatal(err)
	}
	use := func(change string) { // a configuration in which the intents are others
		t.Helper()
		c := *cfg
		c.Signals.Intents = append([]knn.Intent(nil), cfg.Signals.Intents...)
		c.Signals.Intents[1].Examples = append([]string{change}, c.Signals.Intents[1].Examples...)
		learned, err := n.teach(t.Context(), &c, letters, knn.Options{Model: "model"})
		if err != nil {
			t.Fatal(err)
		}
		n.commit(&modelSet{taught: learned})
	}
	add := func(to *taught, example string) {
		t.Helper()
		if _, err := to.index.Add(t.Context(), "hr_bot", []string{example}); err != nil {
			t.Fatal(err)
		}
	}
	carry := func(old *taught) {
		t.Helper()
		if err := n.carry(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, n.taught.index.Live()["hr_bot"]); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	use("first")
	old := n.taught
	add(old, "alpha")
	use("second")
	add(old, "beta") // by a request that still sees the old one
	carry(old)
	check("after a reload", "alpha", "beta")

	old = n.taught
	n.commit(&modelSet{})
	carry(old)
	add(old, "gamma")
	carry(old)
	n.commit(&modelSet{}) // still no model
	carry(nil)
	use("third")
	check("after a time without a model", "alpha", "beta", "gamma")
}

func TestOneExampleThatTheFileNowHasElsewhereCostsNoOther(t *testing.T) {
	n := &neural{examples: knn.NewCache("")}
	cfg, err := load(t, hrIntents)
	if err != nil {
		t.Fatal(err)
	}
	use := func() {
		t.Helper()
		learned, err := n.teach(t.Context(), cfg, letters, knn.Options{Model: "model"})
		if err != nil {
			t.Fatal(err)
		}
		n.commit(&modelSet{taught: learned})
	}
	use()
	if _, err := n.taught.index.Add(t.Context(), "hr_bot", []string{"alpha", "beta", "gamma", "delta"}); err != nil {
		t.Fatal(err)
	}
	intents := append([]knn.Intent(nil), cfg.Signals.Intents...)
	intents[0].Negatives = []string{"gamma"}
	intents[1].Examples = append([]string{"beta"}, intents[1].Examples...)
	cfg.Signals.Intents = intents
	use()
	if d := cmp.Diff([]string{"alpha", "delta"}, n.taught.index.Live()["hr_bot"]); d != "" {
		t.Errorf("after a reload that takes two of four examples away (-want +got):\n%s", d)
	}
}
