package cache

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Pace is how fast a stream is given again.
type Pace struct {
	// Speed is how many times faster than it was made a stream is given; 0 gives it at once. Default 4.
	Speed float64 `yaml:"speed"`
	// MaxGap bounds the wait in front of a piece, the first included. Default 20ms.
	MaxGap time.Duration `yaml:"max_gap"`
	// MaxTotal bounds all waits of one answer together. Default 2s.
	MaxTotal time.Duration `yaml:"max_total"`
}

// DefaultPace returns the defaults.
func DefaultPace() Pace {
	return Pace{Speed: 4, MaxGap: 20 * time.Millisecond, MaxTotal: 2 * time.Second}
}

// Validate reports every problem as "field: problem", joined, or nil.
func (p Pace) Validate() error {
	var errs []error
	if !(p.Speed >= 0) {
		errs = append(errs, errors.New("speed: must be 0 or more"))
	}
	if p.MaxGap < 0 {
		errs = append(errs, errors.New("max_gap: must be 0 or more"))
	}
	if p.MaxTotal < 0 {
		errs = append(errs, errors.New("max_total: must be 0 or more"))
	}
	return errors.Join(errs...)
}

// Replay writes the answer, a stream piece by piece at the given pace, each with one call of write. Errors are those of
// write and of ctx, wrapped. Several replays of one answer may run at once.
func (a *Answer) Replay(ctx context.Context, p Pace, write func([]byte) error) error {
	if !a.Streamed() {
		return written(write(a.Data))
	}
	var last, waited time.Duration
	at := 0
	for _, piece := range a.Pieces {
		gap := min(p.gap(piece.After-last), p.MaxTotal-waited)
		last = piece.After
		if err := pause(ctx, gap); err != nil {
			return fmt.Errorf("replay an answer: %w", err)
		}
		waited += max(gap, 0)
		if err := written(write(a.Data[at:piece.End])); err != nil {
			return err
		}
		at = piece.End
	}
	return nil
}

func written(err error) error {
	if err != nil {
		return fmt.Errorf("replay an answer: %w", err)
	}
	return nil
}

// gap is how long to wait where the upstream took d.
func (p Pace) gap(d time.Duration) time.Duration {
	if p.Speed == 0 {
		return 0
	}
	return min(time.Duration(float64(d)/p.Speed), p.MaxGap)
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
