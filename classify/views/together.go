package views

// Limits of words that are written without spaces between them.
const (
	minTogether      = longLetters // letters of a token that is looked at
	togetherPart     = 2048        // letters that are split at once
	minTogetherShare = 0.9         // of the letters that belong to words of three letters or more
)

// together puts the spaces back into words that are written as one, such as
// "ignoreallpreviousinstructions". Long words of other languages are left alone, because hardly any
// of them is a chain of words of the lexicon. A tokenizer makes one unknown piece of a very long
// word, so a model would see nothing of it.
func (r *reading) together(start, end int) {
	for from := start; from < end; {
		to := min(from+togetherPart, end)
		if words, share := segment(r.text[from:to]); share >= minTogetherShare {
			r.edits = append(r.edits, edit{from, to, words})
		}
		from = to
	}
}
