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

// carried are the signs for which a neutral result makes a claim unsupported: things that evidence
// would have to name. Scripts without letter case do not show their names, so they do not count.
const (
	countable = numeric.HasNumber | numeric.HasDate
	carried   = countable | numeric.HasName | numeric.HasFew
)

// Shares of a claim's words; our choice. A claim without a checkable sign is read only if a premise
// has closeShare of its words by weight. Calculated numbers settle a claim only if at most
// restShare of its other words are missing.
const (
	closeShare = 0.5
	restShare  = 0.5
)

// Support if no model has read the claim.
const (
	noDoubt       = 1.0 // states nothing
	wordForWord   = 0.99
	halfDoubt     = 0.5 // no model read it
	absentNumber  = 0.2
	refutedNumber = 0.1 // lower the more the words around the numbers agree
)

// sight is what is known of a claim without a model. It is scratch space; the zero value is ready
// to use.
type sight struct {
	claim    Claim
	signs    numeric.Signs
	mute     bool // a heading, a question or talk: only its numbers are checked
	counts   bool // its only number counts what follows
	numbers  numeric.Verdict
	findings []numeric.Finding
	premises []evidence.Premise
	verbatim int  // evidence sentence identical to the claim, or -1
	stale    bool // states what was replaced; set by bet
	versions []string
	stopped  error // why the numbers were not all compared
}

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var sights = sync.Pool{New: func() any { return new(sight) }}

// Limits on the work for the numbers of one claim, in steps of numeric.Index.CheckFrom: less than a
// millisecond if a stream is waiting, about fifty on a worker. With 64 KiB of facts, claims with
// few numbers need a tenth of the first.
const (
	quickSteps = 150_000
	checkSteps = 20_000_000
)

// Quick returns the verdict of the sentinel and the numbers, in microseconds and without a model.
// final is false if a model should read the claim; the result then applies if none can. final is
// also false, with the result Unchecked, if comparing the numbers would take a millisecond or more;
// use Check then. Safe for concurrent use; does not allocate in steady state.
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

// lookWithin reads the signs and the numbers of a claim. If there are many numbers, it uses at most
// about the given steps and stops when the context ends. It returns the steps used.
func (s *sight) lookWithin(ctx context.Context, e *evidence.Evidence, claim Claim, steps int) (took int) {
	took = s.glance(e, claim) //nolint:contextcheck // is over sooner than a context could end
	if s.stopped != nil {
		took += s.compare(ctx, e, steps)
	}
	return took
}

// glance reads the signs of a claim, and its numbers as far as that is quick. It returns the steps
// used.
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

// compare compares the numbers of the claim with the evidence and returns the steps used.
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

// verdict returns the verdict without a model. final is false if a model could change it.
func (s *sight) verdict(e *evidence.Evidence) (r Result, final bool) {
	odd, strange := s.version(e)
	r, final = s.verdictStated(e)
	if strange && !s.mute && s.claim.Kind != claims.Code && r.Verdict < Unsupported {
		r, final = odd, true
	}
	s.spare(e, &r)
	return r, final
}

// verdictStated is verdict without the handling of versions and examples.
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

// refuted returns the result for a contradicted number.
func (s *sight) refuted(e *evidence.Evidence) Result {
	f := s.worst(numeric.Contradicted)
	r := s.numbered(e, f, Contradicted, refutedNumber*(1-min(1, max(0, f.Score))))
	r.Span = s.claim.span(f.Start, f.End)
	return r
}

// spanOf converts a byte range of a text to code points.
func spanOf(text string, start, end int) claims.Span {
	from := utf8.RuneCountInString(text[:start])
	return claims.Span{Start: from, End: from + utf8.RuneCountInString(text[start:end])}
}

// repeated returns the result for a claim that the evidence contains word for word.
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

// worst returns the finding with the given verdict whose words agree least for Supported, or most
// otherwise. There must be one.
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

// close reports whether the evidence is about the claim's subject, so that a claim without any sign
// is worth a model.
func (s *sight) close(e *evidence.Evidence) bool {
	s.premises = e.For(s.premises[:0], s.claim.Text, s.findings, 1)
	return len(s.premises) > 0 && s.premises[0].Score >= closeShare
}

// rest compares the claim with the premises that a judge would read. Sentences that decided on its
// numbers come first.
func (s *sight) rest(e *evidence.Evidence) overlap {
	s.premises = e.For(s.premises[:0], s.claim.Text, s.findings, featurePremises)
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	return m.read(s.claim.Text, s.premises, s.findings)
}

// worded reports whether all numbers of a claim are supported and the premises also contain
// everything else it says, word for word.
func (s *sight) worded(e *evidence.Evidence) bool {
	if s.numbers != numeric.Supported || s.signs&countable == 0 || s.untold() {
		return false
	}
	o := s.rest(e)
	return plainly(&o) && o.replaced == 0 && o.inserted == 0 && o.dropped == 0 && o.amount == 0 &&
		s.misplaced(e, s.premises) < 0
}

