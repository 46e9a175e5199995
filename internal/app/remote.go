package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"signalbox/classify"
	"signalbox/internal/config"
	"signalbox/internal/oip"
	"signalbox/internal/worker"
)

// remoteSession is a model on another server.
type remoteSession struct {
	*oip.Client

	http *http.Client
}

var _ session = (*remoteSession)(nil)

// Fallback implements session: there is nothing to fall back to.
func (*remoteSession) Fallback() string { return "" }

// Close ends the connections.
func (s *remoteSession) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// dialRemote asks a server for the model of a placement.
func (n *neural) dialRemote(ctx context.Context, p *placement) (session, error) {
	client, err := dial(ctx, p.remote, p.bundle.Manifest.Name, n.tel.Metrics)
	if err != nil {
		return nil, undialled{err}
	}
	return client, nil
}

// undialled is why a server that a model runs on does not give it.
type undialled struct{ error }

// Unwrap returns the cause.
func (u undialled) Unwrap() error { return u.error }

// remoteConnections bounds the requests to one server at a time; others wait, as they would for a
// place to compute.
const remoteConnections = 64

// modelTransport is the way to a server that a model runs on.
func modelTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: remoteConnections, MaxIdleConnsPerHost: remoteConnections,
		IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
}

// modelClient asks such a server, and follows no redirects.
func modelClient(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func dial(ctx context.Context, r config.Remote, name string, seen oip.Observer) (*remoteSession, error) {
	transport := modelTransport()
	transport.DisableCompression = true
	s := &remoteSession{http: modelClient(transport)}
	o := oip.Options{
		URL: r.URL, Model: r.Model, Version: r.Version, Timeout: time.Duration(r.Timeout), Key: r.APIKey,
		HTTP: s.http, Name: name, Provider: "remote", Observer: seen,
	}
	var err error
	if s.Client, err = oip.Dial(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// again reports whether a model that could not be opened may be there later, without anything
// changing here: its server is elsewhere, or its worker was down.
func (l *loaded) again() bool {
	return l.err != nil && (l.remote || errors.Is(l.err, worker.ErrDown))
}

const (
	mendFirst = time.Second
	mendLast  = 30 * time.Second
)

// mend opens models again that could not be opened, until ctx ends: after a second, and then after
// pauses that double up to half a minute. The state that requests are served from is replaced when
// one can.
func (a *App) mend(ctx context.Context) error {
	first := cmp.Or(a.opts.mendAfter, mendFirst)
	for pause := first; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		found, err := a.rebuild(ctx)
		if err != nil {
			a.tel.Log.ErrorContext(ctx, "a model is available again, but cannot be loaded", slog.String("cause", err.Error()))
		}
		pause = min(2*pause, max(first, mendLast))
		if found && err == nil {
			a.tel.Log.InfoContext(ctx, "missing models are available again")
			pause = first
		}
	}
}

// rebuild tries the models that may be back, and serves with them if one is.
func (a *App) rebuild(ctx context.Context) (found bool, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if !a.neural.retry(ctx) {
		return false, nil
	}
	if err := a.use(ctx, a.cfg.Load()); err != nil {
		return false, err
	}
	return true, nil
}

// retry opens the models that may be back. What it opens is taken by the next prepare.
func (n *neural) retry(ctx context.Context) bool {
	found := false
	for key, old := range n.loaded {
		if !old.again() {
			continue
		}
		if n.mended[key] != nil { // no state could be made with it the last time
			found = true
			continue
		}
		if l, err := n.openSession(ctx, old.place); err == nil {
			if n.mended == nil {
				n.mended = map[string]*loaded{}
			}
			n.mended[key] = l
			found = true
		}
	}
	if g := n.grounding; g != nil && g.broken() && g.opened.Load().loaded.again() {
		if l, err := n.openSession(ctx, g.place); err == nil {
			found = l.close() == nil // it is opened anew with the state
		}
	}
	return found
}

// missingEngine stands for a model that could not be opened.
func missingEngine(p *placement, err error) *loaded {
	return &loaded{engine: classify.Missing(p.bundle.Manifest.Name, p.signals), err: err, remote: p.remote.URL != "", place: p}
}
