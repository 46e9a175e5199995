package hostile

import (
	"strings"
	"time"

	"signalbox/internal/testkit"
)

// exchange is a request and its response in progress.
type exchange struct {
	*Server
	mode

	c    *conn
	req  *request
	id   int // of the request
	nth  int // of the connection
	sent int64
	told time.Time // when bytes were last recorded
	err  error     // of the first failed write
}

// run plays the mode.
func (x *exchange) run() (keep bool) {
	keep = x.play(x)
	if x.sent > 0 {
		x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Sent, N: x.sent})
	}
	keep = keep && x.err == nil
	served := Event{Conn: x.c.id, Req: x.id, Kind: Served, Info: x.name}
	if keep {
		served.N = 1
	}
	x.log.add(served)
	return keep
}

// write sends bytes unchanged, in one write, and reports whether the connection still accepts data.
func (x *exchange) write(s string) bool {
	if x.err != nil {
		return false
	}
	n, err := x.c.Conn.Write([]byte(s))
	if x.sent == 0 && n > 0 {
		x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: FirstByte})
	}
	x.sent += int64(n)
	if time.Since(x.told) >= 100*time.Millisecond {
		x.told = time.Now()
		x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Sent, N: x.sent})
	}
	if err != nil {
		x.err = err
		x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: WriteErr, Info: reason(err)})
	}
	return err == nil
}

// pause waits between two pieces; false if the peer has gone.
func (x *exchange) pause(d time.Duration) bool {
	if x.err != nil {
		return false
	}
	if !passes(d, x.c.gone, nil) {
		x.err = errStopped
		return false
	}
	return true
}

func (x *exchange) head() bool { return x.write(StreamHead) }

func (x *exchange) chunk(s string) bool { return x.write(testkit.Chunk(s)) }

// event returns event i of a response.
func (s *Server) event(i int, text string) string {
	at := time.Now()
	if s.opts.Still {
		at = time.Time{}
	}
	return EventOf(i, text, at)
}

// events sends n events with delay d between them.
func (x *exchange) events(n int) bool {
	d := x.wait("d", 0)
	for i := range n {
		if i > 0 && !x.pause(d) || !x.chunk(x.event(i, word(i))) {
			return false
		}
	}
	return true
}

// word returns the text of event i.
func word(i int) string {
	words := strings.Fields("The box beside the line reads every signal and sets the points")
	return words[i%len(words)] + " "
}

// before sends the head and the k events that precede a fault.
func (x *exchange) before() bool { return x.head() && x.events(x.num("k", 2)) }

// finish sends the normal end of a stream.
func (x *exchange) finish() bool { return x.chunk(Finish) && x.chunk(Done) && x.write(End) }

// fin closes the connection normally.
func (*exchange) fin() bool { return false }

func (x *exchange) rst() bool {
	x.c.reset()
	return false
}

// hold stays silent until the peer disconnects, and then ends the connection.
func (x *exchange) hold() bool {
	x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Holding})
	select {
	case <-x.c.gone:
	case <-x.stop:
	}
	return false
}

// json sends a complete response with a body.
func (x *exchange) json(status int, body string, header ...string) bool {
	return x.write(answerHead(status, "application/json", len(body), header...) + body)
}

// ok sends a valid response.
func (x *exchange) ok() bool {
	if !x.req.streams() {
		return x.json(200, Completion)
	}
	return x.head() && x.events(x.num("n", 3)) && x.finish()
}
