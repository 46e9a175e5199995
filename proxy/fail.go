package proxy

import (
	"cmp"
	"net/http"
	"strconv"

	"signalbox/internal/anthropic"
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

// fail answers with an error.
func (*dialogue) fail(w *reply, e *openai.Error) {
	body := anthropic.AppendError(nil, e, w.id)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(cmp.Or(e.Status, http.StatusInternalServerError))
	_, _ = w.Write(body)
}
