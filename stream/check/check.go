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
	Claim   string // the claim, with the text that it continues in front when it cannot be understood alone
}

// Inference is what a Judge says of a pair: three probabilities in [0,1] that sum to 1.
type Inference struct{ Entailment, Neutral, Contradiction float32 }

// Judge tells whether premises entail claims. Judge returns one Inference for each pair, in order,
// or an error, also the context's; it does not keep the slice. Implementations are safe for
// concurrent use.
type Judge interface {
	Judge(ctx context.Context, pairs []Pair) ([]Inference, error)
}

// Mark is a stretch of an answer that the evidence does not carry.
type Mark struct {
	Start, End int     // bytes of the answer; End is the place after the last
	Score      float64 // probability that it is not carried, [0,1]
}

// Marker finds the stretches of an answer that the evidence does not carry. Mark returns those that
// pass the model's threshold, or an error, also the context's. It does not keep the evidence.
// Implementations are safe for concurrent use.
type Marker interface {
	Mark(ctx context.Context, evidence []string, question, answer string) ([]Mark, error)
}

// Claim is a claim with what is needed to understand it.
type Claim struct {
	Text string
	// Context is the claim before it in the same choice, which a pronoun may point to, or the heads
	// of a Cell. May be empty.
	Context string
	// Question is what the answer answers; may be empty.
	Question string
	Kind     claims.Kind
	// Lead is how much of Text, in bytes, only tells what the claim is about: the names of a Value.
	// Spans are counted from behind it.
	Lead int
	// Frame tells whether it stands in JSON that may be no statement.
	Frame claims.Frame
	// Unfinished: the text stopped in the middle of it. Nobody can tell whether it is true; whether
	// it may be said at all can be.
	Unfinished bool
}

// ClaimOf is a claim of an answer with the one before it.
func ClaimOf(c *claims.Claim, before string) Claim {
	out := Claim{Text: c.Says(), Context: before, Kind: c.Kind, Lead: c.Lead, Frame: c.Frame}
	if c.Kind == claims.Cell || c.Kind == claims.Value {
		out.Context = c.Context
	}
	return out
}

// states is the text of the claim without its lead.
func (c *Claim) states() string { return c.Text[c.Lead:] }

// span is a place in bytes of the text in code points behind the lead; empty where it is of that.
func (c *Claim) span(start, end int) claims.Span {
	if start < c.Lead {
		return claims.Span{}
	}
	return spanOf(c.states(), start-c.Lead, end-c.Lead)
}

// Result is the verdict on one claim.
type Result struct {
	Verdict Verdict
	Score   float64 // support of the claim by the evidence, [0,1]; 1 when it states nothing, 0.5 when nobody read it
	Source  int     // index of the source that decided, -1 when none did
	ID      string  // of that source; may be empty
	Premise string  // text of the evidence that decided; empty with Source -1
	// Span is where the number, the date or the name stands that failed, in code points of the
	// claim, its lead apart; empty where none decided.
	Span   claims.Span
	By     Stage
	Reason string // a few words for the log
	Err    error  // why a model that should have read the claim did not
}

// Options are the readers of a Checker. Without Judge and Marker it works on numbers alone.
type Options struct {
	Judge  Judge
	Marker Marker
	// Fusion weighs the features of a claim together with the Judge's probabilities; nil compares
	// the probabilities with DefaultThresholds. It is not used when there is no Judge.
	Fusion *Fusion
	// Premises is how many premises of a claim the Judge reads, [1, 8]; 0 is 2. Beside a source of
	// more than 150 words it may read one more, gathered from it (evidence.Gather).
	Premises int
	// English says that the Judge reads English alone. What it says of a claim in another language,
	// or beside evidence in one, then counts only where the claim has the words of the evidence;
	// numbers and names decide as far as they can, and the rest is Unchecked.
	English bool
	// Strict flags a claim that the Judge finds neither entailed nor contradicted also where it names
	// nothing that the evidence lacks and its source is a page: more falsehoods are found, and most of
	// what is flagged besides is true.
	Strict bool
	// Time is about how long Text takes where it has much to read, 0 for as long as it needs: after
	// it the Judge is asked no more. It bounds what one text costs on a slow machine, where the
	// bound by tokens does not. The first few dozen pairs are read in any case.
	Time time.Duration
}

const (
	defaultPremises = 2
	maxPremises     = 8
)

// Validate reports every field out of its range.
func (o Options) Validate() error {
	if o.Premises < 0 || o.Premises > maxPremises {
		return fmt.Errorf("premises %d: not in [1, %d]", o.Premises, maxPremises)
	}
	if o.Time < 0 {
		return fmt.Errorf("time %v: negative", o.Time)
	}
	return nil
}

// models reports whether there is one to read claims.
func (c *Checker) models() bool { return c.opts.Judge != nil || c.opts.Marker != nil }

// Checker checks claims. It is immutable and safe for concurrent use.
type Checker struct {
	opts Options
}

// New returns a Checker. It fails when the options do not hold.
func New(o Options) (*Checker, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("claim checker: %w", err)
	}
	o.Premises = cmp.Or(o.Premises, defaultPremises)
	return &Checker{opts: o}, nil
}
