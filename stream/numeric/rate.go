package numeric

import (
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// mostTold is how many words with a length of time are considered on each side of a number, nearest
// first; our choice.
const mostTold = 8

// ratesOf records, for each value of the reading, the period that its clause gives for it ("monthly
// fee", "price per month") and the unit that it is per ("per key").
func (r *reading) ratesOf(text string) {
	r.each = append(r.each[:0], make([]uint64, len(r.values))...)
	r.lengths, r.lasting = r.lengths[:0], r.lasting[:0]
	tells := false
	for i, w := range r.words {
		s := r.periodAt(text, i)
		r.lengths = append(r.lengths, s)
		if s != 0 {
			r.lasting = append(r.lasting, int32(i))
		}
		tells = tells || s != 0 || w.Has(words.Stop) && isPer(text[w.Start:w.End])
	}
	if !tells {
		return
	}
	r.noteOwners(text)
	for i := range r.values {
		r.rate(text, i)
	}
}

// noteOwners records two things for each word. owns is the last word before it that says what
// something has. pers is the next word, itself or later, that follows "per" and is not a length of
// time.
func (r *reading) noteOwners(text string) {
	r.owns = slices.Grow(r.owns[:0], len(r.words)+1)[:len(r.words)+1]
	r.pers = slices.Grow(r.pers[:0], len(r.words)+1)[:len(r.words)+1]
	last := int32(-1)
	for i, w := range r.words {
		r.owns[i] = last
		if owns(text[w.Start:w.End]) {
			last = int32(i)
		}
	}
	r.owns[len(r.words)] = last
	next := int32(len(r.words))
	r.pers[len(r.words)] = next
	for i := len(r.words) - 1; i >= 0; i-- {
		if r.lengths[i] == 0 && r.underPer(text, i) && !quantity.Whole(text[r.words[i].Start:r.words[i].End]) {
			next = int32(i)
		}
		r.pers[i] = next
	}
}

// periodAt returns the period in seconds that word i gives for amounts, by itself or after "per",
// or 0.
func (r *reading) periodAt(text string, i int) float64 {
	w := &r.words[i]
	if w.Has(words.Number) || w.End-w.Start > 24 {
		return 0
	}
	var form [32]byte
	lower := appendLower(form[:0], text[w.Start:w.End])
	if s := quantity.PeriodOf(string(lower)); s != 0 {
		return s
	}
	if r.perAnnum(text, i) {
		return quantity.PeriodOf("annum")
	}
	if r.behindPer(text, i) {
		return quantity.LengthOf(string(lower))
	}
	return 0
}

// perAnnum reports whether word i is the last one of "p.a." or "p. a.".
func (r *reading) perAnnum(text string, i int) bool {
	w := &r.words[i]
	return i > 0 && text[w.Start:w.End] == "a" && text[r.words[i-1].Start:r.words[i-1].End] == "p" &&
		strings.TrimRight(r.behind(text, i-1), " ") == "." && strings.HasPrefix(text[w.End:], ".")
}

// behindPer reports whether "per" precedes word i, possibly with a word in between that only says
// which year or day is meant.
func (r *reading) behindPer(text string, i int) bool {
	if i > 1 && quantity.Whole(text[r.words[i-1].Start:r.words[i-1].End]) {
		i--
	}
	return r.underPer(text, i)
}

// underPer reports whether "per" directly precedes word i, or precedes the word that it is joined
// to by "and" or a slash, where one of the two is a length of time: "per user and month", "pro
// Nutzer/Monat". It does not apply if the following word may belong to word i: "8 euros per child
// and day tickets are 20".
func (r *reading) underPer(text string, i int) bool {
	word := func(k int) string { return text[r.words[k].Start:r.words[k].End] }
	if i == 0 || isPer(word(i-1)) {
		return i > 0
	}
	first := i - 1 // the word it is joined to
	if isAnd(word(first)) {
		first--
	} else if r.behind(text, first) != "/" {
		return false
	}
	if first < 1 || !isPer(word(first-1)) || !isLength(word(first)) && !isLength(word(i)) {
		return false
	}
	return r.behind(text, i) != " " ||
		r.words[i+1].Has(words.Stop) || billed(word(i+1))
}

// behind returns the text between word k and the next one. It is empty if words overlap, as in
// Chinese.
func (r *reading) behind(text string, k int) string {
	if k+1 == len(r.words) || r.words[k+1].Start < r.words[k].End {
		return ""
	}
	return text[r.words[k].End:r.words[k+1].Start]
}

// isLength reports whether a word is a unit of time.
func isLength(word string) bool {
	var form [32]byte
	return len(word) <= 24 && quantity.LengthOf(string(appendLower(form[:0], word))) != 0
}

func isAnd(word string) bool {
	switch word {
	case "and", "und", "et", "y":
		return true
	}
	return false
}

// billed reports whether a word may follow a price.
func billed(word string) bool {
	switch word {
	case "plus", "net", "billed", "paid", "payable", "excluding", "including", "excl", "incl", "zzgl", "zuzüglich", "inkl",
		"netto", "brutto", "hors":
		return true
	}
	return false
}

func isPer(word string) bool {
	switch word {
	case "per", "Per", "pro", "Pro", "par", "por", "je":
		return true
	}
	return false
}

// owns reports whether a word is a verb of having, whose subject is not an amount: a daily
// newsletter with 5,000 readers has them every day.
func owns(word string) bool {
	switch word {
	case "has", "have", "had", "having", "contains", "contain", "contained", "holds", "includes", "include", "lists",
		"features", "hat", "haben", "hatte", "hatten", "enthält", "umfasst", "tiene", "tienen", "contient", "compte":
		return true
	}
	return false
}

// is reports whether a word is a verb or preposition that links a subject to its amount.
func is(word string) bool {
	switch word {
	case "is", "are", "was", "were", "be", "been", "of", "at", "equals", "totals", "totalled", "totaled", "exceeds",
		"exceeded", "allow", "allows", "permit", "permits", "erlaubt", "ist", "sind", "war", "waren",
		"beträgt", "betrug", "liegt", "lag", "bei", "von", "est", "sont", "de", "es", "son":
		return true
	}
	return false
}

// rate records the period and the unit of value i.
func (r *reading) rate(text string, i int) {
	v := &r.values[i]
	if v.Kind != quantity.Count || v.Dim == quantity.Duration {
		return
	}
	from, to := r.clauseAround(v.Start)
	at, behind := r.wordFrom(v.Start), r.wordFrom(v.End)
	if k := int(r.pers[behind]); k < len(r.words) && r.words[k].Start < to {
		r.each[i] = eachOf(r.words[k].Hash)
	}
	if v.Period != 0 {
		return
	}
	told, found := 0.0, true
	first, _ := slices.BinarySearch(r.lasting, int32(at))
	for n := max(0, first-mostTold); n < min(len(r.lasting), first+mostTold); n++ {
		k := int(r.lasting[n])
		w := r.words[k]
		if w.Start < from || w.Start >= to || w.Start < v.End && v.Start < w.End || !r.isFor(text, k, i, at, behind) {
			continue
		}
		found = found && (told == 0 || told == r.lengths[k])
		told = r.lengths[k]
	}
	if found && told != 0 {
		v.Period = told
	}
}

// isFor reports whether word k, a period, applies to value i: as an adverb, or as the adjective of
// the noun that the number describes. at is the index of the first word of the value, behind that
// of the first word after it. The adjective of another noun does not apply: "our daily newsletter
// has 5,000 readers".
func (r *reading) isFor(text string, k, i, at, behind int) bool {
	plain := r.values[i].Dim == quantity.Plain
	switch {
	case !r.periodic(text, k):
		return true
	case k < at && int(r.owns[at]) > k:
		return false
	case !r.adjective(text, k):
		return true
	case k >= behind:
		return k-behind <= 1 // 8 % annual interest
	case !plain || k+2 >= at:
		return true // the monthly fee costs 5 euros; 100 daily requests
	}
	last := at - 1
	for last > k+1 && last > at-4 && !is(text[r.words[last].Start:r.words[last].End]) && r.turns[last]&turnLink != 0 {
		last--
	}
	return is(text[r.words[last].Start:r.words[last].End])
}

// periodic reports whether word k is an adjective or adverb of time.
func (r *reading) periodic(text string, k int) bool {
	var form [32]byte
	return quantity.Periodic(string(appendLower(form[:0], text[r.words[k].Start:r.words[k].End])))
}

// adjective reports whether word k, a period, directly precedes a word that it may modify.
func (r *reading) adjective(text string, k int) bool {
	if k+1 >= len(r.words) {
		return false
	}
	w, next := r.words[k], r.words[k+1]
	return next.Start == w.End+1 && text[w.End] == ' ' && !next.Has(words.Stop) && !next.Has(words.Number) &&
		r.lengths[k+1] == 0
}

// eachNames maps words for the same unit, by hash, to the first of their line. seatNames are words
// for a seat in a contract, which mean the same only if the evidence says so.
//
//nolint:gochecknoglobals // constant tables
var (
	eachNames = func() map[uint64]uint64 {
		m := map[uint64]uint64{}
		for _, list := range [...]string{
			"person persons people guest guests head heads capita individual individuals attendee participant visitor " +
				"Person Gast Kopf Teilnehmer Besucher personne persona tête cabeza",
			"license licence licenses licences Lizenz",
			"piece pieces item items unit units Stück",
			"request requests call calls query queries Anfrage",
		} {
			all := words.Scan(nil, list)
			for _, w := range all {
				m[w.Hash] = all[0].Hash
			}
		}
		return m
	}()
	seatNames = func() map[uint64]bool {
		m := map[uint64]bool{}
		for _, w := range words.Scan(nil, "seat seats user users license licence account member employee developer agent "+
			"Nutzer Benutzer Platz Lizenz Konto Mitglied Mitarbeiter") {
			m[w.Hash] = true
		}
		return m
	}()
)

// eachOf returns the canonical word for a unit.
func eachOf(hash uint64) uint64 {
	if one, ok := eachNames[hash]; ok {
		return one
	}
	return hash
}

// mostEquated is the maximum number of equated word pairs that an index keeps.
const mostEquated = 16

// equate records words for a seat in a contract that a sentence equates: "a seat is one user", "per
// seat (user)".
func (x *Index) equate(text string, r *reading) {
	last := -1
	for k, w := range r.words {
		if w.Has(words.Negation) {
			last = -1
		}
		if !seatNames[w.Hash] {
			continue
		}
		if last >= 0 && k-last <= 4 && len(x.equal) < mostEquated && r.words[last].Hash != w.Hash &&
			equates(text[r.words[max(0, last-1)].Start:r.words[max(0, last-1)].End], text[r.words[last].End:w.Start]) {
			x.equal = append(x.equal, [2]uint64{eachOf(r.words[last].Hash), eachOf(w.Hash)})
		}
		last = k
	}
}

// equates reports whether the text between two words, and the word before the first, say that both
// mean the same: "one seat per user", but not "two seats per user".
func equates(before, between string) bool {
	switch strings.TrimSpace(between) {
	case "(", "/", "=", "i.e.", "(i.e.":
		return true
	case "per", "pro":
		return one(strings.ToLower(before))
	}
	said := strings.Fields(between)
	if len(said) == 0 {
		return false
	}
	switch said[0] {
	case "is", "are", "means", "equals", "ist", "sind", "entspricht":
		// "are users", "is one user", "means an active user", but not "is five users", "are shared
		// by users"
		return len(said) == 1 || len(said) <= 3 && one(said[1])
	}
	return false
}

// one reports whether a word says that there is one of what follows.
func one(word string) bool {
	switch word {
	case "a", "an", "one", "1", "exactly", "each", "ein", "eine", "einem", "einer", "genau":
		return true
	}
	return false
}

// sameEach reports whether two "per" units are the same according to the evidence, and whether they
// may be.
func (c *checker) sameEach(a, b uint64) (same, perhaps bool) {
	if a == b || slices.Contains(c.x.equal, [2]uint64{a, b}) || slices.Contains(c.x.equal, [2]uint64{b, a}) {
		return true, true
	}
	return false, seatNames[a] && seatNames[b]
}

// forOther reports whether number k of the evidence is per another unit than the claim's number
// being judged, and the claim does not mention that unit.
func (c *checker) forOther(k *known) bool {
	if k.each == 0 || c.unit == 0 {
		return false
	}
	if same, _ := c.sameEach(k.each, c.unit); same {
		return false
	}
	c.left -= len(c.words)
	return !slices.ContainsFunc(c.words, func(w words.Word) bool { return eachOf(w.Hash) == k.each })
}

// rated completes the finding on a number that the evidence has per another unit. It is not a
// contradiction, because both may be true, or mean the same in different words.
func (c *checker) rated(f Finding) Finding {
	f = c.found(f, Unsupported, OtherRate, c.other)
	if _, perhaps := c.sameEach(c.x.known[c.other.known].each, c.unit); perhaps {
		f.Verdict = NotCheckable
	}
	return f
}
