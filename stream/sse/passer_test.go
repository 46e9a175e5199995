package sse

// passer passes the units of a stream on as a client may get them, up to [DONE].
type passer struct {
	out, buf []byte
	state    State
	closed   bool
}

func (w *passer) pass(e Event) {
	if e.Cut && IsDone(e.Data) {
		e = DoneEvent()
	}
	if w.closed || e.Cut {
		return
	}
	w.state, w.closed = w.state.After(e.Name, e.Data), IsDone(e.Data)
	e, w.buf = e.Mended(w.buf)
	w.out = append(w.out, e.Raw...)
}

func (w *passer) take() []byte {
	out := w.out
	w.out = w.out[:0]
	return out
}
