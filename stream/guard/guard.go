package guard

import (
	"context"
	"runtime"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Checker checks claims; *check.Checker is one. Both methods must be safe for concurrent use.
type Checker interface {
	// Quick checks a claim without a model, in microseconds. If final is false, a model has to read
	// the claim, and r applies if none can.
	Quick(e *evidence.Evidence, claim check.Claim) (r check.Result, final bool)
	// Check checks claims of one answer and returns one result for each, in order. It returns soon
	// after ctx ends and does not keep the slice.
	Check(ctx context.Context, e *evidence.Evidence, question string, list []check.Claim) []check.Result
}

// Observer receives events for metrics. Its methods are called from many goroutines, even after the
// answer's Copy has returned, and must return at once.
type Observer interface {
	// Claim reports the verdict on a claim and the time since its last byte.
	Claim(v check.Verdict, took time.Duration)
	// Action reports what was done about a claim, or about a part of an answer that cannot be read.
	Action(a Action)
}

// Action is what is done about a claim.
type Action uint8

// The actions.
const (
	Marked     Action = iota // a marker follows the claim, or is placed beside the text
	Replaced                 // the marker replaces the claim
	Cut                      // the answer ended there
	Shed                     // the check was late or the queue was full
	Unreadable               // the answer has a part that cannot be read and is unchecked
)

// String returns the name of the action in metrics.
func (a Action) String() string {
	names := [...]string{Marked: "marked", Replaced: "replaced", Cut: "cut", Shed: "shed", Unreadable: "unreadable"}
	if int(a) >= len(names) {
		return "unknown"
	}
	return names[a]
}

// Options are the limits of a Guard.
type Options struct {
	// Workers is how many checks run in parallel. 0 selects half of the cores, at least one,
	// because the streams need the others.
	Workers int
	// Queue is how many claims of all answers may wait for a check. 0 selects DefaultQueue. A claim
	// that finds the queue full is shed.
	Queue int
	// Observer may be nil.
	Observer Observer
}

// DefaultQueue is the default number of claims that may wait.
const DefaultQueue = 256

// Guard checks answers. It is safe for concurrent use.
type Guard struct {
	checker Checker
	pool    *pool
}

// New returns a Guard and starts its workers. Close must be called.
func New(checker Checker, o Options) *Guard {
	if o.Workers <= 0 {
		o.Workers = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.Observer == nil {
		o.Observer = deaf{}
	}
	return &Guard{checker: checker, pool: newPool(o)}
}

// Close ends the workers and waits for them. Claims that still wait are shed; an answer in progress
// continues without them. A second call does nothing.
func (g *Guard) Close() { g.pool.close() }

// deaf is the Observer used if none is given.
type deaf struct{}

func (deaf) Claim(check.Verdict, time.Duration) {}
func (deaf) Action(Action)                      {}

// Job is what is known of an answer before it arrives.
type Job struct {
	// Evidence is what the answer is checked against. If it is nil or empty and there is no
	// Checker, nothing is checked or changed.
	Evidence *evidence.Evidence
	Question string // of the user; may be empty
	Policy   Policy // must be valid
	// MayAnnotate is false for an answer whose text has a format to keep, such as JSON. Annotate
	// then marks beside the text, and Hold ends the answer at a failed claim instead of replacing
	// it.
	MayAnnotate bool
	// Formed is the mode of an answer that may be annotated but turns out to be JSON. It has no
	// effect if it is below the policy's mode. In any case such a text is treated as one that must
	// not be annotated.
	Formed Mode
	// Checker checks this answer instead of the guard's own checker, and may do so without
	// evidence; nil selects the guard's own. It also receives unfinished claims.
	Checker Checker
	// Origin returns the name, as ID@VERSION, of the stored context that a source of the evidence
	// comes from, for the summary, or "" if it comes from none. May be nil. It is called from one
	// goroutine.
	Origin func(source int) string
	// Usage returns the usage of a stream of chunks so far. If the guard ends the stream, it
	// reports this in a chunk before [DONE], because the server's own report does not arrive. nil
	// reports nothing. It is called from the goroutine of Deliver.
	Usage func() response.Usage
}

// idle reports whether there is nothing to do.
func (j *Job) idle() bool {
	return j.Policy.Mode == Off || j.Checker == nil && (j.Evidence == nil || j.Evidence.Empty())
}

// Source is where a stream comes from.
type Source interface {
	// Read waits for more data. It is called from one goroutine.
	Read()
	// Deliver passes what has arrived, in whole events, to a Sink. It returns nil if there may be
	// more to read, io.EOF for a complete answer, or another error. It is called from another
	// goroutine than Read, after each Read and never concurrently with one.
	Deliver(to response.Sink) error
	// Cancel makes a waiting Read, and later ones, return soon. It is called from another goroutine
	// than Read, at most once, if the rest of the stream is not wanted.
	Cancel()
}

// Sink is where a stream goes to.
type Sink interface {
	response.Sink
	// Flush sends what was put immediately.
	Flush() error
}

// ErrNoEnd is returned by Copy if a stream ended before the answer did, although the Source
// returned io.EOF. With Outcome.State Failed the client has already received an error event from
// the upstream.
var ErrNoEnd = response.ErrNoEnd

// Outcome describes what was found in an answer, and what was done.
type Outcome struct {
	Mode    Mode          // mode that applied: Off without evidence
	Verdict check.Verdict // of the answer, from the claims that have a verdict
	Claims  int           // number of claims, without lines of code
	Failed  int           // of these, claims with a verdict in Policy.ActOn
	Shed    int           // of these, claims without a check in time
	Pending int           // of these, claims decided later, in mode Observe; see Observer
	Cut     bool          // the guard ended the answer
	State   sse.State     // how far the stream came for the client; Done for a body
}

// Copy takes a stream from src to dst until its end, and acts as the job's policy requires. Its
// goroutine has ended when it returns.
//
// Copy returns an error of src or dst unchanged, and that of ctx as context.Cause. Without an error
// the client has a complete answer, or one that was cut properly. src is cancelled if the answer is
// cut, dst fails or ctx ends. dst always ends with a whole event, so that the caller can add an
// error event.
func (g *Guard) Copy(ctx context.Context, src Source, dst Sink, job Job) (Outcome, error) {
	s := newStream(g, job, dst)
	err := s.run(ctx, src)
	return s.outcome(), err
}
