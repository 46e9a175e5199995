package classify

import (
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"signalbox/internal/signal"
)

// recall looks up the remembered verdicts on a portion.
func (p *pass) recall(ctx context.Context, q *portion) error {
	s := &p.safe
	q.hits.from = len(s.hits)
	if p.opts.Memo > 0 {
		for _, k := range q.kinds.Kinds() {
			key, err := p.keyOf(ctx, q, k)
			if err != nil {
				return err
			}
			if m, ok := p.e.memo.get(&key); ok {
				s.hits = append(s.hits, hit{k, m})
				q.missing &^= signal.MaskOf(k)
			}
		}
	}
	q.hits.to = len(s.hits)
	return nil
}

// keyOf returns everything that a signal's verdict on a portion depends on.
func (p *pass) keyOf(ctx context.Context, q *portion, k signal.Kind) (memoKey, error) {
	sum, err := q.unit.digest(ctx)
	key := memoKey{text: sum, kind: k, all: p.safe.all}
	if k == signal.PII && q.kinds&attackKinds != 0 {
		key.kinds = attackKinds // they determine which windows are read
	}
	return key, err
}

// remember stores the verdict of a signal on a portion, if the verdict is complete.
func (p *pass) remember(ctx context.Context, t *task, q *portion, m *memory) {
	if q.cut || p.opts.Memo == 0 {
		return
	}
	if key, err := p.keyOf(ctx, q, t.kind); err == nil {
		p.e.memo.put(&key, m, p.opts.Memo)
	}
}

// verdictOn returns the task's verdict on its share of a text.
func (p *pass) verdictOn(ctx context.Context, t *task, s *share) memory {
	if s.hit != noHit {
		return p.safe.hits[s.hit].memory
	}
	m := memory{windows: s.windows, covering: s.covering, read: s.read}
	var best *read
	reads := p.reads[s.reads.from:s.reads.to]
	for i := range reads {
		if z := t.logOdds(reads[i].out); m.rank(z) == 0 {
			best = &reads[i]
		}
	}
	q := &p.safe.portions[s.portion]
	if best != nil {
		probs := make([]float64, len(t.Labels))
		softmax(probs, best.out, t.Temperature)
		m.probs = make([]float32, len(probs))
		for i, x := range probs {
			m.probs[i] = float32(x)
		}
		m.start, m.end = 0, len(q.unit.text)
		if p.readings[best.reading].key.source == safety {
			at := p.extentOf(best)
			m.start, m.end = p.sentence(q.unit.text, at.from, at.to)
		}
	}
	m.scan = p.scanned(ctx, t, q.unit, best)
	if closest, z := p.highest(t, s.close); closest != nil {
		w := t.Document.Close.Weight
		m.top[0] = (1-w)*m.top[0] + w*z
		at := p.extentOf(closest)
		m.start, m.end = at.from, at.to
	}
	p.remember(ctx, t, q, &m)
	return m
}

// scanned returns what the scan adds to the log-odds of a text, of which best was read and has the
// greatest log-odds: 0 if best is nil or the scan is not used.
func (p *pass) scanned(ctx context.Context, t *task, u *unit, best *read) float64 {
	scanner := p.scanner()
	if best == nil || t.Document == nil || t.Document.Scan == nil || scanner == nil {
		return 0
	}
	ctx = context.WithoutCancel(ctx) // this is one window, and its verdict may be remembered
	text := u.text
	if p.readings[best.reading].key.source == twin {
		var err error
		if text, err = u.normalised(ctx); err != nil {
			return 0
		}
	}
	at := p.extentOf(best)
	windows, err := scanner.Windows(ctx, text[at.from:at.to], at.to-at.from, at.to-at.from, p.safe.windows[:0])
	if p.safe.windows = windows; err != nil {
		return 0
	}
	say, evidence := t.Document.Scan, math.Inf(-1)
	for _, w := range windows {
		evidence = max(evidence, math.Log(float64(w.Score)/(1-float64(w.Score))))
	}
	return say.Weight * min(max(evidence, -say.Bound), say.Bound)
}

// rank inserts z into the greatest log-odds and returns its index, or topWindows if it is not among
// them.
func (m *memory) rank(z float64) int {
	at := m.tops
	for at > 0 && z > m.top[at-1] {
		at--
	}
	if at < topWindows {
		copy(m.top[at+1:], m.top[at:])
		m.top[at] = z
		m.tops = min(m.tops+1, topWindows)
	}
	return at
}

// logOdds returns the log-odds of the positive label from the logits of all labels, at the task's
// temperature.
func (t *task) logOdds(logits []float32) float64 {
	top := math.Inf(-1)
	for i, l := range logits {
		if i != t.positive {
			top = max(top, float64(l)/t.Temperature)
		}
	}
	sum := 0.0
	for i, l := range logits {
		if i != t.positive {
			sum += math.Exp(float64(l)/t.Temperature - top)
		}
	}
	return float64(logits[t.positive])/t.Temperature - top - math.Log(sum)
}

