package check

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// What of a claim makes a neutral judge's verdict unsupported: something that evidence would have
// to name. Scripts without letter case do not show their names, so that they do not count here.
const (
	countable = numeric.HasNumber | numeric.HasDate
	carried   = countable | numeric.HasName | numeric.HasFew
)

// Shares of a claim's words, our choice: a claim without a sign of anything checkable is read only
// when a premise holds closeShare of its words by weight; calculated numbers settle a claim only
// when at most restShare of its other words are missing.
const (
	closeShare = 0.5
	restShare  = 0.5
)

// Support by numbers alone, where no model has read the claim.
const (
	noDoubt       = 1.0 // states nothing
	wordForWord   = 0.99
	halfDoubt     = 0.5 // nobody read it
	absentNumber  = 0.2
	refutedNumber = 0.1 // less as the words around the numbers agree
)

// sight is what is seen of a claim without a model. It is scratch space; the zero value is ready.
type sight struct {
	claim    Claim
	signs    numeric.Signs
	mute     bool // a heading, a question or talk about the conversation: states nothing but its numbers
	counts   bool // its only number counts what follows
	numbers  numeric.Verdict
	findings []numeric.Finding
	premises []evidence.Premise
	verbatim int  // sentence of the evidence that is the claim word for word, or -1
	stale    bool // states what was, before it changed; after bet
	versions []string
	stopped  error // why numbers of the claim were not looked at
}

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var sights = sync.Pool{New: func() any { return new(sight) }}

// What numbers of one claim may cost, in steps of numeric.Index.CheckFrom: under a millisecond
// where a stream waits, and some fifty where a worker does it. Claims of a few numbers need a tenth
// of the first beside 64 KiB of facts.
const (
	quickSteps = 150_000
	checkSteps = 20_000_000
)

// Quick gives the verdict of the sentinel and of the numbers, in microseconds and without a model.
// final is false when a model should read the claim; the result is then what stands if none can.
// final is also false, with and without models, and the result Unchecked, when comparing the
// numbers would take a millisecond or more: that is for Check. It does not allocate in steady
// state.
func (c *Checker) Quick(e *evidence.Evidence, claim Claim) (r Result, final bool) {
	s := sights.Get().(*sight) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer sights.Put(s)
	s.glance(e, claim)
	r, final = s.verdict(e)
	final = final || !c.models()
	if s.stopped != nil {
		r, final = Result{Verdict: Unchecked, Score: halfDoubt, Source: -1, Reason: "many numbers to compare"}, false
	}
	s.claim = Claim{}
	return r, final
}

// lookWithin reads the signs and the numbers of a claim. Where numbers are so many that they take
// time, it takes no more than steps and ends with the context. It returns how many it took.
func (s *sight) lookWithin(ctx context.Context, e *evidence.Evidence, claim Claim, steps int) (took int) {
	took = s.glance(e, claim) //nolint:contextcheck // is over sooner than a context could end
	if s.stopped != nil {
		took += s.compare(ctx, e, steps)
	}
	return took
}

// glance reads the signs of a claim, and its numbers as far as that is quick.
func (s *sight) glance(e *evidence.Evidence, claim Claim) (took int) {
	if s.findings == nil {
		s.findings = make([]numeric.Finding, 0, 8)
	}
	s.claim, s.findings, s.signs, s.numbers, s.stopped = claim, s.findings[:0], 0, numeric.NotCheckable, nil
	s.verbatim = -1
	if claim.Kind == claims.Code {
		return 0
	}
	says := claim.states()
	s.signs = numeric.Look(says)
	opens, counts := introduces(says)
	s.counts = counts
	s.mute = claim.Kind == claims.Heading || says != "" && titleOf(says) == len(says) ||
		s.signs&(carried|numeric.HasNegation) == 0 && isRunIn(says) || asks(says) || addresses(says) ||
		opens && (counts || s.signs&countable == 0)
	if !s.mute && claim.Kind != claims.Cell {
		s.verbatim = e.Says(says)
	}
	if e.Empty() {
		return 0
	}
	return s.compare(context.Background(), e, quickSteps)
}

// compare compares the numbers of the claim with the evidence, and returns how many steps that
// took.
func (s *sight) compare(ctx context.Context, e *evidence.Evidence, steps int) (took int) {
	left := steps
	s.numbers, s.findings, s.stopped = e.Numbers().CheckFrom(ctx, s.findings[:0], s.claim.Text, s.claim.Context, &left)
	if s.claim.Kind == claims.Value {
		s.ofValue(ctx, e, &left)
	}
	s.given()
	s.tally()
	s.bare()
	return steps - left
}

// verdict is what stands without a model, and whether a model could change it.
func (s *sight) verdict(e *evidence.Evidence) (r Result, final bool) {
	odd, strange := s.version(e)
	r, final = s.verdictStated(e)
	if strange && !s.mute && s.claim.Kind != claims.Code && r.Verdict < Unsupported {
		r, final = odd, true
	}
	s.spare(e, &r)
	return r, final
}

