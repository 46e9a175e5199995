package cache

import (
	"errors"
	"io"
	"time"
)

// Pace is how fast a stream is given again.
type Pace struct {
	// Speed is how many times faster than it was made a stream is given; 0 gives it at once.
	// Default 4.
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

// ErrStopped reports that a replay was stopped.
var ErrStopped = errors.New("replay stopped")

// Player returns an answer piece by piece. It belongs to one goroutine.
type Player struct {
	answer *Answer
	pace   Pace
	at     int // number of pieces returned
	from   int // start of the next one
	last   time.Duration
	waited time.Duration
}

// Player returns a Player at the beginning of the answer.
func (a *Answer) Player(p Pace) *Player { return &Player{answer: a, pace: p} }

// Next waits according to the pace and returns the next piece, which must not be modified, or
// io.EOF after the last one. A whole body is one piece. If stop is closed it returns ErrStopped.
func (p *Player) Next(stop <-chan struct{}) ([]byte, error) {
	a := p.answer
	if !a.Streamed() {
		if p.at++; p.at > 1 {
			return nil, io.EOF
		}
		return a.Data, nil
	}
	if p.at == len(a.Pieces) {
		return nil, io.EOF
	}
	piece := a.Pieces[p.at]
	gap := max(min(p.pace.gap(piece.After-p.last), p.pace.MaxTotal-p.waited), 0)
	if !pause(stop, gap) {
		return nil, ErrStopped
	}
	b := a.Data[p.from:piece.End]
	p.at, p.from, p.last, p.waited = p.at+1, piece.End, piece.After, p.waited+gap
	return b, nil
}

// gap returns the time to wait for a piece for which the upstream took d.
func (p Pace) gap(d time.Duration) time.Duration {
	if p.Speed == 0 {
		return 0
	}
	return min(time.Duration(float64(d)/p.Speed), p.MaxGap)
}

// pause waits, and reports whether stop is still open.
func pause(stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}
