package check

import (
	"errors"

	"signalbox/stream/evidence"
)

// opinion is the weighed result of the models.
type opinion uint8

const (
	noOpinion opinion = iota // no model read the claim
	entailed
	neutral
	refuted
	undecided // between the thresholds
)

// Reasons of verdicts based on the models alone.
const (
	judgedFalse   = "contradicted"
	judgedNeutral = "neither entailed nor contradicted"
)

// decide returns the verdict on a claim that the models read, or should have read.
func (c *Checker) decide(e *evidence.Evidence, r *reading) Result {
	quick := r.quick
	support, says := c.weigh(r)
	if says == noOpinion {
		quick.Err = errors.Join(r.judgeErr, r.markErr)
		return quick
	}
	contrast, how := r.contrast()
	if how.contradicts() && (!r.final || quick.Verdict == NotCheckable && !r.mute) && r.marks != clean {
		contrast.Err = errors.Join(r.judgeErr, r.markErr)
		return contrast
	}
	if r.final {
		if quick.Verdict != Supported { // supported by a number, without a model
			quick.Score = c.cap(quick, support)
		}
		return quick
	}
	if c.opts.English && len(r.inf) > 0 && r.marks != marked {
		if out, ok := r.alien(e, support, says); ok {
			r.doubt(e, &out)
			r.spare(e, &out)
			out.Err = errors.Join(r.judgeErr, r.markErr)
			return out
		}
	}
	out := c.rule(e, r, support, says)
	r.doubt(e, &out)
	r.heed(e, &out)
	if r.verbatim >= 0 && (out.Verdict == Unsupported || out.Verdict == Contradicted) {
		out = Result{Verdict: Unchecked, Score: max(out.Score, halfDoubt), Source: -1, By: out.By, Reason: "stands in the evidence, perhaps of something else"}
	}
	if how == affirmed && (out.Reason == judgedNeutral || out.Reason == judgedFalse && out.Source == contrast.Source) {
		out = Result{
			Verdict: Unchecked, Score: max(out.Score, halfDoubt), Source: -1, By: NLI,
			Reason: "told again, or its opposite denied",
		}
	}
	r.spare(e, &out)
	out.Err = errors.Join(r.judgeErr, r.markErr)
	return out
}

// cap returns the support of a claim whose verdict was fixed without a model. The fused support
// includes the numbers, that of a Judge alone does not.
func (c *Checker) cap(quick Result, support float64) float64 {
	switch {
	case quick.Verdict == NotCheckable:
		return support
	case c.opts.Fusion != nil:
		return min(support, halfDoubt) // a number failed
	}
	return min(quick.Score, support)
}

// weigh returns the support of the claim and the opinion of the models. If a Marker marks it, that
// outweighs a Judge that does not contradict.
func (c *Checker) weigh(r *reading) (float64, opinion) {
	if len(r.inf) == 0 {
		switch r.marks {
		case clean:
			return noDoubt, entailed
		case marked:
			return 1 - r.mark, neutral
		case unread:
		}
		return halfDoubt, noOpinion
	}
	support, says := c.judged(r)
	if r.marks == marked && says != refuted {
		return min(support, 1-r.mark), neutral
	}
	return support, says
}

func (c *Checker) judged(r *reading) (float64, opinion) {
	var entail, contra float64
	for _, p := range r.inf {
		entail, contra = max(entail, float64(p.Entailment)), max(contra, float64(p.Contradiction))
	}
	support, t := entail, c.cuts(r)
	if c.opts.Fusion != nil {
		support = c.fused(r)
	}
	switch {
	case support >= t.Supported && (c.opts.Fusion != nil || entail >= contra):
		return support, entailed
	case contra >= t.Contradicted && (c.opts.Fusion == nil || support < t.Unsupported):
		return support, refuted
	case support < t.Unsupported || c.opts.Fusion == nil:
		return support, neutral
	}
	return support, undecided
}

// cuts returns the thresholds for a claim. Sources of at most 150 words have their own.
func (c *Checker) cuts(r *reading) Thresholds {
	switch f := c.opts.Fusion; {
	case f == nil:
		return DefaultThresholds()
	case len(r.found) > 0 && !r.long():
		return f.short
	default:
		return f.thresholds
	}
}

