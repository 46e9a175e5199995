package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/telemetry"
	"signalbox/proxy/fault"
)

// Ready is called once the listeners are open, with their addresses.
type Ready func(main, admin net.Addr)

// Serve runs the listeners until ctx ends, then drains: readyz turns false, listeners go on
// accepting for a moment with `Connection: close`, and requests in flight finish within
// server.drain_timeout. reload is signalled to read the configuration file again; a changed file
// does the same.
func (a *App) Serve(ctx context.Context, reload <-chan os.Signal, ready Ready) error {
	a.share(ctx)
	var err error
	if a.contexts, err = a.openContexts(a.cfg.Load()); err != nil {
		return err
	}
	board := a.openBoard(ctx, a.cfg.Load())
	o := a.cfg.Load().Server
	if o.TLS.CertFile != "" {
		if err := a.certs.load(&o.TLS); err != nil {
			return err
		}
	}
	main, err := listen(ctx, o.Listen)
	if err != nil {
		return anotherAddress(err, "server.listen", "--listen")
	}
	admin, err := listen(ctx, o.AdminListen)
	if err != nil {
		return errors.Join(anotherAddress(err, "server.admin_listen", "--admin-listen"), main.Close())
	}
	mainPlaces := bound(main, "main", a.places(ctx))
	adminPlaces := bound(admin, "admin", adminConnections)
	a.tel.Metrics.WatchConnections(func() []telemetry.ConnectionStatus {
		return []telemetry.ConnectionStatus{mainPlaces.status(), adminPlaces.status()}
	})
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx)) // of the main listener
	defer cut(nil)
	mainServer := a.server(a.proxy.Handler())
	mainServer.BaseContext = func(net.Listener) context.Context { return requests }
	mainServer.Protocols, mainServer.HTTP2 = http2()
	if o.TLS.CertFile != "" {
		mainServer.TLSConfig = a.certs.config()
	}
	adminServer := a.adminServer()
	mainPlaces.watch(mainServer)
	adminPlaces.watch(adminServer)

	g, gctx := errgroup.WithContext(ctx)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g.Go(func() error { return serveUntilClosed(mainServer, mainPlaces) })
	g.Go(func() error { return serveUntilClosed(adminServer, adminPlaces) })
	g.Go(func() error { return a.proxy.Run(background) })
	g.Go(func() error { return a.contexts.run(background) })
	g.Go(func() error { return board.run(background) })
	g.Go(func() error { return a.followKeys(background) })
	g.Go(func() error { return a.follow(background) })
	g.Go(func() error { return a.watch(gctx, reload) })
	g.Go(func() error { return a.mend(gctx) })
	g.Go(func() error { return a.resolve(gctx) })
	g.Go(func() error {
		<-gctx.Done()
		defer stop()
		return a.drain(background, func() { cut(fault.ErrStopped) }, mainServer, adminServer)
	})
	a.tel.Log.InfoContext(ctx, "listening", slog.String("address", main.Addr().String()),
		slog.String("admin", admin.Addr().String()),
		slog.Int("max_connections", mainPlaces.limit))
	if ready != nil {
		ready(main.Addr(), admin.Addr())
	}
	return g.Wait()
}

// share has all replicas count in one Redis, where there is one, and reads its virtual keys.
func (a *App) share(ctx context.Context) {
	if a.redis == nil {
		return
	}
	a.redis.Connect(ctx)
	a.proxy.ShareLimits(sharedLimits{a.redis, a.tel.Metrics})
	a.proxy.ShareBudgets(sharedBudgets{a.redis, a.tel.Metrics})
	a.proxy.UseRedis(a.redis)
	a.tel.Metrics.WatchRedis(a.redis.Healthy)
	if a.keys != nil {
		_ = a.keys.Look(ctx) // it has told, and looks again
	}
}

// places is how many clients may be connected to the main listener.
func (a *App) places(ctx context.Context) int {
	files, limit := openFiles(), a.cfg.Load().Limits.MaxConnections
	if limit == 0 {
		return defaultConnections(files)
	}
	if files > 0 && uint64(limit)*filesOfARequest+otherFiles > files {
		a.tel.Log.WarnContext(ctx,
			"limits.max_connections exceeds the limit of open files",
			slog.Int("max_connections", limit), slog.Uint64("open_files", files),
			slog.Int("enough_for", defaultConnections(files)))
	}
	return limit
}

// server sets the limits that keep a slow client from holding a connection. There is no
// WriteTimeout: it would cut streams; forwarding renews a deadline per write instead.
func (a *App) server(h http.Handler) *http.Server {
	o := a.cfg.Load().Server
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Duration(o.ReadHeaderTimeout),
		IdleTimeout:       time.Duration(o.IdleTimeout),
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(a.tel.Log.Handler(), slog.LevelDebug),
	}
}

// http2 lets clients speak HTTP/2, over TLS or without it by prior knowledge (RFC 9113, section
// 3.3), within bounds: streams at a time, and the memory of what a client sends that is not read.
func http2() (*http.Protocols, *http.HTTP2Config) {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p, &http.HTTP2Config{MaxConcurrentStreams: 250, MaxReadFrameSize: 16 << 10, MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 256 << 10}
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// anotherAddress says how to listen at another address, where another program listens at this one.
func anotherAddress(err error, key, flag string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: stop the process that listens there, or choose another address with %s or %s", err, key, flag)
	}
	return err
}

func serveUntilClosed(s *http.Server, l net.Listener) error {
	serve := s.Serve
	if s.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// drain lets the listener stay open for a while after readyz turned false, so that a load balancer
// that polls every second stops sending first. Measured elsewhere: a plain Shutdown lost 482 of
// about 27,000 requests, this order none. Connections are told to close by the answers on them: one
// that is closed while it is idle may have a request on its way. What is under way when
// drain_timeout is over is cut, and its clients are told. The first server is that of clients.
func (a *App) drain(ctx context.Context, cut func(), servers ...*http.Server) error {
	a.proxy.Drain()
	a.tel.Log.InfoContext(ctx, "draining")
	<-time.After(time.Duration(a.cfg.Load().Server.DrainDelay))
	patient, cancel := context.WithTimeout(ctx, time.Duration(a.cfg.Load().Server.DrainTimeout))
	defer cancel()
	var errs []error
	for _, s := range servers {
		err := s.Shutdown(patient)
		if err == nil {
			continue
		}
		if s == servers[0] {
			a.tel.Log.ErrorContext(ctx, "closing requests that take longer than server.drain_timeout",
				slog.Int64("requests", a.proxy.Serving()), slog.String("cause", err.Error()))
		}
		cut()
		last, cancel := context.WithTimeout(ctx, lastWords)
		if s.Shutdown(last) != nil {
			err = errors.Join(err, s.Close())
		}
		cancel()
		if s == servers[0] {
			err = fmt.Errorf("%w: %w", ErrCut, err)
		}
		errs = append(errs, fmt.Errorf("drain: %w", err))
	}
	return errors.Join(errs...)
}

// ErrCut reports that requests of clients were cut when the process stopped. The log has said so.
var ErrCut = errors.New("requests were closed")

// lastWords is how long clients whose requests are cut have to take the error that says so.
const lastWords = time.Second

var errNoFile = errors.New("the configuration was not read from a file and cannot be reloaded")

// settle is how long files must be quiet before they are read: editors write in several steps. poll
// is how often they are looked at where no event tells of changes, as on some network file systems,
// and how long a folder that is never quiet, as one with a log in it, can put that off.
const (
	settle = 100 * time.Millisecond
	poll   = 5 * time.Second
)
