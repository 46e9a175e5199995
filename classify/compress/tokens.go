package compress

// Estimate returns the approximate number of tokens of text in the uncased English vocabulary of
// BERT, rather too high, without special tokens. It is linear in the text, exact for words of the
// vocabulary and for punctuation, and based on length for the rest. It allocates nothing.
func Estimate(text string) int {
	n := 0
	for at := 0; ; {
		w, ok := nextWord(text, at, len(text))
		if !ok {
			return n + n/reserve
		}
		at = w.end
		n += int(w.tokens(text))
	}
}

// reserve is the inverse of the share of tokens added for words that have more tokens than the
// mean.
const reserve = 24

// tokens estimates the tokens of w, a word of text. The rates are upper means over texts in ten
// languages: a word of n Latin letters outside of the vocabulary has 1+0.4n pieces, with accents
// 1+0.5n; letters of other scripts are a piece each, and a Hangul syllable is decomposed into its
// letters.
func (w *word) tokens(text string) int32 {
	n := int32(w.runes)
	switch w.kind {
	case mark:
		return 1
	case glyph:
		if r := text[w.start]; r >= 0xEA && r <= 0xED && w.end-w.start == 3 {
			return 3
		}
		return 1
	case number:
		switch {
		case n <= 2:
			return 1
		case n <= 4:
			return 2
		default:
			return n/2 + 1
		}
	case alnum:
		return n*3/4 + 1
	case letter:
	}
	switch {
	case w.foreign:
		return n
	case n == 1 || w.ascii && oneToken(w.hash) && !w.joined:
		return 1
	case n <= longWord && w.ascii:
		return n*2/5 + 1
	case n <= longWord:
		return n/2 + 1
	default:
		return n*2/3 + 1
	}
}

// longWord is the maximum number of letters in a natural word.
const longWord = 16
