package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// workload is one kind of load.
type workload struct {
	name    string
	model   string
	body    string
	clients int  // of the closed loop, or the maximum of the open one
	rate    int  // requests per second of the open loop; 0 for the closed
	each    bool // only the cost of a request is reported
	chunks  bool // the cost of a chunk is reported
	alone   bool // the latency added to the first byte is reported
	memory  bool // only the memory is reported
}

// sample is the result of a workload on one variant in one round.
type sample struct {
	requests, chunks int
	took             time.Duration
	cpu              time.Duration
	calls            int             // number of read and write system calls
	first            []time.Duration // to the first byte of the response's body
	rss              int64
	failed           error
}

// chat is a request whose response has about tokens tokens.
func chat(model, text string, stream bool, tokens int) string {
	return fmt.Sprintf(`{"model":%q,"stream":%v,"max_tokens":%d,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":%q}]}`, model, stream, tokens, text)
}

func workloads() []workload {
	const question = "What is a signal box, and what do the levers in it do? Please explain it to somebody who has never seen one."
	many := strings.Repeat(`{"role":"user","content":"hello there"},`, 10_000)
	return []workload{
		{name: "plain, closed loop", model: fastModel, body: chat(fastModel, question, false, 16), clients: 8},
		{name: "plain, 200/s", model: fastModel, body: chat(fastModel, question, false, 16), clients: 200, rate: 200},
		{name: "streamed, a token each 5 ms", model: paceModel, body: chat(paceModel, strings.Repeat(question, 8), true, 200), clients: 48, chunks: true},
		{name: "streamed at once", chunks: true, model: fastModel, body: chat(fastModel, strings.Repeat(question, 8), true, 200), clients: 8},
		{name: "streamed, one client", alone: true, model: fastModel, body: chat(fastModel, question, true, 16), clients: 1},
		{name: "with usage, one client", alone: true, model: fastModel, body: strings.Replace(chat(fastModel, question, true, 16), "{", `{"stream_options":{"include_usage":true},`, 1), clients: 1},
		{name: "streamed, 50/s", model: fastModel, body: chat(fastModel, question, true, 16), clients: 100, rate: 50},
		{name: "1 MB in one message", model: fastModel, body: chat(fastModel, strings.Repeat("The quick brown fox jumps over the lazy dog. ", 23_000), false, 1), clients: 2, each: true},
		{name: "10,000 messages", model: fastModel, body: `{"model":"fast","max_tokens":1,"messages":[` + strings.TrimSuffix(many, ",") + `]}`, clients: 2, each: true},
		{name: "500 streams", model: slowModel, body: chat(slowModel, question, true, 1000), clients: 500, memory: true},
	}
}

func put(ctx context.Context, w *way, x *workload, length time.Duration) sample {
	transport := &http.Transport{MaxIdleConnsPerHost: x.clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	l := &load{workload: x, url: w.base[x.model] + "/chat/completions", key: w.key, client: &http.Client{Transport: transport}}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	begun, before, calls := time.Now(), w.cpu(), w.calls()
	if x.memory {
		stop := time.AfterFunc(length*9/10, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.out.rss = w.rss()
		})
		defer stop.Stop()
	}
	if x.rate > 0 {
		l.open(ctx)
	} else {
		l.closed(ctx)
	}
	l.out.took, l.out.cpu = time.Since(begun), w.cpu()-before
	l.out.calls = w.calls() - calls
	return l.out
}

type load struct {
	*workload

	url    string
	key    string
	client *http.Client

	mu  sync.Mutex // guards out
	out sample
}

func (l *load) closed(ctx context.Context) {
	var wg sync.WaitGroup
	for range l.clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				l.one(ctx, time.Now())
			}
		})
	}
	wg.Wait()
}

func (l *load) open(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	begun, pause := time.Now(), time.Second/time.Duration(l.rate)
	slots := make(chan struct{}, l.clients) // limits the requests in flight; if full, the request waits, and its latency counts
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for n := 1; ; n++ {
		due := begun.Add(time.Duration(n) * pause)
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			l.one(ctx, due)
		})
	}
}

// one sends a request that was due at the given time. Requests cut off by the end of the
// measurement do not count.
func (l *load) one(ctx context.Context, due time.Time) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(l.body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	if l.key != "" {
		req.Header.Set("Authorization", "Bearer "+l.key)
	}
	res, err := l.client.Do(req)
	if err != nil {
		l.fail(ctx, err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	buf := make([]byte, 32<<10)
	chunks, first := 0, time.Duration(0)
	var front []byte
	for {
		n, err := res.Body.Read(buf)
		if first == 0 {
			first = time.Since(due)
		}
		if len(front) < 256 {
			front = append(front, buf[:min(n, 256)]...)
		}
		chunks += bytes.Count(buf[:n], []byte("data: "))
		if err == io.EOF {
			break
		}
		if err != nil {
			l.fail(ctx, err)
			return
		}
	}
	if res.StatusCode != http.StatusOK {
		l.fail(ctx, fmt.Errorf("status %d: %s", res.StatusCode, front))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.requests++
	l.out.chunks += chunks
	l.out.first = append(l.out.first, first)
}

func (l *load) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.failed = err
}