// fused returns the fused support of a claim, in [0,1].
func (c *Checker) fused(r *reading) float64 {
	var room [numFeatures]float64
	return c.opts.Fusion.Support(Features(room[:0], r.claim, r.found, r.findings, r.inf), r.long())
}

// long reports whether the best premise is from a page, a source of more than 150 words.
func (r *reading) long() bool { return len(r.found) > 0 && r.found[0].Page > pageFrom }

// rule turns the opinion of the models into a verdict, following the rules of the package comment.
func (c *Checker) rule(e *evidence.Evidence, r *reading, support float64, says opinion) Result {
	out := Result{Score: support, Source: -1, By: r.by()}
	believed := says == entailed && (len(r.inf) == 0 || r.bet(e, r.found))
	switch {
	case says == entailed && len(r.inf) > 0 && r.stale, says == undecided && r.outdated():
		out = r.replaced(support)
	case says == entailed && !believed && r.otherVersion(e, r.found, r.misplaced(e, r.found)):
		out.Verdict, out.Reason = Contradicted, "told of another version"
		out.Span = r.spanOfVersion(r.versions[0])
		out.name(&r.found[r.misplaced(e, r.found)])
	case says == entailed && !believed:
		out.Verdict, out.Reason = Unchecked, "entailed, but put another way than in the evidence"
	case says == entailed:
		out.Verdict, out.Reason = Supported, "entailed"
		r.name(&out, func(p Inference) float32 { return p.Entailment })
	case r.marks != marked && r.machineMade(says):
		out.Verdict, out.Reason = Unchecked, "its numbers are in the evidence, which is no prose"
	case (says == refuted || says == neutral) && r.replies():
		out.Verdict, out.Reason = Unchecked, "denies what was asked"
	case says == refuted && !r.calculated() && !r.bounded() && !r.among() && !r.denial(e):
		out.Verdict, out.By, out.Reason = Contradicted, NLI, judgedFalse
		r.name(&out, func(p Inference) float32 { return p.Contradiction })
	case r.marks != marked && r.settled(e):
		out = r.supported(e)
		out.Score = max(out.Score, support)
	case says == undecided:
		out.Verdict, out.Reason = Unchecked, "too close to tell"
	case r.bounded():
		out.Verdict, out.Reason = Unchecked, "a number within a bound of the evidence"
	case r.among():
		out.Verdict, out.Reason = Unchecked, "a day among those of the evidence"
	case r.held(e):
		out.Verdict, out.Reason = Unchecked, "its numbers are in the evidence, its words neither entailed nor contradicted"
	case r.signs&carried != 0 && r.denial(e):
		out.Verdict, out.Reason = Unchecked, "a denial, which may tell of an exception or an opposite"
	case r.announces():
		out.Verdict, out.Reason = Unchecked, "announces what follows"
	case r.signs&carried != 0 && r.tellsNothing():
		out.Verdict, out.Reason = Unchecked, "that the text does not say something"
	case r.signs&carried != 0:
		out.Verdict, out.Reason, out.Span = Unsupported, judgedNeutral, r.strangerName(e)
		if out.Span.End <= out.Span.Start && r.detailed() && !c.opts.Strict && support >= c.cuts(r).Alone {
			out.Verdict, out.Reason = Unchecked, "neither entailed nor contradicted, of what the evidence names"
		}
	default:
		out.Verdict, out.Reason = NotCheckable, "neither entailed nor contradicted, and names nothing"
	}
	if r.marks == marked && out.Verdict != Contradicted {
		out.Verdict, out.Reason = Unsupported, "marked"
	}
	return out
}

// by returns the stage whose result decides.
func (r *reading) by() Stage {
	if len(r.inf) == 0 && r.marks != unread || r.marks == marked {
		return Tokens
	}
	return NLI
}

// name records the premise with the highest value of sure in the result.
func (r *reading) name(out *Result, sure func(Inference) float32) {
	if len(r.inf) == 0 {
		return
	}
	best := 0
	for i := range r.inf {
		if sure(r.inf[i]) > sure(r.inf[best]) {
			best = i
		}
	}
	out.name(&r.read[best])
}

// name records the premise that decided.
func (r *Result) name(p *evidence.Premise) {
	r.Source, r.ID, r.Premise = p.Source, p.ID, p.Text
}
