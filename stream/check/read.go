package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
)

// featurePremises is how many premises the features use. The judge reads the first Options.Premises
// of them, and for a page also a gathered premise.
const featurePremises = 4

// pageFrom is the number of words of a source up to which only windows are read. A longer source is
// a page: the judge also reads the sentences of the best premise's page that together contain most
// of the claim. They replace the last window if it is from the same page. Other sources are read in
// any case.
const pageFrom = 150

// maxContext is the maximum length, in bytes, of the previous claim that is read with one that
// begins with a pronoun. It fits a sentence and leaves room for premise and claim in a row of the
// model.
const maxContext = 200

// errJudge is wrapped if the result of a Judge is invalid.
var errJudge = errors.New("judge's answer is no use")

// reading is a claim while the models read it.
type reading struct {
	sight

	at         int // index in the list of claims
	quick      Result
	final      bool // no model can change quick
	hypothesis string
	found      []evidence.Premise // best first, then what fill added
	// read is what the judge reads: the first of found, and what was gathered from a page.
	read     []evidence.Premise
	pairs    []int // index of the inference for each premise in read
	inf      []Inference
	judgeErr error
	marks    marking
	mark     float64 // score of the worst mark on the claim
	markErr  error
}

// marking is the result of a Marker for a claim.
type marking uint8

const (
	unread marking = iota
	clean
	marked
)

// Check returns the verdicts on claims, in order. All pairs of all claims go to the Judge in one
// call, each pair once; claims for which Quick is final do not. If a Judge or Marker fails or ctx
// ends, the result is that of Quick, with Err set.
func (c *Checker) Check(ctx context.Context, e *evidence.Evidence, question string, list []Claim) []Result {
	out := make([]Result, len(list))
	open := make([]*reading, 0, len(list))
	for i := range list {
		r := &reading{at: i}
		r.lookWithin(ctx, e, list[i], checkSteps)
		r.quick, r.final = r.verdict(e)
		out[i] = r.quick
		if !r.final && c.models() {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		return out
	}
	answer, spans := join(open)
	c.ask(ctx, e, question, answer, spans, open, unbounded())
	for _, r := range open {
		out[r.at] = c.decide(e, r)
	}
	return out
}

// join concatenates the claims to an answer that a Marker can read, and returns their positions in
// it.
func join(open []*reading) (string, []claims.Span) {
	var b strings.Builder
	spans := make([]claims.Span, len(open))
	for i, r := range open {
		if i > 0 {
			b.WriteByte('\n')
		}
		spans[i].Start = b.Len()
		b.WriteString(r.claim.Text)
		spans[i].End = b.Len()
	}
	return b.String(), spans
}

// quota limits what the Judge reads for one text.
type quota struct {
	tokens  int       // in total, for all pairs
	portion int       // per call
	until   time.Time // no further call from then on; zero: no limit
}

// unbounded returns a quota for all pairs, in one call.
func unbounded() quota { return quota{tokens: math.MaxInt, portion: math.MaxInt} }

// ask lets the models read the open claims, the Judge as far as q allows. Claim i is at spans[i] of
// the answer.
func (c *Checker) ask(
	ctx context.Context, e *evidence.Evidence, question, answer string, spans []claims.Span,
	open []*reading, q quota,
) {
	if c.opts.Judge != nil {
		c.judge(ctx, e, open, q)
	}
	c.mark(ctx, e, question, answer, spans, open)
}

// judge finds the premises of the claims and lets the Judge read each pair once, in portions.
// Claims beyond the quota get ErrTooMuch.
func (c *Checker) judge(ctx context.Context, e *evidence.Evidence, open []*reading, q quota) {
	var inf []Inference
	place := map[Pair]int{}
	for len(open) > 0 {
		if q.tokens <= 0 || inf != nil && !q.until.IsZero() && !time.Now().Before(q.until) {
			for _, r := range open {
				r.judgeErr = fmt.Errorf("judge claims: %w", ErrTooMuch)
			}
			return
		}
		n, batch := c.portion(ctx, e, open, &q, place)
		got, err := c.infer(ctx, batch)
		if err != nil {
			for _, r := range open {
				r.judgeErr = err
			}
			return
		}
		inf = append(inf, got...)
		for _, r := range open[:n] {
			for _, at := range r.pairs {
				r.inf = append(r.inf, inf[at])
			}
		}
		open = open[n:]
	}
}

// portion prepares the first claims of open, as many as fit one call of the Judge and at least one.
// It returns their number, and their pairs that were in no earlier portion. place maps each pair to
// the index of its inference.
func (c *Checker) portion(
	ctx context.Context, e *evidence.Evidence, open []*reading, q *quota, place map[Pair]int,
) (n int, batch []Pair) {
	for left := q.portion; n < len(open) && left > 0 && q.tokens > 0; n++ {
		if n > 0 && ctx.Err() != nil {
			break // infer returns the error
		}
		r := open[n]
		r.prepare(e, c.opts.Premises)
		for _, p := range r.read {
			pair := Pair{Premise: p.Text, Claim: r.hypothesis}
			tokens := pair.tokens()
			q.tokens -= tokens
			at, known := place[pair]
			if !known {
				at = len(place)
				place[pair], batch = at, append(batch, pair)
				left -= tokens
			}
			r.pairs = append(r.pairs, at)
		}
	}
	return n, batch
}

// tokens estimates the number of tokens of a pair: one for every four letters of a word, and one
// for every other byte except spaces.
func (p *Pair) tokens() int {
	n, letters := 3, 0 // special tokens
	for _, s := range [...]string{p.Premise, p.Claim} {
		for i := range len(s) {
			switch c := s[i]; {
			case 'a' <= c|0x20 && c|0x20 <= 'z':
				if letters%4 == 0 {
					n++
				}
				letters++
				continue
			case c != ' ' && c != '\n':
				n++
			}
			letters = 0
		}
		letters = 0
	}
	return n
}

// infer calls the Judge and validates its result.
func (c *Checker) infer(ctx context.Context, batch []Pair) ([]Inference, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("judge claims: %w", err)
	}
	if len(batch) == 0 {
		return nil, nil
	}
	inf, err := c.opts.Judge.Judge(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("judge claims: %w", err)
	}
	if len(inf) != len(batch) {
		return nil, fmt.Errorf("judge claims: %w: %d for %d pairs", errJudge, len(inf), len(batch))
	}
	for _, p := range inf {
		for _, x := range [...]float32{p.Entailment, p.Neutral, p.Contradiction} {
			if !(x >= 0 && x <= 1) {
				return nil, fmt.Errorf("judge claims: %w: probability %v", errJudge, x)
			}
		}
	}
	return inf, nil
}

