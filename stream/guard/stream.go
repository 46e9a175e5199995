package guard

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/claims"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// maxHeld is how many bytes of events may be queued before the upstream has to wait: enough for a
// few hundred tokens of several choices, and few enough for hundreds of streams.
const maxHeld = 1 << 20

// stream is one answer in progress.
type stream struct {
	ledger
	idle   bool
	dst    Sink
	wrote  bool             // something was put that was not flushed
	state  sse.State        // state of what was put
	closed bool             // [DONE] was put
	in     *response.Reader // reads what arrives
	// back reads again what leaves changed or late. In the Responses API it reads everything that
	// leaves, because the order counts.
	back  response.Reader
	queue queue
	now   item           // the current event
	late  response.Chunk // an event of the guard, or one that has waited
	cuts  bool           // it may end early
	// given is what the client has received of a Responses API answer that may be cut.
	given  *response.Partial
	ended  []int // choices whose end the client has seen
	buf    []byte
	insert []response.Change
	kept   []int
	moved  bool // something that waits may be free to go
	markers

	halves  []half // claims that may not be finished
	stopped []int  // choices that had a finish_reason
	goesOn  []int  // of these, choices with text after it, which end with the stream

	faulty bool  // an event carried an error
	broken bool  // the same, or the answer stopped in the middle
	over   bool  // nothing more will come from the upstream
	err    error // the reason, if it was not a regular end
	told   bool  // the end has been written

	leftOut bool // an event was omitted after the last one put

	armed time.Time
	timer *time.Timer
}

func newStream(g *Guard, job Job, dst Sink) *stream {
	s := &stream{ledger: newLedger(g, job), idle: job.idle(), dst: dst, in: new(response.Reader)}
	s.act = s.mark
	s.markers = newMarkers(s.Marker)
	s.cuts = s.limit > 0 || s.blocks(check.Unchecked) || job.MayAnnotate && (s.Mode == Hold || job.Formed > s.Mode)
	return s
}

// run moves the stream, and ends what it has started.
func (s *stream) run(ctx context.Context, src Source) error {
	r := read(src)
	defer r.close()
	defer s.stop()
	err := s.loop(ctx, r)
	switch {
	case err == nil || s.told:
		s.finish(nil)
	default:
		r.cancel()
		s.finish(err)
	}
	return err
}

// loop moves the stream until its end.
func (s *stream) loop(ctx context.Context, r *reading) error {
	for {
		s.applyVerdicts()
		if s.cutting {
			r.cancel()
		}
		if s.wrote {
			s.wrote = false
			if err := s.dst.Flush(); err != nil {
				s.told = false
				return err
			}
		}
		if s.told {
			return s.err
		}
		if err := s.wait(ctx, r); err != nil {
			return err
		}
	}
}

// wait processes the next thing that happens.
func (s *stream) wait(ctx context.Context, r *reading) error {
	came := r.came
	if s.over || s.full() {
		came = nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-came:
		if err := r.src.Deliver(s); err != nil {
			s.end(err)
		}
		if !s.over {
			r.next()
		}
	case <-s.desk.wake:
		s.receive(s.desk.collect())
	case <-s.alarm():
		s.armed = time.Time{}
		s.expire(time.Now())
	}
	return nil
}

// full reports whether the upstream has to wait for verdicts.
func (s *stream) full() bool { return s.queue.bytes > maxHeld && len(s.pending) > 0 }

// alarm returns a channel that fires when the next claim's deadline passes, or nil if no claim
// waits.
func (s *stream) alarm() <-chan time.Time {
	deadline, ok := s.deadline()
	if !ok {
		return nil
	}
	switch {
	case s.timer == nil:
		s.timer = time.NewTimer(time.Until(deadline))
	case !deadline.Equal(s.armed):
		s.timer.Reset(time.Until(deadline))
	}
	s.armed = deadline
	return s.timer.C
}

func (s *stream) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// end processes the end of the upstream. Verdicts on what it has sent are still awaited.
func (s *stream) end(err error) {
	if s.over {
		return
	}
	s.over, s.err = true, err
	switch {
	case s.cutting: // the answer was already cut
	case errors.Is(err, io.EOF) && s.in.Complete():
		s.endHalves(s.judge)
		s.close(response.Everything)
	default:
		s.broken = true
		s.endHalves(s.leave)
		s.abandon(response.Everything)
	}
	s.settle()
}

// applyVerdicts does what has become possible since the last call.
func (s *stream) applyVerdicts() {
	if s.told {
		return
	}
	s.send()
	s.release()
	switch {
	case s.cutting && s.broken:
		s.breakOff()
	case s.cutting:
		s.cut()
	case s.over && s.queue.empty() && s.due():
		s.conclude()
	}
}

// relieve closes the open claims if too much is queued only because of their missing end.
func (s *stream) relieve() {
	if s.queue.bytes > maxHeld && len(s.pending)+len(s.batch) == 0 {
		s.endHalves(s.judge)
		s.close(response.Everything)
		s.settle()
	}
}

// due reports whether the verdicts that the end waits for are known.
func (s *stream) due() bool { return s.idle || s.Mode <= Observe || s.settled() }

// breakOff ends an answer that the server broke off before the guard would have ended it. It is
// reported as broken off. Queued items are dropped, except for the server's error.
func (s *stream) breakOff() {
	for _, it := range s.queue.items {
		if !it.fails {
			continue
		}
		for _, p := range slices.Concat(it.texts, it.wholes) {
			if s.Mode == Hold {
				p.lane.refuse(stretch{claims.Span{Start: p.lane.clear, End: p.lane.fed}, true})
			}
		}
		s.emit(it)
	}
	s.queue.clear()
	s.conclude()
}

// conclude writes the end.
func (s *stream) conclude() {
	s.told = true
	err := s.err
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil {
		s.total()
	}
	switch {
	case s.state == sse.Done:
		s.err = nil
	case s.state == sse.Failed || s.faulty:
		if s.state = sse.Failed; err == nil && s.in.Shape() == response.Response {
			s.err = nil // the server's own error event is an end
		} else if err == nil {
			s.err = ErrNoEnd
		}
	default:
		if s.state = sse.Truncated; err == nil {
			s.err = ErrNoEnd
		}
	}
	s.out.State = s.state
}

func (s *stream) outcome() Outcome { return s.out }
