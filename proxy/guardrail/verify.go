package guardrail

import (
	"context"
	"errors"
	"fmt"

	"signalbox/internal/openai"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
	"signalbox/stream/check"
)

// Verdict is the response of POST /signalbox/v1/verify.
type Verdict struct {
	Verdict string         `json:"verdict"` // supported, unsupported or unchecked
	Claims  []VerdictClaim `json:"claims"`  // in the order of the text
}

// VerdictClaim is the verdict on one claim. Start and End are code points in the text.
type VerdictClaim struct {
	Text    string  `json:"text"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Verdict string  `json:"verdict"`
	Score   float64 `json:"score"` // support by the facts, in [0,1]
	// Span is the position of the number, date or name that failed, in code points of the claim
	// from 0: [start, end).
	Span []int `json:"span,omitempty"`
	Fact any   `json:"fact,omitempty"` // the deciding fact: its id, or its index in the request
	// the context that the fact is pinned to, as ID@VERSION
	Context string `json:"context,omitempty"`
	// why it is unchecked, if the text exceeds what is read
	Reason string `json:"reason,omitempty"`
}

// Text is a text whose claims are to be verified.
type Text struct {
	Facts    []openai.Fact
	Contexts *resolve.Contexts // contexts whose facts and texts count as well; nil for none
	Question string            // question that Answer replies to; may be empty
	Answer   string
}

// Verify checks the claims of a text. At most Options.verifiers texts are verified at a time; it
// waits for its turn until ctx ends.
func (w *Guard) Verify(ctx context.Context, in *Text) (*Verdict, error) {
	select {
	case w.verifying <- struct{}{}:
		defer func() { <-w.verifying }()
	case <-ctx.Done():
		return nil, fault.ErrClientGone
	}
	g := grounds{sources: factSources(in.Facts), facts: len(in.Facts)}
	if held := in.Contexts; held.Named() {
		all := w.opts // all texts of the contexts are evidence
		all.Documents, all.ToolResults = true, true
		for _, s := range held.Snaps {
			g.addFacts(s.Facts, resolve.Pointer(s))
		}
		g.fit(all.ofContexts(held, &g))
	}
	e, err := g.prepare(ctx)
	if err != nil {
		return nil, err
	}
	report, err := w.Claims.Checker.Text(ctx, e, in.Question, in.Answer)
	if ctx.Err() != nil {
		return nil, fault.ErrClientGone
	}
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return verdictOf(&report, &g), nil
}

func verdictOf(report *check.Report, g *grounds) *Verdict {
	out := &Verdict{Verdict: report.Verdict.String(), Claims: make([]VerdictClaim, len(report.Claims))}
	for i := range report.Claims {
		c := &report.Claims[i]
		v := VerdictClaim{Text: c.Text, Start: c.Runes.Start, End: c.Runes.End, Verdict: c.Verdict.String(), Score: c.Score}
		if c.Span.End > c.Span.Start && (c.Verdict == check.Unsupported || c.Verdict == check.Contradicted) {
			at := c.Raw(c.Span)
			v.Span = []int{at.Start, at.End}
		}
		if c.Source >= 0 {
			v.Context = g.origin(c.Source)
		}
		if c.Verdict == check.Unchecked && errors.Is(c.Err, check.ErrTooMuch) {
			v.Reason = check.ErrTooMuch.Error()
		}
		switch {
		case c.Source < 0:
		case c.ID != "":
			v.Fact = c.ID
		default:
			v.Fact = c.Source
		}
		out.Claims[i] = v
	}
	return out
}
