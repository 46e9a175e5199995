// Package answer reads the bytes of a model's answer while they pass: where its events end, whether it
// came to its end, how long it was and what it used.
//
// It changes nothing and sends nothing; it is neither a parser of JSON nor of server-sent events, but finds
// the few marks that a proxy has to know. Everything in it belongs to one answer and one goroutine, and
// allocates nothing for a chunk.
package answer

import (
	"bytes"
	"io"
	"sync"
)

// WindowSize is how much of an answer is held at a time, in bytes.
const WindowSize = 32 << 10

// Ending is how a stream says that it is complete.
type Ending uint8

const (
	// Done is the event `data: [DONE]`, of chat completions and completions.
	Done Ending = iota
	// LastEvent is response.completed, response.incomplete or response.failed, of the Responses API.
	LastEvent
)

// Window holds the part of an answer that was read and not passed on. Take makes one.
type Window struct {
	b       [WindowSize]byte
	n       int  // bytes in use
	scanned int  // bytes without an event's end
	open    bool // a part of the event at the front has been passed on
	ending  Ending
	last    last           // for LastEvent: what has been passed on
	tail    [tailSize]byte // the end of what was passed on, of a body that is no stream
	tailLen int
}

var windows = sync.Pool{New: func() any { return new(Window) }} //nolint:gochecknoglobals // buffers, no state

// Take returns an empty window, which Release gives back.
func Take() *Window {
	w := windows.Get().(*Window) //nolint:errcheck,forcetypeassert // only windows are in it
	w.n, w.scanned, w.open, w.tailLen, w.ending, w.last = 0, 0, false, 0, Done, last{}
	return w
}

// Release gives the window back. Neither it nor what Bytes returned may be used afterwards.
func (w *Window) Release() { windows.Put(w) }

// Ends says how the stream ends, unless it is Done. To be called before Events.
func (w *Window) Ends(e Ending) { w.ending = e }

// Read adds what r has, at least one byte unless it fails or the window is full. It returns r's error
// as it is; io.EOF says that all of the body is in the window or was passed on.
func (w *Window) Read(r io.Reader) error {
	n, err := r.Read(w.b[w.n:])
	w.n += n
	return err
}

// Bytes is what the window holds. It is valid until the next call of another method.
func (w *Window) Bytes() []byte { return w.b[:w.n] }

// Full reports whether nothing more can be read before something was dropped.
func (w *Window) Full() bool { return w.n == WindowSize }

// Open reports whether a part of an event was passed on whose rest was not.
func (w *Window) Open() bool { return w.open }

// Clear empties the window.
func (w *Window) Clear() { w.n = 0 }

// Pass empties the window of a body that is no stream, and keeps the end of what it held for Tail.
func (w *Window) Pass() {
	w.tailLen = copy(w.tail[:], w.b[max(0, w.n-tailSize):w.n])
	w.n = 0
}

// Tail is the end of what was passed on last.
func (w *Window) Tail() []byte { return w.tail[:w.tailLen] }

// Events returns the length of the whole events at the front, in bytes, and whether the last of them ends the
// stream. ended says that nothing follows what the window holds: a last event without its blank line counts when it is [DONE].
// What it returned has to be dropped before the next call.
func (w *Window) Events(ended bool) (end int, done bool) {
	fresh := !w.open
	end = eventsEnd(w.b[:w.n], max(0, w.scanned-3))
	switch {
	case end > 0:
		w.open = false
	case ended && w.ending == LastEvent:
		return 0, false // clients ignore an event without its blank line
	case ended:
		end = max(0, doneEnd(w.b[:w.n], fresh))
		return end, end > 0
	case w.n == WindowSize:
		end, w.open = w.n, true
	default:
		w.scanned = w.n
		return 0, false
	}
	if at := w.markEnd(end, fresh); at >= 0 {
		return at, true
	}
	return end, false
}

// Drop removes n bytes from the front.
func (w *Window) Drop(n int) {
	copy(w.b[:], w.b[n:w.n])
	w.n -= n
	w.scanned = w.n
}

// markEnd returns the offset behind what ends the stream in the first n bytes, -1 when nothing does. fresh
// tells whether they begin with an event.
func (w *Window) markEnd(n int, fresh bool) int {
	if w.ending == LastEvent {
		return w.last.endIn(w.b[:n], fresh && !w.open)
	}
	return doneEnd(w.b[:n], fresh)
}

// eventsEnd returns the offset behind the last blank line of s that ends at or behind from, 0
// without one. Lines end in LF, CRLF or CR (WHATWG HTML, section 9.2.5).
func eventsEnd(s []byte, from int) int {
	for i := len(s) - 1; i > from; i-- {
		switch {
		case s[i] == '\n' && (s[i-1] == '\n' || i > 1 && s[i-1] == '\r' && s[i-2] == '\n'):
			return i + 1
		case s[i] == '\r' && s[i-1] == '\r':
			return i + 1
		}
		next := bytes.LastIndexByte(s[from:i], '\n')
		if cr := bytes.LastIndexByte(s[from:i], '\r'); cr > next {
			next = cr
		}
		if next < 0 {
			return 0
		}
		i = from + next + 1 // the loop steps onto it
	}
	return 0
}

// doneEnd returns the offset behind the event `data: [DONE]` in s, or -1. atStart tells whether s
// begins with a line. Inside the JSON of other events a line break is escaped, so what follows one is
// a field name.
func doneEnd(s []byte, atStart bool) int { //nolint:revive // a fact about s
	for from := 0; ; {
		i := bytes.Index(s[from:], []byte("[DONE]"))
		if i < 0 {
			return -1
		}
		i += from
		line := bytes.TrimSuffix(s[:i], []byte(" "))
		before, ok := bytes.CutSuffix(line, []byte("data:"))
		if ok && (len(before) == 0 && atStart || len(before) > 0 && (before[len(before)-1] == '\n' || before[len(before)-1] == '\r')) {
			end := i + len("[DONE]")
			for end < len(s) && (s[end] == '\n' || s[end] == '\r') {
				end++
			}
			return end
		}
		from = i + 1
	}
}
