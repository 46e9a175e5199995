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

// The results of looking a request up in the cache, as header, metric and log call it.
const (
	Exact      = "exact"
	Semantic   = "semantic"
	Miss       = "miss"
	Off        = "off"        // by its route
	Ineligible = "ineligible" // answers to such requests are not repeated
	Bypass     = "bypass"     // the client asked for a fresh answer
	Error      = "error"      // a miss, since the store could not be asked
)

// Lookup is what the cache knows of one request. It belongs to the request's goroutine. nil stands
// for a cache that is off everywhere.
type Lookup struct {
	ID        cache.Identity
	Taught    uint64        // at the time of id
	Fresh     bool          // the client wants no stored response
	Forgetful bool          // the client wants its response not stored
	Result    string        // empty until a route was found that forwards
	Failed    bool          // the store could not be asked
	Waited    time.Duration // for answers that other processes keep

	Answer     *cache.Answer // that was given; nil for none
	Similarity float64       // of its question, with semantic
	Recording  *Tape
}

// CacheControl reads what the client says of stored answers (RFC 9111, section 5.2.1).
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

// Sources is what a classifier extracts where rules need m: the embedding for what the cache tells,
// and beside those signals of need that models give, neural, where a question may be looked up
// after the decision, so that it costs no run of its own beside a model here.
func (m *Lookup) Sources(need, neural signal.Mask, set *signal.Set) signal.Mask {
	looks := m != nil && m.ID.Similar == cache.Eligible && !m.Forgetful
	if looks && neural != 0 {
		need |= signal.MaskOf(signal.Embedding) &^ set.Have()
	}
	return need &^ signal.MaskOf(signal.Cache)
}

// Recorded reports that the response is to be taken down.
func (m *Lookup) Recorded() bool { return m != nil && m.Recording != nil }

// Given is the response that the cache gave, nil without one.
func (m *Lookup) Given() *cache.Answer {
	if m == nil {
		return nil
	}
	return m.Answer
}

// Found is what became of the request in the cache; empty when it did not come to that.
func (m *Lookup) Found() string {
	if m == nil {
		return ""
	}
	return m.Result
}

// Within bounds further looks for responses of one request. Those that only other processes have
// may take what the first look left of the time that one may take: an outage costs a request that
// much and not a multiple.
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

// The results of storing a response, as the metric calls it.
const (
	StoreKept    = "kept"
	StoreDropped = "dropped" // too many were being kept
	storeRefused = "refused" // it is not whole, did not end well, or is too long
	storeFailed  = "failed"  // the store did not take it
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

// Tape is a response that is taken down while it passes.
type Tape struct {
	*cache.Recorder

	ending response.Ending // of a stream
}

// Put implements response.Sink.
func (t *Tape) Put(c *response.Chunk) {
	t.ending.Put(c)
	_, _ = t.Write(c.Raw) // it never fails
}

// Complete returns the response, if it is whole and ended well.
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

// Observe records the response while it passes, if it may be stored.
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