// settled reports whether supported numbers settle a claim that the judge does not find entailed:
// they had to be calculated, and the premises contain its names and most of its other words.
func (s *sight) settled(e *evidence.Evidence) bool {
	if s.signs&countable == 0 || !s.calculated() {
		return false
	}
	o := s.rest(e)
	if o.missing > 0 && s.reasoned(numeric.Reached) {
		return false // the evidence does not say what happens on that day
	}
	return plainly(&o) && share(o.missing, o.content) <= restShare && !s.compares()
}

// bounded reports whether a number of the claim is within a bound or may be calculated, and no
// other number fails. The claim may then be true.
func (s *sight) bounded() bool {
	return s.numbers <= numeric.Supported && slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		return f.Reason == numeric.WithinBound || f.Reason == numeric.Multiple || f.Reason == numeric.Difference
	})
}

// held reports whether the evidence contains every number of the claim, directly or by calculation,
// and every name. Then words that a judge cannot relate (a sum of "the two firms", another
// language) do not make the claim unsupported, unless nearly all of its words are missing.
func (s *sight) held(e *evidence.Evidence) bool {
	if s.signs&countable == 0 && !s.calculated() || s.numbers != numeric.Supported {
		return false
	}
	o := s.rest(e)
	if s.reasoned(numeric.Reached) {
		o.opposed = 0 // something with a start and a length has an end
	}
	return plainly(&o) &&
		(s.reasoned(numeric.Derived) || s.reasoned(numeric.Reached) || s.reasoned(numeric.Counted) ||
			share(o.missing, o.content) <= heldShare || o.missing <= recordWords && s.recorded())
}

// mostDenied is the maximum number of content words in a denial that a judge may have
// misunderstood. sameShare is their share in one sentence from which the claim denies that
// sentence. Both were chosen on answers about 240 documents: of the denials up to this length that
// the judge found neutral or contradicted, 77 were true and 18 false. Longer ones, from SummEdits,
// were false: a negation inserted into a summary.
const (
	mostDenied = 11
	sameShare  = 0.8
)

// denial reports whether the claim is a short denial whose words are not from one sentence and
// whose names are all in the evidence. Answers express exceptions and opposites in this way.
func (s *sight) denial(e *evidence.Evidence) bool {
	if s.signs&numeric.HasNegation == 0 || s.signs&(countable|numeric.HasFew) != 0 {
		return false
	}
	o := s.rest(e)
	return o.missingNames == o.missingTools && o.content > 2 && o.content <= mostDenied && o.best < sameShare
}

// recordWords is how many words of its own a claim may have if its numbers are in a record: "Your
// parcel will be delivered on 4 December" for a date and its field name.
const recordWords = 2

// recorded reports whether the best premise is a record, such as JSON, and not a sentence: it has a
// colon and no function word.
func (s *sight) recorded() bool {
	if len(s.premises) == 0 || !strings.ContainsRune(s.premises[0].Text, ':') {
		return false
	}
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	m.premise = words.Scan(m.premise[:0], s.premises[0].Text)
	return !slices.ContainsFunc(m.premise, func(w words.Word) bool { return english[w.Hash] || german[w.Hash] })
}

// untold reports whether it is unclear which of two dates of the evidence the claim means.
func (s *sight) untold() bool {
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool { return f.Untold })
}

// reasoned reports whether a number of the claim is supported for the given reason. A calculated or
// counted number needs words ("total", "issues" for an untitled list) that the evidence does not
// contain.
func (s *sight) reasoned(how numeric.Reason) bool {
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		return f.Verdict == numeric.Supported && f.Reason == how
	})
}

// heldShare is the share of a claim's content words that may be missing if the evidence contains
// its numbers; chosen on generated sums and translations.
const heldShare = 0.7

// plainly reports whether nothing reverses a claim relative to its premises: no missing name, no
// negation, opposite or quantity word.
func plainly(o *overlap) bool {
	return o.missingNames == o.missingTools && o.negated == 0 && o.denied == 0 && o.opposed == 0 && o.amount < 1
}

// calculated reports whether all numbers are supported, none is left open, and at least one needed
// rounding, conversion or calculation, at which language models are poor.
func (s *sight) calculated() bool {
	open := func(f numeric.Finding) bool { return f.Reason == numeric.Concluded || f.Reason == numeric.Elsewhere }
	if s.numbers != numeric.Supported || slices.ContainsFunc(s.findings, open) {
		return false
	}
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		return f.Verdict == numeric.Supported && f.Reason != numeric.SameValue
	})
}
