// Package compress shortens a prompt to a skeleton that a small encoder can read in one row. The
// skeleton keeps enough of the text, in its own words and order, to show what the prompt is about
// and what it asks for.
//
// Only signals read the skeleton. The backend receives the whole prompt, and safety signals read
// all of it. Words between the kept pieces are not considered again.
//
// Compress is a funnel of three stages, each one pass over the result of the previous stage:
//
//  1. Structure (structure.go): blocks such as paragraphs, code, tables, records, logs and quotes,
//     cut into pieces: sentences, lines, or parts of bounded size if there are neither.
//  2. Words (words.go, filter.go): the terms of every piece. Pieces without content,
//     near-duplicates and long runs of encoded data are dropped.
//  3. Information (score.go): how much the terms of a piece say about this prompt, measured
//     against how common they are in any text, and how strongly the piece is marked as an
//     instruction, measured against how common such marks are in this prompt.
//
// Then pick.go fills the budget with the two ends of the text, the rarest instructions, and the
// best piece of every stretch of the text, in their original order.
//
// The result depends only on the text and the options. Time and memory are linear in the text up to
// the logarithm of a sort. The package keeps no state, starts no goroutines and is safe for
// concurrent use.
package compress

import (
	"cmp"
	"context"
)

// DefaultBudget is the budget of Options that names none.
const DefaultBudget = 256

// MinBudget is the smallest budget: below it nothing readable is left.
const MinBudget = 16

// Options sets how much text to keep. The zero value keeps DefaultBudget tokens by the package's
// own estimate.
type Options struct {
	// Budget is the maximum number of tokens of the skeleton, without the special tokens that a
	// model adds. 0 means DefaultBudget; less than MinBudget counts as MinBudget. Reloadable.
	Budget int `yaml:"budget"`
	// Count returns the exact number of tokens of a text, for one tokenizer. It must be
	// deterministic, return at most MinBudget for a single character, and return 0 for an empty
	// text. Compress calls it a few times, with texts of about the budget. nil means Estimate.
	Count func(text string) int `yaml:"-"`
}

// Range is the half-open range of bytes text[Start:End].
type Range struct{ Start, End int }

// Result is a skeleton and its origin in the text.
type Result struct {
	// Text is the skeleton: the texts of Ranges, with a line break or a space between two that were
	// not adjacent. It is the whole text if that fits the budget, and empty only if the text is.
	Text string
	// Ranges are the kept pieces, in the order of the text. They do not overlap, are not empty, and
	// start and end between characters.
	Ranges []Range
	// Tokens is the size of Text, by Options.Count or Estimate.
	Tokens int
	// Sentences is the number of pieces read: sentences, lines, or parts of them. 0 if the whole
	// text fits the budget, because then nothing is cut.
	Sentences int
	// Kept is the number of pieces in Text.
	Kept int
	// Hollow is the number of pieces without content: rules, brackets, encoded data.
	Hollow int
	// Duplicates is the number of pieces that nearly repeat an earlier one.
	Duplicates int
}

// Compress returns the skeleton of text. If the text exceeds the budget, the skeleton is not empty,
// never the text itself, and within the budget by o.Count; otherwise it is the text itself. A text
// of more than 64 bytes per token of the budget is assumed to exceed it, whatever Count returns.
// The error is that of ctx, which is checked every few thousand pieces.
func Compress(ctx context.Context, text string, o Options) (Result, error) {
	budget, count := o.Budget, o.Count
	budget = cmp.Or(budget, DefaultBudget)
	budget = max(budget, MinBudget)
	if count == nil {
		count = Estimate
	}
	if len(text) <= budget*longestToken {
		if n := count(text); n <= budget {
			return whole(text, n), nil
		}
	}
	f := newFunnel(text, budget)
	f.done = ctx.Done()
	r, ok := f.run(budget, count)
	if !ok {
		return Result{}, ctx.Err()
	}
	return r, nil
}

// run executes all stages. ok is false if the context ended before.
func (f *funnel) run(budget int, count func(string) int) (r Result, ok bool) {
	if !f.split() || !f.filter() || !f.score() {
		return r, false
	}
	return f.pick(budget, count)
}

// piecesPerLook is the number of pieces processed between two checks of the context, a power of
// two: some 400 KB of text, a few milliseconds in the slowest stage.
const piecesPerLook = 1 << 12

// ended reports whether the context has ended. It checks once per piecesPerLook calls.
func (f *funnel) ended() bool {
	f.calls++
	return f.calls&(piecesPerLook-1) == 0 && f.over()
}

// over is ended with a check in every call.
func (f *funnel) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// longestToken is more than the average number of bytes per token of any meaningful text.
const longestToken = 64

// whole returns the result for a text that fits.
func whole(text string, tokens int) Result {
	r := Result{Text: text, Tokens: tokens}
	if text != "" {
		r.Ranges = []Range{{0, len(text)}}
	}
	return r
}

// funnel is the state passed from stage to stage.
type funnel struct {
	text   string
	done   <-chan struct{} // closed when the result is no longer needed; nil: never
	calls  uint32          // number of calls of ended
	pieces []piece
	terms  []term // of all pieces, those of piece p at p.terms
	// longest is the maximum length of a piece in bytes.
	longest int
	// hollow and duplicates count the pieces that stage 2 removed.
	hollow, duplicates int
}

// piece is the unit that is kept or left out: a sentence, a line, or part of one.
type piece struct {
	start, end int // bytes of the text; no white space at either end
	terms      span
	tokens     int32
	cues       cueSet
	marks      marks
	language   uint8 // index in languages, plus one; 0 if unknown
	topic      float32
	alarm      float32
}

// span is the half-open range [from, to) of a slice.
type span struct{ from, to int32 }

// marks are properties of a piece.
type marks uint8

const (
	leads    marks = 1 << iota // first of its block
	goes                       // continues the previous piece, which was cut for its size
	heading                    // names what follows
	encoded                    // a long run of digits, hexadecimal or base64
	hollow                     // without content
	repeated                   // nearly the same as an earlier piece
	picked                     // part of the skeleton
	out      = encoded | hollow | repeated
)

func newFunnel(text string, budget int) *funnel {
	return &funnel{
		text:    text,
		pieces:  make([]piece, 0, len(text)/bytesPerPiece+1),
		longest: min(max(budget, shortestLimit), longestLimit),
	}
}

// Sizes of pieces, in bytes.
const (
	bytesPerPiece = 96  // for the first allocation
	shortestLimit = 64  // most bytes of a piece at the smallest budgets
	longestLimit  = 280 // and at large ones: a long sentence, about sixty tokens of English
)
