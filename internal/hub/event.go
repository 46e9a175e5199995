package hub

import "time"

// EventKind says what an event tells.
type EventKind int

// The kinds of events.
const (
	Waiting  EventKind = iota + 1 // another pull holds the model's folder
	Planned                       // Commit, Files and Bytes are what will be fetched, once
	Received                      // Bytes arrived for Path; negative when a part starts anew
	Resumed                       // Bytes of Path were there from an earlier pull
	Retrying                      // Err happened; the next attempt is in Wait
	Finished                      // Path is complete and verified
	Kept                          // Path was there already and matches
)

// Event is one step of a pull. A callback gets them one at a time.
type Event struct {
	Kind   EventKind
	Path   string // the file, or what is being asked
	Commit string
	Files  int
	Bytes  int64
	Err    error
	Wait   time.Duration
}

// noteRetry returns the callback of retry that reports waits.
func noteRetry(observe func(Event), name string) func(error, time.Duration) {
	return func(err error, wait time.Duration) {
		observe(Event{Kind: Retrying, Path: name, Err: err, Wait: wait})
	}
}
