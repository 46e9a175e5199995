package downstream

import (
	"net/http"
	"sync"
	"time"

	"signalbox/stream/messages"
)

// Heartbeat keeps the connection of a client alive while a stream is silent, by comments, which
// clients ignore: load balancers close connections that say nothing. The first comment may be sent
// before there is a response; then the head is gone, and what goes wrong afterwards is told in the
// stream. nil never sends any. The lock is a leaf but for the client's connection.
type Heartbeat struct {
	after time.Duration
	w     *Writer

	mu    sync.Mutex // guards what follows, and the writing of w while watching
	timer *time.Timer
	quiet time.Time // since when nothing was sent
	on    bool
	set   bool // timer is
	begun bool // the client has a part of the response
}

// KeepAlive is the comment.
const KeepAlive = ": keep-alive\n\n"

// NewHeartbeat makes one that waits after each write; nil when after is 0.
func NewHeartbeat(w *Writer, after time.Duration) *Heartbeat {
	if after <= 0 {
		return nil
	}
	return &Heartbeat{after: after, w: w}
}

// Start begins to send comments. Until the matching Pause, everything that is written has to go
// through Writer.SendEvent, and headers are not to be touched.
func (k *Heartbeat) Start() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = true
	switch {
	case k.timer == nil:
		k.quiet = time.Now()
		k.timer = time.AfterFunc(k.after, k.beat)
	case !k.set:
		k.timer.Reset(max(0, k.after-time.Since(k.quiet)))
	}
	k.set = true
}

// Pause holds it; a comment that is being sent is sent first.
func (k *Heartbeat) Pause() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = false
}

// Stop is Pause for the last time.
func (k *Heartbeat) Stop() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = false
	if k.timer != nil {
		k.timer.Stop()
	}
}

// Silent reports whether nothing but comments went out.
func (k *Heartbeat) Silent() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.begun
}

// beat sends a comment if it is time. The timer is not put off by what is sent in between, which
// is often; it looks again.
func (k *Heartbeat) beat() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set = false
	if !k.on {
		return
	}
	wait := k.after - time.Since(k.quiet)
	if wait <= 0 {
		if !k.comment() {
			return // the client has gone, which its request tells
		}
		wait = k.after
	}
	k.timer.Reset(wait)
	k.set = true
}

// comment sends it, with the lock held, and reports whether that went well.
func (k *Heartbeat) comment() bool {
	if k.w.Status == 0 {
		h := k.w.Header()
		h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		h["X-Accel-Buffering"] = []string{"no"}
		k.w.WriteHeader(http.StatusOK)
	}
	now := time.Now()
	k.quiet = now
	if k.begun && k.w.Messages != nil {
		return k.w.writeUnlocked([]byte(messages.Ping), now) == nil
	}
	return k.w.writeUnlocked([]byte(KeepAlive), now) == nil
}

// wrote notes that b is sent now, with the lock held.
func (k *Heartbeat) wrote(now time.Time, b []byte) { k.quiet, k.begun = now, k.begun || len(b) > 0 }
