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

// Watcher checks the health of endpoints. It holds nothing that changes.
type Watcher struct {
	Transport http.RoundTripper // that checks are sent through, but to endpoints with a transport of their own
	Log       *slog.Logger      // gets a line when an endpoint is down, ejected or suspect, and when it is up again
}

// Watch checks every endpoint of the groups, at once and then at every interval, until ctx ends or
// idle is closed. It returns when its goroutines have.
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

// longestPause is how long an endpoint that is down is left alone at most, unless its interval is
// longer: as long as one that is ejected for the first time.
const longestPause = ejectionBase

// check asks one endpoint at every interval, first at once, and looks at its state. One that is
// down is asked less and less often, one without a health check never.
func (w Watcher) check(ctx context.Context, o *HealthOptions, e *Endpoint) {
	interval := time.Duration(o.Interval)
	next := time.NewTimer(interval)
	defer next.Stop()
	for pause := interval; ; {
		var err error
		if e.probe != nil {
			if err = w.ask(ctx, e, time.Duration(o.Timeout)); ctx.Err() != nil {
				return // the failure may be ours
			}
			e.checked(err)
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

// tell logs that the state of an endpoint is another than the log has last. Looked at with the
// checks, there is one line at most for each of them.
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
	w.Log.LogAttrs(ctx, level, line, where...) //nolint:sloglint // one of the four above
}

// ask makes one check: of the path of health checks and, where a server has none, of the list of
// its models. A status below 500 counts as alive, so that servers with other ideas about who may
// ask are not taken for dead.
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
		return 0, err //nolint:wrapcheck // ask does
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // read only to reuse the connection
	return res.StatusCode, nil
}