// verdictStated is verdict, of a claim that states what it says.
func (s *sight) verdictStated(e *evidence.Evidence) (r Result, final bool) {
	switch {
	case s.claim.Kind == claims.Code:
		return silent("code"), true
	case e.Empty() && s.signs.Checkable() && !s.mute:
		return Result{Verdict: Unchecked, Score: halfDoubt, Source: -1, Reason: "no evidence"}, true
	case e.Empty():
		return silent("nothing to check"), true
	case s.verbatim >= 0 && !continues(s.claim.states()):
		return s.repeated(e), true
	case s.verbatim >= 0 && s.numbers >= numeric.Unsupported:
		return Result{Verdict: Unchecked, Score: halfDoubt, Source: -1, By: Numeric, Reason: "stands in the evidence, perhaps of something else"}, true
	case s.numbers == numeric.Contradicted && !s.counts:
		return s.refuted(e), true
	case s.mute:
		return silent("heading, question or talk"), true
	case s.numbers == numeric.Unsupported:
		return s.absent(), true
	case s.stopped != nil:
		return Result{Verdict: Unchecked, Score: halfDoubt, Source: -1, Reason: "too many numbers to compare", Err: s.stopped}, true
	case !s.signs.Checkable() && len(s.versions) == 0:
		return silent("nothing to check"), !s.close(e)
	case s.worded(e):
		return s.supported(e), false
	}
	return Result{Verdict: Unchecked, Score: halfDoubt, Source: -1, Reason: "no model read it"}, false
}

func silent(reason string) Result {
	return Result{Verdict: NotCheckable, Score: noDoubt, Source: -1, Reason: reason}
}

// refuted is the result of a number that is contradicted.
func (s *sight) refuted(e *evidence.Evidence) Result {
	f := s.worst(numeric.Contradicted)
	r := s.numbered(e, f, Contradicted, refutedNumber*(1-min(1, max(0, f.Score))))
	r.Span = s.claim.span(f.Start, f.End)
	return r
}

// spanOf is a place in bytes of a text in code points.
func spanOf(text string, start, end int) claims.Span {
	from := utf8.RuneCountInString(text[:start])
	return claims.Span{Start: from, End: from + utf8.RuneCountInString(text[start:end])}
}

// repeated is the result of a claim that the evidence says word for word.
func (s *sight) repeated(e *evidence.Evidence) Result {
	p := e.Premise(s.verbatim)
	return Result{Verdict: Supported, Score: wordForWord, Source: p.Source, ID: p.ID, Premise: p.Text, By: Sentinel, Reason: "stands in the evidence"}
}

func (s *sight) absent() Result {
	f := s.worst(numeric.Unsupported)
	span := s.claim.span(f.Start, f.End)
	return Result{Verdict: Unsupported, Score: absentNumber, Source: -1, By: Numeric, Reason: string(f.Reason), Span: span}
}

func (s *sight) supported(e *evidence.Evidence) Result {
	f := s.worst(numeric.Supported)
	return s.numbered(e, f, Supported, halfDoubt+halfDoubt*min(1, max(0, f.Score)))
}

// worst is the finding with this verdict whose words agree least, or most for a contradiction.
func (s *sight) worst(v numeric.Verdict) numeric.Finding {
	at := -1
	for i, f := range s.findings {
		if f.Verdict == v && (at < 0 || (f.Score < s.findings[at].Score) == (v == numeric.Supported)) {
			at = i
		}
	}
	return s.findings[at]
}

func (*sight) numbered(e *evidence.Evidence, f numeric.Finding, v Verdict, score float64) Result {
	r := Result{Verdict: v, Score: score, Source: -1, By: Numeric, Reason: string(f.Reason)}
	if f.Sentence >= 0 {
		p := e.Premise(f.Sentence)
		r.Source, r.ID, r.Premise = p.Source, p.ID, p.Text
	}
	return r
}

// close reports whether the evidence speaks of what the claim speaks of, so that a claim without
// any sign is worth a model.
func (s *sight) close(e *evidence.Evidence) bool {
	s.premises = e.For(s.premises[:0], s.claim.Text, s.findings, 1)
	return len(s.premises) > 0 && s.premises[0].Score >= closeShare
}

// rest compares the claim with the premises that a judge would read, the sentences that decided
// about its numbers first.
func (s *sight) rest(e *evidence.Evidence) overlap {
	s.premises = e.For(s.premises[:0], s.claim.Text, s.findings, featurePremises)
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	return m.read(s.claim.Text, s.premises, s.findings)
}

