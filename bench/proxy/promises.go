package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"signalbox/bench/lab"
)

// promises counts and measures properties that the proxy must keep in all conditions. A violated
// one is the error.
func (b *bench) promises(ctx context.Context, out io.Writer, streams int) error {
	i := slices.IndexFunc(b.ways, func(w *way) bool { return w.name == "signalbox" })
	cut, err := fastStreams(ctx, b.ways[i], b.ways[0], streams)
	if err != nil {
		return fmt.Errorf("fast streams: %w", err)
	}
	_, _ = fmt.Fprintf(out, "fast streams: %d of %d were cut\n", cut, streams)
	added, err := b.withoutRedis(ctx, out)
	if err != nil {
		return fmt.Errorf("requests with limits in Redis: %w", err)
	}
	var errs []error
	if cut > 0 {
		errs = append(errs, errors.New("streams were cut"))
	}
	if added > mostAdded {
		errs = append(errs, fmt.Errorf("a Redis that goes away added %s to a request", added))
	}
	return errors.Join(errs...)
}

// fastStreams reads streams of a server that sends everything immediately, and counts those that
// are shorter than one received without a proxy.
func fastStreams(ctx context.Context, w, direct *way, n int) (cut int64, err error) {
	const clients = 16
	body := chat(fastModel, "What is a signal box?", true, 16)
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	want, err := stream(ctx, client, direct, body)
	if err != nil {
		return 0, err
	}
	var sent, short atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for sent.Add(1) <= int64(n) && ctx.Err() == nil {
				if got, err := stream(ctx, client, w, body); err != nil || got != want {
					short.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return short.Load(), ctx.Err()
}

// stream reads a stream to its end and counts its events. One that does not end properly is an
// error.
func stream(ctx context.Context, client *http.Client, w *way, body string) (events int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base[fastModel]+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"finish_reason":"`)) || !bytes.HasSuffix(answer, []byte("data: [DONE]\n\n")) {
		return 0, fmt.Errorf("status %d: %.200s", res.StatusCode, answer)
	}
	return bytes.Count(answer, []byte("data: ")), nil
}

const (
	mostAdded = 20 * time.Millisecond // the delay that a failing Redis may add to a request
	phaseTime = 10 * time.Second
)

// withoutRedis sends requests of a caller whose limits are counted in Redis: while it responds,
// while it hangs, and while it is unreachable. It returns the larger of the two slowdowns, by
// median and by 99th percentile. All requests must be answered, except those of the last tenth of a
// second.
func (b *bench) withoutRedis(ctx context.Context, out io.Writer) (added time.Duration, err error) {
	server, at, err := lab.Redis(ctx, b.dir)
	if server != nil {
		b.stops = append(b.stops, func() error {
			_ = lab.Stop(server, stopTime)
			return nil
		})
	}
	if err != nil {
		return 0, err
	}
	const key = "a caller"
	more := fmt.Sprintf("auth: {mode: keys, keys: [{name: caller, sha256: %x, rate: {rpm: 1000000, tpm: 1000000000, concurrency: 1000}}]}\nmemory: {redis: {url: \"redis://%s/0\"}}\n",
		sha256.Sum256([]byte(key)), at)
	if err := b.signalbox(ctx, "limited", b.program, b.model, more); err != nil {
		return 0, err
	}
	w := b.ways[len(b.ways)-1]
	w.key = key
	load := workload{model: fastModel, body: chat(fastModel, "What is a signal box?", false, 16), clients: 100, rate: 100}
	var base sample
	for _, phase := range []struct {
		name  string
		begin func() error
	}{
		{"warming up", func() error { return nil }},
		{"Redis answers", func() error { return nil }},
		{"Redis hangs", func() error { return server.Process.Signal(syscall.SIGSTOP) }},
		{"Redis is gone", server.Process.Kill},
	} {
		if err := phase.begin(); err != nil {
			return 0, err
		}
		s := put(ctx, w, &load, phaseTime)
		if s.failed != nil {
			return 0, fmt.Errorf("while %s: %w", phase.name, s.failed)
		}
		if due := load.rate * int(phaseTime/time.Second); s.requests < due-load.rate/10 { // requests may be missing only if the end of the phase cut them off
			return 0, fmt.Errorf("while %s: %d of %d requests were answered", phase.name, s.requests, due)
		}
		p50, p99 := quantile(s.first, 0.5), quantile(s.first, 0.99)
		_, _ = fmt.Fprintf(out, "limits in Redis, 100 requests a second, %s: p50 %.2f ms, p99 %.2f ms, longest %.2f ms of %d\n",
			phase.name, micros(p50)/1000, micros(p99)/1000, micros(quantile(s.first, 1))/1000, s.requests)
		if phase.name == "Redis answers" {
			base = s
		} else if len(base.first) > 0 {
			added = max(added, p50-quantile(base.first, 0.5), p99-quantile(base.first, 0.99))
		}
	}
	return added, nil
}
