package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"signalbox/bench/lab"
	"signalbox/internal/simulator"
)

// The paces of the model server, each with a separate model name.
const (
	fastModel = "fast" // responds immediately
	paceModel = "pace" // a token every 5 ms
	slowModel = "slow" // a token every 100 ms
)

// serveModel is the simulated model server: one server for each pace, distinguished by the path.
func serveModel(ctx context.Context) error {
	mux := http.NewServeMux()
	for _, m := range []struct {
		name string
		tpot time.Duration
	}{{fastModel, 0}, {paceModel, 5 * time.Millisecond}, {slowModel, 100 * time.Millisecond}} {
		o := simulator.DefaultOptions()
		o.Model, o.TTFT, o.TPOT, o.MaxModelLen = m.name, 0, m.tpot, 1<<24
		s, err := simulator.New(o)
		if err != nil {
			return err
		}
		mux.Handle("/"+m.name+"/", http.StripPrefix("/"+m.name, s.Handler()))
	}
	return serve(ctx, mux)
}

// bases returns the URLs of the API, by model, at a proxy that keeps paths or at the model server.
func bases(at string) map[string]string {
	out := map[string]string{}
	for _, m := range []string{fastModel, paceModel, slowModel} {
		out[m] = at + "/" + m + "/v1"
	}
	return out
}

// serveBare is the reverse proxy of the standard library.
func serveBare(ctx context.Context, to string) error {
	proxy, err := lab.Bare(to, &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true})
	if err != nil {
		return err
	}
	return serve(ctx, proxy)
}

// serve prints its address in one line and serves until ctx ends.
func serve(ctx context.Context, h http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if _, err := fmt.Fprintln(os.Stdout, l.Addr()); err != nil {
		return err
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
