package check

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// signShare is what share of the words of a text are signs, or hold some, where a program has written
// it; our choice.
const signShare = 0.15

// besideNumber is how far the words of a claim must agree with those beside its numbers where a model
// finds neither a reason for it nor one against it; our choice.
const besideNumber = 0.2

// machineMade reports whether the numbers of the claim stand in evidence that a program has written: a
// log, a listing, code, a record. What a model says of it that learnt from sentences is not worth a
// flag, unless the claim shares nothing with it but a number.
func (r *reading) machineMade(says opinion) bool {
	return r.numbers == numeric.Supported && len(r.found) > 0 && !prose(r.found[0].Text) &&
		(says == refuted || r.worst(numeric.Supported).Score >= besideNumber)
}

// prose reports whether people would have written a text: few of its words hold signs, and it ends
// like a sentence or has one of the words that sentences cannot do without.
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
