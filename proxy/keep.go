package proxy

import (
	"context"
	"net/http"
	"strings"

	"signalbox/memory/cache"
	"signalbox/proxy/budget"
	"signalbox/stream/guard"
)

// cacheable reports whether the answer to a request may be given to others: it came from the model that
// the rules chose, nothing was missing when they did, and the guard found nothing in it.
func (o *exchange) cacheable(status int, err error) bool {
	m := o.memo
	return m != nil && m.recording != nil && err == nil && status == http.StatusOK && o.vault == nil && o.model != nil && o.model == o.wanted &&
		o.Failed == 0 && o.inArm != armCanary && o.thrift == (budget.Thrift{}) && o.passedGuard() && o.escalation.storable() && m.taught == o.state.caching.answers.taught.Load()
}

// passedGuard reports whether the guard, if there is one, has nothing against the answer. One that only
// observes may still be at it when the answer has ended; whoever gets the answer has it observed
// again.
func (o *exchange) passedGuard() bool {
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
	if !o.cacheable(w.status, err) {
		return
	}
	c, id, tape := o.state.caching, o.memo.id, o.memo.recording
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
