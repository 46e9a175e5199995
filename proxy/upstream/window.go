package upstream

import (
	"io"
	"sync"

	"signalbox/stream/response"
)

// WindowSize is how much of a response is buffered at a time, in bytes.
const WindowSize = 32 << 10

// window buffers the part of a response that was read and not passed on. takeWindow makes one.
type window struct {
	b       [WindowSize]byte
	n       int                     // bytes in use
	tail    [response.TailSize]byte // the end of what was passed on
	tailLen int
}

var windows = sync.Pool{New: func() any { return new(window) }} //nolint:gochecknoglobals // buffers, no state

// takeWindow returns an empty window; release returns it to the pool.
func takeWindow() *window {
	w := windows.Get().(*window) //nolint:errcheck,forcetypeassert // only windows are in it
	w.n, w.tailLen = 0, 0
	return w
}

// release returns the window to the pool. Neither it nor slices from bytes may be used afterwards.
func (w *window) release() { windows.Put(w) }

// read adds what r has, at least one byte unless it fails or the window is full. It returns r's
// error unchanged; io.EOF means that all of the body is in the window or was passed on.
func (w *window) read(r io.Reader) error {
	n, err := r.Read(w.b[w.n:])
	w.n += n
	return err
}

// bytes returns the contents of the window. They are valid until the next call of another method.
func (w *window) bytes() []byte { return w.b[:w.n] }

// full reports whether something must be dropped before more can be read.
func (w *window) full() bool { return w.n == WindowSize }

// clear empties the window.
func (w *window) clear() { w.n = 0 }

// pass empties the window, and keeps the end of its contents for last.
func (w *window) pass() {
	w.tailLen = copy(w.tail[:], w.b[max(0, w.n-response.TailSize):w.n])
	w.n = 0
}

// last returns the end of what was passed on most recently.
func (w *window) last() []byte { return w.tail[:w.tailLen] }