// worded reports whether a claim whose numbers are all supported says nothing else that its
// premises do not say, word for word.
func (s *sight) worded(e *evidence.Evidence) bool {
	if s.numbers != numeric.Supported || s.signs&countable == 0 || s.untold() {
		return false
	}
	o := s.rest(e)
	return plainly(&o) && o.replaced == 0 && o.inserted == 0 && o.dropped == 0 && o.amount == 0 &&
		s.misplaced(e, s.premises) < 0
}

// settled reports whether supported numbers settle a claim that a judge of language does not find
// entailed: they had to be calculated, and the premises hold its names and most of its other words.
func (s *sight) settled(e *evidence.Evidence) bool {
	if s.signs&countable == 0 || !s.calculated() {
		return false
	}
	o := s.rest(e)
	if o.missing > 0 && s.reasoned(numeric.Reached) {
		return false // what happens on that day is not told
	}
	return plainly(&o) && share(o.missing, o.content) <= restShare && !s.compares()
}

// bounded reports whether a number of the claim lies within a bound of the evidence and no other
// one fails: what holds within the bound may hold of it.
func (s *sight) bounded() bool {
	return s.numbers <= numeric.Supported && slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		return f.Reason == numeric.WithinBound || f.Reason == numeric.Multiple || f.Reason == numeric.Difference
	})
}

// held reports whether the evidence holds every number of the claim, as it stands or worked out,
// and every name: then it carries nothing that the evidence does not hold, and words that a judge
// cannot place (a sum of "the two firms", another language) are no reason to call it unsupported,
// unless they are nearly all of it.
func (s *sight) held(e *evidence.Evidence) bool {
	if s.signs&countable == 0 && !s.calculated() || s.numbers != numeric.Supported {
		return false
	}
	o := s.rest(e)
	if s.reasoned(numeric.Reached) {
		o.opposed = 0 // what begins and lasts has an end
	}
	return plainly(&o) &&
		(s.reasoned(numeric.Derived) || s.reasoned(numeric.Reached) || s.reasoned(numeric.Counted) ||
			share(o.missing, o.content) <= heldShare || o.missing <= recordWords && s.recorded())
}

// mostDenied bounds the content words of a denial that a judge may not have understood, and
// sameShare is the share of them in one sentence from which on it denies what that says. Of the
// denials of up to as many that it found neutral or contradicted, of answers about 240 documents,
// 77 were true and 18 false; longer ones, of SummEdits, were false: a negation put into a summary.
// Chosen on these.
const (
	mostDenied = 11
	sameShare  = 0.8
)

// denial reports whether the claim denies something, in few words and those not of one sentence,
// and the evidence holds every name of it. To deny is how an answer tells of an exception or an
// opposite.
func (s *sight) denial(e *evidence.Evidence) bool {
	if s.signs&numeric.HasNegation == 0 || s.signs&(countable|numeric.HasFew) != 0 {
		return false
	}
	o := s.rest(e)
	return o.missingNames == o.missingTools && o.content > 2 && o.content <= mostDenied && o.best < sameShare
}

// recordWords is how many words of its own a claim may have whose numbers stand in a record: "Your
// parcel will be delivered on 4 December" of a date and the name of its field.
const recordWords = 2

// recorded reports whether the premise that fits best is no sentence but a record, such as JSON: it
// has a colon, and no function word that tells what belongs to what.
func (s *sight) recorded() bool {
	if len(s.premises) == 0 || !strings.ContainsRune(s.premises[0].Text, ':') {
		return false
	}
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	m.premise = words.Scan(m.premise[:0], s.premises[0].Text)
	return !slices.ContainsFunc(m.premise, func(w words.Word) bool { return english[w.Hash] || german[w.Hash] })
}

// untold reports whether nothing tells which of two dates of the evidence the claim means.
func (s *sight) untold() bool {
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool { return f.Untold })
}

// reasoned reports whether a number of the claim was worked out of others, or counted, for which
// the claim needs words of its own ("total", "issues" of a list without a name) that no evidence
// has.
func (s *sight) reasoned(how numeric.Reason) bool {
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		return f.Verdict == numeric.Supported && f.Reason == how
	})
}

// heldShare is the share of a claim's words, numbers aside, that the evidence may lack where it
// holds the numbers; chosen on made-up sums and translations.
const heldShare = 0.7

// plainly reports whether nothing turns a claim against its premises: a name, a negation, an
// opposite, a quantity word.
func plainly(o *overlap) bool {
	return o.missingNames == o.missingTools && o.negated == 0 && o.denied == 0 && o.opposed == 0 && o.amount < 1
}

// calculated reports whether all numbers are supported, none being left open, and at least one of them
// needed rounding, conversion or calculation, which a judge of language is no good at.
func (s *sight) calculated() bool {
	open := func(f numeric.Finding) bool { return f.Reason == numeric.Concluded || f.Reason == numeric.Elsewhere }
	if s.numbers != numeric.Supported || slices.ContainsFunc(s.findings, open) {
		return false
	}
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		return f.Verdict == numeric.Supported && f.Reason != numeric.SameValue
	})
}
