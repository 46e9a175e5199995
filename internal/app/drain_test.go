package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
)

// TestWhatOutlivesTheDrainIsTold stops a process while answers are under way that do not end:
// clients of streams get an event that says why, whoever waits for an answer a status, nobody an
// end in order, and the model server sees that nobody waits any more.
func TestWhatOutlivesTheDrainIsTold(t *testing.T) {
	t.Parallel()
	requests := []struct {
		name, mode string
		protocols  func(*http.Protocols)
		extra      string // of the body
		stream     bool
		held       bool // nothing of it is seen before the end
	}{
		{"a stream", "watch-stall", http1Only, "", true, false},
		{"a stream over h2c", "watch-stall", h2cOnly, "", true, false},
		{"a stream that goes on", "drip-comments?n=100000&d=5ms", http1Only, "", true, false},
		{"a stream that is checked", "watch-stall", http1Only, `"signalbox":{"facts":["The tower is 330 metres high."]},`, true, true},
		{"an answer in one piece", "watch-ttft", http1Only, "", false, true},
		{"an answer in one piece over h2c", "watch-ttft", h2cOnly, "", false, true},
	}
	model := hostile.Start(t, hostile.Options{})
	cfg := configure(t, "guard: {mode: hold}\n")
	cfg.Models[0].Endpoints[0].URL = model.URL()
	cfg.Server.Listen, cfg.Server.AdminListen, cfg.Telemetry.Log = "127.0.0.1:0", "127.0.0.1:0", "error"
	cfg.Server.DrainDelay, cfg.Server.DrainTimeout = option.Duration(time.Second), option.Duration(100*time.Millisecond)
	var said bytes.Buffer // read when the process has ended
	a, err := Build(t.Context(), cfg, Options{Version: "test", Log: &said, Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done, up := make(chan error, 1), make(chan string, 1)
	go func() { done <- a.Serve(ctx, nil, func(main, _ net.Addr) { up <- "http://" + main.String() }) }()
	at := <-up
	const told = `"type":"server_error","param":null,"code":"server_shutdown"}}`
	var clients, begun sync.WaitGroup
	begun.Add(len(requests))
	for _, tt := range requests {
		client := dialing(t, nil, tt.protocols)
		clients.Go(func() {
			seen := sync.OnceFunc(begun.Done)
			defer seen()
			body := `{` + tt.extra + `"model":"m","messages":[{"role":"user","content":"[[fault:` + tt.mode + `]]"}]}`
			if tt.stream {
				body = strings.Replace(body, `{`, `{"stream":true,`, 1)
			}
			if tt.held {
				seen()
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			res, err := client.Do(req)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				return
			}
			defer res.Body.Close()
			in := bufio.NewReader(res.Body)
			if !tt.held {
				_, _ = in.Peek(1)
				seen()
			}
			got, err := io.ReadAll(in)
			switch {
			case !tt.stream && (res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(string(got), told)):
				t.Errorf("%s: status %d with %s, %v", tt.name, res.StatusCode, got, err)
			case tt.stream && (err == nil || !strings.HasSuffix(string(got), told+"\n\n") || strings.Count(string(got), `"error"`) != 1 || strings.Contains(string(got), "[DONE]")):
				t.Errorf("%s: ended with %v: %q", tt.name, err, got)
			}
		})
	}
	begun.Wait()
	all := 0
	if _, ok := model.Wait(testkit.Patience, func(e *hostile.Event) bool {
		all += map[bool]int{true: 1}[e.Kind == hostile.Received]
		return all >= len(requests)
	}); !ok {
		t.Error("not every request reached the model server")
	}
	stop()
	clients.Wait()
	for i := range requests {
		if _, ok := model.WaitGone(i+1, testkit.Patience); !ok {
			t.Errorf("the model server works on for request %d", i+1)
		}
	}
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrCut) {
		t.Errorf("the process ended with %v", err)
	}
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf("longer than server.drain_timeout\" requests=%d", len(requests))
	if !strings.Contains(said.String(), want) {
		t.Errorf("the log does not say how many requests were cut: %s", said.String())
	}
}
