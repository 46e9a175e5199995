package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
)

// relay stands before a Redis and makes it one that takes a while to connect to.
type relay struct {
	net.Listener
	to   string
	slow time.Duration // before a new connection is served
	wg   sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func newRelay(t *testing.T, to string, slow time.Duration) *relay {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to, slow: slow}
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) serve(c net.Conn) {
	timer := time.NewTimer(r.slow)
	defer timer.Stop()
	<-timer.C
	up, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to)
	if err != nil {
		_ = c.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, c, up)
	r.mu.Unlock()
	r.wg.Go(func() { _, _ = io.Copy(up, c); _ = up.Close() })
	_, _ = io.Copy(c, up)
	_ = c.Close()
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// A connection takes longer to make than a read may take. Reads alone would never make one.
func TestConnectionsAreMadeAnewToARedisThatIsFarAway(t *testing.T) {
	server := testkit.NewRedis(t)
	far := newRelay(t, server.Addr(), 400*time.Millisecond)
	s, err := Open(t.Context(), Options{URL: "redis://" + far.Addr().String(), MetaBudget: 200 * time.Millisecond, BlobBudget: 3 * time.Second, Rest: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(ctx, func(ledger.News) {}, func() {}) }()
	defer func() {
		stop()
		if err := <-watched; err != nil {
			t.Error(err)
		}
	}()
	reads := func() bool {
		for range 20 { // on either connection
			if _, err := s.Load(t.Context(), ledger.TenantOf("acme"), "ctx_a"); !errors.Is(err, ledger.ErrNotFound) {
				return false
			}
		}
		return true
	}
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for round := range 3 {
		for end := time.Now().Add(testkit.Patience); !reads(); <-poll.C {
			if time.Now().After(end) {
				t.Fatalf("round %d: reads go on to fail", round)
			}
		}
		far.cut()
	}
}

// A Redis that hangs accepts connections, since its system does. A call that needs a new one must
// not wait for more than a call may.
func TestNobodyWaitsForAConnectionToARedisThatHangs(t *testing.T) {
	server := testkit.NewRedis(t)
	s, err := Open(t.Context(), Options{URL: server.URL(), MetaBudget: 300 * time.Millisecond, BlobBudget: 400 * time.Millisecond, Failures: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server.Kill()
	for range 4 { // on either connection: the client notices that both are gone
		if _, err := s.Load(t.Context(), ledger.TenantOf("acme"), "ctx_a"); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	server.Start()
	server.Pause()
	var writers sync.WaitGroup
	defer writers.Wait()
	defer server.Resume()
	for range 16 { // which may take seconds, and connect first
		writers.Go(func() {
			at := ledger.Name{Tenant: ledger.TenantOf("acme"), ID: "ctx_a"}
			_ = s.Touch(t.Context(), []ledger.Touch{{Name: at, Expires: time.Now()}})
		})
	}
	for range 6 {
		begun := time.Now()
		if _, err := s.Load(t.Context(), ledger.TenantOf("acme"), "ctx_a"); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatal(err)
		}
		if took := time.Since(begun); testkit.Timed() && took > 2*time.Second {
			t.Errorf("waited %v for a budget of 300ms", took)
		}
	}
}
