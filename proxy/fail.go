package proxy

import (
	"signalbox/internal/openai"
	"signalbox/proxy/fault"
)

// fail writes the error response. It writes nothing for a client that is gone.
func fail(w *reply, err error) {
	e := fault.Wire(err, w.id)
	if e.Status == fault.StatusClientGone {
		return
	}
	h := w.Header()
	w.lease.Describe(h)
	fault.Describe(h, err)
	if w.messages != nil {
		w.messages.fail(w, e)
		return
	}
	openai.WriteError(w, e)
}
