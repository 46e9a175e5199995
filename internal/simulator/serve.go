package simulator

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// schedule determines when the tokens of a response are available. It belongs to the request's
// goroutine.
type schedule interface {
	// until waits for token k of every choice that has one. It returns false immediately if ctx
	// ends or the response will not come.
	until(ctx context.Context, k int) bool
	// dropped reports whether the response will not come because the server was stopped.
	dropped() bool
	// end releases the resources of the request. It is called once.
	end()
}

// begin waits until the response may begin. It returns false if the client left first.
func (s *Server) begin(ctx context.Context, g *generation, m *metrics) (schedule, bool, error) {
	if s.engine == nil {
		p, ok := s.admit(ctx, g, m)
		return p, ok, nil
	}
	return s.engine.submit(ctx, g)
}

// serve sends the response g at the configured pace: as a stream with the given framer, or as the
// body that whole returns. It returns when the response is sent or the client has gone.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, g *generation, f framer, whole func() any) {
	ctx, m := r.Context(), s.live.Load()
	arrived := time.Now()
	t, ok, err := s.begin(ctx, g, m)
	switch {
	case err != nil:
		s.fail(w, err)
		return
	case !ok:
		s.cancelled(g, m, 0)
		return
	}
	defer t.end()
	w.Header().Set(PrefaceHeader, g.preface)
	first := func() { m.ttft.Observe(time.Since(arrived).Seconds()) }
	var complete bool
	var sent int
	if g.stream {
		sent, complete = s.stream(ctx, w, g, f, t, first)
	} else {
		sent, complete = wait(ctx, g, t, first)
	}
	if !complete {
		s.cancelled(g, m, sent)
		if t.dropped() {
			panic(http.ErrAbortHandler) // cuts the connection
		}
		return
	}
	if !g.stream {
		s.reply(w, http.StatusOK, whole())
	}
	m.generationTokens.Add(float64(sent))
	for i := range g.choices {
		m.succeeded(g.choices[i].finish)
	}
}

// wait waits for the duration of a complete response. It returns the number of generated tokens and
// whether the client stayed until the end.
func wait(ctx context.Context, g *generation, t schedule, first func()) (sent int, complete bool) {
	if !t.until(ctx, 0) {
		return 0, false
	}
	first()
	if !t.until(ctx, g.steps()-1) {
		return 0, false
	}
	return g.completionTokens(), true
}

// stream writes the chunks of g and flushes each. It returns the number of sent tokens and whether
// the stream ended normally.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, g *generation, f framer, t schedule, first func()) (sent int, complete bool) {
	pooled, _ := s.chunks.Get().(*[]byte)
	defer s.chunks.Put(pooled)
	out := &chunkWriter{w: w, rc: http.NewResponseController(w), buf: (*pooled)[:0]}
	defer func() { *pooled = out.buf }()

	if !t.until(ctx, 0) {
		return 0, false
	}
	first()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	for i := range g.choices {
		out.buf = f.open(out.buf, i)
		if !out.send() {
			return sent, false
		}
	}
	for k := range g.steps() {
		if !t.until(ctx, k) {
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

// step sends token k of choice i, and the end of the choice after its last token. A choice that
// ended at its limit has the finish reason on that token; one that stopped has it in a separate
// chunk, as in vLLM where the end-of-sequence token has no text.
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

// send writes and flushes the buffer, if it is not empty, and empties it. It returns false if the
// client has gone.
func (c *chunkWriter) send() bool {
	if len(c.buf) == 0 {
		return true
	}
	_, err := c.w.Write(c.buf)
	c.buf = c.buf[:0]
	return err == nil && c.rc.Flush() == nil
}

// cancelled counts a response that was not complete when its client left or the server was
// restarted.
func (s *Server) cancelled(g *generation, m *metrics, sent int) {
	m.generationTokens.Add(float64(sent))
	m.cancelled.Inc()
	for range g.choices {
		m.succeeded(finishAbort)
	}
	if s.opt.OnCancel != nil {
		s.opt.OnCancel(g.id)
	}
}

// pacer keeps the schedule of one response of a server without KV: token k is due at start + TTFT +
// k * TPOT. A slow client does not delay due times, so it receives the missed tokens in a burst, as
// from a real engine.
type pacer struct {
	server     *Server
	metrics    *metrics
	held       int64 // tokens
	start      time.Time
	ttft, tpot time.Duration
	timer      *time.Timer // nil until the first wait
}

// admit waits for a seat and starts the schedule. It returns false if the client left first.
func (s *Server) admit(ctx context.Context, g *generation, m *metrics) (*pacer, bool) {
	if !s.sit(ctx, m) {
		return nil, false
	}
	p := &pacer{
		server: s, metrics: m, held: int64(g.promptTokens + g.completionTokens()),
		start: time.Now(), ttft: s.opt.TTFT, tpot: cmp.Or(g.tpot, s.opt.TPOT),
	}
	m.start(p.held)
	m.promptTokens.Add(float64(g.promptTokens))
	return p, true
}

// sit waits for a seat. It returns false if the client left first.
func (s *Server) sit(ctx context.Context, m *metrics) bool {
	if s.seats == nil {
		return true
	}
	select {
	case s.seats <- struct{}{}:
		return true
	default:
	}
	m.waiting.Inc()
	defer m.waiting.Dec()
	select {
	case s.seats <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

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

func (*pacer) dropped() bool { return false }

func (p *pacer) end() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.metrics.finish(p.held)
	if p.server.seats != nil {
		<-p.server.seats
	}
}
