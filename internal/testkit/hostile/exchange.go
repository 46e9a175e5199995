package hostile

import (
	"strings"
	"time"

	"signalbox/internal/testkit"
)

// exchange is a request and the answer on its way.
type exchange struct {
	*Server
	mode

	c    *conn
	req  *request
	id   int // of the request
	nth  int // of the connection
	sent int64
	told time.Time // when bytes were noted last
	err  error     // of the first write that failed
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

// write sends bytes as they are, in one write; it reports whether the connection still takes them.
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

// pause waits between two pieces; false when the other side has gone.
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

// event is event i of an answer.
func (s *Server) event(i int, text string) string {
	at := time.Now()
	if s.opts.Still {
		at = time.Time{}
	}
	return EventOf(i, text, at)
}

// events sends events, d after each other.
func (x *exchange) events(n int) bool {
	d := x.wait("d", 0)
	for i := range n {
		if i > 0 && !x.pause(d) || !x.chunk(x.event(i, word(i))) {
			return false
		}
	}
	return true
}

// word is the text of event i.
func word(i int) string {
	words := strings.Fields("The box beside the line reads every signal and sets the points")
	return words[i%len(words)] + " "
}

// before sends the head and the k events that come before a fault.
func (x *exchange) before() bool { return x.head() && x.events(x.num("k", 2)) }

// finish sends the end of a stream, in order.
func (x *exchange) finish() bool { return x.chunk(Finish) && x.chunk(Done) && x.write(End) }

// fin closes the connection in order.
func (*exchange) fin() bool { return false }

func (x *exchange) rst() bool {
	x.c.reset()
	return false
}

// hold is silent until the other side goes, and then ends the connection.
func (x *exchange) hold() bool {
	x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Holding})
	select {
	case <-x.c.gone:
	case <-x.stop:
	}
	return false
}

// json sends a whole answer with a body.
func (x *exchange) json(status int, body string, header ...string) bool {
	return x.write(answerHead(status, "application/json", len(body), header...) + body)
}

// ok answers well.
func (x *exchange) ok() bool {
	if !x.req.streams() {
		return x.json(200, Completion)
	}
	return x.head() && x.events(x.num("n", 3)) && x.finish()
}
