package app

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"signalbox/internal/telemetry"
)

// connections bounds the connections of one listener. When one more comes than there may be, the
// one that has been idle for the longest time gives way, or else one that has not said anything yet
// for patience; where all are at work the new one waits, and those behind it wait in the queue of
// the operating system.
//
// netutil.LimitListener bounds them too, but knows nothing of what they do, and what it hands on
// can no longer be closed in one direction alone, which the HTTP server does so that an early
// answer is read.
//
// It is a net.Listener whose state is to be told by the server; see watch. It is safe for
// concurrent use, and starts no goroutine.
type connections struct {
	net.Listener

	name     string
	limit    int           // at least 1
	patience time.Duration // for connections that say nothing

	mu     sync.Mutex // guards what follows; a leaf
	freed  *sync.Cond // of mu: a place may be free, or the listener is closed
	open   map[net.Conn]*list.Element
	idle   *list.List // of connections that wait for their next request, the longest waiting first
	silent *list.List // of arrival of those that have said nothing, the oldest first
	gone   int64      // how many gave way
	closed bool
}

// arrival is a connection that has said nothing since it came.
type arrival struct {
	conn net.Conn
	at   time.Time
}

// patienceWithSilence is how long a connection may say nothing when its place is needed. A client
// that means to ask sends at once: this is several round trips, and of TLS as well.
const patienceWithSilence = time.Second

// bound makes a listener that has at most limit connections at a time.
func bound(l net.Listener, name string, limit int) *connections {
	c := &connections{
		Listener: l, name: name, limit: max(limit, 1), patience: patienceWithSilence,
		open: make(map[net.Conn]*list.Element), idle: list.New(), silent: list.New(),
	}
	c.freed = sync.NewCond(&c.mu)
	return c
}

// Accept implements net.Listener. It returns when there is a place for the connection.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !c.enter(conn) {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close implements net.Listener.
func (c *connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.freed.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// enter gives a connection a place, and reports false when the listener was closed before there was
// one.
func (c *connections) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open) >= c.limit && !c.closed && !c.evict(time.Now()) {
		c.wait()
	}
	if c.closed {
		return false
	}
	c.open[conn] = c.silent.PushBack(arrival{conn, time.Now()})
	return true
}

// wait waits until something has changed, or the oldest connection that says nothing has done so
// for long enough.
func (c *connections) wait() {
	if first := c.silent.Front(); first != nil {
		at := first.Value.(arrival).at //nolint:errcheck,forcetypeassert // what the list holds
		timer := time.AfterFunc(time.Until(at.Add(c.patience)), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.freed.Broadcast()
		})
		defer timer.Stop()
	}
	c.freed.Wait()
}

// evict closes a connection that nobody needs, and reports false when there is none. The client may
// be about to use it: clients ask again on another one when an idle one was closed (RFC 9112,
// section 9.3.1).
func (c *connections) evict(now time.Time) bool {
	var victim net.Conn
	if e := c.idle.Front(); e != nil {
		victim = c.idle.Remove(e).(net.Conn) //nolint:errcheck,forcetypeassert // as it was put in
	} else if e := c.silent.Front(); e != nil {
		a := e.Value.(arrival) //nolint:errcheck,forcetypeassert // what the list holds
		if now.Sub(a.at) < c.patience {
			return false
		}
		victim = a.conn
		c.silent.Remove(e)
	}
	if victim == nil {
		return false
	}
	delete(c.open, victim)
	c.gone++
	_ = victim.Close()
	return true
}

// watch has a server tell of its connections. Call it before the server serves.
func (c *connections) watch(s *http.Server) {
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if t, ok := conn.(*tls.Conn); ok {
			conn = t.NetConn()
		}
		c.told(conn, state)
	}
}

// told takes in the state of a connection. One that gave way is not known any more.
func (c *connections) told(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.open[conn]
	if !known || state == http.StateNew {
		return
	}
	if at != nil {
		c.idle.Remove(at)
		c.silent.Remove(at)
	}
	switch state {
	case http.StateActive:
		c.open[conn] = nil
	case http.StateIdle:
		c.open[conn] = c.idle.PushBack(conn)
		c.freed.Broadcast()
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		c.freed.Broadcast()
	case http.StateNew: // told by Accept
	}
}

// status is what the metrics say of the connections.
func (c *connections) status() telemetry.ConnectionStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return telemetry.ConnectionStatus{
		Listener: c.name, Limit: c.limit, Idle: c.idle.Len(), New: c.silent.Len(),
		Active: len(c.open) - c.idle.Len() - c.silent.Len(), Evicted: c.gone,
	}
}

// The files that a process has open beside those of the main listener: its libraries, logs, Redis,
// what it watches, the admin listener, and a request's upstream connection beside the client's.
const (
	otherFiles       = 96
	filesOfARequest  = 2
	adminConnections = 32
	mostConnections  = 1 << 16
	fewConnections   = 8
)

// defaultConnections is how many clients may be connected where the configuration says nothing, for
// a process that may have so many files open; 0 stands for a limit that is not known.
func defaultConnections(files uint64) int {
	if files == 0 {
		return mostConnections
	}
	if files <= otherFiles {
		return fewConnections
	}
	return int(min(max((files-otherFiles)/filesOfARequest, fewConnections), mostConnections))
}
