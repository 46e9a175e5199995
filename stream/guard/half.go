package guard

import (
	"time"

	"signalbox/stream/check"
	"signalbox/stream/claims"
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
	list := ln.close()
	n := len(list)
	if n == 0 || !list[n-1].Unfinished || list[n-1].Kind == claims.Code {
		s.enter(ln, list)
		return
	}
	if s.enter(ln, list[:n-1]); s.fallen(ln.choice) {
		return
	}
	r, asked := s.admit(ln, list[n-1], time.Now())
	s.halves = append(s.halves, half{r, asked})
}

// resolve learns from an event whether texts before it were broken off. Only the last text of an
// answer can be: another part or item behind it says that it is whole.
func (s *stream) resolve(a *response.Event) {
	if len(s.halves) == 0 {
		return
	}
	for i := range a.Finishes {
		if a.Finishes[i].Broken() {
			s.leaveHalves()
		}
	}
	switch ended, whole := a.ItemEnd(); {
	case len(a.Finishes) > 0, a.Begins(), ended && whole:
		s.judgeHalves()
	case ended:
		s.leaveHalves()
	}
}

// judgeHalves gets the verdicts on claims that are finished.
func (s *stream) judgeHalves() {
	now := time.Now()
	for _, h := range s.halves {
		s.judge(h.restart(now, s.MaxHold), h.asked, now)
	}
	s.halves = s.halves[:0]
}

// leaveHalves leaves claims unjudged that are not finished.
func (s *stream) leaveHalves() {
	now := time.Now()
	for _, h := range s.halves {
		s.leave(h.restart(now, s.MaxHold), h.asked, now)
	}
	s.halves = s.halves[:0]
}

// restart lets the time of a claim begin.
func (h *half) restart(now time.Time, most time.Duration) *record {
	h.record.since, h.record.deadline = now, now.Add(most)
	return h.record
}
