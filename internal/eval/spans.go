package eval

// Spans reports how well the failed claims cover the unsupported parts of answers, in code points
// over all examples whose data has spans. A claim is a whole sentence or clause, so recall is more
// meaningful than precision if spans are single words.
type Spans struct {
	N         int     `json:"n"` // examples with spans
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// scoreSpans compares by code points; nil if no example has spans.
func scoreSpans(examples []Example, answers []Answer) *Spans {
	n, right, wanted, found := 0, 0, 0, 0
	for i := range examples {
		if examples[i].Spans == nil {
			continue
		}
		n++
		want, got := points(*examples[i].Spans), points(answers[i].Spans)
		wanted, found = wanted+len(want), found+len(got)
		for at := range got {
			if want[at] {
				right++
			}
		}
	}
	if n == 0 {
		return nil
	}
	c := newClass(ratio(right, found), ratio(right, wanted), wanted)
	return &Spans{N: n, Precision: c.Precision, Recall: c.Recall, F1: c.F1}
}

// points is the set of code points that spans cover.
func points(spans []Span) map[int]bool {
	out := make(map[int]bool)
	for _, s := range spans {
		for at := s.Start; at < s.End; at++ {
			out[at] = true
		}
	}
	return out
}
