package recall

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"signalbox/internal/signal"
	"signalbox/memory/cache"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// The results of a cache lookup, as used in headers, metrics and logs.
const (
	Exact      = "exact"
	Semantic   = "semantic"
	Miss       = "miss"
	Off        = "off"        // turned off by its route
	Ineligible = "ineligible" // responses to such requests are not cached
	Bypass     = "bypass"     // the client asked for a fresh response
	Error      = "error"      // a miss because the store did not respond
)

// Lookup is what the cache knows about one request. It belongs to the request's goroutine. nil
// means that caching is off everywhere.
type Lookup struct {
	ID        cache.Identity
	Taught    uint64        // when the id was computed
	Fresh     bool          // the client wants no cached response
	Forgetful bool          // the client wants its response not to be stored
	Result    string        // empty until a forwarding route is known
	Failed    bool          // the store did not respond
	Waited    time.Duration // time spent on responses stored by other processes

	Answer     *cache.Answer // the response returned; nil if there is none
	Similarity float64       // of its question, for a semantic hit
	Recording  *Tape
}

// CacheControl parses the client's cache directives (RFC 9111, section 5.2.1).
func CacheControl(h http.Header) (fresh, forgetful bool) {
	for _, line := range h["Cache-Control"] {
		for word := range strings.SplitSeq(line, ",") {
			switch strings.ToLower(strings.TrimSpace(word)) {
			case "no-cache", "max-age=0":
				fresh = true
			case "no-store":
				fresh, forgetful = true, true
			}
		}
	}
	return fresh, forgetful
}

// Sources returns the signals to compute when rules need the signals in need. The embedding
// replaces what the cache computes from it. It is also added to neural, the signals in need that
// come from models, if the question may be looked up after the decision, so that it needs no pass
// of its own.
func (m *Lookup) Sources(need, neural signal.Mask, set *signal.Set) signal.Mask {
	looks := m != nil && m.ID.Similar == cache.Eligible && !m.Forgetful
	if looks && neural != 0 {
		need |= signal.MaskOf(signal.Embedding) &^ set.Have()
	}
	return need &^ signal.MaskOf(signal.Cache)
}

// Recorded reports whether the response is to be recorded.
func (m *Lookup) Recorded() bool { return m != nil && m.Recording != nil }

// Given returns the cached response; nil if there is none.
func (m *Lookup) Given() *cache.Answer {
	if m == nil {
		return nil
	}
	return m.Answer
}

// Found returns the cache result of the request; empty if there was no lookup.
func (m *Lookup) Found() string {
	if m == nil {
		return ""
	}
	return m.Result
}

// Within limits further lookups for one request. Lookups at other processes share the time allowed
// for one, so that an outage delays a request by that time and not a multiple of it.
func (m *Lookup) Within(ctx context.Context, c *Cache) (_ context.Context, done func()) {
	shared := c.Answers.shared
	if shared == nil {
		return ctx, func() {}
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, shared.Budget()-m.Waited)
	return ctx, func() {
		cancel()
		m.Waited += time.Since(begun)
	}
}

// The results of storing a response, as used in the metric.
const (
	StoreKept    = "kept"
	StoreDropped = "dropped" // too many were being stored
	storeRefused = "refused" // incomplete, failed or too long
	storeFailed  = "failed"  // the store refused it
)

func storeResult(err error) string {
	switch {
	case err == nil:
		return StoreKept
	case errors.Is(err, response.ErrIncomplete), errors.Is(err, cache.ErrTooLarge):
		return storeRefused
	}
	return storeFailed
}

// Tape is a recording of a response while it is relayed.
type Tape struct {
	*cache.Recorder

	ending response.Ending // of a stream
}

// Put implements response.Sink.
func (t *Tape) Put(c *response.Chunk) {
	t.ending.Put(c)
	_, _ = t.Write(c.Raw) // never fails
}

// Complete returns the response if it is complete and successful.
func (t *Tape) Complete(model, route, contentType string) (*cache.Answer, error) {
	a, err := t.Recorder.Finish(model, route, contentType)
	switch {
	case err != nil:
		return nil, err
	case a.Streamed():
		return a, t.ending.Err()
	}
	return a, response.CheckBody(a.Data)
}

// Mark implements upstream.Observer.
func (t *Tape) Mark(time.Time) { t.Recorder.Mark() }

// Observe records the response while it is relayed, if it may be stored.
func (m *Lookup) Observe(u *upstream.Response) {
	switch {
	case m == nil || m.Recording == nil:
	case u.Status != http.StatusOK || !u.Plain() || !u.Events && !u.JSON():
		m.Recording = nil
	case u.Stream != nil:
		u.Observe(m.Recording)
	default:
		u.Tee(m.Recording)
	}
}
