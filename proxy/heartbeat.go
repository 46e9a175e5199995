package proxy

import (
	"net/http"
	"sync"
	"time"

	"signalbox/stream/messages"
)

// heartbeat keeps the connection of a client alive while a stream is silent, by comments, which
// clients ignore: load balancers close connections that say nothing. The first comment may be sent
// before there is an answer; then the head is gone, and what goes wrong afterwards is told in the
// stream. nil never sends any. The lock is a leaf but for the client's connection.
type heartbeat struct {
	after time.Duration
	w     *reply

	mu    sync.Mutex // guards what follows, and the writing of w while watching
	timer *time.Timer
	quiet time.Time // since when nothing was sent
	on    bool
	set   bool // timer is
	begun bool // the client has a part of the answer
}

// keepAlive is the comment.
const keepAlive = ": keep-alive\n\n"

// newHeartbeat makes one that waits after each write; nil when after is 0.
func newHeartbeat(w *reply, after time.Duration) *heartbeat {
	if after <= 0 {
		return nil
	}
	return &heartbeat{after: after, w: w}
}

// start begins to send comments. Until the matching rest, everything that is written has to go
// through reply.send, and headers are not to be touched.
func (k *heartbeat) start() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on, k.quiet = true, time.Now()
	switch {
	case k.timer == nil:
		k.timer = time.AfterFunc(k.after, k.beat)
	case !k.set:
		k.timer.Reset(k.after)
	}
	k.set = true
}

// pause holds it; a comment that is being sent is sent first.
func (k *heartbeat) pause() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = false
}

// stop is rest for the last time.
func (k *heartbeat) stop() {
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

// silent reports whether nothing but comments went out.
func (k *heartbeat) silent() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.begun
}

// beat sends a comment if it is time. The timer is not put off by what is sent in between, which
// is often; it looks again.
func (k *heartbeat) beat() {
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
func (k *heartbeat) comment() bool {
	if k.w.status == 0 {
		h := k.w.Header()
		h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		h["X-Accel-Buffering"] = []string{"no"}
		k.w.WriteHeader(http.StatusOK)
	}
	now := time.Now()
	k.quiet = now
	if k.begun && k.w.messages != nil {
		return k.w.write([]byte(messages.Ping), now) == nil
	}
	return k.w.write([]byte(keepAlive), now) == nil
}

// wrote notes that b is sent now, with the lock held.
func (k *heartbeat) wrote(now time.Time, b []byte) { k.quiet, k.begun = now, k.begun || len(b) > 0 }
