package hub

import "time"

// EventKind is the kind of an event.
type EventKind int

// The kinds of events.
const (
	Waiting  EventKind = iota + 1 // another pull holds the model's folder
	Planned                       // Commit, Files and Bytes of the download; sent once
	Received                      // Bytes arrived for Path; negative if a part restarts
	Resumed                       // Bytes of Path existed from an earlier pull
	Retrying                      // Err happened; the next attempt follows after Wait
	Finished                      // Path is complete and verified
	Kept                          // Path existed already and matches
)

// Event is one step of a pull. Callbacks receive one event at a time.
type Event struct {
	Kind   EventKind
	Path   string // the file, or the object of the request
	Commit string
	Files  int
	Bytes  int64
	Err    error
	Wait   time.Duration
}

// noteRetry returns the callback of retry that reports waits as events.
func noteRetry(observe func(Event), name string) func(error, time.Duration) {
	return func(err error, wait time.Duration) {
		observe(Event{Kind: Retrying, Path: name, Err: err, Wait: wait})
	}
}
