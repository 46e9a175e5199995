package classify

import (
	"cmp"
	"context"
	"slices"

	"signalbox/classify/pii"
	"signalbox/internal/signal"
)

// bytesPerToken is about how much text a token of WordPiece or byte-pair vocabularies stands for in
// English; the windows of the scan are so many bytes long for every token of a row.
const bytesPerToken = 4

// wholeBytesPerToken is a length that prose does not have: texts of more bytes for every token that
// may be read whole go to the scan without being counted.
const wholeBytesPerToken = 16

// personalShare is the part of the windows of a selection that is for personal data when attacks are
// looked for as well: 1/personalShare.
const personalShare = 3

// safetyPlan is what the safety signals of a pass read. They share it.
type safetyPlan struct {
	laid     bool
	selected bool    // raw and twin hold a selection
	raw      []int32 // readings of the text as written, in order
	twin     []int32 // readings of its normalised twin
	rawAll   int     // with selected: windows that cover the text as written
	twinAll  int
	rawRead  int // with selected: windows of them that were chosen
	twinRead int

	candidates []candidate
}

// candidate is a window that the trunk may read.
type candidate struct {
	source     source
	start, end int // bytes in the view
	score      float32
	nominated  int // bytes that may be personal data
	picked     bool
}

// planSafety lets task i read everything: personal data in the text as written, attacks in its
// normalised twin as well.
func (p *pass) planSafety(ctx context.Context, i int, need signal.Mask) error {
	if !p.safe.laid {
		if err := p.laySafety(ctx, need); err != nil {
			return err
		}
		p.safe.laid = true
	}
	t := &p.e.tasks[i]
	plan := taskPlan{task: i, reads: span{from: len(p.reads)}}
	plan.windows, plan.read = p.cover(i, p.safe.raw, p.safe.rawAll, p.safe.rawRead)
	if t.kind == signal.Jailbreak {
		windows, read := p.cover(i, p.safe.twin, p.safe.twinAll, p.safe.twinRead)
		plan.windows, plan.read = plan.windows+windows, plan.read+read
	}
	plan.reads.to = len(p.reads)
	switch {
	case plan.reads.from == plan.reads.to:
		plan.failed, plan.windows, plan.read = signal.ReasonNoText, 0, 0
	case plan.windows > 1:
		plan.coverage = signal.Windowed
	}
	p.plans = append(p.plans, plan)
	return nil
}

// cover lets task i read every window of some readings. It returns how many windows cover the text
// and how many of them are read; all and chosen are these numbers of a selection.
func (p *pass) cover(i int, readings []int32, all, chosen int) (windows, read int) {
	w := p.e.tasks[i].Window
	for _, at := range readings {
		n := len(p.readings[at].enc.IDs)
		if n == 0 {
			continue
		}
		cut := p.e.tokens.Windows(n, w.Tokens, w.Stride)
		for k := range cut.Len() {
			from, to := cut.At(k)
			p.add(i, at, from, to)
		}
		windows += cut.Len()
	}
	if p.safe.selected {
		return all, chosen
	}
	return windows, windows
}

// laySafety makes the readings of the safety signals of need: the whole of the text and its twin, or,
// where that is many windows and a scan can tell them apart, a selection of windows.
func (p *pass) laySafety(ctx context.Context, need signal.Mask) error {
	req := p.req
	size, stride := p.safetyWindow(need)
	twinText := ""
	if need.Has(signal.Jailbreak) {
		twinText = req.twin
	}
	selects := req.extent == bestWindows && p.scanner() != nil
	if selects && len(req.safety)+len(twinText) > p.opts.Windows*size*wholeBytesPerToken {
		return p.selectWindows(ctx, need, twinText, size, stride)
	}
	raw, rawAt := p.reading(readingKey{source: safety})
	if err := p.encode(ctx, req.safety, &raw.enc); err != nil {
		return err
	}
	windows := p.e.tokens.Windows(len(raw.enc.IDs), size, stride).Len()
	p.safe.raw = append(p.safe.raw, rawAt)
	if twinText != "" {
		other, at := p.reading(readingKey{source: twin})
		if err := p.encode(ctx, twinText, &other.enc); err != nil {
			return err
		}
		windows += p.e.tokens.Windows(len(other.enc.IDs), size, stride).Len()
		p.safe.twin = append(p.safe.twin, at)
	}
	if selects && windows > p.opts.Windows {
		p.safe.raw, p.safe.twin = p.safe.raw[:0], p.safe.twin[:0]
		return p.selectWindows(ctx, need, twinText, size, stride)
	}
	return nil
}

