package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/option"
	"signalbox/internal/testkit"
)

// What a text made up to take long may cost, and what the product may still do for a client that
// has left, or a request whose time is over.
const (
	floodSize  = 1 << 20
	floodLimit = 2 * time.Second        // of processor time, for one request
	goneLimit  = 100 * time.Millisecond // after which nothing is done any more
	goneWindow = 300 * time.Millisecond // of which, looked at behind it,
	goneNoise  = 50 * time.Millisecond  // of processor time is what the process does for itself
)

// floods are texts of about size bytes that hold one kind of value, or what looks like one.
func floods(size int) map[string]string {
	fill := func(format string, factors ...int) string {
		var b strings.Builder
		args := make([]any, len(factors))
		for i := 0; b.Len() < size; i++ {
			for k, f := range factors {
				args[k] = i * f % 99_991
			}
			fmt.Fprintf(&b, format, args...)
		}
		return b.String()[:size]
	}
	return map[string]string{
		"mail":       fill("jo.doe%d@brightfield.com ", 1),
		"short mail": fill("a@b.co,"),
		"addresses":  fill("ann%d@brightfield.com, %d Main Street, +1 202 555 0143, 92.127.194.23; ", 1, 7919),
		"phones":     fill("415 555 0132 "),
		"cards":      fill("4242 4242 4242 4242 "),
		"accounts":   fill("DE89 3704 0044 0532 0130 00 "),
		"sites":      fill("https://a%d.brightfield.com/x ", 1),
		"digits":     fill("4"),
		"one number": fill("7 "),
		"numbers":    fill("%d %d ", 1, 7919),
		"brackets":   fill("((1))"),
		"sales":      fill("Store %d sold %d. ", 1, 7919),
		"a table":    "| a | b | c |\n|---|---|---|\n" + fill("| x%d | %d | 3 |\n", 1, 7919)[:size-32],
		"wide rows":  strings.Repeat("| 7 ", size/8) + "|\n" + strings.Repeat("|---", size/8) + "|\n",
	}
}

// floodRoutes need every signal that reads text.
const floodRoutes = `signals: {keywords: [{name: titan, any: [Project Titan]}, {name: near, any: [titanium], fuzzy: 2}, ` +
	`{name: shape, regex: 'tit+an\s+[a-z]{3,9}[0-9]'}]}
routes:
  - {name: words, when: {any: [{keyword: titan}, {keyword: near}, {keyword: shape}]}, block: {message: no}}
  - {name: attacks, when: {any: [{jailbreak: true}, {injection: true}]}, block: {message: no}}
  - {name: private, when: {pii: {types: [AGE]}}, block: {message: no}}
  - {name: law, when: {domain: {in: [law]}}, use: {models: [small]}}
`

