package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"signalbox/memory/cache"
	"signalbox/proxy/budget"
	"signalbox/proxy/upstream"
	"signalbox/stream/guard"
	"signalbox/stream/response"
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
	case errors.Is(err, response.ErrIncomplete), errors.Is(err, cache.ErrTooLarge):
		return keptRefused
	}
	return keptFailed
}

// tape is an answer that is taken down while it passes.
type tape struct {
	*cache.Recorder

	ending response.Ending // of a stream
}

// Put implements response.Sink.
func (t *tape) Put(c *response.Chunk) {
	t.ending.Put(c)
	_, _ = t.Write(c.Raw) // it never fails
}

// finish returns the answer, if it is whole and ended well.
func (t *tape) finish(model, route, contentType string) (*cache.Answer, error) {
	a, err := t.Finish(model, route, contentType)
	switch {
	case err != nil:
		return nil, err
	case a.Streamed():
		return a, t.ending.Err()
	}
	return a, response.CheckBody(a.Data)
}

// Mark implements upstream.Tap.
func (t *tape) Mark(time.Time) { t.Recorder.Mark() }

// tap records the response while it passes, if it may be stored.
func (m *memo) tap(u *upstream.Response) {
	switch {
	case m == nil || m.tape == nil:
	case u.Status != http.StatusOK || !u.Plain() || !u.Events && !u.JSON():
		m.tape = nil
	case u.Stream != nil:
		u.Tap(m.tape)
	default:
		u.Tee(m.tape)
	}
}

// worth reports whether the answer to a request may be given to others: it came from the model that
// the rules chose, nothing was missing when they did, and the guard found nothing in it.
func (o *exchange) worth(status int, err error) bool {
	m := o.memo
	return m != nil && m.tape != nil && err == nil && status == http.StatusOK && o.vault == nil && o.model != nil && o.model == o.wanted &&
		o.Failed == 0 && o.inArm != armCanary && o.thrift == (budget.Thrift{}) && o.passed() && o.escalation.storable() && m.taught == o.state.caching.answers.taught.Load()
}

// passed reports whether the guard, if there is one, has nothing against the answer. One that only
// observes may still be at it when the answer has ended; whoever gets the answer has it observed
// again.
func (o *exchange) passed() bool {
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

// cacheResponse keeps the answer to a request that has ended, off the client's path.
func (p *Proxy) cacheResponse(ctx context.Context, w *reply, o *exchange, err error) {
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
	c.store(ctx, func(ctx context.Context) error {
		a, err := tape.finish(model, route, kind)
		if err != nil {
			return err
		}
		a.Headers = list
		return c.cache.Keep(ctx, &id, partition, vector, a)
	}, p.tel.Metrics.CacheKept)
}
