package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Answer is what an upstream answered. It is immutable once it is kept; whoever reads Data must not change it.
type Answer struct {
	Model       string // the name under which the model is configured
	Route       string // of the decision that led to it
	ContentType string
	Headers     []Header      // of the response that tell how the answer came about; given again with it
	Data        []byte        // the body, or the events of the stream one behind the other
	Pieces      []Piece       // of a stream: where its pieces end; none for a whole body
	Made        time.Time     // when it ended
	Took        time.Duration // from the request to the end
}

// Piece is a run of whole events that came together.
type Piece struct {
	End   int           // offset behind it in Data
	After time.Duration // since the request was sent
}

// Streamed reports whether the answer is a stream.
func (a *Answer) Streamed() bool { return len(a.Pieces) > 0 }

// overhead is about what an Answer takes beside its data and pieces, in bytes.
const overhead = 256

// Size is how much memory the answer takes, in bytes.
func (a *Answer) Size() int {
	n := overhead + len(a.Data) + 16*len(a.Pieces) + len(a.Model) + len(a.Route) + len(a.ContentType)
	for i := range a.Headers {
		n += 32 + len(a.Headers[i].Name) + len(a.Headers[i].Value)
	}
	return n
}

// ErrIncomplete is the error of an answer that is not to be kept: it is empty, broke off, ended by a filter, or is an error.
var ErrIncomplete = errors.New("no complete answer")

// ending is what tells how an answer, or an event of one, ends.
type ending struct {
	Error   json.RawMessage `json:"error"`
	Type    string          `json:"type"`
	Object  string          `json:"object"`
	Status  string          `json:"status"`
	Choices []struct {
		Finish *string `json:"finish_reason"`
	} `json:"choices"`
	Response *struct {
		Status string `json:"status"`
	} `json:"response"`
}

// Check returns nil for an answer that is whole and ended well, else an error that wraps ErrIncomplete.
func (a *Answer) Check() error {
	if len(a.Data) == 0 {
		return fmt.Errorf("%w: empty", ErrIncomplete)
	}
	if !a.Streamed() {
		return a.checkBody()
	}
	return a.checkStream()
}

func (a *Answer) checkBody() error {
	var e ending
	if err := json.Unmarshal(a.Data, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	if err := e.fault(); err != nil {
		return err
	}
	if e.Object == "response" && e.Status != "completed" {
		return fmt.Errorf("%w: status %q", ErrIncomplete, e.Status)
	}
	for _, c := range e.Choices {
		if c.Finish == nil {
			return fmt.Errorf("%w: a choice without a reason to end", ErrIncomplete)
		}
	}
	return nil
}

func (a *Answer) checkStream() error {
	finished, done := 0, false
	for data := range events(a.Data) {
		if string(data) == "[DONE]" { // some servers send it behind the last event of a response as well
			done = true
			continue
		}
		if done {
			return fmt.Errorf("%w: events behind the end", ErrIncomplete)
		}
		var e ending
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: event: %w", ErrIncomplete, err)
		}
		if err := e.fault(); err != nil {
			return err
		}
		if e.Type == "response.completed" {
			finished, done = 1, true
		}
		for _, c := range e.Choices {
			if c.Finish != nil {
				finished++
			}
		}
	}
	if finished == 0 || !done || a.Pieces[len(a.Pieces)-1].End != len(a.Data) {
		return fmt.Errorf("%w: the stream broke off", ErrIncomplete)
	}
	return nil
}

// fault tells what is wrong with an answer that ends so.
func (e *ending) fault() error {
	if len(e.Error) > 0 && !bytes.Equal(e.Error, []byte("null")) {
		return fmt.Errorf("%w: an error", ErrIncomplete)
	}
	switch e.Type {
	case "error", "response.failed", "response.incomplete", "response.cancelled":
		return fmt.Errorf("%w: %s", ErrIncomplete, e.Type)
	}
	for _, c := range e.Choices {
		if c.Finish == nil {
			continue
		}
		switch *c.Finish {
		case "stop", "length", "tool_calls", "function_call":
		default:
			return fmt.Errorf("%w: ended by %q", ErrIncomplete, *c.Finish)
		}
	}
	return nil
}
