package check

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// signShare is the share of words with signs from which a text counts as written by a program; our
// choice.
const signShare = 0.15

// besideNumber is the score that the words next to the claim's numbers must reach if the model is
// neutral; our choice.
const besideNumber = 0.2

// machineMade reports whether the numbers of the claim are in evidence written by a program: a log,
// a listing, code, a record. A model trained on sentences is not reliable enough there to flag a
// claim, unless the claim shares only a number with the evidence.
func (r *reading) machineMade(says opinion) bool {
	return r.numbers == numeric.Supported && len(r.found) > 0 && !prose(r.found[0].Text) &&
		(says == refuted || r.worst(numeric.Supported).Score >= besideNumber)
}

// prose reports whether a text looks like written by a person: few of its words contain signs, and
// it ends like a sentence or contains a function word.
func prose(text string) bool {
	signs, all, ends := 0, 0, false
	for w := range strings.FieldsSeq(text) {
		all++
		if strings.ContainsAny(w, `=_/\<>{}[]|#@~^`) || !strings.ContainsFunc(w, alphanumeric) {
			signs++
		}
		last, _ := utf8.DecodeLastRuneInString(w)
		ends = strings.ContainsRune(".!?。", last)
	}
	if float64(signs) >= signShare*float64(all) {
		return false
	}
	return ends || slices.ContainsFunc(words.Scan(nil, text), func(w words.Word) bool { return w.Has(words.Stop) })
}

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
