package guard

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/stream/check"
)

// summary returns the value of x_signalbox: the verdicts so far. With several choices every end has
// it, so that the last one is complete.
func (l *ledger) summary() []byte {
	dst := append([]byte(`{"guard":{"mode":"`), l.Mode.String()...)
	dst = append(append(dst, `","verdict":"`...), l.verdict().String()...)
	dst = strconv.AppendInt(append(dst, `","claims":`...), int64(l.out.Claims), 10)
	dst = append(dst, `,"failed":[`...)
	for i, r := range l.report {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.appendFailure(dst, r, l.Mode != Hold && !r.withheld)
	}
	dst = append(dst, "]}"...)
	return append(dst, '}')
}

// origin returns the context that the deciding source of a claim comes from, or "".
func (l *ledger) origin(r *record) string {
	if l.job.Origin == nil || r.result.Source < 0 {
		return ""
	}
	return l.job.Origin(r.result.Source)
}

// appendMark appends the value of x_signalbox for a mark: a summary of one claim.
func (l *ledger) appendMark(dst []byte, r *record) []byte {
	dst = append(dst, `{"guard":{"mode":"annotate","failed":[`...)
	return append(l.appendFailure(dst, r, true), "]}}"...)
}

// appendFailure appends a failed claim. Its position is in code points of the choice's text as the
// model wrote it. Its text is omitted if it was withheld from the client.
func (l *ledger) appendFailure(dst []byte, r *record, shown bool) []byte { //nolint:revive // a fact about the claim
	dst = append(dst, '{')
	if l.many || r.lane.choice > 0 {
		dst = append(strconv.AppendInt(append(dst, `"choice":`...), int64(r.lane.choice), 10), ',')
	}
	if shown {
		dst = append(appendString(append(dst, `"text":`...), r.claim.Text), ',')
	}
	dst = strconv.AppendInt(append(dst, `"start":`...), int64(r.claim.Runes.Start), 10)
	dst = strconv.AppendInt(append(dst, `,"end":`...), int64(r.claim.Runes.End), 10)
	if s := r.claim.Raw(r.result.Span); s.End > s.Start {
		dst = strconv.AppendInt(append(dst, `,"span":[`...), int64(s.Start), 10)
		dst = append(strconv.AppendInt(append(dst, ','), int64(s.End), 10), ']')
	}
	dst = append(append(dst, `,"verdict":"`...), r.result.Verdict.String()...)
	dst = strconv.AppendFloat(append(dst, `","score":`...), min(max(r.result.Score, 0), 1), 'f', 4, 64)
	// Moderation has no fact to report.
	if r.result.By == check.Moderation {
		dst = appendString(append(dst, `,"reason":`...), r.result.Reason)
	}
	switch {
	case r.result.ID != "":
		dst = appendString(append(dst, `,"fact":`...), r.result.ID)
	case r.result.Source >= 0:
		dst = strconv.AppendInt(append(dst, `,"fact":`...), int64(r.result.Source), 10)
	}
	if origin := l.origin(r); origin != "" {
		dst = appendString(append(dst, `,"context":`...), origin)
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	// The error only reports the replacement of invalid UTF-8.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
