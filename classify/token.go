package classify

import (
	"cmp"
	"context"
	"slices"
	"time"

	"signalbox/classify/pii"
	"signalbox/internal/signal"
)

// entities sets v to the personal data in every segment: the matches of patterns and the findings
// of the model. A known value without labels means that nothing was found.
func (p *pass) entities(ctx context.Context, t *task, plan *taskPlan, v *signal.Value) {
	v.State = signal.Known
	for i := plan.shares.from; i < plan.shares.to; i++ {
		s := &p.shares[i]
		q := &p.safe.portions[s.portion]
		if s.hit != noHit {
			addSpans(v, q.unit, p.safe.hits[s.hit].spans)
			continue
		}
		tokens := p.classifyTokens(t, p.reads[s.reads.from:s.reads.to])
		spans, err := spansOf(ctx, q.unit.text, t.decoder, tokens)
		if err != nil {
			*v = unknown(v, reasonOf(ctx, err))
			return
		}
		addSpans(v, q.unit, spans)
		p.remember(ctx, t, q, &memory{
			spans: spans, windows: s.windows, covering: s.covering,
			read: s.read,
		})
	}
	if v.Coverage = signal.Complete; v.Windows > 1 {
		v.Coverage = signal.Windowed
	}
}

// classifyTokens returns the tokens of a task's reads of one unit with their probabilities, in the
// order of the text. Offsets are bytes of the unit. Where windows overlap, each half of the overlap
// belongs to the window whose middle is nearer, because a token is classified best with text on
// both sides.
func (p *pass) classifyTokens(t *task, reads []read) []pii.Token {
	if len(reads) == 0 {
		return nil
	}
	reads = slices.Clone(reads)
	slices.SortStableFunc(reads, func(a, b read) int { return cmp.Compare(p.extentOf(&a).from, p.extentOf(&b).from) })
	n := 0
	for i := range reads {
		n += int(reads[i].to - reads[i].from)
	}
	width := len(t.Labels)
	tokens := make([]pii.Token, 0, n)
	probs := make([]float32, n*width)
	scratch := make([]float64, width)
	left := -1
	for i := range reads {
		r := &reads[i]
		right := p.extentOf(r).to + 1
		if i+1 < len(reads) {
			if next := p.extentOf(&reads[i+1]).from; next < right {
				right = (next + right) / 2
			}
		}
		src := &p.readings[r.reading]
		for k := r.from; k < r.to; k++ {
			start, end := src.key.base+int(src.enc.Start[k]), src.key.base+int(src.enc.End[k])
			if start < left || start >= right {
				continue
			}
			at := (p.e.lead + int(k-r.from)) * width
			softmax(scratch, r.out[at:at+width], t.Temperature)
			own := probs[len(tokens)*width : (len(tokens)+1)*width : (len(tokens)+1)*width]
			for j, q := range scratch {
				own[j] = float32(q)
			}
			tokens = append(tokens, pii.Token{Start: start, End: end, Probs: own})
		}
		left = right
	}
	return tokens
}

// extentOf returns the bytes of the unit, or of its twin, that a read covers.
func (p *pass) extentOf(r *read) span {
	src := &p.readings[r.reading]
	if r.from == r.to {
		return span{src.key.base, src.key.base}
	}
	return span{src.key.base + int(src.enc.Start[r.from]), src.key.base + int(src.enc.End[r.to-1])}
}

// spansOf finds personal data in the text of a segment. dec is nil if there are no tokens. The
// caller owns the result. Its error is that of ctx.
func spansOf(ctx context.Context, text string, dec *pii.Decoder,
	tokens []pii.Token,
) ([]pii.Span, error) {
	patterns, err := pii.PatternsContext(ctx, text, nil)
	if err != nil || dec == nil {
		return patterns, err
	}
	return dec.FuseContext(ctx, text, patterns, tokens, nil)
}

// addSpans adds the findings in a unit to v, at their positions in its segment.
func addSpans(v *signal.Value, u *unit, spans []pii.Span) {
	for _, s := range spans {
		s = u.plain.Place(s)
		v.Spans = append(v.Spans, signal.Span{
			Type: s.Type, Segment: u.segment, Start: s.Start,
			End: s.End, Score: s.Score,
		})
		note(v, s.Type, s.Score)
	}
}

// patternsOnly finds personal data without a model, for configurations with Options.Patterns.
func patternsOnly(ctx context.Context, req *request) signal.Value {
	start := time.Now()
	v := signal.Value{State: signal.Known, Source: PatternsModel}
	for i := range req.text.Segments {
		spans, err := spansOf(ctx, req.text.Segments[i].Text, nil, nil)
		if err != nil {
			v = unknown(&v, reasonOf(ctx, err))
			break
		}
		addSpans(&v, &unit{segment: i}, spans)
	}
	v.Elapsed = time.Since(start)
	return v
}

// note keeps the highest score of each type.
func note(v *signal.Value, name string, score float64) {
	at := slices.Index(v.Labels, name)
	if at < 0 {
		at = len(v.Labels)
		v.Labels, v.Probs = append(v.Labels, name), append(v.Probs, 0)
	}
	v.Probs[at] = max(v.Probs[at], float32(score))
	v.Score = max(v.Score, score)
}
