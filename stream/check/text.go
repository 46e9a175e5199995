package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// Report is the outcome for a whole text.
type Report struct {
	Verdict Verdict
	Claims  []Checked
	// Support is the least support of a claim that states something, [0,1]. Where none does,
	// headings, questions and talk count instead, if a model read them; 1 without any words. The
	// score of a text in the grounding task is 1 - Support.
	Support float64
}

// Checked is a claim with its place in the text and its verdict.
type Checked struct {
	claims.Claim
	Result
}

// Text splits a whole text and checks its claims, each with the one before it as context. Other
// than Check it lets the models read every claim that counts for Report.Support, also where that
// cannot change the verdict, so that each of these has a model's Score, as far as the work for one
// text goes: claims behind that are Unchecked with ErrTooMuch. Models that fail show in the
// results; an error is one of the splitter's options, or that of ctx, when it ends before all
// claims were looked at.
func (c *Checker) Text(ctx context.Context, e *evidence.Evidence, question, answer string) (Report, error) {
	list, err := split(answer)
	if err != nil {
		return Report{}, err
	}
	steps, begun := textSteps, time.Now()
	seen, open, spans := readings(ctx, e, question, list, &steps)
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("check text: %w", err)
	}
	if c.models() {
		q := quota{tokens: tokensBeside(textSteps - steps), portion: portionTokens}
		if c.opts.Time > 0 {
			q.until = begun.Add(c.opts.Time)
		}
		c.ask(ctx, e, question, answer, spans, open, q)
	}
	report := Report{Claims: make([]Checked, len(list)), Support: noDoubt}
	for i := range list {
		report.Claims[i] = Checked{list[i], seen[i]}
	}
	for _, r := range open {
		at := &report.Claims[r.at]
		at.Result = c.decide(e, r)
		report.Support = min(report.Support, at.Score)
	}
	verdicts := make([]Verdict, len(list))
	for i := range report.Claims {
		verdicts[i] = report.Claims[i].Verdict
	}
	report.Verdict = Overall(verdicts)
	return report, nil
}

// What is done for one text. Prose of 64 KiB beside as much evidence takes a fifth of the steps, and
// leaves the model the rest. A step takes 6 to 11 ns. A token of the embedded model takes 80 us on a
// core with AVX-512 VNNI, and 280 us on one with AVX2 alone, where Options.Time is what keeps a text
// made up to take long within two seconds of processor time (go test ./internal/app -run
// VerifyingAFlood, by make test-timed).
const (
	textSteps  = 100_000_000 // as numeric.Index.CheckFrom counts them
	textTokens = 20_000      // of the pairs that a Judge reads; about 110 claims of prose
	// stepsPerToken is how many steps take room of the Judge for a token.
	stepsPerToken = 6_250
	// portionTokens is how many tokens of pairs a Judge reads between two looks at the clock.
	portionTokens = 1_500
	// lookSteps is what looking for the words of a claim in one sentence of the evidence counts
	// for.
	lookSteps = 10
)

// tokensBeside is how many tokens are left to a Judge beside so many steps.
func tokensBeside(steps int) int { return textTokens - min(steps, textSteps)/stepsPerToken }

// ErrTooMuch is wrapped by Result.Err for claims behind those for which the work that is done for
// one text was enough.
var ErrTooMuch = errors.New("more claims than are read of one text")

func split(answer string) ([]claims.Claim, error) {
	splitter, err := claims.New(claims.Options{Values: true})
	if err != nil {
		return nil, fmt.Errorf("split answer: %w", err)
	}
	list := append([]claims.Claim(nil), splitter.Feed(answer)...)
	return append(list, splitter.Flush()...), nil
}

// readings looks at all claims of a text with what each may point back to, the last claim before it
// that is text, or the heads of a cell. It gives the results that stand without a model, and, with
// their places, the claims that count for the support of the text: those that state something, or,
// where none does, all that have words. Code never counts. It takes what it needs from steps; claims
// for which these do not suffice are Unchecked with ErrTooMuch. Nothing of it is of use when ctx has
// ended.
func readings(
	ctx context.Context, e *evidence.Evidence, question string, list []claims.Claim, steps *int,
) ([]Result, []*reading, []claims.Span) {
	var stating, mute []*reading
	seen, before := make([]Result, len(list)), ""
	for i := range list {
		if ctx.Err() != nil {
			return nil, nil, nil
		}
		claim := ClaimOf(&list[i], before)
		claim.Question = question
		if claim.Kind != claims.Code {
			before = claim.Text
		}
		r := &reading{at: i}
		if *steps < 0 && claim.Kind != claims.Code {
			seen[i] = Result{Verdict: Unchecked, Score: halfDoubt, Source: -1, Err: ErrTooMuch}
			seen[i].Reason = ErrTooMuch.Error()
			continue
		}
		*steps -= r.lookWithin(ctx, e, claim, min(checkSteps, *steps))
		if !e.Empty() {
			*steps -= lookSteps * e.Len()
		}
		r.quick, r.final = r.verdict(e)
		seen[i] = r.quick
		switch {
		case e.Empty() || claim.Kind == claims.Code || !hasWord(claim.Text):
		case r.mute && r.numbers != numeric.Contradicted:
			mute = append(mute, r)
		default:
			stating = append(stating, r)
		}
	}
	open := stating
	if len(open) == 0 {
		open = mute
	}
	spans := make([]claims.Span, len(open))
	for i, r := range open {
		spans[i] = list[r.at].Bytes
	}
	return seen, open, spans
}

// hasWord reports whether there is anything to read but punctuation and pictures.
func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
