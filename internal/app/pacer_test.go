package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// pacer lets clients or streams go on by turns, so that how much there is to do does not depend on
// how fast the machine is: what runs freely beside something that is waited for takes its processor
// time, and the slower it is, the more.
type pacer struct {
	arrived chan struct{} // something waits for the next turn; see wait
	over    chan struct{} // see end: nothing waits any more
	end     func()

	mu   sync.Mutex    // guards next
	next chan struct{} // closed when the next turn begins
}

func newPacer() *pacer {
	p := &pacer{arrived: make(chan struct{}), over: make(chan struct{}), next: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.over) })
	return p
}

// turn begins the next turn.
func (p *pacer) turn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next)
	p.next = make(chan struct{})
}

// upcoming is closed when the next turn begins.
func (p *pacer) upcoming() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// wait says that it has arrived, and returns with the next turn or when the client has gone.
func (p *pacer) wait(ctx context.Context) {
	next := p.upcoming()
	for arrived := p.arrived; ; arrived = nil {
		select {
		case arrived <- struct{}{}:
			continue
		case <-next:
		case <-p.over:
		case <-ctx.Done():
		}
		return
	}
}

// pacing is a model server whose streams take the given number of turns. The first ones, so many as
// are open at a time, take 1 to turns, so that they do not all end at once.
func pacing(t *testing.T, p *pacer, first, turns int) string {
	t.Helper()
	var streams atomic.Int64
	return speaking(t, func(ctx context.Context, say func()) {
		n := turns
		if i := int(streams.Add(1)); i <= first {
			n = 1 + i%turns
		}
		for range n {
			say()
			p.wait(ctx)
		}
	})
}

// speaking is a model server. stream says the words of a stream; a client that asks for none gets
// its response at once.
func speaking(t *testing.T, stream func(ctx context.Context, say func())) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		stream(r.Context(), func() {
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		})
		if r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}
