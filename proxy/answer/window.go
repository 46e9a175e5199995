// Package answer reads the bytes of a model's answer while they pass: where its events end, whether it
// came to its end, how long it was and what it used.
//
// It changes nothing and sends nothing; it is neither a parser of JSON nor of server-sent events, but finds
// the few marks that a proxy has to know. Everything in it belongs to one answer and one goroutine, and
// allocates nothing for a chunk.
package answer

import (
	"io"
	"sync"
)

// WindowSize is how much of an answer is held at a time, in bytes.
const WindowSize = 32 << 10

// Window holds the part of an answer that was read and not passed on. Take makes one.
type Window struct {
	b       [WindowSize]byte
	n       int            // bytes in use
	tail    [tailSize]byte // the end of what was passed on
	tailLen int
}

var windows = sync.Pool{New: func() any { return new(Window) }} //nolint:gochecknoglobals // buffers, no state

// Take returns an empty window, which Release gives back.
func Take() *Window {
	w := windows.Get().(*Window) //nolint:errcheck,forcetypeassert // only windows are in it
	w.n, w.tailLen = 0, 0
	return w
}

// Release gives the window back. Neither it nor what Bytes returned may be used afterwards.
func (w *Window) Release() { windows.Put(w) }

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

// Clear empties the window.
func (w *Window) Clear() { w.n = 0 }

// Pass empties the window, and keeps the end of what it held for Tail.
func (w *Window) Pass() {
	w.tailLen = copy(w.tail[:], w.b[max(0, w.n-tailSize):w.n])
	w.n = 0
}

// Tail is the end of what was passed on last.
func (w *Window) Tail() []byte { return w.tail[:w.tailLen] }
