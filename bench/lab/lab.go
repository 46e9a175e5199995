// Package lab is shared by the benchmark programs: start and exit, the product in-process, external
// programs, files of rows, and statistics. It measures nothing itself, and starts no goroutine
// except that of Serve, which Close waits for.
package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"signalbox/internal/app"
	"signalbox/internal/config" //nolint:depguard // programs of bench build the product as its commands do
)

// Main runs a benchmark program. The first interrupt cancels its context, the second one ends the
// process. It exits with 2 if the arguments asked for help, and with 1 and a message if run failed.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bench/%s: %v\n", name, err)
		os.Exit(1)
	}
}

// NoEnv is an empty environment.
func NoEnv(string) (string, bool) { return "", false }

// Parse reads a configuration like the product's commands, with an empty environment.
func Parse(text string) (*config.Config, error) {
	cfg, _, err := config.Parse("bench.yaml", []byte(text), NoEnv, app.Catalog)
	if err != nil {
		return nil, err
	}
	cfg.Telemetry.Log = "error"
	return cfg, nil
}

// Options returns the options of a product with the library and the model folder that commands use.
func Options(log io.Writer) app.Options {
	settings := config.Settings{Library: os.Getenv("SIGNALBOX_ONNXRUNTIME")}
	if dir, err := os.UserCacheDir(); err == nil {
		settings.CacheDir = dir
	}
	return app.Options{Version: "bench", Settings: settings, Log: log, Env: NoEnv}
}

// Plain is a minimal configuration: one model without a server.
const Plain = "models: [{name: m, endpoints: [{name: e, url: http://127.0.0.1:9/v1}]}]\ndefault: {models: [m]}\n"

// Build creates the product from a configuration. Missing embedded models are an error. The caller
// closes it.
func Build(ctx context.Context, text string, log io.Writer) (*app.App, error) {
	cfg, err := Parse(text)
	if err != nil {
		return nil, err
	}
	o := Options(log)
	o.RequireModels = true
	a, err := app.Build(ctx, cfg, o)
	if err != nil {
		return nil, fmt.Errorf("build the product: %w", err)
	}
	return a, nil
}

// Server is a serving product.
type Server struct {
	URL, Admin string // base URLs of its two listeners

	app    *app.App
	stop   context.CancelFunc
	served chan error // receives exactly one value
}

// Serve makes a product serve on its listeners until Close, and closes it if it cannot.
func Serve(ctx context.Context, a *app.App) (*Server, error) {
	s := &Server{app: a, served: make(chan error, 1)}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	listening := make(chan struct{})
	go func() {
		s.served <- a.Serve(ctx, nil, func(main, admin net.Addr) {
			s.URL, s.Admin = "http://"+main.String(), "http://"+admin.String()
			close(listening)
		})
	}()
	select {
	case <-listening:
		return s, nil
	case err := <-s.served:
		s.stop()
		return nil, errors.Join(err, a.Close(context.WithoutCancel(ctx)))
	}
}

// Close stops the server and closes the product.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	return errors.Join(<-s.served, s.app.Close(context.WithoutCancel(ctx)))
}

// Answering is a model server that sends the same response to every request. The caller closes it.
func Answering(completion string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, completion)
	}))
}

// Bare is the standard library's reverse proxy to a URL. It reads the body first, as the product
// does: forwarding it as it arrives truncates responses.
func Bare(to string, transport http.RoundTripper) (http.Handler, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // clients that stop at the end of a workload
		Transport:     transport,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		proxy.ServeHTTP(w, r)
	}), nil
}

// Post sends a value as JSON, with headers given as alternating names and values, and reads the
// whole response. A status that is not 2xx is an error.
func Post(ctx context.Context, c *http.Client, to string, value any, headers ...string) (http.Header, []byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, nil, fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", res.StatusCode, bytes.TrimSpace(answer))
	}
	return res.Header, answer, err
}
