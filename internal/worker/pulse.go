package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"signalbox/internal/signal"
)

// A worker hangs when it has been asked for runs for so long, so many of them at least, and has ended none. A start may take as long,
// which is what building engines for a GPU takes.
const (
	hangLimit = startLimit
	hangRuns  = 3
)

// pulse counts the runs since the last that the worker answered.
type pulse struct {
	since time.Time // when the first of them was asked for
	vain  int
}

// feel notes how a run ended, and ends a worker that hangs; keep starts another. What has its answer in time is a sign of life,
// whatever the answer is.
func (p *Process) feel(ctx context.Context, s *Session, u *use, begun time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.ended.Load() || s.use.Load() != u {
		return // it was asked of a worker that has ended
	}
	if !inVain(err) {
		p.pulse = pulse{}
		return
	}
	if p.pulse.vain == 0 {
		p.pulse.since = begun
	}
	p.pulse.vain++
	took := time.Since(p.pulse.since)
	if p.pulse.vain < hangRuns || took < p.hangLimit {
		return
	}
	p.o.Log.ErrorContext(ctx, "the worker of the models hangs: it is ended", slog.Int("runs", p.pulse.vain), slog.Duration("for", took))
	p.pulse = pulse{}
	if err := p.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.o.Log.ErrorContext(ctx, "the worker of the models cannot be ended", slog.String("cause", err.Error()))
	}
}

// inVain reports whether a run had no answer in its time, or no place in a queue that does not move.
func inVain(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var known interface{ Reason() signal.Reason }
	if !errors.As(err, &known) {
		return false
	}
	why := known.Reason()
	return why == signal.ReasonTimeout || why == signal.ReasonOverload
}
