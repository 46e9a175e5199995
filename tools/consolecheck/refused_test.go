package consolecheck

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTheConsoleTellsWhatWasRefused has a key that may ask once a minute, and one whose budget is
// too small for any request.
func TestTheConsoleTellsWhatWasRefused(t *testing.T) {
	browser(t)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},`+
			`"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	t.Cleanup(model.Close)
	sum := func(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	config := "auth: {mode: keys, keys: [" +
		"{name: seldom, sha256: " + sum("seldom") + ", rate: {rpm: 1}}, " +
		"{name: poor, sha256: " + sum("poor") + ", budget: {usd: 0.000001}}]}\n" +
		"models: [{name: m, endpoints: [{name: e, url: '" + model.URL + "/v1'}], " +
		"price: {input: 0.1, output: 0.1}, health: {path: 'off'}}]\n" +
		"default: {models: [m]}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(t, nil, "serve", file, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	ask := func(key string, want int) {
		t.Helper()
		body := strings.NewReader(`{"model":"auto","max_tokens":900,"messages":[{"role":"user","content":"hi"}]}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.api+"/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("%s: status %d, want %d", key, resp.StatusCode, want)
		}
	}
	b := open(t, p)
	b.do(chromedp.Navigate(p.admin + "/console#cost"))
	b.until(`document.querySelector(".tiles")?.textContent.includes("no request was over a limit")`)
	ask("seldom", http.StatusOK)
	ask("seldom", http.StatusTooManyRequests)
	ask("seldom", http.StatusTooManyRequests)
	ask("poor", http.StatusTooManyRequests)
	b.until(`document.querySelector(".tiles")?.textContent` +
		`.includes("over the limit on requests, before routing")`)
	if got := b.text(".tiles"); !strings.Contains(got, "$0.0000002") {
		t.Errorf("two tokens are told to cost %s", got)
	}
	b.picture("refused")
	b.look("refused")

	// One that a budget refuses was decided, and its decision tells the error.
	b.turn("decisions")
	b.until(`document.querySelectorAll("tbody tr").length === 2`)
	b.do(chromedp.Click("tbody tr:first-child button", chromedp.ByQuery))
	b.until(`document.querySelector("aside")?.textContent.includes("insufficient_quota")`)
	b.clean()
}
