package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/config"
	"signalbox/internal/signal"
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
	text := "models: [{name: small, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]\n" + hrIntents + "default: {models: [small]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, memoryOnly(settings(t)))
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
	for name, change := range map[string]func(string) string{
		"that changes nothing":        func(s string) string { return s },
		"that changes another intent": func(s string) string { return strings.Replace(s, "the VPN", "the wireless network", 1) },
	} {
		if err := os.WriteFile(file, []byte(change(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := do(t, http.MethodPost, s.admin+"/-/reload", ""); got.status != http.StatusNoContent {
			t.Fatalf("reload: %d %s", got.status, got.body)
		}
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

func TestIntentsWithoutAModelAreUnknown(t *testing.T) {
	cfg, err := load(t, hrIntents)
	if err != nil {
		t.Fatal(err)
	}
	cfg.File = ""
	s := serve(t, cfg, config.Settings{Library: filepath.Join(t.TempDir(), "libonnxruntime.so")})
	v := s.app.Extract(t.Context(), "Where is my payslip?", signal.MaskOf(signal.Intent)).Values[signal.Intent]
	if v.State != signal.Unknown || v.Reason != signal.ReasonNoModel || v.Label != "" {
		t.Errorf("intent is %+v, want unknown for no_model", v)
	}
	ready := do(t, http.MethodGet, s.url+"/readyz", "")
	if !strings.Contains(ready.body, "no model for intent") {
		t.Errorf("readyz does not say that intents do not work: %s", ready.body)
	}
}
