package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"signalbox/internal/config"
)

// toolTalk is a conversation in which a tool was called n times; the last result has not been
// answered.
func toolTalk(n int) (body string, results []string) {
	messages := []map[string]any{{"role": "user", "content": "Find the invoice that was paid twice."}}
	for i := range n {
		var b strings.Builder
		for k := range 120 {
			fmt.Fprintf(&b, "Invoice %d-%d of the year 2024 was paid by transfer on day %d. ", i, k, k%28+1)
		}
		results = append(results, b.String())
		id := fmt.Sprint("call_", i)
		call := map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "search", "arguments": "{}"}}
		messages = append(messages, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": b.String()})
	}
	out, err := json.Marshal(map[string]any{"model": "auto", "messages": messages})
	if err != nil {
		panic(err)
	}
	return string(out), results
}

// sentResults are the texts of the results of tools in a body.
func sentResults(t *testing.T, body []byte) []string {
	t.Helper()
	var sent struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range sent.Messages {
		if m.Role == "tool" {
			out = append(out, m.Content)
		}
	}
	return out
}

func TestStaleResultsAreShortenedAndTheWholeOnesAreContexts(t *testing.T) {
	var got []byte
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // not when its metrics are read
			got, _ = io.ReadAll(r.Body)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":`+
			`[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	start := func(more string) *server {
		text := fmt.Sprintf("models: [{name: m, context_window: 1000000, endpoints: [{name: e, url: %s/v1}]}]\n"+
			"default: {models: [m], tool_results: {budget: 4000, each: 100}}\n%s", model.URL, more)
		cfg, _, err := config.Parse("test.yaml", []byte(text), os.LookupEnv, Catalog)
		if err != nil {
			t.Fatal(err)
		}
		return serve(t, cfg, memoryOnly(flags(t)))
	}
	s := start("")
	body, whole := toolTalk(4)
	// What is not shortened within 250 ms is sent whole, and shortened in a later request: a busy
	// machine takes several, but none that was answered sooner leaves anything.
	for short := false; !short; {
		begun := time.Now()
		a := s.post(t, "/v1/chat/completions", body)
		short = a.header.Get("x-signalbox-tool-results") == "3/4"
		if a.status != http.StatusOK || !short && time.Since(begun) < 250*time.Millisecond {
			t.Fatalf("status %d, %q: %s", a.status, a.header.Get("x-signalbox-tool-results"), a.body)
		}
	}
	first := got
	sent := sentResults(t, got)
	pointer := regexp.MustCompile(`\[shortened: \d+ of \d+ characters; the whole result is the context (ctx_[a-z2-7]{26})\]$`)
	for i, text := range sent[:3] {
		at := pointer.FindStringSubmatch(text)
		if at == nil || len(text) > 800 || !strings.Contains(text, "Invoice") {
			t.Fatalf("result %d became %q", i, text)
		}
		c := do(t, http.MethodGet, s.url+"/v1/contexts/"+at[1]+"/content", "")
		if !strings.Contains(c.body, whole[i]) {
			t.Errorf("the context of result %d: %d %.200s", i, c.status, c.body)
		}
	}
	if sent[3] != whole[3] {
		t.Error("the result that the model has not answered yet was changed")
	}
	s.post(t, "/v1/chat/completions", body)
	if string(got) != string(first) {
		t.Error("the same request was sent otherwise the second time")
	}
	if e := s.post(t, "/signalbox/v1/explain", body); !strings.Contains(e.body, `"tool_results":"3/4"`) {
		t.Errorf("explain does not tell: %s", e.body)
	}
	small, texts := toolTalk(2)
	if s.post(t, "/v1/chat/completions", small); !strings.Contains(string(got), texts[0]) {
		t.Error("a request within the budget was changed")
	}
	without := start("memory: {enabled: false}\n")
	if without.post(t, "/v1/chat/completions", body); sentResults(t, got)[0] != whole[0] {
		t.Error("a result that cannot be stored was shortened")
	}
}