// prepare finds the premises of a claim, of which the judge reads the first ones. A claim that
// begins with a pronoun is searched for, and read, together with the previous claim.
func (r *reading) prepare(e *evidence.Evidence, read int) {
	r.hypothesis = r.claim.alone()
	r.found = fill(e, e.For(nil, r.hypothesis, r.findings, max(featurePremises, read)), read)
	r.read = r.found[:min(len(r.found), read)]
	if len(r.read) == 0 || !r.long() {
		return
	}
	page := r.found[0].Source
	if p := e.Gather(r.hypothesis, page); p.Text != "" {
		keep := len(r.read)
		if keep == read && keep > 1 && r.read[keep-1].Source == page {
			keep--
		}
		r.read = append(slices.Clone(r.read[:keep]), p)
	}
}

// alone returns the claim as a text that can be understood without the rest of the answer: a cell
// with its heads, a claim that begins with a pronoun with the previous claim.
func (c *Claim) alone() string {
	switch {
	case c.Context == "":
	case c.Kind == claims.Cell:
		return c.Context + ": " + c.Text
	case continues(c.Text):
		return clip(c.Context) + " " + c.Text
	}
	return c.Text
}

// clip cuts a context to at most maxContext bytes, after a whole word if possible.
func clip(s string) string {
	if len(s) <= maxContext {
		return s
	}
	end := maxContext
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	if at := strings.LastIndexByte(s[:end], ' '); at > 0 {
		end = at
	}
	return s[:end]
}

// mark lets the Marker read the answer. A claim is marked if a mark overlaps it.
func (c *Checker) mark(ctx context.Context, e *evidence.Evidence, question, answer string, spans []claims.Span, open []*reading) {
	if c.opts.Marker == nil {
		return
	}
	var marks []Mark
	err := ctx.Err()
	if err == nil {
		marks, err = c.opts.Marker.Mark(ctx, e.Texts(), question, answer)
	}
	for _, r := range open {
		if err != nil {
			r.markErr = fmt.Errorf("mark answer: %w", err)
			continue
		}
		r.marks = clean
	}
	for _, m := range marks {
		i, _ := slices.BinarySearchFunc(spans, m.Start, func(s claims.Span, at int) int { return cmp.Compare(s.End, at+1) })
		for ; i < len(spans) && spans[i].Start < m.End; i++ {
			open[i].marks, open[i].mark = marked, max(open[i].mark, min(1, m.Score))
		}
	}
}
