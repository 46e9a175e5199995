package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// A sentence counts as said word for word from so many words on; what is shorter ("Yes.") says too
// little by itself.
const verbatimWords = 3

// cutWords is how many words a text has that may be a piece of a longer sentence of the evidence:
// the splitter cuts a claim that long, and sentences of the evidence later.
const cutWords = 24

// maxPiece bounds in bytes what is looked for; the splitter cuts longer claims.
const maxPiece = 1 << 10

// maxSearched bounds in bytes the evidence that is searched for a piece of a sentence.
const maxSearched = 64 << 10

// FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// said is a hash of what a sentence says: its letters, digits and marks, without white space,
// capitals, quotation marks, marks of emphasis and code, and what ends it. ok is false for a
// sentence of fewer than verbatimWords words.
func said(text string) (sum uint64, ok bool) {
	text = bare(text)
	sum = fnvOffset
	count, inside := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) {
			inside = false
			continue
		}
		if !inside {
			count++
		}
		inside = true
		switch r {
		case '*', '_', '`', '"', '“', '”', '„', '«', '»':
			continue
		case '’':
			r = '\''
		}
		if r >= utf8.RuneSelf || r >= 'A' && r <= 'Z' {
			r = unicode.ToLower(r)
		}
		sum = (sum ^ uint64(r)) * fnvPrime
		if script.IsIdeograph(r) {
			count++
		}
	}
	return sum, count >= verbatimWords
}

// bare is a text without the marks around it.
func bare(text string) string {
	return strings.Trim(text, " \t\r\n.!;:,*_`\"'“”’„«»。！；：，")
}

// Says returns the sentence of the evidence that is the text word for word, the first of several;
// -1 when none is. White space, capitals, marks of emphasis and code, and the marks that end a
// sentence do not count. A text of more than cutWords words may also be a piece of a sentence. It
// does not allocate; takes as long as reading the text, for a long one that no sentence equals as
// long as searching the sources for it. Of more than maxSearched bytes of evidence only whole
// sentences are looked up: each claim would be searched for in all of it.
func (e *Evidence) Says(text string) int {
	if e.Empty() || len(text) > maxPiece {
		return -1
	}
	sum, ok := said(text)
	if !ok {
		return -1
	}
	if at, known := e.said[sum]; known {
		return int(at)
	}
	text = bare(text)
	if strings.Count(text, " ") < cutWords {
		return -1
	}
	left := maxSearched
	for i := range e.sources {
		if left -= len(e.sources[i].Text); left < 0 {
			return -1
		}
		at := strings.Index(e.sources[i].Text, text)
		if at < 0 {
			continue
		}
		first, last := e.span(i)
		for s := first; s < last; s++ {
			if e.sentences[s].start >= 0 && e.sentences[s].end > at {
				return s
			}
		}
	}
	return -1
}
