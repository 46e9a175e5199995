package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
	"signalbox/stream/evidence/words"
)

// verbatimWords is the minimum length of a sentence that can match word for word. Shorter ones
// ("Yes.") say too little by themselves.
const verbatimWords = 3

// cutWords is the number of words from which a text may be a piece of a longer evidence sentence,
// because the splitter cuts long claims earlier than evidence.
const cutWords = 24

// maxPiece is the maximum length in bytes of a text that is searched; the splitter cuts longer
// claims.
const maxPiece = 1 << 10

// maxSearched is the maximum size in bytes of evidence that is searched for a piece of a sentence.
const maxSearched = 64 << 10

// FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// said returns a hash of the content of a sentence: its letters, digits and marks in lower case,
// without white space, quotation marks, marks of emphasis and code, and final punctuation. ok is
// false for a sentence of fewer than verbatimWords words.
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

// bare returns a text without the marks around it.
func bare(text string) string {
	return strings.Trim(text, " \t\r\n.!;:,*_`\"'“”’„«»。！；：，")
}

// Says returns the first sentence of the evidence that equals the text word for word, or -1. White
// space, capitals, marks of emphasis and code, and final punctuation are ignored.
//
// A text of more than cutWords words may also be a piece of a source. It must then occur there
// literally, apart from the marks around it, but may begin and end between any two words. Says
// returns the sentence in which it begins, unless what stands before it there may deny it. Only the first maxSearched bytes of evidence, in whole sources, are
// searched for pieces, because each claim is searched in all of them.
//
// Says does not allocate. It takes as long as reading the text or, for a long text that equals no
// sentence, as long as searching the sources.
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
		if at < 0 || !apart(e.sources[i].Text, at, at+len(text)) {
			continue
		}
		if s := e.sentenceAt(i, at); s >= 0 {
			if denied(e.sources[i].Text[min(e.sentences[s].start, at):at]) {
				return -1
			}
			return s
		}
	}
	return -1
}

// sentenceAt returns the sentence of source i that holds the byte at a place, or follows it; -1 if
// there is none.
func (e *Evidence) sentenceAt(i, at int) int {
	first, last := e.span(i)
	for s := first; s < last; s++ {
		if e.sentences[s].start >= 0 && e.sentences[s].end > at {
			return s
		}
	}
	return -1
}

// apart reports whether a piece of a text begins and ends at the border of a word.
func apart(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	first, _ := utf8.DecodeRuneInString(text[from:])
	last, _ := utf8.DecodeLastRuneInString(text[:to])
	return (!inWord(before) || !inWord(first)) && (!inWord(last) || !inWord(after))
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// doubts are words, by hash, before a clause that is not stated as true.
//
//nolint:gochecknoglobals // constant table
var doubts = func() map[uint64]bool {
	m := map[uint64]bool{}
	for _, w := range words.Scan(nil, `if unless whether false untrue wrong myth rumour rumor alleged allegedly supposedly
		claimed denied denies deny falls wenn ob angeblich falsch bestreitet faux si falso`) {
		m[w.Hash] = true
	}
	return m
}()

// denied reports whether the beginning of a sentence may turn the rest of it into its opposite or
// leave it open: "It is not true that ...", "If ...".
func denied(lead string) bool {
	var space [16]words.Word
	for _, w := range words.Scan(space[:0], lead) {
		if w.Has(words.Negation) || doubts[w.Hash] {
			return true
		}
	}
	return false
}
