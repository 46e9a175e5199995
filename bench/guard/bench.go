package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"signalbox/bench/lab"
	"signalbox/internal/app"
)

// bench is the product with a model server behind it and a client in front.
type bench struct {
	effort
	log      io.Writer
	start    time.Time
	upstream *upstream
	product  *lab.Server
	url      string // of the product
	client   *http.Client
}

// marker is the product's marker for failed claims.
const marker = " [unverified]"

// settings has one route for each mode of the guard, selected by a header.
func settings(upstream string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `server: {listen: "127.0.0.1:0", admin_listen: "localhost:0", drain_timeout: 1s}
telemetry: {log: error}
models:
  - name: m
    endpoints: [{name: e, url: %q}]
    health: {path: off}
guard: {mode: off, marker: %q}
default: {models: [m]}
routes:
`, upstream+"/v1", marker)
	for _, mode := range []string{"observe", "annotate", "hold"} {
		fmt.Fprintf(&b, "  - {name: %s, when: {header: {name: %s, equals: %s}}, use: {models: [m], guard: %s}}\n", mode, modeHeader, mode, mode)
	}
	return b.String()
}

const modeHeader = "X-Mode"

// open starts everything. The caller calls close.
func open(ctx context.Context, e effort, log io.Writer) (*bench, error) {
	b := &bench{effort: e, log: log, start: time.Now()}
	b.upstream = openUpstream(b.start)
	if err := b.openApp(ctx); err != nil {
		b.upstream.Close()
		return nil, err
	}
	b.client = &http.Client{Transport: newTransport()}
	return b, nil
}

func newTransport() *http.Transport {
	return &http.Transport{DialContext: (&net.Dialer{Timeout: time.Minute}).DialContext, MaxIdleConnsPerHost: 2000, DisableCompression: true}
}

func (b *bench) openApp(ctx context.Context) error {
	cfg, err := lab.Parse(settings(b.upstream.URL))
	if err != nil {
		return err
	}
	a, err := app.Build(ctx, cfg, lab.Options(b.log))
	if err != nil {
		return err
	}
	if b.product, err = lab.Serve(ctx, a); err != nil {
		return err
	}
	b.url = b.product.URL
	return nil
}

func (b *bench) close(ctx context.Context) error {
	b.client.CloseIdleConnections()
	err := b.product.Close(ctx)
	b.upstream.Close()
	return err
}

// question is the body of a request that is answered with the feed of this number.
func question(feed int, facts []string) []byte {
	body := map[string]any{
		"model": "auto", "stream": true,
		"messages": []any{map[string]any{"role": "user", "content": fmt.Sprintf("%s%d: what is known?", feedMark, feed)}},
	}
	if facts != nil {
		body["signalbox"] = map[string]any{"facts": facts}
	}
	out, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and maps
	}
	return out
}

// errCut reports that a stream ended too early.
var errCut = errors.New("the stream ended without [DONE]")

// post sends a question to base. The mode is that of the guard, or empty for off; a response in
// another mode is an error. The caller closes the body.
func (b *bench) post(ctx context.Context, base, mode string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(modeHeader, mode)
	res, err := b.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	got := res.Header.Get("X-Signalbox-Guard")
	if res.StatusCode == http.StatusOK && (mode == "" || got == mode) {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
	return nil, fmt.Errorf("asked in mode %q, answered with %s in mode %q: %s", mode, res.Status, got, text)
}

// ask works like post and calls each with the data of every event, which must not be retained.
func (b *bench) ask(ctx context.Context, base, mode string, body []byte, each func(data []byte)) error {
	res, err := b.post(ctx, base, mode, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return readEvents(res.Body, each)
}

// judged reports whether a model reads claims, according to the product itself.
func (b *bench) judged(ctx context.Context) (bool, error) {
	nothing := newFeed(nil, nil)
	res, err := b.post(ctx, b.url, "observe", question(b.upstream.take(nothing), lines(written)))
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	return !strings.Contains(res.Header.Get("X-Signalbox-Degraded"), "grounding"), readEvents(res.Body, func([]byte) {})
}

func readEvents(r io.Reader, each func(data []byte)) error {
	lines := bufio.NewReaderSize(r, 16<<10)
	done := false
	for {
		line, err := lines.ReadSlice('\n')
		data, found := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case errors.Is(err, io.EOF) && done:
			return nil
		case errors.Is(err, io.EOF):
			return errCut
		case err != nil:
			return fmt.Errorf("read stream: %w", err)
		case bytes.HasPrefix(data, []byte("[DONE]")):
			done = true
		case found:
			each(data)
		}
	}
}

// count sums a counter of the product over the series with a label.
func (b *bench) count(ctx context.Context, name, label string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.product.Admin+"/metrics", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	sum := 0.0
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(series, name+"{") && strings.Contains(series, label) {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("metrics: %w", err)
			}
			sum += v
		}
	}
	return sum, nil
}
