// Command otelcheck checks the telemetry of signalbox with a real OpenTelemetry Collector. It runs
// a collector in this process (with the OTLP receiver and exporter of the Collector's
// distributions), starts the program with a simulated server of which one attempt fails, sends
// requests, and compares the exported spans and metrics with the conventions for generative AI.
//
// Usage: otelcheck PROGRAM, where PROGRAM is the built signalbox.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	startLimit = 60 * time.Second // for each component

	// parent is the trace of a client, as in its traceparent.
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: otelcheck PROGRAM")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "otelcheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string) error {
	dir, err := os.MkdirTemp("", "otelcheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	free, err := addresses(ctx, 4)
	if err != nil {
		return err
	}
	c, err := newCollector(ctx, free[0])
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	model := &process{args: []string{
		"simulate", "--listen", free[1], "--model", "sim/7B", "--ttft", "5ms", "--tpot", "1ms",
	}}
	if err := model.start(ctx, program, "http://"+free[1]+"/health"); err != nil {
		return err
	}
	defer func() { _ = model.stop() }()
	front := refuseOnce(free[1]) // the first endpoint is busy once, so the other one is tried
	a, b := httptest.NewServer(front), httptest.NewServer(front)
	defer a.Close()
	defer b.Close()
	file := filepath.Join(dir, "signalbox.yaml")
	text := configuration(a.URL, b.URL, c.url, free[2], free[3])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	proxy := &process{args: []string{"serve", file}}
	if err := proxy.start(ctx, program, "http://"+free[2]+"/readyz"); err != nil {
		return err
	}
	err = errors.Join(
		send(ctx, free[2], http.StatusOK, parent, "Tell me of Project Titan.",
			`"temperature":0.5,"max_tokens":20,"seed":7`),
		send(ctx, free[2], http.StatusOK, "", "Good morning.",
			`"stream":true,"stream_options":{"include_usage":true}`),
		send(ctx, free[2], http.StatusBadRequest, "", "The forbidden word.", `"n":1`),
	)
	// Pending exports are sent when the program ends.
	err = errors.Join(err, proxy.stop(), model.stop(), c.stop())
	if err != nil {
		return err
	}
	at := []string{a.Listener.Addr().String(), b.Listener.Addr().String()}
	err = errors.Join(checkSpans(c.sink.spans, at), checkMetrics(c.sink.metrics))
	if err == nil {
		fmt.Printf("collector: %d spans and %d metrics came out of it as they should\n",
			len(c.sink.spans), len(c.sink.metrics))
	}
	return err
}

// configuration is minimal, with a rule that answers, one that blocks, and a signal that needs no
// model.
func configuration(a, b, collector, listen, admin string) string {
	return fmt.Sprintf(`server: {listen: %q, admin_listen: %q}
models:
  - name: small
    served_as: sim/7B
    price: {input: 1, output: 2}
    endpoints: [{name: a, url: %s/v1}, {name: b, url: %s/v1}]
signals:
  keywords: [{name: titan, any: [Project Titan]}, {name: no, any: [forbidden]}]
routes:
  - {name: nothing, when: {keyword: no}, block: {message: "No."}}
  - {name: secret, when: {keyword: titan}, use: {models: [small]}}
default: {models: [small]}
telemetry: {otlp_endpoint: %q, otlp_metrics_endpoint: %q}
`, listen, admin, a, b, collector, collector)
}

// refuseOnce is a model server that rejects its first chat request as busy.
func refuseOnce(address string) http.Handler {
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	var refused atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") && refused.CompareAndSwap(false, true) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"busy"}}`)
			return
		}
		behind.ServeHTTP(w, r)
	})
}

// send sends a request with additional fields, and returns an error if the status is not the wanted
// one.
func send(ctx context.Context, address string, want int, parent, question, fields string) error {
	body := fmt.Sprintf(`{"model":"auto",%s,"messages":[{"role":"user","content":%q}]}`, fields, question)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if parent != "" {
		r.Header.Set("Traceparent", parent)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	if err == nil && w.StatusCode != want {
		err = fmt.Errorf("%s is answered with %d %s", body, w.StatusCode, b)
	}
	return err
}

// process is a running program.
type process struct {
	args []string
	cmd  *exec.Cmd
	said bytes.Buffer
}

func (p *process) start(ctx context.Context, program, ready string) error {
	p.cmd = exec.CommandContext(ctx, program, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		return err
	}
	err := waitFor(ctx, program+" "+p.args[0], func() bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, ready, http.NoBody)
		if err != nil {
			return false
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		_ = w.Body.Close()
		return w.StatusCode == http.StatusOK
	})
	if err != nil {
		err = errors.Join(err, p.stop(), errors.New(p.said.String()))
	}
	return err
}

// stop ends the process and waits for it; a second call does nothing.
func (p *process) stop() error {
	if p.cmd == nil {
		return nil
	}
	cmd := p.cmd
	p.cmd = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.args[0], err, p.said.String())
	}
	return nil
}

func waitFor(ctx context.Context, what string, ready func() bool) error {
	for end := time.Now().Add(startLimit); !ready(); {
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s is not ready after %s", what, startLimit)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// addresses returns n free addresses of this machine.
func addresses(ctx context.Context, n int) (out []string, err error) {
	for range n {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}
