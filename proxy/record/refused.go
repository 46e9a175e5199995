package record

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/proxy/auth"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/rate"
)

// Limits on what a flood of refused requests writes: a caller's first request is logged
// immediately, and then one line per minute with the number. Callers beyond the maximum share one
// line without a name.
const (
	refusedEvery = time.Minute
	refusedMost  = 256
)

// refusals counts requests refused by limits before a decision, for the decision log. The zero
// value is ready. It is safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	since map[refusedBy]*refusedLine // unwritten counts of the last minute
}

// refusedBy is the key for counting refused requests.
type refusedBy struct {
	tenant, role, key string
	limit             rate.Kind
}

// refusedLine is a line of the decision log.
type refusedLine struct{ decisionlog.Refusal }

// Held implements telemetry.Line.
func (*refusedLine) Held() int64 { return lineSize / 8 }

// AppendLine implements telemetry.Line.
func (l *refusedLine) AppendLine(b []byte) ([]byte, error) {
	line, err := json.Marshal(l.Refusal)
	return append(b, line...), err
}

// noteRefusal counts a request refused by a limit before a decision, and writes a line of the
// decision log if one is due.
func (r *Recorder) noteRefusal(b *Book, id string, who *auth.Principal, status int, failure string, err error) {
	over, ok := errors.AsType[*rate.ExceededError](err)
	if !ok {
		return
	}
	r.Recent.Refuse(string(over.Kind))
	if !r.Tel.Decisions.Wanted() {
		return
	}
	l := refusedLine{decisionlog.NewRefusal()}
	l.Time, l.ID, l.Generation, l.Config = time.Now().UTC(), id, b.Generation, b.Signals.Identity.Config
	l.Status, l.Error, l.Limit, l.Refused = status, failure, string(over.Kind), 1
	if r.refused.first(&l, who) {
		r.Tel.Decisions.Offer(&l)
	}
}

// first reports whether l must be written now; otherwise it is counted.
func (s *refusals) first(l *refusedLine, who *auth.Principal) bool {
	by := refusedBy{who.Tenant, who.Role, who.Name, rate.Kind(l.Limit)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = make(map[refusedBy]*refusedLine)
	}
	kept, ok := s.since[by]
	if !ok && len(s.since) >= refusedMost {
		by = refusedBy{limit: by.limit}
		kept, ok = s.since[by]
	}
	l.Request, l.Key = decisionlog.RefusalFacts{Role: by.role, Tenant: by.tenant}, by.key
	if !ok {
		s.since[by] = nil
		return true
	}
	if kept != nil {
		l.Refused += kept.Refused
	}
	s.since[by] = l
	return false
}

// take returns the lines of the past minute.
func (s *refusals) take() (lines []*refusedLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for by, l := range s.since {
		if l == nil {
			delete(s.since, by)
			continue
		}
		lines = append(lines, l)
		s.since[by] = nil
	}
	return lines
}

// Run writes the number of requests refused by limits once a minute and at its end, until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(refusedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.writeRefusals()
			return
		case <-tick.C:
			r.writeRefusals()
		}
	}
}

func (r *Recorder) writeRefusals() {
	for _, l := range r.refused.take() {
		r.Tel.Decisions.Offer(l)
	}
}

var _ telemetry.Line = (*refusedLine)(nil)
