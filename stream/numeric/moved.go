package numeric

import (
	"strings"
	"sync"

	"signalbox/stream/evidence/words"
)

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var readings = sync.Pool{New: func() any { return new(reading) }}

// Stretch is a byte range of a text; End is exclusive.
type Stretch struct{ Start, End int }

// mostMoved is the maximum number of words that name the former or the present value.
const mostMoved = 4

// Moved finds a change that a sentence states in words: "moved from Bonn to Cologne", "von Montag
// auf Mittwoch verlegt". was and is are the positions of the former and the present value; ok is
// false if there is no change. Safe for concurrent use; does not allocate in steady state.
func Moved(sentence string) (was, is Stretch, ok bool) {
	r := readings.Get().(*reading) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer readings.Put(r)
	r.scanTurns(sentence)
	r.cutClauses(sentence)
	if r.allTurns&(turnVerb|turnNoun) == 0 || r.allTurns&turnFrom == 0 || r.allTurns&(turnUndone|turnWidens) != 0 {
		return was, is, false
	}
	for from := range r.words {
		if r.turns[from]&turnFrom == 0 {
			continue
		}
		for to := from + 2; to < min(len(r.words), from+2+mostMoved); to++ {
			if last := r.until(sentence, to); last > to && r.leads(sentence, from, to) {
				return Stretch{r.words[from].End, r.words[to].Start}, Stretch{r.words[to].End, r.words[last].End}, true
			}
		}
	}
	return was, is, false
}

// until returns the last word of the phrase after the word "to": function words, one word, and the
// names after it.
func (r *reading) until(text string, to int) int {
	last, content := to, false
	for k := to + 1; k < min(len(r.words), to+1+mostMoved) && !ends(text[r.words[k-1].End:r.words[k].Start]); k++ {
		if content && !r.words[k].Has(words.Name) {
			break // "to Cologne in May"
		}
		last, content = k, content || !r.words[k].Has(words.Stop)
	}
	return last
}

// scanTurns reads the words of a text and what they say about a change.
func (r *reading) scanTurns(text string) {
	r.words = words.Scan(r.words[:0], text)
	r.noteTurns(text)
}

// leads reports whether the word "to" introduces the present value of a change whose "from"
// precedes it. The verb precedes both or, in German, follows them.
func (r *reading) leads(text string, from, to int) bool {
	word := text[r.words[to].Start:r.words[to].End]
	switch {
	case r.turns[to]&turnAuf != 0 || word == "nach":
		return true
	case word == "to":
		return r.told(from, false)
	}
	return false
}

// ends reports whether the text between two words ends a name.
func ends(between string) bool { return strings.Trim(between, " -*_`") != "" }

// Present reports whether a claim is about the present: no word refers to the past, to a change, or
// to an origin ("from"). Safe for concurrent use; does not allocate in steady state.
func Present(claim string) bool {
	r := readings.Get().(*reading) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer readings.Put(r)
	r.scanTurns(claim)
	return r.present(claim) && r.allTurns&turnFrom == 0
}
