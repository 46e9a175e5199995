package relay

import (
	"time"

	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/stream/response"
)

// meter is a tally that measures the pace of a stream as well. It belongs to one response.
type meter struct {
	response.Tally

	metrics   *telemetry.Metrics
	model     string
	usage     bool             // the client asked for usage, so the stream carries it
	direct    bool             // the stream is of the Messages API
	last      time.Time        // when the last piece came
	ticket    *affinity.Ticket // told of the first text
	requested time.Time        // when the client sent the request; zero when the time to the first token was measured at the head
	first     time.Time        // when the first text came
}

// pace records the mean time between two tokens of a stream that has ended. Tokens are those of its
// usage, else an estimate from its text: an event may carry several. A stream that came at once has
// none.
func (t *meter) pace() {
	tokens := int64(t.Usage.Output)
	if tokens == 0 {
		tokens = t.Length()
	}
	if took := t.last.Sub(t.first); tokens > 1 && took > 0 && !t.first.IsZero() {
		t.metrics.InterToken(t.model, took/time.Duration(tokens-1))
	}
}

// Put implements response.Sink.
func (t *meter) Put(c *response.Chunk) {
	if t.direct {
		t.NoteMessage(c)
		return
	}
	if !c.IsMessage() {
		return
	}
	e := c.Content()
	t.Note(e)
	if t.usage && e.HasUsage {
		t.Usage = e.Usage
	}
}

// Mark implements upstream.Observer.
func (t *meter) Mark(now time.Time) {
	t.last = now
	if t.first.IsZero() && t.Began() {
		t.first = now
		t.ticket.First(now)
		if !t.requested.IsZero() {
			t.metrics.TTFT(t.model, now.Sub(t.requested))
		}
	}
}
