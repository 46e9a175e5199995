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

// Checker judges claims; *check.Checker is one. Both methods are safe for concurrent use.
type Checker interface {
	// Quick judges without a model, in microseconds. When final is false a model has to read the
	// claim, and the result is what stands if none can.
	Quick(e *evidence.Evidence, claim check.Claim) (r check.Result, final bool)
	// Check judges claims of one answer and returns one result for each, in order. It returns soon
	// after ctx ends and does not keep the slice.
	Check(ctx context.Context, e *evidence.Evidence, question string, list []check.Claim) []check.Result
}

// Observer is told what happens, for metrics. Its methods are called from many goroutines, also
// after the answer's Copy has returned, and must return at once.
type Observer interface {
	// Claim: a claim got its verdict, this long after its last byte.
	Claim(v check.Verdict, took time.Duration)
	// Action: something was done about one, or about a piece of an answer that cannot be read.
	Action(a Action)
}

// Action is what is done about a claim.
type Action uint8

// The actions.
const (
	Marked     Action = iota // a marker follows the claim, or tells of it beside the text
	Replaced                 // the marker stands in its place
	Cut                      // the answer ended there
	Shed                     // its check was late or found the queue full
	Unreadable               // it stands in a piece of the answer that cannot be read, and is unchecked
)

// String is the name of the action in metrics.
func (a Action) String() string {
	names := [...]string{Marked: "marked", Replaced: "replaced", Cut: "cut", Shed: "shed", Unreadable: "unreadable"}
	if int(a) >= len(names) {
		return "unknown"
	}
	return names[a]
}

// Options are the limits of a Guard.
type Options struct {
	// Workers is how many checks run beside each other; 0 is half of the cores, at least one: the
	// streams need the others.
	Workers int
	// Queue is how many claims may wait for a check, of all answers together; 0 is DefaultQueue. A
	// claim that finds it full is shed.
	Queue int
	// Observer may be nil.
	Observer Observer
}

// DefaultQueue is the number of claims that may wait.
const DefaultQueue = 256

// Guard checks answers. It is safe for concurrent use.
type Guard struct {
	checker Checker
	pool    *pool
}

// New returns a Guard and starts its workers. Close has to be called.
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

// Close ends the workers and waits for them. Claims that still wait are shed; an answer that is on
// its way goes on without them. A second call does nothing.
func (g *Guard) Close() { g.pool.close() }

// deaf is the Observer of those who have none.
type deaf struct{}

func (deaf) Claim(check.Verdict, time.Duration) {}
func (deaf) Action(Action)                      {}

// Job is what is known of an answer before it comes.
type Job struct {
	// Evidence: nil or empty, without a Checker: nothing is checked and nothing is touched.
	Evidence *evidence.Evidence
	Question string // of the user; may be empty
	Policy   Policy // valid
	// MayAnnotate is false for an answer whose text has a form to keep, such as JSON: then Annotate
	// marks beside the text, and Hold ends the answer at a failed claim in place of replacing it.
	MayAnnotate bool
	// Formed is the mode of an answer that may be annotated, but whose text turns out to be JSON;
	// nothing below that of the policy. Whatever it is, such a text is treated as one that may not.
	Formed Mode
	// Checker reads this answer in place of the guard's own, and may do so without evidence; nil
	// for that one. It gets claims that are unfinished as well.
	Checker Checker
	// Origin names the stored context, as ID@VERSION, that a source of the evidence comes from, for
	// the summary; empty for one that comes from none. May be nil. It is called from one goroutine.
	Origin func(source int) string
	// Usage is what a stream of chunks has taken so far, told in a chunk before [DONE] where the guard
	// ends it: what the server would tell at the end does not come. nil tells nothing. It is called
	// from the goroutine of Deliver.
	Usage func() response.Usage
}

// idle reports whether there is nothing to do.
func (j *Job) idle() bool {
	return j.Policy.Mode == Off || j.Checker == nil && (j.Evidence == nil || j.Evidence.Empty())
}

// Source is where a stream comes from.
type Source interface {
	// Read waits for more. It is called from one goroutine.
	Read()
	// Deliver puts what has come, whole events. It returns nil when there may be more to read, else
	// why not: io.EOF for an answer that is complete. It is called from another goroutine than
	// Read, behind each Read and never beside one.
	Deliver(to response.Sink) error
	// Cancel makes a Read that waits, and later ones, return soon. It is called from another
	// goroutine than Read, once at most, when the rest of the stream is not wanted.
	Cancel()
}

// Sink is where a stream goes to.
type Sink interface {
	response.Sink
	// Flush sends on at once what was put.
	Flush() error
}

// ErrNoEnd: a stream ended before the answer did. Copy returns it where the Source says io.EOF.
// With Outcome.State Failed the client has got an error event from the upstream already.
var ErrNoEnd = response.ErrNoEnd

// Outcome is what was found out about an answer, and done.
type Outcome struct {
	Mode    Mode          // that applied: Off without evidence
	Verdict check.Verdict // of the answer, from the claims that have a verdict
	Claims  int           // that were looked at; lines of code are none
	Failed  int           // of them with a verdict of Policy.ActOn
	Shed    int           // of them that got no check in time
	Pending int           // of them whose verdict comes later, in mode Observe; the Observer is told
	Cut     bool          // the answer was ended here
	State   sse.State     // how far the stream came for the client; Done for a body
}

// Copy takes a stream from src to dst until its end, and acts as the job's policy says. Its
// goroutine has ended when it returns.
//
// An error of src or dst comes back as it is, that of ctx as context.Cause; without one the client
// has a complete answer, or one that was cut in order. src is cancelled when the answer is cut, dst
// fails or ctx ends. What dst got always ends with a whole event, so the caller can add an error
// event.
func (g *Guard) Copy(ctx context.Context, src Source, dst Sink, job Job) (Outcome, error) {
	s := newStream(g, job, dst)
	err := s.run(ctx, src)
	return s.outcome(), err
}
