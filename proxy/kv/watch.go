package kv

import (
	"cmp"
	"context"
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
}

// errStatus reports a page that is none.
var errStatus = errors.New("unexpected status")

// Watch reads the metrics of servers: it asks every target, at once and then at every interval, until ctx ends or idle is closed. It returns when its
// goroutines have. A server that does not answer is asked again at the next interval; its health is another's matter.
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
	tick := time.NewTicker(cmp.Or(time.Duration(t.Options.Interval), defaultInterval))
	defer tick.Stop()
	for {
		if r, err := ask(ctx, t); err == nil {
			t.Told(time.Now(), r)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask reads one page.
func ask(ctx context.Context, t *Target) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(time.Duration(t.Options.Timeout), defaultTimeout))
	defer cancel()
	req := (&http.Request{Method: http.MethodGet, URL: t.URL, Header: http.Header{"Accept": {"text/plain"}}}).WithContext(ctx)
	if t.Bearer != "" {
		req.Header["Authorization"] = []string{t.Bearer}
	}
	res, err := t.Transport.RoundTrip(req)
	if err != nil {
		return Report{}, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // read only to reuse the connection
		return Report{}, fmt.Errorf("read metrics: %w %d", errStatus, res.StatusCode)
	}
	return Read(res.Body)
}

// Metrics is where a server tells its metrics: path, /metrics unless given, beside the API at base.
func Metrics(base *url.URL, path string) *url.URL {
	return base.ResolveReference(&url.URL{Path: cmp.Or(path, defaultPath)})
}
