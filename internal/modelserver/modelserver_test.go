package modelserver_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/modelserver"
	"signalbox/internal/simulator"
)

// pages is a server that answers as real ones do: those of llama.cpp and vLLM were recorded from
// llama-server and vLLM 0.32, the others follow the sources of each program.
type pages map[string]string

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := p[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if p["Server"] != "" {
		w.Header().Set("Server", p["Server"])
	}
	_, _ = w.Write([]byte(body))
}

func llamaPages() pages {
	return pages{
		"Server": "llama.cpp",
		"/v1/models": `{"models":[{"name":"gemma"}],"object":"list","data":[{"id":"gemma","object":"model",` +
			`"created":1795445745,"owned_by":"llamacpp","meta":{"n_ctx":8192,"n_ctx_train":32768}}]}`,
		"/models": `{"object":"list","data":[{"id":"gemma","owned_by":"llamacpp"}]}`,
		"/props": `{"default_generation_settings":{"n_ctx":2048},"total_slots":4,` +
			`"chat_template":"{% if enable_thinking %}","build_info":"b9993-1","is_sleeping":false}`,
	}
}

func ollamaPages() pages {
	return pages{
		"/":            "Ollama is running",
		"/v1/models":   `{"object":"list","data":[{"id":"qwen3:8b","owned_by":"library"},{"id":"nomic:latest","owned_by":"library"}]}`,
		"/api/ps":      `{"models":[{"name":"qwen3:8b","model":"qwen3:8b","context_length":4096}]}`,
		"/api/show":    `{"capabilities":["completion","tools","thinking"],"model_info":{"qwen3.context_length":40960}}`,
		"/api/version": `{"version":"0.12.6"}`,
	}
}

func TestServersAreToldApartByTheirAnswers(t *testing.T) {
	t.Parallel()
	vllm := pages{
		"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm",` +
			`"root":"Qwen/Qwen3-8B","parent":null,"max_model_len":32768}]}`,
		"/version": `{"version":"0.32.0+cpu"}`,
		"/metrics": "vllm:num_requests_running{engine=\"0\"} 0.0\n",
	}
	asleep := pages{
		"/v1/models": vllm["/v1/models"], "/version": vllm["/version"],
		"/metrics": "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 0.0\n",
	}
	tests := []struct {
		name  string
		pages pages
		want  modelserver.Server
	}{
		{"vLLM", vllm, modelserver.Server{
			Kind: modelserver.VLLM, Version: "0.32.0+cpu", Metrics: true,
			Models: []modelserver.Model{{ID: "Qwen/Qwen3-8B", Window: 32768, Thinking: "qwen3"}},
		}},
		{"a vLLM that sleeps, outside development mode", asleep, modelserver.Server{
			Kind: modelserver.VLLM, Version: "0.32.0+cpu", Metrics: true, Asleep: true,
			Models: []modelserver.Model{{ID: "Qwen/Qwen3-8B", Window: 32768, Thinking: "qwen3"}},
		}},
		{"a vLLM that is paused", pages{
			"/v1/models": vllm["/v1/models"], "/version": vllm["/version"],
			"/is_sleeping": `{"is_sleeping":false}`, "/is_paused": `{"is_paused":true}`,
		}, modelserver.Server{
			Kind: modelserver.VLLM, Version: "0.32.0+cpu", Asleep: true,
			Models: []modelserver.Model{{ID: "Qwen/Qwen3-8B", Window: 32768, Thinking: "qwen3"}},
		}},
		{"llama.cpp, whose window is that of one slot", llamaPages(), modelserver.Server{
			Kind: modelserver.LlamaCPP, Version: "b9993-1",
			Models: []modelserver.Model{{ID: "gemma", Window: 2048, Thinking: "qwen3"}},
		}},
		{"Ollama, whose window is that of the loaded model", ollamaPages(), modelserver.Server{
			Kind: modelserver.Ollama, Version: "0.12.6",
			Models: []modelserver.Model{
				{ID: "qwen3:8b", Window: 4096, Thinking: "reasoning_effort"},
				{ID: "nomic:latest", Thinking: "reasoning_effort"},
			},
		}},
		{"TGI", pages{
			"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"m"}]}`,
			"/info":      `{"model_id":"m","max_total_tokens":4096,"max_input_tokens":4095,"router":"text-generation-router","version":"3.3.4"}`,
		}, modelserver.Server{
			Kind: modelserver.TGI, Version: "3.3.4",
			Models: []modelserver.Model{{ID: "m", Window: 4096}},
		}},
		{"SGLang", pages{
			"/v1/models":      `{"object":"list","data":[{"id":"gpt-oss-20b","owned_by":"sglang","root":"x","max_model_len":131072}]}`,
			"/get_model_info": `{"model_path":"openai/gpt-oss-20b","is_generation":true}`,
			"/server_info":    `{"version":"0.5.6"}`,
		}, modelserver.Server{
			Kind: modelserver.SGLang, Version: "0.5.6",
			Models: []modelserver.Model{{ID: "gpt-oss-20b", Window: 131072, Thinking: "gpt_oss"}},
		}},
		{"another program", pages{
			"/v1/models": `{"object":"list","data":[{"id":"text-embedding-3-small","owned_by":"somebody"}]}`,
		}, modelserver.Server{
			Kind:   modelserver.Other,
			Models: []modelserver.Model{{ID: "text-embedding-3-small", Embedding: true}},
		}},
		{"this program itself", pages{
			"/v1/models": `{"object":"list","data":[{"id":"auto","owned_by":"signalbox"}]}`,
		}, modelserver.Server{Kind: modelserver.Signalbox, Models: []modelserver.Model{{ID: "auto"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.pages)
			defer server.Close()
			for _, address := range []string{server.URL, server.URL + "/v1", server.URL + "/v1/"} {
				got, err := modelserver.Look(t.Context(), server.Client(), address, "")
				if err != nil {
					t.Fatal(err)
				}
				tt.want.Base = server.URL + "/v1"
				if diff := cmp.Diff(&tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", address, diff)
				}
			}
		})
	}
}

