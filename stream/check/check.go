package check

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"signalbox/stream/claims"
)

// Pair is what a Judge reads together.
type Pair struct {
	Premise string // text of the evidence
	// Claim is the claim, preceded by the text it continues if it cannot be understood alone.
	Claim string
}

// Inference is what a Judge returns for a pair: three probabilities in [0,1] that sum to 1.
type Inference struct{ Entailment, Neutral, Contradiction float32 }

// Judge decides whether premises entail claims. Method Judge returns one Inference per pair, in
// order, or an error, including that of the context. It does not keep the slice. Implementations
// must be safe for concurrent use.
type Judge interface {
	Judge(ctx context.Context, pairs []Pair) ([]Inference, error)
}

// Mark is a stretch of an answer that the evidence does not support.
type Mark struct {
	Start, End int     // byte range in the answer; End is exclusive
	Score      float64 // probability that it is not supported, [0,1]
}

// Marker finds the stretches of an answer that the evidence does not support. Mark returns those
// above the model's threshold, or an error, including that of the context. It does not keep the
// evidence. Implementations must be safe for concurrent use.
type Marker interface {
	Mark(ctx context.Context, evidence []string, question, answer string) ([]Mark, error)
}

// Claim is a claim with what is needed to understand it.
type Claim struct {
	Text string
	// Context is the previous claim of the same choice, which a pronoun may refer to, or the heads
	// of a Cell. May be empty.
	Context string
	// Question is what the answer responds to; may be empty.
	Question string
	Kind     claims.Kind
	// Lead is the length, in bytes, of the start of Text that only says what the claim is about:
	// the names of a Value. Spans are counted from its end.
	Lead int
	// Frame says whether the claim is in JSON that may not be a statement.
	Frame claims.Frame
	// Unfinished is set if the text stopped in the middle of the claim. It cannot be verified then,
	// but it can still be refuted.
	Unfinished bool
}

// ClaimOf returns a claim of an answer, with the previous claim as its context.
func ClaimOf(c *claims.Claim, before string) Claim {
	out := Claim{Text: c.Says(), Context: before, Kind: c.Kind, Lead: c.Lead, Frame: c.Frame}
	if c.Kind == claims.Cell || c.Kind == claims.Value {
		out.Context = c.Context
	}
	return out
}

// states returns the text of the claim without its lead.
func (c *Claim) states() string { return c.Text[c.Lead:] }

// span converts a byte range of the text to code points after the lead. It is empty if the range
// starts in the lead.
func (c *Claim) span(start, end int) claims.Span {
	if start < c.Lead {
		return claims.Span{}
	}
	return spanOf(c.states(), start-c.Lead, end-c.Lead)
}

// Result is the verdict on one claim.
type Result struct {
	Verdict Verdict
	// Score is the support of the claim by the evidence, in [0,1]: 1 if it states nothing, 0.5 if
	// no model read it.
	Score   float64
	Source  int    // index of the source that decided, or -1
	ID      string // ID of that source; may be empty
	Premise string // evidence text that decided; empty with Source -1
	// Span is the position of the number, date or name that failed, in code points of the claim
	// without its lead. It is empty if none decided.
	Span   claims.Span
	By     Stage
	Reason string // a few words for the log
	Err    error  // why a model that should have read the claim did not
}

// Options configure a Checker. Without Judge and Marker it checks numbers only.
type Options struct {
	Judge  Judge
	Marker Marker
	// Fusion combines the features of a claim with the Judge's probabilities. If it is nil, the
	// probabilities are compared with DefaultThresholds. It is not used without a Judge.
	Fusion *Fusion
	// Premises is how many premises of a claim the Judge reads, in [1, 8]; 0 selects the default of
	// 2. For a source of more than 150 words it may read one more, gathered from the source
	// (evidence.Gather).
	Premises int
	// English says that the Judge reads only English. Its result for a claim or evidence in another
	// language then counts only if the claim has the words of the evidence. Numbers and names
	// decide as far as they can, and other claims are Unchecked.
	English bool
	// Strict also flags a claim that the Judge finds neither entailed nor contradicted if the
	// evidence has all its names and its best source has at least 60 words. This finds more false
	// claims, but most of the additional flags are on true ones.
	Strict bool
	// Time is the approximate limit for Text, or 0 for no limit. After it, the Judge receives no
	// more pairs. It limits the cost of one text on a slow machine, where the limit by tokens does
	// not. The first few dozen pairs are read in any case.
	Time time.Duration
}

const (
	defaultPremises = 2
	maxPremises     = 8
)

// Validate returns an error if a field is out of range.
func (o Options) Validate() error {
	if o.Premises < 0 || o.Premises > maxPremises {
		return fmt.Errorf("premises %d: not in [1, %d]", o.Premises, maxPremises)
	}
	if o.Time < 0 {
		return fmt.Errorf("time %v: negative", o.Time)
	}
	return nil
}

// models reports whether there is a model to read claims.
func (c *Checker) models() bool { return c.opts.Judge != nil || c.opts.Marker != nil }

// Checker checks claims. It is immutable and safe for concurrent use.
type Checker struct {
	opts Options
}

// New returns a Checker, or an error if the options are invalid.
func New(o Options) (*Checker, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("claim checker: %w", err)
	}
	o.Premises = cmp.Or(o.Premises, defaultPremises)
	return &Checker{opts: o}, nil
}
