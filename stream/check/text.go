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

// Report is the result for a whole text.
type Report struct {
	Verdict Verdict
	Claims  []Checked
	// Support is the lowest support, in [0,1], of a claim that states something. If no claim does,
	// headings, questions and talk count, if a model read them. It is 1 if there are no words. The
	// score of a text in the grounding task is 1 - Support.
	Support float64
}

// Checked is a claim with its position in the text and its verdict.
type Checked struct {
	claims.Claim
	Result
}

// Text splits a whole text and checks its claims, each with the previous one as context. Unlike
// Check, it lets the models read every claim that counts for Report.Support, even if that cannot
// change the verdict, so that each has a model's score. If the work for one text is used up, the
// remaining claims are Unchecked with ErrTooMuch. Failures of models are reported in the results.
// Text returns an error only if the splitter fails, or if ctx ends before all claims were looked
// at. Safe for concurrent use.
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

// Limits on the work for one text. 64 KiB of prose with as much evidence uses a fifth of the steps,
// which leaves the rest for the model. A step takes 6 to 11 ns. A token of the embedded model takes
// 80 us on a core with AVX-512 VNNI, and 280 us on one with AVX2 only; there, Options.Time keeps a
// text made to be slow within two seconds of processor time (go test ./internal/app -run
// VerifyingAFlood, run by make test-timed).
const (
	textSteps  = 100_000_000 // in steps of numeric.Index.CheckFrom
	textTokens = 20_000      // of the pairs for a Judge; about 110 claims of prose
	// stepsPerToken is how many steps reduce the Judge's quota by one token.
	stepsPerToken = 6_250
	// portionTokens is how many tokens a Judge reads between two checks of the time limit.
	portionTokens = 1_500
	// lookSteps is the charge for searching one evidence sentence for the words of a claim.
	lookSteps = 10
)

// tokensBeside returns how many tokens remain for a Judge after the given steps.
func tokensBeside(steps int) int { return textTokens - min(steps, textSteps)/stepsPerToken }

// ErrTooMuch is wrapped by Result.Err for claims beyond the limit on the work for one text.
var ErrTooMuch = errors.New("more claims than are read of one text")

func split(answer string) ([]claims.Claim, error) {
	splitter, err := claims.New(claims.Options{Values: true})
	if err != nil {
		return nil, fmt.Errorf("split answer: %w", err)
	}
	list := append([]claims.Claim(nil), splitter.Feed(answer)...)
	return append(list, splitter.Flush()...), nil
}

// readings looks at all claims of a text. The context of a claim is the last text claim before it,
// or the heads of a cell. readings returns three things: the results without a model, the claims
// that count for the support of the text, and their positions. Claims that state something count,
// or if there is none, all that have words; code never counts. readings subtracts its work from
// *steps. Claims after the steps are used up are Unchecked with ErrTooMuch. If ctx has ended, the
// results must not be used.
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

// hasWord reports whether a text has letters or digits, and not only punctuation and pictures.
func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
