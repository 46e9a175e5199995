package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// checkAll checks every endpoint of a state until ctx ends or nobody uses the state any more. It
// returns when its goroutines have.
func (p *Proxy) checkAll(ctx context.Context, st *State) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for _, m := range st.models {
		for _, e := range m.endpoints {
			if e.probe != nil {
				wg.Go(func() { p.check(ctx, m, e) })
			}
		}
	}
	select {
	case <-ctx.Done():
	case <-st.idle:
	}
	stop()
	wg.Wait()
}

// check asks one endpoint at every interval, first at once.
func (p *Proxy) check(ctx context.Context, m *model, e *endpoint) {
	tick := time.NewTicker(time.Duration(m.health.Interval))
	defer tick.Stop()
	for {
		err := p.ask(ctx, e, time.Duration(m.health.Timeout))
		if ctx.Err() != nil {
			return // the failure may be ours
		}
		if e.checked(err) {
			p.reportHealth(ctx, e, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Proxy) reportHealth(ctx context.Context, e *endpoint, err error) {
	where := []slog.Attr{slog.String("model", e.model), slog.String("endpoint", e.name)}
	if err != nil {
		p.tel.Log.LogAttrs(ctx, slog.LevelWarn, "endpoint down", append(where, slog.String("cause", err.Error()))...)
		return
	}
	p.tel.Log.LogAttrs(ctx, slog.LevelInfo, "endpoint up", where...)
}

// ask makes one check. A status below 500 counts as alive, so that servers without the path, or with
// other ideas about who may ask, are not taken for dead.
func (p *Proxy) ask(ctx context.Context, e *endpoint, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req := (&http.Request{Method: http.MethodGet, URL: e.probe, Header: http.Header{}}).WithContext(ctx)
	if e.bearer != "" {
		req.Header["Authorization"] = []string{e.bearer}
	}
	res, err := p.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // read only to reuse the connection
	if res.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("health check: status %d", res.StatusCode)
	}
	return nil
}
