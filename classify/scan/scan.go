// Package scan ranks the windows of a long text by how much they look like an attack.
//
// It is the first stage of the safety cascade: a linear model over hashed n-grams is cheap enough
// to read every byte of a long prompt, and its ranking determines which windows a neural model
// reads. It is not a classifier: a score orders the windows of one text and must not be compared
// with a threshold. Its evidence on the window that determines the verdict on a text is a bounded
// part of the text's score (bundle.Say).
//
// The model: every run of 3, 4 and 5 characters and of 1, 2 and 3 words is hashed into one table of
// int8 weights. The evidence of a span is bias + scale * (sum of weights) / sqrt(number of
// n-grams); the training (training/signalbox_training/scan.py) uses the same scaling. A window's
// score is the logistic function of the greatest evidence among the window as a whole and the
// shorter spans inside it, so that a short attack is not diluted by the harmless text around it.
//
// A text is read once: each n-gram is hashed once and added to a running sum, which is recorded
// every 64 bytes; the sum of a span is the difference of two records. Time is linear in the text
// and the loop does not allocate. A Scanner is immutable after Load and safe for concurrent use.
package scan

import (
	"context"
	"math"
	"unicode/utf8"
)

// block is the distance in bytes between the positions where the running sums are recorded. Windows
// and spans start and end at such positions.
const block = 64

// slack is the distance in bytes by which a cut may move back to white space.
const slack = 24

// blocksPerLook is the number of blocks read between two checks of the context: a millisecond or
// two.
const blocksPerLook = 64 << 10 / block

// Scanner holds a table of n-gram weights.
type Scanner struct {
	table []int8 // a power of two long
	shift uint   // 64 - log2(len(table))
	scale float64
	bias  float64
	spans []int // lengths, in blocks, of the spans inside a window that are scored
}

// Window is a part of a text.
type Window struct {
	// Start and End are byte offsets: on rune boundaries, after white space if some is near.
	Start, End int
	// Score is in [0,1]; higher means more like an attack. It orders windows and is not calibrated.
	Score float32
}

// note is a record of the running sums at a cut.
type note struct {
	at    int // byte offset
	sum   int64
	count int64
}

// Windows appends the windows of the text to dst in order and returns it. Windows are size bytes
// long and start every stride bytes, both rounded up to multiples of 64 and at least 64; a stride
// above size counts as size, so that the windows cover the text. The last window ends with the text
// and is as long as the others. A text shorter than size is one window, an empty one none. The text
// may contain anything; invalid UTF-8 counts as replacement characters. The error is that of ctx,
// which is checked every 64 KiB; the windows appended until then must not be used.
func (s *Scanner) Windows(ctx context.Context, text string, size, stride int, dst []Window) ([]Window, error) {
	if text == "" {
		return dst, nil
	}
	width := max((size+block-1)/block, 1)
	step := min(max((stride+block-1)/block, 1), width)
	total := max((len(text)+block-1)/block, 1)
	// If the text has fewer blocks than a window, the window is the text.
	width = min(width, total)
	step = min(step, width)
	ring := make([]note, width+1)
	p := pass{s: s, text: text}
	p.reset()
	first := 0 // block at which the next window starts
	ring[0] = p.note
	for k := 1; k <= total; k++ {
		if k%blocksPerLook == 0 {
			if err := ctx.Err(); err != nil {
				return dst, err
			}
		}
		p.readTo(cut(text, k, total))
		ring[k%len(ring)] = p.note
		if k != first+width && k != total {
			continue
		}
		start := k - width
		dst = append(dst, s.window(ring, start, width))
		first += step
	}
	return dst, nil
}

// Score returns how much a text as a whole looks like an attack, in [0,1], by the same measure as
// for a window but without the spans inside it. It is meant for a sentence; the text is read as if
// surrounded by white space.
func (s *Scanner) Score(text string) float32 {
	p := pass{s: s, text: text}
	p.reset()
	p.readTo(len(text))
	return float32(1 / (1 + math.Exp(-s.evidence(note{}, p.note))))
}

// window scores the window of width blocks that starts at block start.
func (s *Scanner) window(ring []note, start, width int) Window {
	from, to := ring[start%len(ring)], ring[(start+width)%len(ring)]
	best := s.evidence(from, to)
	for _, span := range s.spans {
		for at := start; at+span <= start+width && span < width; at++ {
			best = max(best, s.evidence(ring[at%len(ring)], ring[(at+span)%len(ring)]))
		}
	}
	return Window{Start: from.at, End: to.at, Score: float32(1 / (1 + math.Exp(-best)))}
}

// evidence returns the logit of the span between two notes.
func (s *Scanner) evidence(from, to note) float64 {
	n := to.count - from.count
	if n == 0 {
		return s.bias
	}
	return s.bias + s.scale*float64(to.sum-from.sum)/math.Sqrt(float64(n))
}

// cut returns the byte offset at which block k of total starts: after white space if some is near,
// else at the start of a rune. Offsets never decrease with k.
func cut(text string, k, total int) int {
	if k <= 0 {
		return 0
	}
	if k >= total {
		return len(text)
	}
	nominal := k * block
	for i := nominal; i > nominal-slack; i-- {
		if c := text[i-1]; c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			return i
		}
	}
	for i := nominal; i > nominal-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return nominal
}