func TestASimulatedServerIsTakenForTheOneItSimulates(t *testing.T) {
	t.Parallel()
	o := simulator.DefaultOptions()
	o.Model, o.MaxModelLen, o.KV = "sim/7B", 4096, simulator.DefaultKV()
	s, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	got, err := modelserver.Look(t.Context(), server.Client(), server.URL, "")
	if err != nil || got.Kind != modelserver.VLLM || got.Models[0].Window != 4096 || !got.Metrics {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhyAServerCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    error
		says    string
	}{
		{"it wants a key", status(http.StatusUnauthorized), modelserver.ErrKey, "/v1/models answered 401"},
		{"it loads", status(http.StatusServiceUnavailable), modelserver.ErrNotReady, "503"},
		{"it has no such API", status(http.StatusNotFound), modelserver.ErrNoModels, "/v1/models answered 404"},
		{"it is a web page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>"))
		}, modelserver.ErrNoModels, "is none"},
		{"it says nothing", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("null"))
		}, modelserver.ErrNoModels, "is none"},
		{"it never ends", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 << 10 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 1<<10)))
			}
		}, modelserver.ErrNoModels, "is none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			_, err := modelserver.Look(t.Context(), server.Client(), server.URL, "")
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %v with %q", err, tt.want, tt.says)
			}
		})
	}
	_, err := modelserver.Look(t.Context(), http.DefaultClient, "ftp://x", "")
	if !errors.Is(err, modelserver.ErrScheme) || errors.Is(err, modelserver.ErrUnreachable) ||
		err.Error() != "only http and https are spoken, not ftp" {
		t.Errorf("ftp://x: %v", err)
	}
	for _, address := range []string{"http://127.0.0.1:1", "http://u:secret@h:1"} {
		_, err := modelserver.Look(t.Context(), http.DefaultClient, address, "")
		if !errors.Is(err, modelserver.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// deaf stands in front of a server of https, as those of Python are: whoever speaks http to it is told
// nothing.
func deaf(t *testing.T, server *httptest.Server) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			first := make([]byte, 1)
			if _, err := io.ReadFull(c, first); err != nil || first[0] != 0x16 { // a TLS handshake
				_ = c.Close()
				continue
			}
			to, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				_ = c.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, io.MultiReader(bytes.NewReader(first), c)); _ = to.Close() }()
			go func() { _, _ = io.Copy(c, to); _ = c.Close() }()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestAnAddressOfTheOtherSchemeIsTold(t *testing.T) {
	t.Parallel()
	list := pages{"/v1/models": `{"object":"list","data":[{"id":"m"}]}`}
	plain, secure := httptest.NewServer(list), httptest.NewTLSServer(list)
	defer plain.Close()
	defer secure.Close()
	for address, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1):  "speaks http, the URL says https",
		strings.Replace(secure.URL, "https:", "http:", 1): "speaks https, the URL says http",
		deaf(t, secure): "speaks https, the URL says http",
	} {
		for name, look := range map[string]func() (*modelserver.Server, error){
			"Look": func() (*modelserver.Server, error) {
				return modelserver.Look(t.Context(), http.DefaultClient, address, "")
			},
			"Ask": func() (*modelserver.Server, error) {
				return modelserver.Ask(t.Context(), http.DefaultClient, address+"/v1", "")
			},
		} {
			if _, err := look(); !errors.Is(err, modelserver.ErrOtherScheme) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: %v, want %q", name, address, err, want)
			}
		}
	}
	// What fails for another reason is told as before.
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer failing.Close()
	_, err := modelserver.Look(t.Context(), http.DefaultClient, failing.URL, "")
	if !errors.Is(err, modelserver.ErrNoModels) {
		t.Errorf("a server that answers 400: %v", err)
	}
}

