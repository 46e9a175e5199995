package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/engine"
	"signalbox/proxy/framing"
)

// The complaints of users of other gateways, each tested under the name of the complaint.

func TestStreamFidelity(t *testing.T) {
	t.Parallel()
	t.Run("A1: the first event is passed on at once, and proxies in front are told not to keep it", func(t *testing.T) {
		t.Parallel()
		up := testkit.NewUpstream(t, testkit.Stall(testkit.Event("a")))
		b := start(t, oneModel(up))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+chatPath, strings.NewReader(askStream("hi")))
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(testkit.Event("a")))
		if _, err := res.Body.Read(got); err != nil || string(got) != testkit.Event("a") || res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Cache-Control") != "" && res.ContentLength >= 0 {
			t.Errorf("read %q, %v, %v", got, err, res.Header)
		}
		_ = res.Body.Close()
	})
	t.Run("A3: a failure in a stream is seen by the client and by the breaker", func(t *testing.T) {
		t.Parallel()
		s, fine := hostile.Start(t, hostile.Options{Mode: "close-mid?d=10ms"}), hostile.Start(t, hostile.Options{})
		b := start(t, hostileModels(s, fine))
		for range 60 {
			if got := b.raw(askStream("hi")); got.err != nil && !strings.Contains(got.body, `"code":"upstream_error"`) || got.err != nil && strings.Contains(got.body, "[DONE]") {
				t.Fatalf("got %v %q", got.err, got.body)
			}
		}
		if n := s.Requests(); n != 5 {
			t.Errorf("the failing endpoint got %d requests", n)
		}
	})
	t.Run("A5: usage comes when it was asked for, in a chunk without choices", func(t *testing.T) {
		t.Parallel()
		s := hostile.Start(t, hostile.Options{Mode: "usage-chunk-last"})
		b := start(t, hostileModels(s))
		asks := strings.Replace(askStream("hi"), `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
		if got := b.raw(asks); !strings.Contains(got.body, hostile.Usage) || !strings.Contains(string(s.Body(1)), `"stream_options":{"include_usage":true}`) {
			t.Errorf("got %q for %q", got.body, s.Body(1))
		}
		if b.raw(askStream("hi")); strings.Contains(string(s.Body(2)), "include_usage") {
			t.Errorf("nobody asked for usage: %q", s.Body(2))
		}
	})
	t.Run("D2: a 4xx never trips the breaker", func(t *testing.T) {
		t.Parallel()
		s := hostile.Start(t, hostile.Options{Mode: "status?code=422"})
		b := start(t, hostileModels(s, hostile.Start(t, hostile.Options{Mode: "status?code=422"})))
		for range 40 {
			b.raw(ask("hi"))
		}
		for _, e := range b.state.Models[1].Endpoints {
			if e.State(time.Now()) != "up" {
				t.Errorf("%s is %s", e.Name, e.State(time.Now()))
			}
		}
	})
	t.Run("A4, A6, A7: lines longer than any buffer, tool calls, reasoning and log probabilities are untouched", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []string{"huge-line?bytes=1048576", "tool-call-fragments", "reasoning_content", "logprobs", "role-only", "two-choices", "usage-null-every-chunk"} {
			s := hostile.Start(t, hostile.Options{Mode: mode, Still: true})
			if got, want := start(t, hostileModels(s)).raw(askStream("hi")), direct(t, mode, askStream("hi"), 0); got.body != want.body {
				t.Errorf("%s: %d bytes, want %d", mode, len(got.body), len(want.body))
			}
		}
	})
}

func TestRequestFidelity(t *testing.T) {
	t.Parallel()
	fields := `,"chat_template_kwargs":{"enable_thinking":false},"guided_json":{"type":"object","maximum":9007199254740993},"top_k":5,"min_p":0.0,"repetition_penalty":1.0,"priority":-1,` +
		`"vllm_xargs":{"a":[1e400]},"stop":"x","temperature":0,"presence_penalty":0,"max_tokens":0,"seed":9007199254740993,"unknown":null`
	const messages = `[{"role":"system","content":"s","cache_control":{"type":"ephemeral"}},{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"z\":1,\"a\":2}"}}]},` +
		`{"role":"tool","tool_call_id":"t","content":"4"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AA=="}}]}]`
	t.Run("B1: unknown fields, big numbers and every message part reach the backend byte for byte", func(t *testing.T) {
		t.Parallel()
		up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
		b := start(t, oneModel(up), allows(engine.Param{Name: "priority"},
			engine.Param{Name: "vllm_xargs"}))
		body := `{"model":"%s","messages":` + messages + fields + `}`
		b.chat(fmt.Sprintf(body, "auto"))
		if diff := cmp.Diff(fmt.Sprintf(body, "Org/Small-7B"), string(up.Last(t).Body)); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
	t.Run("B2: headers of the application and the trace reach the backend, credentials and cookies do not", func(t *testing.T) {
		t.Parallel()
		up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
		b := start(t, oneModel(up))
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		b.chat(ask("hi"), "X-Custom", "kept", "X-Request-Id", "id-1", "Traceparent", parent, "Cookie", "c=1", "Proxy-Authorization", "p", "Authorization", "Bearer client", "X-Api-Key", "k")
		h := up.Last(t).Header
		if h.Get("X-Custom") != "kept" || h.Get("X-Request-Id") != "id-1" || !strings.HasPrefix(h.Get("Traceparent"), "00-0af7651916cd43dd8448eb211c80319c-") {
			t.Errorf("head is %v", h)
		}
		if h.Get("Cookie") != "" || h.Get("Proxy-Authorization") != "" || h.Get("X-Api-Key") != "" || h.Get("Authorization") != "Bearer backend-secret" {
			t.Errorf("credentials in %v", h)
		}
	})
	t.Run("B4: a body of 30 MB passes, and one above the limit is refused in JSON", func(t *testing.T) {
		t.Parallel()
		up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
		models := oneModel(up)
		for i := range models {
			models[i].ContextWindow = 0
		}
		b := start(t, models)
		image := `{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 30<<20) + `"}}]}]}`
		if got := b.raw(image); got.status != 200 || !bytes.HasSuffix(up.Last(t).Body, []byte(image[len(image)-1000:])) {
			t.Errorf("got %d %.200s", got.status, got.body)
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n{")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if got := (answered{res.StatusCode, res.Header, string(text), nil}); got.status != 413 || got.code(t) != "request_too_large" ||
			!strings.Contains(got.body, "exceeds the limit of ") {
			t.Errorf("got %d %.200s", got.status, got.body)
		}
	})
	t.Run("B1: an unknown shape of answer is no error", func(t *testing.T) {
		t.Parallel()
		body := `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":null,"new":{"x":1e400}},"finish_reason":"a_new_one","stop_reason":5,"token_ids":[1]}],"prompt_logprobs":null,"kv_transfer_params":{}}`
		up := testkit.NewUpstream(t, testkit.JSON(200, body))
		if got := start(t, oneModel(up)).chat(ask("hi")); got.body != body || !json.Valid([]byte(got.body)) {
			t.Errorf("got %s", got.body)
		}
	})
}

func TestConnectionsToBackends(t *testing.T) {
	t.Parallel()
	t.Run("C3: connect, first byte and silence have limits of their own, and before the first byte another backend answers", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []string{"blackhole", "watch-ttft", "head-ttft?d=60s", "accept-silent"} {
			s, fine := hostile.Start(t, hostile.Options{Mode: mode}), hostile.Start(t, hostile.Options{})
			b := start(t, hostileModels(s, fine), func(s *setup) { shortPatience(&s.options) })
			for range 3 {
				if got := b.raw(askStream("hi")); got.status != 200 || got.err != nil {
					t.Errorf("%s: %d %s", mode, got.status, got.body)
				}
			}
		}
	})
	t.Run("C3: one backend that hangs does not hold up the others", func(t *testing.T) {
		t.Parallel()
		s, fine := hostile.Start(t, hostile.Options{Mode: "watch-ttft"}), hostile.Start(t, hostile.Options{})
		models := hostileModels(s)
		models[1] = hostileModels(fine)[1]
		b := start(t, models)
		var leaves []func() time.Time
		for range 50 {
			leaves = append(leaves, b.leaveable(ask("math"), ""))
		}
		waitFor(t, "all requests to hang", func() bool { return s.Requests() == 50 })
		if got := b.chat(strings.Replace(ask("hi"), "auto", "small", 1)); got.status != 200 || s.Requests() != 50 {
			t.Errorf("got %d beside %d requests that hang", got.status, s.Requests())
		}
		for _, leave := range leaves {
			leave()
		}
	})
	t.Run("C4: idle connections are closed before a backend of vLLM closes them", func(t *testing.T) {
		t.Parallel()
		if d := framing.NewTransport(time.Second).IdleConnTimeout; d <= 0 || d > 4*time.Second {
			t.Errorf("after %s", d)
		}
		s := hostile.Start(t, hostile.Options{Mode: "ok-then-rst-next"})
		b := start(t, hostileModels(s), func(s *setup) { s.options.MaxAttempts, s.options.GapTimeout = 1, option.Duration(time.Minute) })
		for range 50 {
			if got := b.chat(ask("hi")); got.status != 200 {
				t.Fatalf("got %d", got.status)
			}
		}
	})
}

// C2. It counts goroutines, so it must not run in parallel with others.
func TestStreamsThatClientsLeaveBehindLeaveNothingBehind(t *testing.T) {
	s := hostile.Start(t, hostile.Options{Mode: "watch-stall"})
	b := start(t, hostileModels(s))
	b.leaveable(askStream("hi"), "data: ")()
	waitFor(t, "the first record", func() bool { return strings.Contains(b.metrics(), `status="499"} 1`) })
	before := runtime.NumGoroutine()
	for range 100 {
		b.leaveable(askStream("hi"), "data: ")()
	}
	waitFor(t, "the goroutines and connections to end", func() bool { return runtime.NumGoroutine() <= before+2 && s.OpenConns() <= 1 })
}
