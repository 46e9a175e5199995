package hostile

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"signalbox/internal/testkit"
)

// maxUnread is the number of bytes that may be pending on a connection before its reader blocks the
// peer.
const maxUnread = 256 << 10

// conn is a connection whose peer is watched at all times: a separate goroutine reads, so that a
// disconnect is recorded even while a mode is silent.
type conn struct {
	net.Conn
	id  int
	log *journal

	mu     sync.Mutex // guards the fields below
	cond   *sync.Cond
	buf    []byte
	err    error // of the last read
	req    int   // in progress, or the last one
	closed bool
	gone   chan struct{} // closed when the peer has gone
}

func newConn(c net.Conn, id int, log *journal) *conn {
	out := &conn{Conn: c, id: id, log: log, gone: make(chan struct{})}
	out.cond = sync.NewCond(&out.mu)
	return out
}

// pump reads until the connection ends.
func (c *conn) pump() {
	piece := make([]byte, 64<<10)
	for {
		n, err := c.Conn.Read(piece)
		c.mu.Lock()
		c.buf = append(c.buf, piece[:n]...)
		req, ours := c.req, c.closed
		c.err = err
		c.cond.Broadcast()
		for err == nil && len(c.buf) > maxUnread && !c.closed {
			c.cond.Wait()
		}
		c.mu.Unlock()
		if err != nil {
			if !ours {
				c.log.add(Event{Conn: c.id, Req: req, Kind: PeerGone, Info: reason(err)})
			}
			close(c.gone)
			return
		}
	}
}

func reason(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, syscall.ECONNRESET):
		return "ECONNRESET"
	}
	return err.Error()
}

// Read returns data that the pump has read.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.buf) == 0 && c.err == nil {
		c.cond.Wait()
	}
	if len(c.buf) == 0 {
		return 0, c.err
	}
	n := copy(b, c.buf)
	c.buf = c.buf[:copy(c.buf, c.buf[n:])]
	c.cond.Broadcast()
	return n, nil
}

// belongs records which request the connection serves.
func (c *conn) belongs(req int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.req = req
}

// Close ends the connection normally.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.cond.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}

// reset ends the connection with RST.
func (c *conn) reset() {
	testkit.Linger(c.Conn)
	_ = c.Close()
}

// passes waits for d, unless one of the channels is closed first, and reports whether the time
// passed.
func passes(d time.Duration, gone, stop <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-gone:
	case <-stop:
	}
	return false
}
