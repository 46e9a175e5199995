package guard

import (
	"time"

	"signalbox/stream/check"
	"signalbox/stream/response"
)

// half is a claim at the end of a text of the Responses API that does not end like a sentence. The
// text is reported as done even if it was broken off; what follows shows which is the case.
type half struct {
	record *record
	asked  check.Claim
}

// enterLast processes the last claims of a text that is repeated as a whole.
func (s *stream) enterLast(ln *lane) {
	if h, ok := s.enterFinished(ln); ok {
		s.halves = append(s.halves, h)
	}
}

// resolve decides from an event whether earlier texts were broken off. Only the last text of an
// answer can be: another part or item after it shows that it is complete.
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

// endHalves starts the time limits of these claims. judgeOrLeave checks them if they are finished,
// or leaves them unchecked.
func (s *stream) endHalves(judgeOrLeave func(*record, check.Claim, time.Time)) {
	now := time.Now()
	for _, h := range s.halves {
		h.record.since, h.record.deadline = now, now.Add(s.MaxHold)
		judgeOrLeave(h.record, h.asked, now)
	}
	s.halves = s.halves[:0]
}
