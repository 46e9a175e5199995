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

// Target is one server that is asked.
type Target struct {
	URL     *url.URL // of its metrics
	Bearer  string   // the header Authorization; empty for none
	Options ScrapeOptions
	// Transport is what it is asked through.
	Transport http.RoundTripper
	// Told gets each report, from one goroutine at a time. It must be quick.
	Told func(now time.Time, r Report)
	// Models is where the server lists its models, which is asked once for each start of its
	// process; Served is the name of the one that counts.
	Models *url.URL
	Served string
	// Paused is where vLLM's development servers tell whether they are paused, which their metrics
	// do not; nil: nobody asks.
	Paused *url.URL
	// Rarely asks a server that is no vLLM, or has no such page, every rareInterval alone.
	Rarely bool
	// Window gets the context window of that model, in tokens, where the server tells it; see Told.
	Window func(tokens int)
}

// rareInterval is how often a server is asked that turned out to be another one: often enough to
// find out when it is replaced, seldom enough for a public API.
const rareInterval = 5 * time.Minute

var (
	errStatus    = errors.New("unexpected status") // a page that is none
	errUnreached = errors.New("no response")       // a server that is down
)

// Watch reads the metrics of servers: it asks every target, at once and then at every interval,
// until ctx ends or idle is closed. It returns when its goroutines have. A server that does not
// answer is asked again at the next interval; its health is another's matter.
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

// follow asks one target.
func follow(ctx context.Context, t *Target) {
	interval := cmp.Or(time.Duration(t.Options.Interval), defaultInterval)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	known, since := false, 0.0 // the window, of the process that was started then
	pausable := true           // as far as is known of that process
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

// pause is when a server is asked again that said r, or failed.
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

// maxModels bounds a list of models, in bytes.
const maxModels = 1 << 20

// askWindow asks a server for the window of its model, and reports whether it has a list of models.
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

// askPaused asks a server whether it is paused, and reports false for pausable when it is none that
// tells.
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

// get hands the body of one page to read.
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
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // read only to reuse the connection
		return fmt.Errorf("read %s: %w %d", from.Path, errStatus, res.StatusCode)
	}
	return read(res.Body)
}

// Metrics is where a server tells its metrics: path, /metrics unless given, beside the API at base.
func Metrics(base *url.URL, path string) *url.URL {
	return base.ResolveReference(&url.URL{Path: cmp.Or(path, defaultPath)})
}
