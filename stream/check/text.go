package check

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// Report is the outcome for a whole text.
type Report struct {
	Verdict Verdict
	Claims  []Checked
	// Support is the least support of a claim that states something, [0,1]. Where none does, headings, questions and talk
	// count instead, if a model read them; 1 without any words. The score of a text in the grounding task is 1 - Support.
	Support float64
}

// Checked is a claim with its place in the text and its verdict.
type Checked struct {
	claims.Claim
	Result
}

// Text splits a whole text and checks its claims, each with the one before it as context. Other than Check it lets the
// models read every claim that counts for Report.Support, also where that cannot change the verdict, so that each of
// these has a model's Score. Models that fail show in the results; an error is one of the splitter's options, or that of
// ctx, when it ends before all claims were looked at.
func (c *Checker) Text(ctx context.Context, e *evidence.Evidence, question, answer string) (Report, error) {
	list, err := split(answer)
	if err != nil {
		return Report{}, err
	}
	open, spans := readings(ctx, e, list)
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("check text: %w", err)
	}
	if c.models() {
		c.ask(ctx, e, question, answer, spans, open)
	}
	report := Report{Claims: make([]Checked, len(list)), Support: noDoubt}
	next := 0
	verdicts := make([]Verdict, len(list))
	for i := range list {
		at := &report.Claims[i]
		at.Claim = list[i]
		if next < len(open) && open[next].at == i {
			at.Result = c.decide(e, open[next])
			report.Support = min(report.Support, at.Score)
			next++
		} else {
			var s sight
			s.lookWithin(ctx, e, contextual(list, i))
			at.Result, _ = s.verdict(e)
		}
		verdicts[i] = at.Verdict
	}
	report.Verdict = Overall(verdicts)
	return report, nil
}

func split(answer string) ([]claims.Claim, error) {
	splitter, err := claims.New(claims.Options{})
	if err != nil {
		return nil, fmt.Errorf("split answer: %w", err)
	}
	list := append([]claims.Claim(nil), splitter.Feed(answer)...)
	return append(list, splitter.Flush()...), nil
}

// contextual is claim i with what it may point back to: the last claim before it that is text, or the heads of a cell.
func contextual(list []claims.Claim, i int) Claim {
	c := Claim{Text: list[i].Text, Context: list[i].Context, Kind: list[i].Kind}
	if c.Kind == claims.Cell || c.Context != "" {
		return c
	}
	for i--; i >= 0; i-- {
		if list[i].Kind != claims.Code {
			c.Context = list[i].Text
			break
		}
	}
	return c
}

// readings are the claims that count for the support of a text, with their places in it: those that state something, or,
// where none does, all that have words. Code never counts. They are of no use when ctx has ended.
func readings(ctx context.Context, e *evidence.Evidence, list []claims.Claim) ([]*reading, []claims.Span) {
	if e.Empty() {
		return nil, nil
	}
	var stating, mute []*reading
	for i := range list {
		if ctx.Err() != nil {
			return nil, nil
		}
		if list[i].Kind == claims.Code || !hasWord(list[i].Text) {
			continue
		}
		r := &reading{at: i}
		r.lookWithin(ctx, e, contextual(list, i))
		r.quick, r.final = r.verdict(e)
		if r.mute && r.numbers != numeric.Contradicted {
			mute = append(mute, r)
		} else {
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
	return open, spans
}

// hasWord reports whether there is anything to read but punctuation and pictures.
func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
