package classify

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// sentence is a part of a window that is read by itself.
type sentence struct {
	start, end int // bytes in the unit
	score      float32
}

// lookClosely adds the rows of the second looks for the tasks whose windows have all been read, and
// returns the indices of these rows. Its error is that of ctx.
func (p *pass) lookClosely(ctx context.Context) ([]int32, error) {
	first := len(p.rows)
	for k := range p.plans {
		plan := &p.plans[k]
		t := &p.e.tasks[plan.task]
		if plan.closed || t.Document == nil || t.Document.Close == nil ||
			p.failure(plan, signal.ReasonInternal) != signal.ReasonNone {
			continue
		}
		plan.closed, plan.close.from = true, len(p.reads)
		for i := plan.shares.from; i < plan.shares.to; i++ {
			if err := p.look(ctx, plan.task, &p.shares[i]); err != nil {
				return nil, err
			}
		}
		plan.close.to = len(p.reads)
	}
	var rows []int32
	for r := first; r < len(p.rows); r++ {
		rows = append(rows, int32(r))
	}
	slices.SortStableFunc(rows, func(a, b int32) int { return cmp.Compare(p.tokens(a), p.tokens(b)) })
	return rows, nil
}

// look lets task i read sentences of the window of a share with the greatest log-odds separately,
// if these are high enough. A text whose disguises were removed gets no second look.
func (p *pass) look(ctx context.Context, i int, s *share) error {
	t := &p.e.tasks[i]
	d := t.Document.Close
	s.close = span{len(p.reads), len(p.reads)}
	best, z := p.highest(t, s.reads)
	if s.hit != noHit || best == nil || z < d.From ||
		p.readings[best.reading].key.source != safety {
		return nil
	}
	at := p.extentOf(best)
	text := p.safe.portions[s.portion].unit.text
	found := p.sentences(text, at.from, at.to)
	if len(found) < 2 { // the window itself has been read
		return nil
	}
	chosen := closest(found, d.Sentences)
	for _, k := range chosen {
		if err := p.readAlone(ctx, i, text, found[k].start, found[k].end, 0); err != nil {
			return err
		}
	}
	for k := range found[1:] {
		if d.Tokens == 0 || !slices.Contains(chosen, k) && !slices.Contains(chosen, k+1) {
			continue
		}
		err := p.readAlone(ctx, i, text, found[k].start, found[k+1].end, d.Tokens)
		if err != nil {
			return err
		}
	}
	s.close.to = len(p.reads)
	return nil
}

// highest returns the read with the greatest log-odds, and these; nil if there is none.
func (p *pass) highest(t *task, reads span) (best *read, z float64) {
	for k := reads.from; k < reads.to; k++ {
		if odds := t.logOdds(p.reads[k].out); best == nil || odds > z {
			best, z = &p.reads[k], odds
		}
	}
	return best, z
}

// shortSentence is the minimum length of a sentence in bytes; a shorter one is read together with
// the text that follows it. Single words on lines of their own mean nothing alone and must not
// offset what they mean together.
const shortSentence = 32

// sentences returns the sentences of text[from:to] in order, each with its score of the scan.
func (p *pass) sentences(text string, from, to int) []sentence {
	scanner := p.scanner()
	var found []sentence
	for at := from; at < to; {
		stop := at + sentenceEnd(text[at:to])
		for stop < to && len(strings.TrimSpace(text[at:stop])) < shortSentence {
			stop += sentenceEnd(text[stop:to])
		}
		if part := strings.TrimSpace(text[at:stop]); part != "" {
			s := sentence{start: at + strings.Index(text[at:stop], part)}
			s.end = s.start + len(part)
			if scanner != nil {
				s.score = scanner.Score(part)
			}
			found = append(found, s)
		}
		at = stop
	}
	return found
}

// closest returns the indices of the n sentences that the scan ranks first, in the order of the
// text.
func closest(found []sentence, n int) []int {
	order := make([]int, len(found))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(found[b].score, found[a].score) })
	order = order[:min(n, len(order))]
	slices.Sort(order)
	return order
}

// readAlone lets task i read text[start:end] in a row of its own, cut to a window. It adds nothing
// if the text has no tokens or more than most; most = 0 means no limit. Its error is that of ctx.
func (p *pass) readAlone(ctx context.Context, i int, text string, start, end, most int) error {
	r, at := p.reading(readingKey{source: safety, base: start})
	if err := p.encode(ctx, text[start:end], &r.enc); err != nil {
		return err
	}
	n := len(r.enc.IDs)
	if n == 0 || most > 0 && n+p.e.specials > most {
		return nil
	}
	n = min(n, p.e.tasks[i].Window.Tokens-p.e.specials)
	p.reads = append(p.reads, read{task: int32(i), next: -1, reading: at, to: int32(n)})
	p.rows = append(p.rows, row{
		ids: r.enc.IDs[:n], first: int32(len(p.reads) - 1), tasks: 1 << i, due: noDeadline,
	})
	return nil
}
