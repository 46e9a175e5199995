package numeric

import (
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// nowWords mark a value as current after a change; sayVerbs are verbs that state a value.
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

// byNow records changes stated by a clause about the past together with one about the present: "the
// old price was 30; it is now 20". The clause about the present must name nothing that the other
// does not.
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

// clauseWords returns the index of the first word of value i's clause and the index after the last,
// limited to nearWords on each side of the value.
func (r *reading) clauseWords(i int) (first, last int) {
	from, to := r.clauseAround(r.values[i].Start)
	at := r.wordFrom(r.values[i].Start)
	return max(at-nearWords, r.wordFrom(from)), min(at+nearWords, r.wordFrom(to))
}

// wasIn reports whether a word for the past precedes value i in its clause.
func (r *reading) wasIn(i int) bool {
	first, _ := r.clauseWords(i)
	for k := first; k < r.wordFrom(r.values[i].Start); k++ {
		if r.turns[k]&turnWas != 0 {
			return true
		}
	}
	return false
}

// isNow reports whether the clause of value j states something current and names nothing that
// clause past does not name. With past -1, it must name nothing at all.
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

// alikeNouns reports whether two numbers count the same thing, judged by the words after them. An
// unknown noun (0) matches any other.
func alikeNouns(a, b uint64) bool { return a == 0 || b == 0 || a == b }

// names reports whether a word occurs among the first nearWords words of a clause.
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

// presentOf returns 0, the index of the value, if it is the only value of a sentence that states
// something current: "It is now 20 euros." Otherwise it returns -1.
func (r *reading) presentOf(text string) int {
	if len(r.values) != 1 || r.phases[0] != always || !r.isNow(text, 0, -1) {
		return -1
	}
	return 0
}

// replaceBefore records that the number of a sentence that continues with a pronoun replaced the
// only past value of the previous sentence.
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

// mostChanged is the maximum number of values of a sentence that are compared with those of the
// next.
const mostChanged = 8

// supersede marks the result of a change in the previous sentence as outdated if the sentence being
// added changes it again, as "It was raised from 12 to 15 euros in 2024" does.
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