// A server that is behind a proxy alone is asked through it, also for the scheme that it speaks.
func TestTheSchemeOfAServerBehindAProxyIsTold(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(pages{"/v1/models": `{"object":"list","data":[{"id":"m"}]}`})
	defer secure.Close()
	proxy := func(reaches bool) *http.Client {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect || r.Host != "model.invalid:8443" || !reaches {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if r.Header.Get("Authorization") != "" {
				t.Error("the proxy is given the key")
			}
			w.WriteHeader(http.StatusOK)
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			to, err := new(net.Dialer).DialContext(t.Context(), "tcp", secure.Listener.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = to.Close() }()
			go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
			_, _ = io.Copy(c, to)
		}))
		t.Cleanup(server.Close)
		at, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		way := &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true}
		return &http.Client{Transport: way}
	}
	_, err := modelserver.Look(t.Context(), proxy(true), "http://model.invalid:8443/v1", "key")
	if !errors.Is(err, modelserver.ErrOtherScheme) || !strings.Contains(err.Error(), "speaks https, the URL says http") {
		t.Errorf("behind a proxy: %v", err)
	}
	_, err = modelserver.Look(t.Context(), proxy(false), "http://model.invalid:8443/v1", "key")
	if !errors.Is(err, modelserver.ErrNotReady) {
		t.Errorf("a proxy that reaches nothing: %v", err)
	}
}

func TestAskTellsWhatTheListSays(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(ollamaPages())
	defer server.Close()
	got, err := modelserver.Ask(t.Context(), http.DefaultClient, server.URL+"/v1", "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Find("qwen3:8b") != 0 || got.Find("nomic") != 1 || got.Find("qwen3") != -1 ||
		got.Names() != "qwen3:8b, nomic:latest" {
		t.Errorf("it has %s", got.Names())
	}
}

// Together AI sends the list alone.
func TestAListWithoutAnObjectAroundItIsOne(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(pages{"/v1/models": `[{"id":"a/b","object":"model","context_length":8192}]`})
	defer server.Close()
	for name, look := range map[string]func() (*modelserver.Server, error){
		"Look": func() (*modelserver.Server, error) {
			return modelserver.Look(t.Context(), http.DefaultClient, server.URL, "")
		},
		"Ask": func() (*modelserver.Server, error) {
			return modelserver.Ask(t.Context(), http.DefaultClient, server.URL+"/v1", "")
		},
	} {
		got, err := look()
		if err != nil || got.Find("a/b") != 0 || got.Models[0].Window != 8192 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTheKeyIsSentAndClocksAreCompared(t *testing.T) {
	t.Parallel()
	late := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Date", late)
		llamaPages().ServeHTTP(w, r)
	}))
	defer server.Close()
	got, err := modelserver.Look(t.Context(), server.Client(), server.URL, "k")
	if err != nil {
		t.Fatal(err)
	}
	if off := got.Clock + time.Hour; off.Abs() > 2*time.Minute {
		t.Errorf("the clock is %s ahead, want an hour behind", got.Clock)
	}
}
