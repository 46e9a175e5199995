package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"signalbox/memory/cache"
	"signalbox/stream/guard"
)

// What became of an answer that might have been kept, as the metric calls it.
const (
	keptKept    = "kept"
	keptDropped = "dropped" // too many were being kept
	keptRefused = "refused" // it is not whole, did not end well, or is too long
	keptFailed  = "failed"  // the store did not take it
)

func keptAs(err error) string {
	switch {
	case err == nil:
		return keptKept
	case errors.Is(err, cache.ErrIncomplete), errors.Is(err, cache.ErrTooLarge):
		return keptRefused
	}
	return keptFailed
}

// tap takes the answer down while it passes, if it may be kept.
func (m *memo) tap(u *upstream) {
	if m == nil || m.tape == nil {
		return
	}
	if u.status != http.StatusOK || !u.plain() || !u.events && !isJSON(u.header) {
		m.tape = nil
		return
	}
	if u.flow != nil {
		u.tape = m.tape
		return
	}
	_, _ = m.tape.Write(u.buf.Bytes())
	u.body = &taped{u.body, m.tape}
}

// taped is a body that is taken down while it is read.
type taped struct {
	io.ReadCloser

	tape *cache.Recorder
}

// Read implements io.Reader.
func (t *taped) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	_, _ = t.tape.Write(b[:n])
	return n, err
}

// worth reports whether the answer to a request may be given to others: it came from the model that the rules chose, nothing
// was missing when they did, and the guard found nothing in it.
func (o *outcome) worth(status int, err error) bool {
	m := o.memo
	return m != nil && m.tape != nil && err == nil && status == http.StatusOK && o.vault == nil && o.model != nil && o.model == o.wanted &&
		o.Failed == 0 && o.passed() && m.taught == o.state.caching.answers.taught.Load()
}

// passed reports whether the guard, if there is one, has nothing against the answer. One that only observes may still be at it
// when the answer has ended; whoever gets the answer has it observed again.
func (o *outcome) passed() bool {
	g := &o.guarded
	if o.guarding == nil {
		return true
	}
	return g.Failed == 0 && !g.Cut && (g.Mode == guard.Observe || g.Shed == 0 && g.Pending == 0)
}

// storedHeaders are the headers of an answer that are given again with it.
func storedHeaders() [3]string {
	return [...]string{"X-Signalbox-Domain", "X-Signalbox-Confidence", "X-Signalbox-Reasoning"}
}

// keep keeps the answer to a request that has ended, off the client's path.
func (p *Proxy) keep(ctx context.Context, w *reply, o *outcome, err error) {
	if !o.worth(w.status, err) {
		return
	}
	c, id, tape := o.state.caching, o.memo.id, o.memo.tape
	model, route, kind := o.model.Name, o.Route, w.Header().Get("Content-Type")
	partition, vector := c.partition(model, o.Action), o.vector()
	if o.caches() != cacheSemantic {
		vector = nil
	}
	id.Question = strings.Clone(id.Question)
	var list []cache.Header
	for _, name := range storedHeaders() {
		if value := w.Header().Get(name); value != "" {
			list = append(list, cache.Header{Name: name, Value: value})
		}
	}
	c.keep(ctx, func(ctx context.Context) error {
		a, err := tape.Finish(model, route, kind)
		if err != nil {
			return err
		}
		a.Headers = list
		return c.cache.Keep(ctx, &id, partition, vector, a)
	}, p.tel.Metrics.CacheKept)
}
