package kv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Target is one server to poll.
type Target struct {
	URL     *url.URL // of its metrics
	Bearer  string   // value of the Authorization header; empty if there is none
	Options ScrapeOptions
	// Transport sends the requests.
	Transport http.RoundTripper
	// Told receives each report, from one goroutine at a time. It must be fast.
	Told func(now time.Time, r Report)
	// Models is the list of the server's models, read once per start of its process; Served is the
	// name of the relevant one.
	Models *url.URL
	Served string
	// Paused is where vLLM's development servers report whether they are paused, which their
	// metrics do not show; nil to skip this.
	Paused *url.URL
	// Rarely polls a server that is not vLLM, or has no metrics, only every rareInterval.
	Rarely bool
	// Window receives the context window of that model, in tokens, if the server reports it. It is
	// called like Told.
	Window func(tokens int)
}

// rareInterval is how often a server that is not vLLM is polled: often enough to notice when it is
// replaced, seldom enough for a public API.
const rareInterval = 5 * time.Minute

var (
	errStatus    = errors.New("unexpected status") // not a metrics page
	errUnreached = errors.New("no response")       // the server is down
)

// Watch polls every target, immediately and then at every interval, until ctx ends or idle is
// closed. It returns when its goroutines have ended. A server that does not respond is polled again
// at the next interval; health checks are separate.
func Watch(ctx context.Context, targets []Target, idle <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for i := range targets {
		wg.Go(func() { follow(ctx, &targets[i]) })
	}
	select {
	case <-ctx.Done():
	case <-idle:
	}
	stop()
	wg.Wait()
}

// follow polls one target.
func follow(ctx context.Context, t *Target) {
	interval := cmp.Or(time.Duration(t.Options.Interval), defaultInterval)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	// whether the window is known, and the start time of the process that reported it
	known, since := false, 0.0
	pausable := true // as far as is known for that process
	for {
		r, err := ask(ctx, t)
		if t.Rarely {
			tick.Reset(pause(interval, &r, err))
		}
		if err == nil && (r.VLLM || !t.Rarely) {
			pausable = pausable || since != r.Started
			if pausable && r.VLLM && t.Paused != nil {
				var paused bool
				paused, pausable = askPaused(ctx, t)
				r.Asleep = r.Asleep || paused
			}
			t.Told(time.Now(), r)
			if !known || since != r.Started {
				known, since = askWindow(ctx, t), r.Started
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pause returns the time until the next poll after a report r or an error.
func pause(interval time.Duration, r *Report, err error) time.Duration {
	if err == nil && r.VLLM || errors.Is(err, errUnreached) {
		return interval
	}
	return max(interval, rareInterval)
}

// ask reads one page.
func ask(ctx context.Context, t *Target) (r Report, err error) {
	err = get(ctx, t, t.URL, "text/plain", func(body io.Reader) error {
		r, err = Read(body)
		return err
	})
	return r, err
}

// maxModels limits a list of models, in bytes.
const maxModels = 1 << 20

// askWindow reads the context window of the model, and reports whether the server has a list of
// models.
func askWindow(ctx context.Context, t *Target) bool {
	if t.Models == nil {
		return true
	}
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Window int    `json:"max_model_len"`
		} `json:"data"`
	}
	if getJSON(ctx, t, t.Models, &list) != nil {
		return false
	}
	for _, m := range list.Data {
		if m.ID == t.Served && m.Window > 0 {
			t.Window(m.Window)
		}
	}
	return true
}

// askPaused asks a server whether it is paused; pausable is false if the server does not report it.
func askPaused(ctx context.Context, t *Target) (paused, pausable bool) {
	var says struct {
		Paused bool `json:"is_paused"`
	}
	err := getJSON(ctx, t, t.Paused, &says)
	return err == nil && says.Paused, !errors.Is(err, errStatus)
}

// getJSON decodes one page.
func getJSON(ctx context.Context, t *Target, from *url.URL, to any) error {
	return get(ctx, t, from, "application/json", func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, maxModels)).Decode(to)
	})
}

// get passes the body of one page to read.
func get(
	ctx context.Context, t *Target, from *url.URL, kind string, read func(io.Reader) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(time.Duration(t.Options.Timeout), defaultTimeout))
	defer cancel()
	head := http.Header{"Accept": {kind}}
	req := (&http.Request{Method: http.MethodGet, URL: from, Header: head}).WithContext(ctx)
	if t.Bearer != "" {
		req.Header["Authorization"] = []string{t.Bearer}
	}
	res, err := t.Transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", from.Path, errUnreached, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		// read only so that the connection can be reused
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10))
		return fmt.Errorf("read %s: %w %d", from.Path, errStatus, res.StatusCode)
	}
	return read(res.Body)
}

// Metrics returns the URL of a server's metrics: path, by default /metrics, next to the API at
// base.
func Metrics(base *url.URL, path string) *url.URL {
	return base.ResolveReference(&url.URL{Path: cmp.Or(path, defaultPath)})
}
