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

// connections limits the connections of one listener. If a new connection exceeds the limit, the
// one that has been idle longest is closed, or else one that has sent nothing for patience. If all
// are active, the new one waits, and those behind it wait in the queue of the operating system.
//
// netutil.LimitListener limits them too, but is unaware of their state, and its connections cannot
// be closed in one direction only, which the HTTP server does so that an early response is read.
//
// It is a net.Listener that the server must notify of connection states; see watch. It is safe for
// concurrent use, and starts no goroutine.
type connections struct {
	net.Listener

	name     string
	limit    int           // at least 1
	patience time.Duration // for connections that send nothing

	mu     sync.Mutex // guards the fields below; no other lock is taken under it
	freed  *sync.Cond // of mu: a slot may be free, or the listener is closed
	open   map[net.Conn]*list.Element
	idle   *list.List // of connections that wait for their next request, the longest waiting first
	silent *list.List // of arrivals that have sent nothing, the oldest first
	gone   int64      // number of evicted connections
	closed bool
}

// arrival is a connection that has sent nothing yet.
type arrival struct {
	conn net.Conn
	at   time.Time
}

// patienceWithSilence is how long a connection may send nothing when its slot is needed. A client
// with a request sends it immediately: this is several round trips, also with TLS.
const patienceWithSilence = time.Second

// bound returns a listener with at most limit concurrent connections.
func bound(l net.Listener, name string, limit int) *connections {
	c := &connections{
		Listener: l, name: name, limit: max(limit, 1), patience: patienceWithSilence,
		open: make(map[net.Conn]*list.Element), idle: list.New(), silent: list.New(),
	}
	c.freed = sync.NewCond(&c.mu)
	return c
}

// Accept implements net.Listener. It returns when there is a slot for the connection.
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

// enter gives a connection a slot, and returns false if the listener was closed first.
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

// wait waits until something has changed, or the oldest silent connection has been silent for long
// enough.
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

// evict closes an unneeded connection, and returns false if there is none. The client may be about
// to use it: clients retry on another one if an idle connection was closed (RFC 9112, section
// 9.3.1).
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

// watch makes a server report the states of its connections. Call it before the server serves.
func (c *connections) watch(s *http.Server) {
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if t, ok := conn.(*tls.Conn); ok {
			conn = t.NetConn()
		}
		c.told(conn, state)
	}
}

// told records the state of a connection. Evicted connections are unknown.
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
	case http.StateNew: // recorded by Accept
	}
}

// status returns the connections for the metrics.
func (c *connections) status() telemetry.ConnectionStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return telemetry.ConnectionStatus{
		Listener: c.name, Limit: c.limit, Idle: c.idle.Len(), New: c.silent.Len(),
		Active: len(c.open) - c.idle.Len() - c.silent.Len(), Evicted: c.gone,
	}
}

// The files that a process opens in addition to those of the main listener: its libraries, logs,
// Redis, watched files, the admin listener, and the upstream connection of each request.
const (
	otherFiles       = 96
	filesOfARequest  = 2
	adminConnections = 32
	mostConnections  = 1 << 16
	fewConnections   = 8
)

// defaultConnections is the default limit of client connections for a process that may open this
// many files; 0 means an unknown limit.
func defaultConnections(files uint64) int {
	if files == 0 {
		return mostConnections
	}
	if files <= otherFiles {
		return fewConnections
	}
	return int(min(max((files-otherFiles)/filesOfARequest, fewConnections), mostConnections))
}
