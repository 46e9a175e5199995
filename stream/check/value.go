package check

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
	"signalbox/stream/numeric/quantity"
)

// sureOf is the support from which a JSON value counts as entailed, which is not a sentence; our
// choice.
const sureOf = 0.9

// ofValue keeps only the findings about the JSON value itself; its names are judged where they
// occur. A bare number below 1 may be a share: 0.15 for "15 %".
func (s *sight) ofValue(ctx context.Context, e *evidence.Evidence, left *int) {
	s.findings = slices.DeleteFunc(s.findings, func(f numeric.Finding) bool { return f.Start < s.claim.Lead })
	s.numbers = worstOf(s.findings)
	if s.numbers < numeric.Unsupported || s.stopped != nil {
		return
	}
	if s.unbound(ctx, e, left) {
		return
	}
	n, err := strconv.ParseFloat(s.claim.states(), 64)
	if err == nil && s.numbers == numeric.Unsupported && n == math.Trunc(n) && 0 <= n && n <= mayCount &&
		!s.knowsMember(e) {
		s.findings[0].Verdict, s.findings[0].Reason = numeric.NotCheckable, numeric.NoFact
		s.numbers = numeric.NotCheckable
		return
	}
	if err != nil || n <= 0 || n >= 1 {
		return
	}
	share := s.claim.Text[:s.claim.Lead] + strconv.FormatFloat(n*100, 'g', 6, 64) + " %"
	_, found, err := e.Numbers().CheckFrom(ctx, nil, share, s.claim.Context, left)
	if err != nil || len(found) == 0 || found[len(found)-1].Verdict != numeric.Supported {
		return
	}
	f := found[len(found)-1]
	f.Start, f.End, f.Reason = s.claim.Lead, len(s.claim.Text), numeric.Converted
	s.findings, s.numbers = append(s.findings[:0], f), numeric.Supported
}

// mayCount is the largest number that may count what the answer itself lists; our choice.
const mayCount = 10

// knowsMember reports whether the evidence contains the words of the member's name.
func (s *sight) knowsMember(e *evidence.Evidence) bool {
	name := strings.TrimSuffix(s.claim.Text[:s.claim.Lead], ": ")
	return e.Numbers().Knows(name[strings.LastIndex(name, ": ")+1:])
}

// unbound reports whether the value is in the evidence and only the name of its object, or neither
// name, disagrees. The evidence must not know the member's name, which may be that of either of two
// dates or of two values in one sentence. The findings are then replaced by those for the value
// alone.
func (s *sight) unbound(ctx context.Context, e *evidence.Evidence, left *int) bool {
	if s.numbers == numeric.Contradicted && s.knowsMember(e) {
		return false
	}
	value := s.claim.states()
	v, found, err := e.Numbers().CheckFrom(ctx, nil, value, "", left)
	if err != nil || v != numeric.Supported {
		return false
	}
	if s.numbers == numeric.Contradicted && found[0].Sentence != s.worst(numeric.Contradicted).Sentence &&
		!slices.ContainsFunc(quantity.Parse(nil, value), func(q quantity.Value) bool { return q.Kind == quantity.Date }) {
		return false
	}
	for i := range found {
		found[i].Start, found[i].End = found[i].Start+s.claim.Lead, found[i].End+s.claim.Lead
	}
	s.findings, s.numbers = append(s.findings[:0], found...), v
	return true
}

// spare makes a negative verdict Unchecked for a JSON claim that may not be about the evidence:
// everything in an example, and otherwise a shown value if the evidence contains no word of its
// name or of its object's name.
func (s *sight) spare(e *evidence.Evidence, out *Result) {
	if s.claim.Frame == claims.NoFrame || out.Verdict != Unsupported && out.Verdict != Contradicted {
		return
	}
	lead := s.claim.Text[:s.claim.Lead]
	if s.claim.Frame == claims.Example || s.claim.Kind == claims.Value &&
		(out.Verdict == Unsupported || out.By == NLI) && !e.Numbers().KnowsOf(lead) {
		*out = Result{
			Verdict: Unchecked, Score: max(out.Score, halfDoubt), Source: -1, By: out.By,
			Reason: "perhaps an example of what may stand there",
		}
	}
}

// worstOf returns the worst verdict on a number.
func worstOf(list []numeric.Finding) (worst numeric.Verdict) {
	for _, f := range list {
		worst = max(worst, f.Verdict)
	}
	return worst
}

// names reports whether a word is a name that the claim states.
func (c *Claim) names(w words.Word) bool { return w.Has(words.Name) && w.Start >= c.Lead }

// doubt keeps only reliable results of a model for a JSON value, because models are trained on
// sentences. A value fails only because of a number or name that the evidence lacks.
func (r *reading) doubt(e *evidence.Evidence, out *Result) {
	if r.claim.Kind != claims.Value || out.By != NLI {
		return
	}
	bare := out.Span.End <= out.Span.Start
	if bare && out.Verdict == Contradicted {
		out.Span = r.strangerName(e)
		bare = out.Span.End <= out.Span.Start
	}
	switch {
	case bare && out.Verdict == Contradicted, bare && out.Verdict == Unsupported,
		out.Verdict == Supported && out.Score < sureOf:
		*out = Result{
			Verdict: Unchecked, Score: max(out.Score, halfDoubt), Source: -1, By: NLI,
			Reason: "a value that no sentence states",
		}
	}
}
