package upstream

import (
	"io"
	"sync"

	"signalbox/stream/response"
)

// WindowSize is how much of a response is held at a time, in bytes.
const WindowSize = 32 << 10

// window holds the part of a response that was read and not passed on. takeWindow makes one.
type window struct {
	b       [WindowSize]byte
	n       int                     // bytes in use
	tail    [response.TailSize]byte // the end of what was passed on
	tailLen int
}

var windows = sync.Pool{New: func() any { return new(window) }} //nolint:gochecknoglobals // buffers, no state

// takeWindow returns an empty window, which release gives back.
func takeWindow() *window {
	w := windows.Get().(*window) //nolint:errcheck,forcetypeassert // only windows are in it
	w.n, w.tailLen = 0, 0
	return w
}

// release gives the window back. Neither it nor what bytes returned may be used afterwards.
func (w *window) release() { windows.Put(w) }

// read adds what r has, at least one byte unless it fails or the window is full. It returns r's
// error as it is; io.EOF says that all of the body is in the window or was passed on.
func (w *window) read(r io.Reader) error {
	n, err := r.Read(w.b[w.n:])
	w.n += n
	return err
}

// bytes is what the window holds. It is valid until the next call of another method.
func (w *window) bytes() []byte { return w.b[:w.n] }

// full reports whether nothing more can be read before something was dropped.
func (w *window) full() bool { return w.n == WindowSize }

// clear empties the window.
func (w *window) clear() { w.n = 0 }

// pass empties the window, and keeps the end of what it held for last.
func (w *window) pass() {
	w.tailLen = copy(w.tail[:], w.b[max(0, w.n-response.TailSize):w.n])
	w.n = 0
}

// last is the end of what was passed on last.
func (w *window) last() []byte { return w.tail[:w.tailLen] }
