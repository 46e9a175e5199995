package record

import (
	"context"
	"net/http"
	"strings"

	"signalbox/memory/cache"
	"signalbox/proxy/budget"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/recall"
	"signalbox/stream/guard"
)

// cacheable reports whether the response to a request may be given to others: it came from the
// model that the rules chose, nothing was missing when they did, and the guard found nothing in it.
func (b *Book) cacheable(o *exchange.Exchange, status int, err error) bool {
	m := o.Lookup
	return m != nil && m.Recording != nil && err == nil && status == http.StatusOK && o.Vault == nil && o.Model != nil && o.Model == o.Wanted &&
		o.Failed == 0 && o.Arm != decide.ArmCanary && o.Saving == (budget.Saving{}) &&
		passedGuard(o) && o.Escalation.Storable() && m.Taught == b.Caching.Answers.Taught.Load()
}

// passedGuard reports whether the guard, if there is one, has nothing against the response. One
// that only observes may still be at it when the response has ended; whoever gets the response has
// it observed again.
func passedGuard(o *exchange.Exchange) bool {
	g := &o.Guarded
	if o.Guarding == nil {
		return true
	}
	return g.Failed == 0 && !g.Cut && (g.Mode == guard.Observe || g.Shed == 0 && g.Pending == 0)
}

// storedHeaders are the headers of a response that are given again with it.
func storedHeaders() [3]string {
	return [...]string{"X-Signalbox-Domain", "X-Signalbox-Confidence", "X-Signalbox-Reasoning"}
}

// keep keeps the response to a request that has ended, off the client's path.
func (r *Recorder) keep(ctx context.Context, b *Book, w *downstream.Writer, o *exchange.Exchange, err error) {
	if !b.cacheable(o, w.Status, err) {
		return
	}
	c, id, tape := b.Caching, o.Lookup.ID, o.Lookup.Recording
	model, route, kind := o.Model.Name, o.Route, w.Header().Get("Content-Type")
	partition, vector := c.Partition(model, o.Action), o.Vector()
	if o.Caches() != recall.ModeSemantic {
		vector = nil
	}
	id.Question = strings.Clone(id.Question)
	var list []cache.Header
	for _, name := range storedHeaders() {
		if value := w.Header().Get(name); value != "" {
			list = append(list, cache.Header{Name: name, Value: value})
		}
	}
	c.Store(ctx, func(ctx context.Context) error {
		a, err := tape.Complete(model, route, kind)
		if err != nil {
			return err
		}
		a.Headers = list
		return c.Cache.Keep(ctx, &id, partition, vector, a)
	}, r.Tel.Metrics.CacheKept)
}
