package hostile

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

// Options configure a server. The zero value is a server without faults.
type Options struct {
	// Mode is the usual mode.
	Mode string
	// TLS serves over TLS with these settings; the TLS modes have their own.
	TLS *tls.Config
	// HTTP2 serves HTTP/2 only; the modes are those of Modes2.
	HTTP2 bool
	// Secure serves over TLS with a certificate of the test authority.
	Secure bool
	// Choose, if not nil, selects the mode of each request with the highest priority; an empty
	// result leaves the choice to the other sources.
	Choose func() string
	// Unix serves on a socket at this path instead of a loopback port.
	Unix string
	// Still sets the time in events to 0, so that responses are always identical.
	Still bool
}

// Server is a running server. It is safe for concurrent use.
type Server struct {
	tb     testing.TB
	opts   Options
	usual  string
	log    *journal
	url    string
	listen net.Listener // nil if connections are refused
	stop   chan struct{}
	all    sync.WaitGroup

	open, serving, mostServing atomic.Int64
	asked                      atomic.Int64 // requests of modes that count them
	started                    time.Time
	frozen                     atomic.Bool

	mu     sync.Mutex // guards the fields below
	script []string
	conns  map[*conn]struct{}
	n      int // connections so far
	reqs   int
	window []time.Time // of the requests within the last second, for rate-limit
	fill   []net.Conn  // connections that keep the queue full
	closed bool
}

