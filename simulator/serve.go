package simulator

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// serve sends the answer g at the configured pace: framed as a stream, or as the body that whole
// returns. It returns when the answer is sent or the client is gone.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, g *generation, f framer, whole func() any) {
	ctx := r.Context()
	arrived := time.Now()
	if !s.admit(ctx) {
		s.cancelled(g, 0)
		return
	}
	defer s.release()
	held := int64(g.promptTokens + g.completionTokens())
	s.metrics.start(held)
	defer s.metrics.finish(held)
	s.metrics.promptTokens.Add(float64(g.promptTokens))

	p := newPacer(s.opt, g.tpot)
	defer p.stop()
	var complete bool
	var sent int
	if g.stream {
		sent, complete = s.stream(ctx, w, g, f, p, arrived)
	} else {
		sent, complete = s.wait(ctx, g, p, arrived)
	}
	if !complete {
		s.cancelled(g, sent)
		return
	}
	if !g.stream {
		s.reply(w, http.StatusOK, whole())
	}
	s.metrics.generationTokens.Add(float64(sent))
	for i := range g.choices {
		s.metrics.succeeded(g.choices[i].finish)
	}
}

// wait lets the time of a whole answer pass. It returns the tokens that were generated and whether
// the client stayed to the end.
func (s *Server) wait(ctx context.Context, g *generation, p *pacer, arrived time.Time) (sent int, complete bool) {
	if !p.until(ctx, 0) {
		return 0, false
	}
	s.metrics.ttft.Observe(time.Since(arrived).Seconds())
	if !p.until(ctx, g.steps()-1) {
		return 0, false
	}
	return g.completionTokens(), true
}

// stream writes the chunks of g, each flushed by itself. It returns the tokens that were sent and
// whether the stream ended as it should.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, g *generation, f framer, p *pacer, arrived time.Time) (sent int, complete bool) {
	pooled, _ := s.chunks.Get().(*[]byte)
	defer s.chunks.Put(pooled)
	out := &chunkWriter{w: w, rc: http.NewResponseController(w), buf: (*pooled)[:0]}
	defer func() { *pooled = out.buf }()

	if !p.until(ctx, 0) {
		return 0, false
	}
	s.metrics.ttft.Observe(time.Since(arrived).Seconds())
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	for i := range g.choices {
		out.buf = f.open(out.buf, i)
		if !out.send() {
			return sent, false
		}
	}
	for k := range g.steps() {
		if !p.until(ctx, k) {
			return sent, false
		}
		for i := range g.choices {
			if !out.step(g, f, i, k) {
				return sent, false
			}
			if k < len(g.choices[i].pieces) {
				sent++
			}
		}
	}
	for more := true; more; {
		out.buf, more = f.end(out.buf)
		if !out.send() {
			return sent, false
		}
	}
	return sent, true
}

// chunkWriter sends one event at a time.
type chunkWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// step sends token k of choice i, and what ends the choice after its last token. A choice that ended
// at its limit carries the finish reason on that token; one that stopped has a chunk of its own for
// it, as in vLLM where the end-of-sequence token has no text.
func (c *chunkWriter) step(g *generation, f framer, i, k int) bool {
	pieces, finish := g.choices[i].pieces, g.choices[i].finish
	if k >= len(pieces) {
		return true
	}
	last := goesOn
	if k == len(pieces)-1 && finish == finishLength {
		last = ends
	}
	c.buf = f.token(c.buf, i, k, last)
	if !c.send() {
		return false
	}
	if k < len(pieces)-1 || last == ends {
		return true
	}
	c.buf = f.close(c.buf, i)
	return c.send()
}

// send writes and flushes the buffer, if there is anything in it, and empties it. It returns false
// when the client is gone.
func (c *chunkWriter) send() bool {
	if len(c.buf) == 0 {
		return true
	}
	_, err := c.w.Write(c.buf)
	c.buf = c.buf[:0]
	return err == nil && c.rc.Flush() == nil
}

// cancelled accounts for a client that left before its answer was complete.
func (s *Server) cancelled(g *generation, sent int) {
	s.metrics.generationTokens.Add(float64(sent))
	s.metrics.cancelled.Inc()
	for range g.choices {
		s.metrics.succeeded(finishAbort)
	}
	if s.opt.OnCancel != nil {
		s.opt.OnCancel(g.id)
	}
}

// pacer keeps the schedule of one answer: token k is due at start + TTFT + k * TPOT. A slow client
// delays no token's due time, so it gets the missed ones in a burst, as from an engine that runs on.
type pacer struct {
	start      time.Time
	ttft, tpot time.Duration
	timer      *time.Timer // nil until the first wait
}

// newPacer starts the schedule; a tpot of 0 is that of the options.
func newPacer(o Options, tpot time.Duration) *pacer {
	return &pacer{start: time.Now(), ttft: o.TTFT, tpot: cmp.Or(tpot, o.TPOT)}
}

// until waits for token k to be due. It returns false at once when ctx ends.
func (p *pacer) until(ctx context.Context, k int) bool {
	if p.ttft > 0 || p.tpot > 0 {
		if wait := time.Until(p.start.Add(p.ttft + time.Duration(k)*p.tpot)); wait > 0 {
			if p.timer == nil {
				p.timer = time.NewTimer(wait)
			} else {
				p.timer.Reset(wait)
			}
			select {
			case <-p.timer.C:
			case <-ctx.Done():
				return false
			}
		}
	}
	return ctx.Err() == nil
}

// stop releases the timer.
func (p *pacer) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
