package classify

import (
	"cmp"
	"slices"
	"time"

	"signalbox/classify/pii"
	"signalbox/internal/signal"
)

// entities sets v to the personal data in every segment: what patterns prove, and what the model
// sees. Known without labels means that nothing was found.
func (p *pass) entities(t *task, plan *taskPlan, v *signal.Value) {
	tokens := p.classifyTokens(t, p.reads[plan.reads.from:plan.reads.to])
	spansOf(p.req, t.decoder, tokens, v)
}

// classifyTokens returns the tokens of the reads of a task with their probabilities, in the order of
// the text. Offsets are bytes in the safety view. Where windows overlap, each half of the overlap
// belongs to the window whose middle is nearer: a token is best understood with text on both sides.
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

// extentOf returns the bytes of the safety view that a read covers.
func (p *pass) extentOf(r *read) span {
	src := &p.readings[r.reading]
	if r.from == r.to {
		return span{src.key.base, src.key.base}
	}
	return span{src.key.base + int(src.enc.Start[r.from]), src.key.base + int(src.enc.End[r.to-1])}
}

// spansOf finds personal data in every segment of req and sets v to it. tokens are in the order of
// the safety view; dec is nil where there are none.
func spansOf(req *request, dec *pii.Decoder, tokens []pii.Token, v *signal.Value) {
	v.State = signal.Known
	var patterns, found []pii.Span
	for i := range req.text.Segments {
		text := req.text.Segments[i].Text
		if text == "" {
			continue
		}
		from, to := req.starts[i], req.starts[i]+len(text)
		first := 0
		for first < len(tokens) && tokens[first].End <= from {
			first++
		}
		last := first
		for last < len(tokens) && tokens[last].Start < to {
			tokens[last].Start = max(tokens[last].Start, from) - from // some tokenizers join a line break to a word
			tokens[last].End = min(tokens[last].End, to) - from
			last++
		}
		patterns = pii.Patterns(text, patterns[:0])
		found = patterns
		if dec != nil {
			found = dec.Fuse(text, patterns, tokens[first:last], nil)
		}
		tokens = tokens[last:]
		for _, s := range found {
			v.Spans = append(v.Spans, signal.Span{Type: s.Type, Segment: i, Start: s.Start, End: s.End, Score: s.Score})
			note(v, s.Type, s.Score)
		}
	}
}

// patternsOnly finds personal data without a model, for configurations that ask for that.
func patternsOnly(req *request) signal.Value {
	start := time.Now()
	v := signal.Value{Source: PatternsModel}
	spansOf(req, nil, nil, &v)
	v.Elapsed = time.Since(start)
	return v
}

// note keeps the best score of each type.
func note(v *signal.Value, name string, score float64) {
	at := slices.Index(v.Labels, name)
	if at < 0 {
		at = len(v.Labels)
		v.Labels, v.Probs = append(v.Labels, name), append(v.Probs, 0)
	}
	v.Probs[at] = max(v.Probs[at], float32(score))
	v.Score = max(v.Score, score)
}
