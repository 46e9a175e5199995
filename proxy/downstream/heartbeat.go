package downstream

import (
	"net/http"
	"sync"
	"time"

	"signalbox/stream/messages"
)

// Heartbeat keeps a client's connection alive while a stream is silent, since load balancers close
// idle connections. It sends comments, which clients ignore. The first comment may be sent before
// there is a response; then the head has been sent, and later errors are reported in the stream. A
// nil Heartbeat sends nothing. Only the client's connection is used while its lock is held.
type Heartbeat struct {
	after time.Duration
	w     *Writer

	mu    sync.Mutex // guards the fields below and, while active, writes to w
	timer *time.Timer
	quiet time.Time // time of the last write
	on    bool
	set   bool // timer is set
	begun bool // the client has a part of the response
}

// KeepAlive is the comment.
const KeepAlive = ": keep-alive\n\n"

// NewHeartbeat returns a heartbeat that sends after each period of silence; nil when after is 0.
func NewHeartbeat(w *Writer, after time.Duration) *Heartbeat {
	if after <= 0 {
		return nil
	}
	return &Heartbeat{after: after, w: w}
}

// Start begins to send comments. Until the matching Pause, all writes must go through
// Writer.SendEvent, and headers must not be changed.
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

// Pause suspends it. A comment that is being sent is completed first.
func (k *Heartbeat) Pause() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = false
}

// Stop suspends it for good.
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

// Silent reports whether nothing but comments was sent.
func (k *Heartbeat) Silent() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.begun
}

// beat sends a comment if it is due. Writes, which are frequent, do not reset the timer; beat
// checks when the last one was.
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
			return // the client has left, which its request will notice
		}
		wait = k.after
	}
	k.timer.Reset(wait)
	k.set = true
}

// comment sends a comment and reports success. The caller holds the lock.
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

// wrote records that b is sent now. The caller holds the lock.
func (k *Heartbeat) wrote(now time.Time, b []byte) { k.quiet, k.begun = now, k.begun || len(b) > 0 }
