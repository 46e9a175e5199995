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

// featurePremises is how many premises the features look at; the judge reads the first
// Options.Premises of them, and of a page what pageFrom says.
const featurePremises = 4

// pageFrom is how many words a source has at most of which windows are read alone. A longer one is
// a page: of the best premise's page the judge reads the sentences that hold most of the claim
// between them as well, in the place of the last window if that is of the same page. What another
// source says is read in any case.
const pageFrom = 150

// maxContext bounds what of the claim before is read with one that begins with a pronoun, in bytes:
// enough for a sentence, and little enough that premise and claim still fit a row of the model.
const maxContext = 200

// errJudge is wrapped when a Judge answers with something that is no answer.
var errJudge = errors.New("judge's answer is no use")

// reading is a claim on its way through the models.
type reading struct {
	sight

	at         int // in the list of claims
	quick      Result
	final      bool // no model can change quick
	hypothesis string
	found      []evidence.Premise // best first, then what fill added
	read       []evidence.Premise // what the judge reads: the first of found, and what was gathered from a page
	pairs      []int              // of the batch, one for each premise that the judge reads
	inf        []Inference
	judgeErr   error
	marks      marking
	mark       float64 // score of the worst mark on the claim
	markErr    error
}

// marking tells what a Marker said of a claim.
type marking uint8

const (
	unread marking = iota
	clean
	marked
)

// Check gives the verdicts on claims, in their order. All pairs of all claims go to the Judge in
// one call, each once; claims for which Quick is final do not. A Judge or Marker that fails, or a
// ctx that ends, leaves what Quick says, with Err set.
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

// join puts the claims behind each other as an answer that a Marker can read, and tells where each
// of them stands.
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

// quota is what the Judge may read for one text.
type quota struct {
	tokens  int       // of its pairs
	portion int       // tokens of the pairs that it reads in one call
	until   time.Time // from when on no further portion is read; zero for none
}

// unbounded is a quota for all pairs, in one call.
func unbounded() quota { return quota{tokens: math.MaxInt, portion: math.MaxInt} }

// ask lets the models read the open claims, the Judge as far as q goes. Claim i stands at
// spans[i] of the answer.
func (c *Checker) ask(
	ctx context.Context, e *evidence.Evidence, question, answer string, spans []claims.Span,
	open []*reading, q quota,
) {
	if c.opts.Judge != nil {
		c.judge(ctx, e, open, q)
	}
	c.mark(ctx, e, question, answer, spans, open)
}

// judge finds the premises of the claims and lets the Judge read each pair once, in portions. Claims
// for whose premises there is no more room are left with ErrTooMuch.
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

// portion prepares the first claims of open, as many as fit one call of the Judge and at least one,
// and gives how many those are, with their pairs that no portion before had. place holds where in
// the Judge's answers each pair is.
func (c *Checker) portion(
	ctx context.Context, e *evidence.Evidence, open []*reading, q *quota, place map[Pair]int,
) (n int, batch []Pair) {
	for left := q.portion; n < len(open) && left > 0 && q.tokens > 0; n++ {
		if n > 0 && ctx.Err() != nil {
			break // infer says so
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

// tokens is about how many tokens a pair has: a word has one for each four letters, anything else
// one for each byte.
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

// infer asks the Judge and checks its answer.
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

// prepare finds the premises of a claim, read of them for the judge. One that begins with a pronoun
// is looked for, and read, with the claim before it.
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

// alone is the claim as a text that can be understood without the rest of the answer: a cell with
// its heads, a claim that begins with a pronoun with the one before it.
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

// clip cuts a context to maxContext bytes, after a whole word where there is one.
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

// mark lets the Marker read the answer. A claim is marked when a mark covers any of it.
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
