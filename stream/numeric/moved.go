package numeric

import (
	"strings"
	"sync"

	"signalbox/stream/evidence/words"
)

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var readings = sync.Pool{New: func() any { return new(reading) }}

// Stretch is a part of a text, in bytes; End is the place after the last.
type Stretch struct{ Start, End int }

// mostMoved is how many words name what was, or what is, at most.
const mostMoved = 4

// Moved finds a change that a sentence tells in words: "moved from Bonn to Cologne", "von Montag auf
// Mittwoch verlegt". was and is are where the words for what was and for what is stand. Safe for
// concurrent use; does not allocate in steady state.
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

// until is the last word of what stands behind the word "to": function words, a word, and names
// behind it.
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

// scanTurns reads the words of a text and what they tell about a change.
func (r *reading) scanTurns(text string) {
	r.words = words.Scan(r.words[:0], text)
	r.noteTurns(text)
}

// leads reports whether the word "to" leads what is, of a change whose "from" stands before it: a
// verb goes before both, or, in German, behind.
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

// ends reports whether what stands between two words ends a name.
func ends(between string) bool { return strings.Trim(between, " -*_`") != "" }

// Present reports whether a claim speaks of the present: no word of it is of the past, of a change,
// or names where something comes from. Safe for concurrent use; does not allocate in steady state.
func Present(claim string) bool {
	r := readings.Get().(*reading) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer readings.Put(r)
	r.scanTurns(claim)
	return r.present(claim) && r.allTurns&turnFrom == 0
}