// Start starts a server that ends with its test.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := &Server{tb: tb, opts: o, usual: o.Mode, log: newJournal(), stop: make(chan struct{}), conns: make(map[*conn]struct{}), started: time.Now()}
	if o.Mode != "" {
		if _, err := parse(o.Mode); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(s.Close)
	if err := s.open0(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// open0 opens the listener for the usual mode.
func (s *Server) open0(ctx context.Context) error {
	scheme := "http://"
	if s.usualIs("blackhole") {
		l, fill, err := fullListener(ctx)
		if err != nil {
			return err
		}
		s.listen, s.fill = l, fill
		s.url = scheme + l.Addr().String() + "/v1"
		return nil
	}
	network, address := "tcp", "127.0.0.1:0"
	if s.opts.Unix != "" {
		network, address = "unix", s.opts.Unix
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return err //nolint:wrapcheck // goes to tb.Fatal
	}
	s.listen = l
	cfg := s.opts.TLS
	if name, _, _ := strings.Cut(s.usual, "?"); strings.HasPrefix(name, "tls-") {
		if cfg, err = tlsConfig(name); err != nil {
			return err
		}
		scheme = "https://"
	}
	if s.opts.Secure {
		if cfg, err = tlsConfig("good"); err != nil {
			return err
		}
	}
	if cfg != nil {
		scheme = "https://"
	}
	if cfg != nil && s.opts.HTTP2 {
		cfg.NextProtos = []string{"h2"}
	}
	s.url = scheme + l.Addr().String() + "/v1"
	if s.usualIs("refuse") {
		return l.Close() //nolint:wrapcheck // goes to tb.Fatal
	}
	s.all.Go(func() { s.accept(context.WithoutCancel(ctx), l, cfg) }) // Close ends it
	return nil
}

func (s *Server) usualIs(name string) bool {
	got, _, _ := strings.Cut(s.usual, "?")
	return got == name
}

// URL returns the base URL of the API, as in a configuration.
func (s *Server) URL() string { return s.url }

// Next scripts the modes of the next POST requests, one each.
func (s *Server) Next(modes ...string) {
	s.tb.Helper()
	for _, m := range modes {
		if _, err := parse(m); err != nil {
			s.tb.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, modes...)
}

// Close ends every connection and waits for the goroutines.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.stop)
	if s.listen != nil {
		_ = s.listen.Close()
	}
	for c := range s.conns {
		_ = c.Close()
	}
	for _, c := range s.fill {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

// OpenConns returns the number of open connections.
func (s *Server) OpenConns() int { return int(s.open.Load()) }

// MaxConcurrent returns the maximum number of POST requests served concurrently.
func (s *Server) MaxConcurrent() int { return int(s.mostServing.Load()) }

func (s *Server) accept(ctx context.Context, l net.Listener, cfg *tls.Config) {
	for {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.n++
		c := newConn(raw, s.n, s.log)
		s.conns[c] = struct{}{}
		closed := s.closed
		s.mu.Unlock()
		s.log.add(Event{Conn: c.id, Kind: Accept})
		if closed {
			_ = c.Close()
		}
		s.open.Add(1)
		s.all.Go(func() {
			defer s.open.Add(-1)
			s.connection(ctx, c, cfg)
			_ = c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// atMost stores the largest value in most.
func atMost(most *atomic.Int64, now int64) {
	for {
		was := most.Load()
		if now <= was || most.CompareAndSwap(was, now) {
			return
		}
	}
}

// connection serves one connection until it ends.
func (s *Server) connection(ctx context.Context, c *conn, cfg *tls.Config) {
	usual, _ := parse(cmp.Or(s.usual, "ok"))
	switch usual.name {
	case "rst-on-accept":
		testkit.Linger(c.Conn)
		return
	case "close-on-accept":
		return
	case "accept-silent", "tls-stall":
		s.all.Go(c.pump)
		select {
		case <-s.stop:
		case <-c.gone:
		}
		return
	case "slow-accept":
		if !passes(usual.wait("d", 200*time.Millisecond), s.stop, nil) {
			return
		}
	}
	if cfg != nil {
		t := tls.Server(c.Conn, cfg)
		if err := t.HandshakeContext(ctx); err != nil {
			s.log.add(Event{Conn: c.id, Kind: WriteErr, Info: err.Error()})
			return
		}
		c.Conn = t
	}
	s.all.Go(c.pump)
	if s.opts.HTTP2 {
		s.over2(ctx, c)
		return
	}
	s.requests(c)
}

// requests serves the requests of a connection, one after the other.
func (s *Server) requests(c *conn) {
	r := bufio.NewReader(c)
	for n := 1; ; n++ {
		q, err := readHead(r)
		if err != nil {
			return
		}
		if q.method == http.MethodGet {
			if !s.get(c, &q) {
				return
			}
			continue
		}
		if !s.post(c, r, &q, n) {
			return
		}
	}
}

// post answers a request that is not a health check.
func (s *Server) post(c *conn, r *bufio.Reader, q *request, n int) (keep bool) {
	atMost(&s.mostServing, s.serving.Add(1))
	defer s.serving.Add(-1)
	s.mu.Lock()
	s.reqs++
	id := s.reqs
	s.mu.Unlock()
	c.belongs(id)
	s.log.add(Event{Conn: c.id, Req: id, Kind: HeadRaw, Info: q.head})
	x := &exchange{Server: s, c: c, req: q, id: id, nth: n}
	if early, ok := s.early(); ok {
		x.mode = early
		return x.run()
	}
	if strings.EqualFold(q.header("Expect"), "100-continue") && !s.usualIs("no-100") {
		_, _ = c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	if err := q.readBody(r); err != nil {
		return false
	}
	s.log.add(Event{Conn: c.id, Req: id, Kind: BodyRaw, Info: string(q.body)})
	s.log.add(Event{Conn: c.id, Req: id, Kind: Received, Info: q.method + " " + q.target, N: int64(len(q.body))})
	m, err := s.choose(q)
	if err != nil {
		s.tb.Error(err)
		return false
	}
	x.mode = m
	return x.run()
}

// early is the mode that answers before the body was read.
func (s *Server) early() (mode, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.usual
	if len(s.script) > 0 {
		next = s.script[0]
	}
	m, err := parse(next)
	if err != nil || m.name != "early-413" {
		return mode{}, false
	}
	if len(s.script) > 0 {
		s.script = s.script[1:]
	}
	return m, true
}

// choose finds the mode of a request.
func (s *Server) choose(q *request) (mode, error) {
	if s.opts.Choose != nil {
		if name := s.opts.Choose(); name != "" {
			return parse(name)
		}
	}
	s.mu.Lock()
	if len(s.script) > 0 {
		next := s.script[0]
		s.script = s.script[1:]
		s.mu.Unlock()
		return parse(next)
	}
	s.mu.Unlock()
	if name := q.fault(); name != "" {
		return parse(name)
	}
	return parse(cmp.Or(s.usual, "ok"))
}

// get answers health checks and the list of models.
func (s *Server) get(c *conn, q *request) bool {
	body, status := `{"object":"list","data":[{"id":"m","object":"model"}]}`, http.StatusOK
	if s.usualIs("models-404") && (strings.HasSuffix(q.target, "/models") || strings.HasSuffix(q.target, "/health")) {
		status = http.StatusNotFound
	}
	if s.frozen.Load() {
		<-s.stop
		return false
	}
	_, err := c.Write([]byte(answerHead(status, "application/json", len(body)) + body))
	return err == nil
}

// errStopped ends a mode whose server is closed.
var errStopped = errors.New("hostile: server closed")
