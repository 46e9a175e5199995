package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/config"
	"signalbox/internal/testkit"
)

// said lists findings as "level area subject: text -> do".
func said(found []Finding) string {
	var out strings.Builder
	for _, f := range found {
		fmt.Fprintf(&out, "%s %s %s: %s -> %s\n", f.Level, f.Area, f.Subject, f.Text, f.Do)
	}
	return out.String()
}

func TestTheDoctorFindsWhatIsWrongAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	list := `{"object":"list","data":[{"id":"served","owned_by":"vllm","max_model_len":4096}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models" && r.Header.Get("Authorization") == "Bearer right":
			_, _ = io.WriteString(w, list)
		case r.URL.Path == "/v1/models":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/version":
			_, _ = io.WriteString(w, `{"version":"0.32.0"}`)
		case r.URL.Path == "/is_sleeping":
			_, _ = io.WriteString(w, `{"is_sleeping":true}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	redis := testkit.NewRedis(t, "--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru")
	taken, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := strings.NewReplacer("SERVER", server.URL, "REDIS", redis.URL(), "TAKEN", taken.Addr().String()).Replace(`
server: {listen: "TAKEN", admin_listen: "127.0.0.1:0"}
models:
  - name: served
    context_window: 8192
    endpoints:
      - {name: refused, url: "SERVER/v1"}
      - {name: short, url: "SERVER", api_key: "${RIGHT}"}
  - name: other
    endpoints:
      - {name: a, url: "SERVER/v1", api_key: "${WRONG}"}
      - {name: b, url: "SERVER/v1", api_key: "${RIGHT}"}
memory: {redis: {url: "REDIS"}}
default: {models: [served, other]}
`)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return strings.ToLower(name), true }
	got := said(Examine(t.Context(), file, Options{Env: env, Log: io.Discard}))
	for _, want := range []string{
		"problem ports server.listen: listen on " + taken.Addr().String(),
		"problem endpoints served/refused: the key was refused",
		`-> set api_key: "${NAME}" in the configuration`,
		"problem endpoints served/short: its API is at " + server.URL + "/v1, requests go to " + server.URL + "/chat/completions -> set url to",
		"problem endpoints served/short: context_window is 8192, the server refuses prompts over 4096 -> set context_window to 4096",
		"problem endpoints served/short: the server sleeps or is paused, and answers nothing -> wake it up",
		"problem endpoints other/a: the key was refused",
		"-> set the variable or the file that api_key names",
		`problem endpoints other/b: it serves served, and not "other" -> set served_as to "served"`,
		"warning redis memory.redis: it may evict contexts: maxmemory-policy is allkeys-lru -> CONFIG SET maxmemory-policy noeviction",
		"ok clock this machine",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not found: %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestTheDoctorGoesOnWithoutAFile(t *testing.T) {
	t.Parallel()
	got := said(Examine(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), Options{Env: os.LookupEnv, Log: io.Discard, Settings: config.Settings{}}))
	if !strings.Contains(got, "problem configuration") || !strings.Contains(got, "signalbox init") || !strings.Contains(got, "open files") {
		t.Error(got)
	}
}