// flooded serves a model with a backend that answers at once.
func flooded(t *testing.T, routes string, change func(*config.Config)) *server {
	t.Helper()
	needModels(t)
	_, url := startBackend(t, nil)
	text := "models: [{name: small, endpoints: [{name: a, url: '" + url + "'}]}]\n" + routes +
		"default: {models: [small], guard: observe}\n"
	cfg, _, err := config.Parse("test.yaml", []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	cfg.File = ""
	if change != nil {
		change(cfg)
	}
	return serve(t, cfg, flags(t))
}

// leave sends a request and closes its connection after a while.
func (s *server) leave(t *testing.T, path, body string, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// idle fails when the process goes on working from goneLimit on.
func idle(t *testing.T, name string) {
	t.Helper()
	time.Sleep(goneLimit)
	if used := testkit.ProcessTime(t, func() { time.Sleep(goneWindow) }); used > goneNoise {
		t.Errorf("%s: %v of processor time from %v after the end on", name, used, goneLimit)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A megabyte of addresses or numbers is read in a bounded time, and no longer than anybody waits.
func TestAFloodOfValuesCostsABoundedTime(t *testing.T) {
	if !testkit.Timed() {
		t.Skip("judges time: make test-timed")
	}
	const chatPath, tool = "/v1/chat/completions", `{"role":"user","content":"Read."},{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},`
	s := flooded(t, floodRoutes, nil)
	s.post(t, chatPath, chat("auto", "Hello"))
	for name, text := range floods(floodSize) {
		for where, body := range map[string]func(text string) string{
			"of a user": func(text string) string { return chat("auto", text) },
			"of a tool": func(text string) string {
				return `{"model":"auto","messages":[` + tool + `{"role":"tool","tool_call_id":"c","content":` + asJSON(t, text) + `}]}`
			},
		} {
			if where == "of a tool" && !slices.Contains([]string{"addresses", "numbers", "a table"}, name) {
				continue
			}
			t.Run(name+" "+where, func(t *testing.T) {
				var got answer
				used := testkit.ProcessTime(t, func() { got = s.post(t, chatPath, body(text)) })
				t.Logf("%v, status %d: %.120s", used, got.status, got.body)
				if used > floodLimit || got.status != http.StatusOK && got.status != http.StatusBadRequest {
					t.Errorf("%v of processor time, status %d: %.200s", used, got.status, got.body)
				}
				s.leave(t, chatPath, body("Then: "+text), 50*time.Millisecond)
				idle(t, "the client left")
			})
		}
	}
}

// Where all of a prompt has to be read, the time for it is what bounds the work.
func TestAFloodIsReadNoLongerThanTheTimeForIt(t *testing.T) {
	if !testkit.Timed() {
		t.Skip("judges time: make test-timed")
	}
	const limit = 500 * time.Millisecond
	s := flooded(t, "routes: [{name: all, when: true, use: {models: [small], redact: true}}]\n", func(c *config.Config) {
		c.Classify.Timeout = option.Duration(limit)
	})
	all := floods(floodSize)
	all["prose"] = longPrompt(t, floodSize) // of which every window goes through the model
	for _, name := range []string{"addresses", "numbers", "cards", "accounts", "a table", "prose"} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			got := s.post(t, "/v1/chat/completions", chat("auto", all[name]))
			took := time.Since(begun)
			t.Logf("%v, status %d", took, got.status)
			// Reading and parsing a megabyte comes before that time, and a refusal behind it.
			if took > limit+goneLimit+time.Second/2 {
				t.Errorf("took %v, status %d: %.200s", took, got.status, got.body)
			}
			idle(t, "the time was over")
		})
	}
}

func TestVerifyingAFloodCostsABoundedTime(t *testing.T) {
	if !testkit.Timed() {
		t.Skip("judges time: make test-timed")
	}
	const path, most = "/signalbox/v1/verify", 64 << 10
	s := flooded(t, "routes: []\n", nil)
	s.post(t, path, `{"facts":["The tower is 330 m high."],"answer":"The tower is 330 m high."}`)
	for name, facts := range floods(floodSize) {
		used := testkit.ProcessTime(t, func() {
			if got := s.post(t, path, asJSON(t, map[string]any{"facts": facts, "answer": "It is 7."})); got.status != http.StatusRequestEntityTooLarge {
				t.Errorf("a megabyte of %s as facts: status %d", name, got.status)
			}
			if got := s.post(t, path, asJSON(t, map[string]any{"facts": "It is 7.", "answer": facts})); got.status != http.StatusRequestEntityTooLarge {
				t.Errorf("a megabyte of %s as answer: status %d", name, got.status)
			}
		})
		if used > floodLimit/10 {
			t.Errorf("%v to refuse a megabyte of %s", used, name)
		}
	}
	all := floods(most - 1024)
	for facts, texts := range map[string][]string{
		"addresses":  {"addresses", "a table"},
		"numbers":    {"numbers"},
		"one number": {"one number", "sales", "a table"},
		"sales":      {"sales"},
		"a table":    {"a table", "wide rows"},
	} {
		for _, text := range texts {
			t.Run(facts+" and "+text, func(t *testing.T) {
				body := asJSON(t, map[string]any{"facts": []string{all[facts]}, "answer": all[text]})
				var got answer
				used := testkit.ProcessTime(t, func() { got = s.post(t, path, body) })
				t.Logf("%v, status %d", used, got.status)
				if used > floodLimit || got.status != http.StatusOK {
					t.Errorf("%v of processor time, status %d: %.200s", used, got.status, got.body)
				}
				s.leave(t, path, body, 50*time.Millisecond)
				idle(t, "the client left")
			})
		}
	}
}
