package numeric

import (
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// nowWords say that what follows is so since a change, and sayVerbs what it is said with.
//
//nolint:gochecknoglobals // constant tables
var (
	nowWords = words.Set("now currently today nowadays meanwhile jetzt nun inzwischen mittlerweile heute derzeit aktuell")
	sayVerbs = words.Set("cost costs stands stand amounts lies sits weighs lasts holds kostet beträgt liegt gilt dauert")
)

func among(set map[string]bool, word string) bool {
	var form [24]byte
	return len(word) < len(form)-4 && set[string(appendLower(form[:0], word))]
}

// byNow notes the changes that a clause about the past and one about the present tell between them:
// "the old price was 30; it is now 20". The present one speaks of nothing that the past one does not
// name.
func (r *reading) byNow(text string) {
	pasts := 0
	for i := range r.values {
		if r.phases[i] != always || !r.wasIn(i) {
			continue
		}
		pasts++
		r.past = i
		for step := 1; step <= nearValues && r.phases[i] == always; step++ {
			for _, j := range [...]int{i + step, i - step} {
				if j >= 0 && j < len(r.values) && r.phases[j] == always && oneKind(&r.values[i], &r.values[j]) &&
					alikeNouns(r.noun(text, &r.values[i]), r.noun(text, &r.values[j])) &&
					r.isNow(text, j, r.clause(r.values[i].Start)) {
					r.replace(i, j)
					break
				}
			}
		}
	}
	if pasts != 1 || r.phases[max(0, r.past)] != always {
		r.past = -1
	}
}

// clauseWords are the first and behind the last of the words of the clause of value i, no more than
// nearWords on each side of it.
func (r *reading) clauseWords(i int) (first, last int) {
	from, to := r.clauseAround(r.values[i].Start)
	at := r.wordFrom(r.values[i].Start)
	return max(at-nearWords, r.wordFrom(from)), min(at+nearWords, r.wordFrom(to))
}

// wasIn reports whether the clause of value i says, before it, that something was so.
func (r *reading) wasIn(i int) bool {
	first, _ := r.clauseWords(i)
	for k := first; k < r.wordFrom(r.values[i].Start); k++ {
		if r.turns[k]&turnWas != 0 {
			return true
		}
	}
	return false
}

// isNow reports whether the clause of value j says that something is so now, and names nothing but
// what clause past names; with past -1, nothing at all.
func (r *reading) isNow(text string, j int, past int32) bool {
	first, last := r.clauseWords(j)
	at, now := r.wordFrom(r.values[j].Start), false
	if first < len(r.words) && r.clause(r.words[first].Start) == past {
		return false
	}
	for k := first; k < last; k++ {
		w := r.words[k]
		word := text[w.Start:w.End]
		switch {
		case w.Has(words.Negation) || r.turns[k]&turnUndone != 0:
			return false
		case among(nowWords, word):
			now = true
		case k >= at || w.Has(words.Stop) || w.Has(words.Number) || among(sayVerbs, word):
		case past < 0 || !r.names(w.Hash, past):
			return false
		}
	}
	return now
}

// alikeNouns reports whether two numbers count the same, as far as both say what: the words behind
// them.
func alikeNouns(a, b uint64) bool { return a == 0 || b == 0 || a == b }

// names reports whether one of the words of a clause, up to nearWords from where it begins, is the
// same.
func (r *reading) names(hash uint64, clause int32) bool {
	from := 0
	if clause > 0 {
		from = r.bounds[clause-1]
	}
	first := r.wordFrom(from)
	for k := first; k < min(len(r.words), first+nearWords) && r.clause(r.words[k].Start) == clause; k++ {
		if r.words[k].Hash == hash {
			return true
		}
	}
	return false
}

// presentOf is the only value of a sentence that goes on with a pronoun and says that something is so
// now: "It is now 20 euros." It is -1 where there is none.
func (r *reading) presentOf(text string) int {
	if len(r.values) != 1 || r.phases[0] != always || !r.isNow(text, 0, -1) {
		return -1
	}
	return 0
}

// replaceBefore notes, where sentence i goes on with a pronoun about the one before it, that its
// number took the place of the only one that was so there.
func (x *Index) replaceBefore(in *indexed, s Sentence, r *reading, before int32) {
	if in.as != meant || in.from < 0 || before < 0 || x.known[before].sentence != in.from || r.presentOf(s.Text) < 0 {
		return
	}
	k := int32(len(x.known)) - 1
	if !oneKind(&x.known[before].value, &x.known[k].value) || !alikeNouns(x.known[before].noun, x.known[k].noun) {
		return
	}
	x.known[before].phase, x.known[before].partner = former, k
	x.known[k].phase, x.known[k].partner = since, before
}

// mostChanged bounds the numbers of a sentence that are compared with those of the next.
const mostChanged = 8

// supersede marks what a change of the sentence before came to, where "It was raised from 12 to 15
// euros in 2024", which is added, tells that this changed, too.
func (x *Index) supersede(in *indexed) {
	if in.as != meant || in.from < 0 || !in.changes || !x.sentences[in.from].changes {
		return
	}
	before := &x.sentences[in.from]
	last := min(before.knownEnd, before.known+mostChanged)
	for k := int(in.known); k < min(len(x.known), int(in.known)+mostChanged); k++ {
		if x.known[k].phase != former {
			continue
		}
		for e := before.known; e < last; e++ {
			if o := &x.known[e]; o.phase == since && quantity.Compare(&x.known[k].value, &o.value) == quantity.Equal {
				o.stale = true
			}
		}
	}
}
