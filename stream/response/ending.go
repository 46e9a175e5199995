package response

import (
	"errors"
	"fmt"

	"signalbox/stream/sse"
)

// ErrIncomplete is the error for an answer that must not be reused: it is empty, broke off, was
// ended by a filter or a length limit, or is an error.
var ErrIncomplete = errors.New("no complete answer")

// Ending watches how an answer ends. The zero value is ready for one answer.
type Ending struct {
	finished, done bool
	err            error
}

// Put implements Sink: it records a chunk of a stream.
func (x *Ending) Put(c *Chunk) {
	switch {
	case x.err != nil:
	// Some servers also send it after the last event of a response.
	case sse.IsDone(c.Data):
		x.done = true
	case !c.IsMessage():
	case x.done:
		x.err = fmt.Errorf("%w: events behind the end", ErrIncomplete)
	default:
		e := c.Content()
		x.err = e.fault()
		x.finished = x.finished || len(e.Finishes) > 0
		x.done = x.done || string(e.Type) == typeCompleted
	}
}

// Err returns nil after a stream that is complete and ended normally, otherwise an error that wraps
// ErrIncomplete.
func (x *Ending) Err() error {
	if x.err == nil && (!x.finished || !x.done) {
		return fmt.Errorf("%w: the stream broke off", ErrIncomplete)
	}
	return x.err
}

// CheckBody returns nil for a body that is complete and ended normally, otherwise an error that
// wraps ErrIncomplete.
func CheckBody(body []byte) error {
	e := new(Reader).ReadBody(body)
	switch err := e.fault(); {
	case err != nil:
		return err
	case len(e.Finishes) < len(e.layout.choices):
		return fmt.Errorf("%w: a choice without a reason to end", ErrIncomplete)
	}
	return nil
}

// fault returns what is wrong with an answer that has such an event, or is such a body.
func (e *Event) fault() error {
	switch string(e.Type) {
	case "error", typeFailed, typeIncomplete, "response.cancelled":
		return fmt.Errorf("%w: %s", ErrIncomplete, e.Type)
	}
	switch {
	case e.Failed:
		return fmt.Errorf("%w: an error", ErrIncomplete)
	case e.Shape == Opaque && !e.Foreign():
		return fmt.Errorf("%w: %s", ErrIncomplete, e.Why)
	}
	for i := range e.Finishes {
		switch why := string(e.Finishes[i].Reason); why {
		case FinishStop, FinishTools, FinishFunction:
		default:
			if e.Shape != Response || why != "completed" && string(e.Type) != typeCompleted {
				return fmt.Errorf("%w: ended by %q", ErrIncomplete, why)
			}
		}
	}
	return nil
}

// Broken reports whether the answer stopped in the middle: at its token limit, or by a filter.
func (f *Finish) Broken() bool {
	switch string(f.Reason) {
	case FinishLength, FinishFilter, "max_output_tokens", "max_tokens", "incomplete":
		return true
	}
	return false
}

// Begins reports whether the event begins an output item of the Responses API, or a part of one.
func (e *Event) Begins() bool {
	return string(e.Type) == typeItemAdded || string(e.Type) == typePartAdded
}

// ItemEnd reports whether the event ends an output item of the Responses API and has its status.
// whole is false if the item stopped in the middle.
func (e *Event) ItemEnd() (ended, whole bool) {
	if string(e.Type) != typeItemDone || !e.layout.item.Present() {
		return false, false
	}
	status := memberIn(e.data, e.layout.item, "status")
	if !status.Present() {
		return false, false
	}
	return true, string(e.data[status.Start:status.End]) != `"incomplete"`
}
