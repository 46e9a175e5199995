package guard

import (
	"time"

	"signalbox/stream/check"
	"signalbox/stream/response"
)

// half is a claim at the end of a text of the Responses API that does not end like a sentence. What
// follows tells whether the text was broken off: the text itself is told as done either way.
type half struct {
	record *record
	asked  check.Claim
}

// enterLast takes in the last claims of a text that is told as a whole.
func (s *stream) enterLast(ln *lane) {
	if h, ok := s.enterFinished(ln); ok {
		s.halves = append(s.halves, h)
	}
}

// resolve learns from an event whether texts before it were broken off. Only the last text of an
// answer can be: another part or item behind it says that it is whole.
func (s *stream) resolve(a *response.Event) {
	if len(s.halves) == 0 {
		return
	}
	for i := range a.Finishes {
		if a.Finishes[i].Broken() {
			s.endHalves(s.leave)
		}
	}
	switch ended, whole := a.ItemEnd(); {
	case len(a.Finishes) > 0, a.Begins(), ended && whole:
		s.endHalves(s.judge)
	case ended:
		s.endHalves(s.leave)
	}
}

// endHalves lets the time of these claims begin, and judges those that are finished, or leaves those
// that are not.
func (s *stream) endHalves(judgeOrLeave func(*record, check.Claim, time.Time)) {
	now := time.Now()
	for _, h := range s.halves {
		h.record.since, h.record.deadline = now, now.Add(s.MaxHold)
		judgeOrLeave(h.record, h.asked, now)
	}
	s.halves = s.halves[:0]
}