// scanner returns what ranks windows: the table of the bundle, else that of another one.
func (p *pass) scanner() scanner {
	if p.e.scanner != nil {
		return p.e.scanner
	}
	return p.req.scanner
}

// safetyWindow returns the shortest window of the safety tasks of need, in tokens.
func (p *pass) safetyWindow(need signal.Mask) (size, stride int) {
	for i := range p.e.tasks {
		t := &p.e.tasks[i]
		if t.safety() && need.Has(t.kind) && (size == 0 || t.Window.Tokens < size) {
			size, stride = t.Window.Tokens, t.Window.Stride
		}
	}
	return size, stride
}

// selectWindows makes readings of the windows that are worth the trunk's time.
func (p *pass) selectWindows(ctx context.Context, need signal.Mask, twinText string, size, stride int) error {
	s := &p.safe
	s.selected = true
	for _, v := range []struct {
		source source
		text   string
		all    *int
	}{{safety, p.req.safety, &s.rawAll}, {twin, twinText, &s.twinAll}} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if v.text == "" {
			continue
		}
		for _, w := range p.scanner().Windows(v.text, size*bytesPerToken, stride*bytesPerToken, nil) {
			s.candidates = append(s.candidates, candidate{source: v.source, start: w.Start, end: w.End, score: w.Score})
		}
		*v.all = len(s.candidates) - s.rawAll
	}
	pick(s.candidates, s.rawAll, p.opts.Windows, need, p.req.safety)
	for i := range s.candidates {
		c := &s.candidates[i]
		if !c.picked {
			continue
		}
		text, readings, read := p.req.safety, &s.raw, &s.rawRead
		if c.source == twin {
			text, readings, read = twinText, &s.twin, &s.twinRead
		}
		r, at := p.reading(readingKey{source: c.source, base: c.start})
		if err := p.encode(ctx, text[c.start:c.end], &r.enc); err != nil {
			return err
		}
		*readings = append(*readings, at)
		*read++
	}
	return nil
}

// pick marks the first and the last of the raw windows, which are the first of candidates, and up to
// most others: those that the scan finds most like an attack and, when personal data is needed, those
// with the most text that may be some.
func pick(candidates []candidate, raw, most int, need signal.Mask, text string) {
	if raw > 0 {
		candidates[0].picked, candidates[raw-1].picked = true, true
	}
	order := make([]int32, len(candidates))
	for i := range order {
		order[i] = int32(i)
	}
	attacks := most
	if need.Has(signal.PII) {
		nominate(candidates[:raw], text)
		attacks = most - most/personalShare
	}
	if !need.Has(signal.Jailbreak) {
		attacks = 0
	}
	take := func(n int, worth func(c *candidate) float64, least float64) int {
		slices.SortStableFunc(order, func(a, b int32) int {
			return cmp.Compare(worth(&candidates[b]), worth(&candidates[a]))
		})
		taken := 0
		for _, i := range order {
			if c := &candidates[i]; taken < n && !c.picked && worth(c) > least {
				c.picked = true
				taken++
			}
		}
		return taken
	}
	attack := func(c *candidate) float64 { return float64(c.score) }
	none := -1e300 // every score is above it
	left := most - take(attacks, attack, none)
	if need.Has(signal.PII) {
		left -= take(left, func(c *candidate) float64 { return float64(c.nominated) }, 0)
	}
	if need.Has(signal.Jailbreak) {
		take(left, attack, none)
	}
}

// nominate counts for each window the bytes that may be personal data.
func nominate(windows []candidate, text string) {
	ranges := pii.Nominate(text, nil)
	first := 0
	for i := range windows {
		w := &windows[i]
		for first < len(ranges) && ranges[first].End <= w.start {
			first++
		}
		for k := first; k < len(ranges) && ranges[k].Start < w.end; k++ {
			w.nominated += max(0, min(ranges[k].End, w.end)-max(ranges[k].Start, w.start))
		}
	}
}
