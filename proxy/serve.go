package proxy

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"signalbox/proxy/fault"
)

// serve adapts a handler: one state for the whole request, one place where errors become answers,
// and where a panic becomes one.
func (p *Proxy) serve(h func(st *State, w *reply, r *http.Request) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		st := p.acquire()
		defer st.release()
		w := newReply(rw, r)
		w.messages = newDialogue(w.id, r.URL.Path)
		w.patient, w.limiter, w.bytes = time.Duration(st.opts.WriteTimeout), p.limiter, &p.bytes
		defer w.done()
		if p.draining.Load() {
			rw.Header()["Connection"] = []string{"close"} // the next request of the client is for another process
		}
		st.expect(w, r)
		defer p.recovered(w, r)
		err := fault.Stopped(r.Context(), h(st, w, r))
		switch {
		case err == nil:
		case w.status == 0 && !errors.Is(err, fault.ErrClientGone):
			if e := fault.Wire(err, w.id); e.Status >= http.StatusInternalServerError && !isForwarded(r.URL.Path) {
				p.tel.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("id", w.id),
					slog.String("path", r.URL.Path), slog.Int("status", e.Status), slog.String("cause", err.Error()))
			}
			fail(w, err)
		default:
			panic(http.ErrAbortHandler) // the head is gone: what is left is to let the client see a break
		}
	}
}

// recovered turns a panic into an error, or into a broken connection when an answer has begun.
func (p *Proxy) recovered(w *reply, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint // a sentinel that is panicked, not wrapped
		p.tel.Log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("id", w.id), slog.Any("value", v), slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			fail(w, fault.ErrPanicked)
			return
		}
	}
	panic(http.ErrAbortHandler)
}
