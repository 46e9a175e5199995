package pool

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Watcher checks the health of endpoints. It has no mutable state.
type Watcher struct {
	Transport http.RoundTripper // for checks, except of endpoints with a transport of their own
	// gets a line when an endpoint becomes down, ejected or suspect, and when it is up again
	Log *slog.Logger
}

// Watch checks every endpoint of the groups, immediately and then at every interval, until ctx ends
// or idle is closed. It returns when its goroutines have ended.
func (w Watcher) Watch(ctx context.Context, groups []*Group, idle <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for _, g := range groups {
		for _, e := range g.Endpoints {
			wg.Go(func() { w.check(ctx, &g.health, e) })
		}
	}
	select {
	case <-ctx.Done():
	case <-idle:
	}
	stop()
	wg.Wait()
}

// longestPause limits the time between checks of an endpoint that is down, unless the configured
// interval is longer. It equals the duration of a first ejection.
const longestPause = ejectionBase

// check checks one endpoint, immediately and then at every interval, and logs changes of its state,
// until a newer configuration checks it. An endpoint that is down is checked at growing intervals;
// one without a health check is never asked.
func (w Watcher) check(ctx context.Context, o *HealthOptions, e *Endpoint) {
	interval := time.Duration(o.Interval)
	next := time.NewTimer(interval)
	defer next.Stop()
	for pause := interval; ; {
		var err error
		if e.probe != nil {
			if err = w.ask(ctx, e, time.Duration(o.Timeout)); ctx.Err() != nil {
				return // the failure may be our own cancellation
			}
			e.checked(err)
		}
		if e.replaced() {
			return
		}
		w.tell(ctx, e)
		if pause = min(2*pause, max(interval, longestPause)); err == nil || !e.isDown() {
			pause = interval
		}
		next.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// tell logs the state of an endpoint when it differs from the last one logged. Since it runs once
// per check, there is at most one line per check.
func (w Watcher) tell(ctx context.Context, e *Endpoint) {
	state, changed, cause := e.news(time.Now())
	if !changed {
		return
	}
	level, line := slog.LevelWarn, "endpoint suspect"
	where := []slog.Attr{slog.String("model", e.Model), slog.String("endpoint", e.Name)}
	switch state {
	case Down.String():
		line, where = "endpoint down", append(where, slog.Any("cause", cause))
	case Ejected.String():
		line = "endpoint ejected"
	case Fit.String():
		level, line = slog.LevelInfo, "endpoint up"
	}
	w.Log.LogAttrs(ctx, level, line, where...) //nolint:sloglint // one of the four constants above
}

// ask makes one check. It requests the health path or, where the server has none, its list of
// models. Any status below 500 counts as alive, so that a server that requires other credentials is
// not considered dead.
func (w Watcher) ask(ctx context.Context, e *Endpoint, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, err := w.get(ctx, e, e.probe)
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		if e.second != nil {
			status, err = w.get(ctx, e, e.second)
		}
	}
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	if status >= http.StatusInternalServerError {
		return fmt.Errorf("health check: status %d", status)
	}
	return nil
}

func (w Watcher) get(ctx context.Context, e *Endpoint, from *url.URL) (status int, err error) {
	req := (&http.Request{Method: http.MethodGet, URL: from, Header: http.Header{}}).WithContext(ctx)
	if e.Bearer != "" {
		req.Header["Authorization"] = []string{e.Bearer}
	}
	res, err := e.Via(w.Transport).RoundTrip(req)
	if err != nil {
		return 0, err //nolint:wrapcheck // ask wraps it
	}
	defer func() { _ = res.Body.Close() }()
	// read only so that the connection can be reused
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10))
	return res.StatusCode, nil
}
