package hostile

import (
	"slices"
	"sync"
	"time"
)

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	Accept    Kind = "accept"          // of a connection
	Received  Kind = "request"         // head and body are read; Info is method and target, N the length of the body
	HeadRaw   Kind = "head-raw"        // Info is the raw head
	BodyRaw   Kind = "body-raw"        // Info is the body
	FirstByte Kind = "first-byte-sent" // of the response
	Sent      Kind = "sent"            // N is the number of bytes sent so far; every 100 ms of a response and at its end
	WriteErr  Kind = "write-err"       // Info is the error
	PeerGone  Kind = "peer-gone"       // Info is EOF or the error
	Holding   Kind = "holding"         // everything is sent, and the connection waits for the peer
	Served    Kind = "served"          // the mode has ended; Info is its name, N is 1 if the connection is kept
)

// Event is one recorded event.
type Event struct {
	At   time.Time
	Conn int // counted from 1
	Req  int // counted from 1; 0 if it belongs to no request
	Kind Kind
	Info string
	N    int64
}

// journal is the list of events.
type journal struct {
	mu     sync.Mutex // guards the fields below
	events []Event
	more   chan struct{} // closed when an event is added
}

func newJournal() *journal { return &journal{more: make(chan struct{})} }

func (j *journal) add(e Event) {
	e.At = time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
	close(j.more)
	j.more = make(chan struct{})
}

// list returns the events and a channel that is closed when another is added.
func (j *journal) list() ([]Event, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.events), j.more
}

// Events returns the events so far.
func (s *Server) Events() []Event {
	all, _ := s.log.list()
	return all
}

// Wait returns the first event that matches wanted, past or within the limit; false if there is
// none.
func (s *Server) Wait(limit time.Duration, wanted func(*Event) bool) (Event, bool) {
	late := time.After(limit)
	seen := 0
	for {
		all, more := s.log.list()
		for ; seen < len(all); seen++ {
			if wanted(&all[seen]) {
				return all[seen], true
			}
		}
		select {
		case <-more:
		case <-late:
			return Event{}, false
		}
	}
}

// WaitGone returns when the peer of request req disconnected, as detected by a read or a write, and
// whether it did within the limit.
func (s *Server) WaitGone(req int, limit time.Duration) (time.Time, bool) {
	e, ok := s.Wait(limit, func(e *Event) bool { return (e.Kind == PeerGone || e.Kind == WriteErr) && e.Req == req })
	return e.At, ok
}

// Requests returns the number of POST requests read.
func (s *Server) Requests() int { return s.count(Received) }

// Accepts returns the number of accepted connections.
func (s *Server) Accepts() int { return s.count(Accept) }

func (s *Server) count(kind Kind) (n int) {
	for _, e := range s.Events() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// Body returns the body of request req, byte for byte; empty if there was none.
func (s *Server) Body(req int) []byte { return []byte(s.info(req, BodyRaw)) }

// Head returns the head of request req, byte for byte.
func (s *Server) Head(req int) string { return s.info(req, HeadRaw) }

func (s *Server) info(req int, kind Kind) string {
	for _, e := range s.Events() {
		if e.Req == req && e.Kind == kind {
			return e.Info
		}
	}
	return ""
}
