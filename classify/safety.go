package classify

import (
	"context"
	"slices"
	"unicode/utf8"

	"signalbox/classify/pii"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
)

// maxBytesPerToken is about how much text a token of WordPiece or byte-pair vocabularies stands for in
// English; the windows of the scan are at most so many bytes long for every token of a row.
const maxBytesPerToken = 4

// Pieces of a text that are tokenised to learn how long its tokens are.
const (
	samples     = 12
	sampleBytes = 256
)

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

// bytesPerToken estimates how many bytes of text a token stands for, from samples: a window of a dense
// text, such as code or Chinese, is to fit into one row as one of English does.
func (p *pass) bytesPerToken(text string) float64 {
	bytes, tokens := 0, 0
	for i := range samples {
		from := i * len(text) / samples
		to := min(from+sampleBytes, len(text))
		for from < to && !utf8.RuneStart(text[from]) {
			from++
		}
		for to > from && to < len(text) && !utf8.RuneStart(text[to]) {
			to--
		}
		p.e.tokens.Encode(text[from:to], &p.sample)
		bytes, tokens = bytes+to-from, tokens+len(p.sample.IDs)
	}
	return min(max(float64(bytes)/float64(max(tokens, 1)), 1), maxBytesPerToken)
}

// fitRow makes a window that is up to spare tokens too long for a row fit: half of what is too much goes
// from either end, where the windows beside it overlap with it; none from the end of the text that the
// window holds.
func fitRow(enc *tokenize.Encoding, room, spare int, first, last bool) {
	over := len(enc.IDs) - room
	if over <= 0 || over > spare {
		return
	}
	from := over / 2
	switch {
	case first:
		from = 0
	case last:
		from = over
	}
	enc.IDs, enc.Start, enc.End = enc.IDs[from:from+room], enc.Start[from:from+room], enc.End[from:from+room]
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
		unit := p.bytesPerToken(v.text)
		windows, err := p.scanner().Windows(ctx, v.text, int(unit*float64(size)), int(unit*float64(stride)), nil)
		if err != nil {
			return err
		}
		s.candidates = slices.Grow(s.candidates, len(windows))
		for _, w := range windows {
			s.candidates = append(s.candidates, candidate{source: v.source, start: w.Start, end: w.End, score: w.Score})
		}
		*v.all = len(s.candidates) - s.rawAll
	}
	if need.Has(signal.PII) {
		if err := nominate(ctx, s.candidates[:s.rawAll], p.req.safety); err != nil {
			return err
		}
	}
	pick(s.candidates, s.rawAll, p.opts.Windows, need)
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
		fitRow(&r.enc, size-p.e.specials, size-stride, c.start == 0, c.end == len(text))
		*readings = append(*readings, at)
		*read++
	}
	return nil
}

// pick marks the first and the last of the raw windows, which are the first of candidates, and up to
// most others: those that the scan finds most like an attack and, when personal data is needed, those
// with the most text that may be some.
func pick(candidates []candidate, raw, most int, need signal.Mask) {
	if whole := candidates[:raw]; len(whole) > 0 {
		whole[0].picked, whole[len(whole)-1].picked = true, true
	}
	attacks := most
	if need.Has(signal.PII) {
		attacks = most - most/personalShare
	}
	if !need.Has(signal.Jailbreak) {
		attacks = 0
	}
	attack := func(c *candidate) float64 { return 1 + float64(c.score) } // a score of 0 is still a rank
	left := most - take(candidates, attacks, attack)
	if need.Has(signal.PII) {
		left -= take(candidates, left, func(c *candidate) float64 { return float64(c.nominated) })
	}
	if need.Has(signal.Jailbreak) {
		take(candidates, left, attack)
	}
}

// take picks up to n further candidates, those that are worth most, and returns how many it picked. Of
// equal ones it takes the first, and none that is worth nothing.
func take(candidates []candidate, n int, worth func(c *candidate) float64) int {
	if n <= 0 {
		return 0
	}
	best := make([]int, 0, n+1) // indices, the greatest worth first
	for i := range candidates {
		c := &candidates[i]
		w := worth(c)
		if c.picked || w <= 0 || len(best) == n && w <= worth(&candidates[best[n-1]]) {
			continue
		}
		at := len(best)
		for at > 0 && w > worth(&candidates[best[at-1]]) {
			at--
		}
		best = slices.Insert(best, at, i)
		best = best[:min(len(best), n)]
	}
	for _, i := range best {
		candidates[i].picked = true
	}
	return len(best)
}

// nominate counts for each window the bytes that may be personal data. Its error is that of ctx.
func nominate(ctx context.Context, windows []candidate, text string) error {
	ranges, err := pii.Nominate(ctx, text, nil)
	if err != nil {
		return err
	}
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
	return nil
}