// document returns the probability that a text contains what the task looks for. top holds the
// greatest log-odds of its windows, scan is what the scan adds to them, windows the number of
// windows that cover the text.
func (t *task) document(top []float64, scan float64, windows int) float64 {
	if len(top) == 0 {
		return 0
	}
	z := top[0]
	if d := t.Document; d != nil {
		z = d.Bias + scan - d.Length*math.Log(float64(max(windows, 1)))
		if windows <= 1 {
			z += d.Single
		}
		for k, w := range d.Top {
			z += w * top[min(k, len(top)-1)]
		}
	}
	return 1 / (1 + math.Exp(-z))
}

// tally collects a task's verdicts on several texts. The greatest score of a single text counts, so
// that a harmless text beside an attack does not lower it. Earlier text does not raise the score of
// a conversation either: it had its score when it was the newest.
type tally struct {
	memory
	score float64
	unit  *unit // the text with the greatest score; nil while none was read
}

func (s *tally) add(t *task, m *memory, u *unit, doubt float64) {
	score := t.document(m.top[:m.tops], m.scan, m.covering)
	if doubt != 0 { // subtracted from the log-odds
		score /= score + (1-score)*math.Exp(doubt)
	}
	if m.tops > 0 && (s.unit == nil || score > s.score) {
		s.score, s.unit, s.start, s.end, s.probs = score, u, m.start, m.end, m.probs
	}
	s.windows, s.read = s.windows+m.windows, s.read+m.read
}

// judge sets v to the probability that the texts of the origins that the signal covers contain an
// attack, and to the verdicts per origin.
func (p *pass) judge(ctx context.Context, t *task, plan *taskPlan, v *signal.Value) {
	var by [signal.NumOrigins]tally
	var total tally
	speaks := p.req.origins.score[t.kind]
	for i := plan.shares.from; i < plan.shares.to; i++ {
		s := &p.shares[i]
		m, u := p.verdictOn(ctx, t, s), p.safe.portions[s.portion].unit
		doubt := p.doubt(t.kind, u)
		by[u.origin].add(t, &m, u, doubt)
		if speaks.Has(u.origin) {
			total.add(t, &m, u, doubt)
		}
	}
	for o := range by {
		s := &by[o]
		if s.windows == 0 {
			continue
		}
		verdict := signal.Verdict{Origin: signal.Origin(o), Windows: s.windows, Read: s.read}
		if verdict.Score = s.score; s.unit != nil {
			verdict.Segment = s.unit.segment
			verdict.Start, verdict.End = s.unit.place(s.start, s.end)
		}
		v.Verdicts = append(v.Verdicts, verdict)
	}
	harmless(t, v)
	v.Windows, v.Read = total.windows, total.read
	if v.Coverage = signal.Complete; total.windows > 1 {
		v.Coverage = signal.Windowed
	}
	if total.unit != nil {
		t.conclude(total.score, total.probs, v)
	}
}

// conclude sets the score, label and probabilities of v from probs, the probabilities of one
// window. The other labels share 1-score in the proportions of probs. The label is the positive one
// exactly if score reaches the threshold.
func (t *task) conclude(score float64, probs []float32, v *signal.Value) {
	v.Score = score
	rest := 1 - float64(probs[t.positive])
	best := -1
	for i, q := range probs {
		switch {
		case i == t.positive:
			v.Probs[i] = float32(v.Score)
			continue
		case rest > 0:
			v.Probs[i] = float32(float64(q) / rest * (1 - v.Score))
		default: // none of the other labels has a probability
			v.Probs[i] = float32((1 - v.Score) / float64(len(probs)-1))
		}
		if best < 0 || v.Probs[i] > v.Probs[best] {
			best = i
		}
	}
	if v.Label = t.Labels[best]; v.Score >= t.Threshold {
		v.Label = t.Labels[t.positive]
	}
}

// sentence returns the sentence of text[from:to] that the scan scores highest, or all of it without
// a scan.
func (p *pass) sentence(text string, from, to int) (start, end int) {
	scanner := p.scanner()
	if scanner == nil {
		return from, to
	}
	best := float32(-1)
	start, end = from, to
	for at := from; at < to; {
		stop := at + sentenceEnd(text[at:to])
		if part := strings.TrimSpace(text[at:stop]); part != "" {
			if score := scanner.Score(part); score > best {
				first := at + strings.Index(text[at:stop], part)
				best, start, end = score, first, first+len(part)
			}
		}
		at = stop
	}
	return start, end
}

// sentenceEnd returns the end of the first sentence of text: after a line break, or after . ! or ?
// and the white space that follows. The punctuation marks of Chinese, Japanese, Hindi, Arabic and
// Urdu need no white space.
func sentenceEnd(text string) int {
	for i, r := range text {
		switch r {
		case '\n', '\u3002', '\uff01', '\uff1f', '\u0964', '\u061f', '\u06d4':
			return i + utf8.RuneLen(r)
		case '.', '!', '?':
			if i+1 < len(text) && strings.IndexByte(" \n\r\t", text[i+1]) >= 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
