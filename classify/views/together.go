package views

// Limits for words written without spaces.
const (
	minTogether      = longLetters // minimum number of letters of a token
	togetherPart     = 2048        // number of letters split at once
	minTogetherShare = 0.9         // minimum share of letters in words of three letters or more
)

// together inserts the spaces into words that are written as one, such as
// "ignoreallpreviousinstructions". Long words of other languages are not changed, because hardly
// any of them is a chain of words of the lexicon. A tokenizer turns a very long word into one
// unknown token, so that a model would not see its content.
func (r *reading) together(start, end int) {
	for from := start; from < end; {
		to := min(from+togetherPart, end)
		if words, share := segment(r.text[from:to]); share >= minTogetherShare {
			r.edits = append(r.edits, edit{from, to, words})
		}
		from = to
	}
}
