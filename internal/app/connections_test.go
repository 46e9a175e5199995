package app

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/telemetry"
)

// guest is a connection to a server, kept open.
type guest struct {
	net.Conn

	read *bufio.Reader
}

func connect(t *testing.T, address string) *guest {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs ends
	return &guest{conn, bufio.NewReader(conn)}
}

// get asks for a path and reads the answer.
func (g *guest) get(path string) error {
	if _, err := io.WriteString(g, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(g.read, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// ended waits until the server closes the connection.
func (g *guest) ended() error {
	b, err := g.read.ReadByte()
	if err == nil {
		return fmt.Errorf("a byte %q", b)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return err
	}
	return nil
}

// hall serves over a bounded listener: /hold answers when let is closed, after it said so in held.
type hall struct {
	*connections

	address   string
	held, let chan struct{}
}

func newHall(t *testing.T, limit int, patience time.Duration) *hall {
	t.Helper()
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{
		connections: bound(l, "main", limit), address: l.Addr().String(),
		held: make(chan struct{}, limit), let: make(chan struct{}),
	}
	h.patience = patience
	handle := func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			h.held <- struct{}{}
			<-h.let
		}
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(handle)}
	h.watch(s)
	done := make(chan error, 1)
	go func() { done <- serveUntilClosed(s, h.connections) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

// settled waits until the connections are as wanted.
func (h *hall) settled(t *testing.T, fresh, active, idle int) {
	t.Helper()
	want := [...]int{fresh, active, idle}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(time.Minute); ; <-poll.C {
		s := h.status()
		if got := [...]int{s.New, s.Active, s.Idle}; got == want {
			return
		} else if time.Now().After(end) {
			t.Fatalf("new, active and idle are %v, want %v", got, want)
		}
	}
}

func TestTheConnectionThatIsIdleLongestGivesWay(t *testing.T) {
	t.Parallel()
	h := newHall(t, 3, time.Hour)
	var guests []*guest
	for i := range 3 {
		g := connect(t, h.address)
		if err := g.get("/"); err != nil {
			t.Fatal(err)
		}
		h.settled(t, 0, 0, i+1)
		guests = append(guests, g)
	}
	if err := guests[0].get("/"); err != nil { // now the second is idle longest
		t.Fatal(err)
	}
	h.settled(t, 0, 0, 3)
	if err := connect(t, h.address).get("/"); err != nil {
		t.Fatalf("a fourth: %v", err)
	}
	if err := guests[1].ended(); err != nil {
		t.Errorf("the one that was idle longest: %v", err)
	}
	for _, i := range []int{0, 2} {
		if err := guests[i].get("/"); err != nil {
			t.Errorf("guest %d: %v", i, err)
		}
	}
	h.settled(t, 0, 0, 3)
	want := telemetry.ConnectionStatus{Listener: "main", Limit: 3, Idle: 3, Evicted: 1}
	if got := h.status(); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}
}

// A request under way is never cut for another: who comes waits until a place is free.
func TestARequestUnderWayKeepsItsPlace(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2, time.Hour)
	results := make(chan error, 2)
	for range 2 {
		g := connect(t, h.address)
		go func() { results <- g.get("/hold") }()
		<-h.held
	}
	late := make(chan error, 1)
	g := connect(t, h.address)
	go func() { late <- g.get("/") }()
	h.settled(t, 0, 2, 0)
	select {
	case err := <-late:
		t.Fatalf("a third was served beside two: %v", err)
	default:
	}
	close(h.let)
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("a request under way: %v", err)
		}
	}
	if err := <-late; err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}

func TestAConnectionThatSaysNothingGivesWayAfterAWhile(t *testing.T) {
	t.Parallel()
	patient, hasty := newHall(t, 1, time.Hour), newHall(t, 1, time.Millisecond)
	for _, h := range []*hall{patient, hasty} {
		silent, other := connect(t, h.address), connect(t, h.address)
		served := make(chan error, 1)
		go func() { served <- other.get("/") }()
		if h == hasty {
			if err := <-served; err != nil {
				t.Errorf("behind one that says nothing: %v", err)
			}
			if err := silent.ended(); err != nil {
				t.Errorf("one that says nothing: %v", err)
			}
			continue
		}
		h.settled(t, 1, 0, 0)
		if err := silent.get("/"); err != nil { // it had its reasons
			t.Errorf("within its time: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("the one that waited: %v", err)
		}
	}
}

func TestAListenerThatIsFullCanBeClosed(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := bound(l, "main", 1)
	_, waiting := connect(t, l.Addr().String()), connect(t, l.Addr().String())
	first, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second := make(chan error, 1)
	go func() {
		_, err := c.Accept()
		second <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ended with %v", err)
	}
	if err := waiting.ended(); err != nil {
		t.Errorf("the one that waits: %v", err)
	}
}

// Over TLS a server tells of another connection than the one that was accepted.
func TestConnectionsAreKnownOverTLS(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, s := bound(l, "main", 2), &http.Server{ReadHeaderTimeout: time.Minute}
	defer c.Close()
	c.watch(s)
	_ = connect(t, l.Addr().String())
	conn, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS12})
	s.ConnState(secure, http.StateActive)
	s.ConnState(secure, http.StateIdle)
	if got := c.status(); got.Idle != 1 || got.Active != 0 || got.New != 0 {
		t.Errorf("status %+v", got)
	}
	s.ConnState(secure, http.StateClosed)
	if got := c.status(); got.Idle != 0 {
		t.Errorf("status %+v", got)
	}
	_ = conn.Close()
}

func TestTheLimitFollowsTheFilesThatMayBeOpen(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int{
		0: mostConnections, 20: 8, 96: 8, 112: 8, 128: 16, 256: 80, 1024: 464, 65536: 32720,
		1 << 20: 1 << 16, 1 << 63: 1 << 16,
	} {
		if got := defaultConnections(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}

func TestConnectionsShowInTheMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t, configure(t, "limits: {max_connections: 7}\n"), config.Settings{})
	if _, _, err := ask(t, dialing(t, nil, h2cOnly), s.url); err != nil {
		t.Fatal(err)
	}
	page := do(t, http.MethodGet, s.admin+"/metrics", "").body
	for _, want := range []string{
		`signalbox_connections_limit{listener="main"} 7`,
		`signalbox_connections_limit{listener="admin"} 32`,
		`signalbox_connections{listener="admin",state="active"} 1`,
		`signalbox_connections_evicted_total{listener="main"} 0`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in %s", want, page)
		}
	}
}
