package proxy

import (
	"net/http"
	"sync"
	"time"
)

// keeper keeps the connection of a client alive while a stream is silent, by comments, which clients ignore: load balancers
// close connections that say nothing. The first comment may be sent before there is an answer; then the head is gone, and what
// goes wrong afterwards is told in the stream. nil never sends any. The lock is a leaf but for the client's connection.
type keeper struct {
	after time.Duration
	w     *reply

	mu    sync.Mutex // guards what follows, and the writing of w while watching
	timer *time.Timer
	on    bool
}

// keepAlive is the comment.
const keepAlive = ": keep-alive\n\n"

// newKeeper makes one that waits after each write; nil when after is 0.
func newKeeper(w *reply, after time.Duration) *keeper {
	if after <= 0 {
		return nil
	}
	return &keeper{after: after, w: w}
}

// watch begins to send comments. Until the matching rest, everything that is written has to go through reply.send, and headers
// are not to be touched.
func (k *keeper) watch() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on = true
	if k.timer == nil {
		k.timer = time.AfterFunc(k.after, k.speak)
		return
	}
	k.timer.Reset(k.after)
}

// rest ends it; a comment that is being sent is sent first.
func (k *keeper) rest() {
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

// speak sends a comment.
func (k *keeper) speak() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.on {
		return
	}
	if k.w.status == 0 {
		h := k.w.Header()
		h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		h["X-Accel-Buffering"] = []string{"no"}
		k.w.WriteHeader(http.StatusOK)
	}
	if k.w.write([]byte(keepAlive), time.Now()) == nil {
		k.timer.Reset(k.after)
	} // else the client has gone, which its request tells
}

// wrote notes that something was sent, with the lock held.
func (k *keeper) wrote() {
	if k.on {
		k.timer.Reset(k.after)
	}
}
