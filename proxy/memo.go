package proxy

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

// What became of a request in the cache, as header, metric and log call it.
const (
	recallExact      = "exact"
	recallSemantic   = "semantic"
	recallMiss       = "miss"
	recallOff        = "off"        // by its route
	recallIneligible = "ineligible" // answers to such requests are not repeated
	recallBypass     = "bypass"     // the client asked for a fresh answer
	recallError      = "error"      // a miss, since the store could not be asked
)

// memo is what the cache knows of one request. It belongs to the request's goroutine. nil stands
// for a cache that is off everywhere.
type memo struct {
	id        cache.Identity
	taught    uint64        // at the time of id
	fresh     bool          // the client wants no stored answer
	forgetful bool          // the client wants its answer not stored
	result    string        // empty until a route was found that forwards
	failed    bool          // the store could not be asked
	waited    time.Duration // for answers that other processes keep

	answer     *cache.Answer // that was given; nil for none
	similarity float64       // of its question, with semantic
	recording  *tape
}

// cacheControl reads what the client says of stored answers (RFC 9111, section 5.2.1).
func cacheControl(h http.Header) (fresh, forgetful bool) {
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

// sources is what a classifier extracts where rules need m: the embedding for what the cache tells,
// and beside neural signals where a question may be looked up after the decision, so that it costs
// no run of its own.
func (m *memo) sources(need signal.Mask, set *signal.Set) signal.Mask {
	looks := m != nil && m.id.Similar == cache.Eligible && !m.forgetful
	if looks && need.Tier(signal.TierNeural) != 0 {
		need |= signal.MaskOf(signal.Embedding) &^ set.Have()
	}
	return need &^ signal.MaskOf(signal.Cache)
}

// recorded reports that the answer is to be taken down.
func (m *memo) recorded() bool { return m != nil && m.recording != nil }

// given is the answer that the cache gave, nil without one.
func (m *memo) given() *cache.Answer {
	if m == nil {
		return nil
	}
	return m.answer
}

// found is what became of the request in the cache; empty when it did not come to that.
func (m *memo) found() string {
	if m == nil {
		return ""
	}
	return m.result
}

// within bounds further looks for answers of one request. Those that only other processes have may
// take what the first look left of the time that one may take: an outage costs a request that much
// and not a multiple.
func (m *memo) within(ctx context.Context, c *caching) (_ context.Context, done func()) {
	shared := c.answers.shared
	if shared == nil {
		return ctx, func() {}
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, shared.Budget()-m.waited)
	return ctx, func() {
		cancel()
		m.waited += time.Since(begun)
	}
}

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
	case m == nil || m.recording == nil:
	case u.Status != http.StatusOK || !u.Plain() || !u.Events && !u.JSON():
		m.recording = nil
	case u.Stream != nil:
		u.Tap(m.recording)
	default:
		u.Tee(m.recording)
	}
}
