package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// load is the behaviour of clients.
type load struct {
	*testbed

	mu       sync.Mutex // guards the fields below
	done     map[string]int
	failures map[string]int
	first    map[string]error // of each kind of failure
}

// patience is the maximum duration of a request: longer than all timeouts of the configuration
// together.
const patience = 45 * time.Second

// period keeps the clients busy for a time and returns when no request is in flight.
func (l *load) period(ctx context.Context, length time.Duration, clients int) {
	until := time.Now().Add(length)
	var wg sync.WaitGroup
	for _, kind := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"short", l.short}, {"streams", l.stream}, {"aborted", l.abort}, {"misbehaving backend", l.shaky}, {"context", l.context}, {"cached", l.cached}, {"blocked", l.blocked},
	} {
		for range clients {
			wg.Go(func() {
				for ctx.Err() == nil && time.Now().Before(until) {
					l.count(ctx, kind.name, kind.do)
					time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) //nolint:gosec // clients think
				}
			})
		}
	}
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil && time.Now().Before(until) {
			l.count(ctx, "reloads", l.reload)
			<-tick.C
		}
	})
	wg.Wait()
}

func (l *load) count(ctx context.Context, name string, do func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := do(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[name]++
	if err != nil && !errors.Is(err, context.Canceled) {
		if l.failures[name]++; l.failures[name] == 1 {
			l.first[name] = fmt.Errorf("%s: %w", name, err)
		}
	}
}

func chat(text string, stream bool, tokens int, more string) string {
	quoted, _ := json.Marshal(text) // a string
	return fmt.Sprintf(`{"model":"auto","stream":%v,"max_tokens":%d,%s"messages":[{"role":"user","content":%s}]}`, stream, tokens, more, quoted)
}

// texts is the number of texts of each length. Tables of recent values are bounded but large;
// without repeating texts they would fill for hours, which would look like a leak. Requests,
// connections and contexts are new each time.
const texts = 4096

// words returns one of the texts of a length.
func words(n int) string {
	return fmt.Sprintf("%x ", rand.Uint64N(texts)) + strings.Repeat("what do levers do ", n/4) //nolint:gosec // any
}

func (l *load) ask(ctx context.Context, body string, want int) ([]byte, error) {
	status, answer, err := l.send(ctx, http.MethodPost, l.api+"/v1/chat/completions", body)
	if err == nil && status != want {
		err = fmt.Errorf("status %d in place of %d: %.200s", status, want, answer)
	}
	return answer, err
}

func (l *load) short(ctx context.Context) error {
	_, err := l.ask(ctx, chat(words(16), false, 8, ""), http.StatusOK)
	return err
}

func (l *load) stream(ctx context.Context) error {
	answer, err := l.ask(ctx, chat(words(16), true, 64, ""), http.StatusOK)
	if err == nil && !bytes.HasSuffix(bytes.TrimSpace(answer), []byte("[DONE]")) {
		err = fmt.Errorf("a stream of %d bytes without its end", len(answer))
	}
	return err
}

// abort disconnects at a random point.
func (l *load) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.Int64N(int64(60*time.Millisecond)))) //nolint:gosec // any
	defer cancel()
	_, err := l.ask(ctx, chat(words(16), true, 64, ""), http.StatusOK)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// shaky sends a request to the misbehaving model server. Before its response has begun, another
// server takes over; later failures are covered by other tests, but the request must end. Some
// clients disconnect.
func (l *load) shaky(ctx context.Context) error {
	stream := rand.IntN(2) == 0 //nolint:gosec // any
	part := ctx
	if rand.IntN(4) == 0 { //nolint:gosec // any
		var cancel context.CancelFunc
		part, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	_, _, _ = l.send(part, http.MethodPost, l.api+"/v1/chat/completions", chat(words(4000), stream, 8, "")) // any result is accepted
	return ctx.Err()
}

// context stores a text, sends a request with it, and deletes it.
func (l *load) context(ctx context.Context) error {
	text, _ := json.Marshal(words(200)) // a string
	status, answer, err := l.send(ctx, http.MethodPost, l.api+"/v1/contexts", fmt.Sprintf(`{"content":%s}`, text))
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer, &made) != nil || made.ID == "" {
		return fmt.Errorf("create: %d %.200s", status, answer)
	}
	_, asked := l.ask(ctx, chat(words(8), true, 8, fmt.Sprintf(`"signalbox":{"context":%q},`, made.ID)), http.StatusOK)
	status, answer, err = l.send(ctx, http.MethodDelete, l.api+"/v1/contexts/"+made.ID, "")
	if err == nil && status >= http.StatusMultipleChoices {
		err = fmt.Errorf("delete: %d %.200s", status, answer)
	}
	return errors.Join(asked, err)
}

// cached repeats one of a few questions.
func (l *load) cached(ctx context.Context) error {
	_, err := l.ask(ctx, chat(fmt.Sprint("question ", rand.IntN(100)), rand.IntN(2) == 0, 8, `"temperature":0,`), http.StatusOK) //nolint:gosec // any
	return err
}

func (l *load) blocked(ctx context.Context) error {
	answer, err := l.ask(ctx, chat(words(16)+" Project Titan", false, 8, ""), http.StatusBadRequest)
	if err == nil && !bytes.Contains(answer, []byte("content_policy_violation")) {
		err = fmt.Errorf("blocked with %.200s", answer)
	}
	return err
}
