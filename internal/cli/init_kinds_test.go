package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

// Of every kind of server a configuration is written that check takes, with what the server tells.
// The answers have the shapes that package modelserver tests, in short.
func TestInitWritesForEveryKindOfServer(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[string]struct {
		pages map[string]string
		says  string
		want  []string
	}{
		"vLLM": {map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","owned_by":"vllm","root":"Qwen/Qwen3-8B","max_model_len":32768}]}`,
			"/version":   `{"version":"0.32.0"}`, "/metrics": "vllm:num_requests_running{engine=\"0\"} 0.0\n",
		}, "found vLLM 0.32.0", []string{"served_as: Qwen/Qwen3-8B", "context_window: 32768", "kv: {level: auto}", "dialect: qwen3"}},
		"llama.cpp": {map[string]string{
			"Server":     "llama.cpp",
			"/v1/models": `{"object":"list","data":[{"id":"gemma","owned_by":"llamacpp","meta":{"n_ctx_train":32768}}]}`,
			"/props":     `{"default_generation_settings":{"n_ctx":2048},"total_slots":4,"chat_template":"","build_info":"b9993-1"}`,
		}, "found llama.cpp b9993-1", []string{"name: gemma", "context_window: 2048"}},
		"Ollama": {map[string]string{
			"/": "Ollama is running", "/v1/models": `{"object":"list","data":[{"id":"qwen3:8b","owned_by":"library"}]}`,
			"/api/ps":   `{"models":[{"name":"qwen3:8b","model":"qwen3:8b","context_length":4096}]}`,
			"/api/show": `{"capabilities":["completion","thinking"]}`, "/api/version": `{"version":"0.12.6"}`,
		}, "found Ollama 0.12.6", []string{"name: qwen3:8b", "context_window: 4096", "dialect: reasoning_effort", "num_ctx"}},
		"TGI": {map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"m"}]}`,
			"/info":      `{"model_id":"m","max_total_tokens":4096,"router":"text-generation-router","version":"3.3.4"}`,
		}, "found TGI 3.3.4", []string{"name: m", "context_window: 4096"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, ok := tt.pages[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				if name := tt.pages["Server"]; name != "" {
					w.Header().Set("Server", name)
				}
				_, _ = w.Write([]byte(body))
			}))
			defer server.Close()
			file := filepath.Join(t.TempDir(), "signalbox.yaml")
			var out bytes.Buffer
			none := func(string) (string, bool) { return "", false }
			c := &command{Streams: Streams{In: strings.NewReader(""), Out: &out, Err: &out, Env: none}}
			i := &initiation{command: c, out: file, endpoints: []string{server.URL}}
			if err := i.run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), tt.says) {
				t.Errorf("it does not say %q:\n%s", tt.says, out.String())
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(tt.want, "url: "+server.URL+"/v1") {
				if !strings.Contains(string(b), want) {
					t.Errorf("it does not write %q:\n%s", want, b)
				}
			}
			if _, _, err := config.Parse(file, b, none, app.Catalog); err != nil {
				t.Error(err)
			}
		})
	}
}
