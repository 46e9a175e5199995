package numeric

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// reading is one text with its words, numbers and clauses.
type reading struct {
	words    []words.Word
	values   []quantity.Value
	bounds   []int     // byte offsets at which a new clause begins
	ends     []int     // of numbersOfClauses
	lengths  []float64 // of time that the words tell amounts are for, 0 for none, after ratesOf
	lasting  []int32   // words with such a length, after ratesOf
	owns     []int32   // of each word: the last before it that says what something has, or -1, after noteOwners
	pers     []int32   // of each word: the next, itself or behind it, behind "per", after noteOwners
	lots     []lot     // that the values are the price of one of, after lotsOf
	each     []uint64  // what the values are for each of, 0 when that is not told, after ratesOf
	bare     []uint8   // what the words of each clause are, after bareClauses
	dates    int       // how many values are dates, after datesOf
	only     int32     // month of the last of them, as in known.when, after datesOf
	months   bool      // a word names a month, and no value is a date, after datesOf
	phases   []phase   // of the values, after phasesOf
	partners []int32   // of each value: the other one of its change, or -1, after phasesOf
	past     int       // the only value that is told to have been so, -1: none or several, after phasesOf
	courses  []course  // of the clauses, after phasesOf
	turns    []turn    // of the words, after phasesOf
	allTurns turn      // of all words, after phasesOf
}

func (r *reading) read(text string) {
	r.words = words.Scan(r.words[:0], text)
	r.values = quantity.Parse(r.values[:0], text)
	r.partsOf(text)
	r.cutClauses(text)
	if len(r.values) > 1 {
		r.rejoin(text)
	}
}

// partsOf gives a part of an amount of money the currency that stands with the whole alone: "62,000 of the
// 80,000 euros", "80,000 euros, of which 62,000".
func (r *reading) partsOf(text string) {
	for i := 1; i < len(r.values); i++ {
		a, b := &r.values[i-1], &r.values[i]
		if a.Kind != quantity.Count || b.Kind != quantity.Count || a.End > b.Start {
			continue
		}
		switch text[a.End:b.Start] {
		case " of the ", " of ", " out of ", " out of the ", " von ", " von den ", " der ":
			if a.Dim == quantity.Plain && b.Dim.IsCurrency() {
				a.MeasureAs(&quantity.Value{Dim: b.Dim, Factor: b.Factor})
			}
		case ", of which ", " of which ", ", davon ", ", dont ":
			if b.Dim == quantity.Plain && a.Dim.IsCurrency() {
				b.MeasureAs(&quantity.Value{Dim: a.Dim, Factor: a.Factor})
			}
		}
	}
}

// cutClauses notes where clauses begin, after the words. The head of a cell and the name of a field
// are of the clause of their number: "Upload (Mbit/s): 40".
func (r *reading) cutClauses(text string) {
	r.bounds = r.bounds[:0]
	row := isRow(text)
	for at, c := range text {
		switch c {
		case ':', '(', ')', '{':
			if row == (c == '{') {
				r.bounds = append(r.bounds, at)
			}
		case ';', '|', '—', '\n', '、', '，', '；':
			r.bounds = append(r.bounds, at)
		case ',':
			next, _ := utf8.DecodeRuneInString(text[at+1:])
			if !unicode.IsDigit(next) {
				r.bounds = append(r.bounds, at)
			}
		}
	}
	for i, w := range r.words {
		if w.End-w.Start <= 7 && joins(text[w.Start:w.End]) && !r.joinsUnits(text, i) {
			r.bounds = append(r.bounds, w.Start)
		}
	}
	slices.Sort(r.bounds)
}

// What a clause takes from the one before it.
const (
	nothing   = iota
	subject   // "and may be raised to 5000"
	predicate // "and again in 2019", "then 3 months"
	sentence  // the subject alone: "and ends on 12 July"
	unclear   // the subject alone, or nothing: "and reached general availability", "and members pay"
)

// takes is what a clause that begins with "and" or the like, with a pronoun, or behind a comma with
// a verb takes from the one before it.
func (r *reading) takes(text string, clause int32) uint8 {
	if clause == 0 || int(clause) > len(r.bounds) {
		return nothing
	}
	at := r.bounds[clause-1]
	i, _ := slices.BinarySearchFunc(r.words, at, func(w words.Word, at int) int { return w.Start - at })
	if i+1 < len(r.words) && thenWords[r.words[i].Hash] && r.valueOf(r.words[i+1]) != nil {
		return predicate
	}
	if i+1 >= len(r.words) {
		return nothing
	}
	if first := text[r.words[i].Start:r.words[i].End]; !joins(first) {
		if standsIn(first) || text[at] == ',' && r.lacksSubject(text, i) {
			return sentence
		}
		return nothing
	}
	if standsIn(text[r.words[i+1].Start:r.words[i+1].End]) {
		return sentence
	}
	switch text[r.words[i+1].Start:r.words[i+1].End] {
	case "again", "erneut", "wieder", "encore", "nuevamente":
		return predicate
	case "may", "can", "could", "might", "must", "should", "will", "would", "is", "are", "was", "were", "has", "have",
		"had", "kann", "darf", "muss", "soll", "wird", "ist", "sind", "war", "hat", "peut", "doit", "est", "puede",
		"debe", "es":
		return subject
	case "starts", "started", "begins", "began", "opens", "opened", "ends", "ended", "closes", "closed",
		"expires", "expired",
		"beginnt", "begann", "startet", "öffnet", "endet", "endete", "schließt", "schloss", "empieza",
		"empezó", "comienza",
		"comenzó", "abre", "abrió", "termina", "terminó", "acaba", "acabó", "finaliza", "cierra", "cerró", "se", "a",
		"commence", "ouvre", "finit", "ferme", "termine":
		return sentence
	}
	switch {
	case r.lacksSubject(text, i+1):
		return sentence
	case !r.words[i+1].Has(words.Stop | words.Capital | words.Number):
		return unclear
	}
	return nothing
}

// standsIn reports pronouns that stand for a subject.
func standsIn(word string) bool {
	switch word {
	case "it", "he", "she", "they", "er", "sie", "il", "elle":
		return true
	}
	return false
}

// lacksSubject reports whether word i, which begins a clause, is a verb that takes its subject from
// the clause before, as far as its form and the next word tell: "and released on 16 July", "und
// tritt am 1. Dezember in Kraft".
func (r *reading) lacksSubject(text string, i int) bool {
	w := r.words[i]
	if w.Has(words.Stop|words.Capital|words.Number) || i+1 == len(r.words) {
		return false
	}
	word := text[w.Start:w.End]
	switch word {
	case "takes", "comes", "enters", "goes", "becomes", "took", "came", "went", "became", "entered", "tritt", "trat":
		return true
	case "rebuilt", "built", "sent", "paid", "sold", "made", "held", "left", "won", "put", "begun", "open",
		"close", "start", "begin", "end", "expire", "run":
	default:
		if !hasAnySuffix(word, "s", "ed", "t", "te") {
			return false
		}
	}
	return follows(text[r.words[i+1].Start:r.words[i+1].End]) && r.behind(text, i) == " "
}

// follows reports prepositions that stand between a verb and a date.
func follows(word string) bool {
	switch word {
	case "on", "at", "in", "by", "until", "till", "from", "to", "for", "again",
		"am", "um", "im", "bis", "ab", "vom", "zum":
		return true
	}
	return false
}

// Words that begin a clause which goes on with all of the one before it, and months of languages
// that write them small, by hash.
//
//nolint:gochecknoglobals // constant tables
var (
	thenWords  = hashes("then thereafter afterwards danach dann anschließend ensuite puis después luego")
	monthWords = hashes(`janvier février mars avril mai juin juillet août septembre octobre novembre décembre
		enero febrero
		marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre`)
)

func hashes(list string) map[uint64]bool {
	m := map[uint64]bool{}
	for _, w := range words.Scan(nil, list) {
		m[w.Hash] = true
	}
	return m
}

// joinsUnits reports whether word i is the "and" of "per user and month", which begins no clause.
func (r *reading) joinsUnits(text string, i int) bool {
	return i > 0 && i+1 < len(r.words) && isAnd(text[r.words[i].Start:r.words[i].End]) && r.underPer(text, i+1)
}

// joined is how many words a subject has at most that shares the number of the one before it.
const joined = 3

// rejoin takes a clause without a number of its own to that whose number it shares: "and 90 days on
// Business and Enterprise", "and children and seniors 5 euros". Which it is tells whether numbers
// stand before their subjects.
func (r *reading) rejoin(text string) {
	kept := r.bounds[:0]
	value := 0 // the first that does not end before the bound
	for i := 0; i < len(r.bounds); i++ {
		b, next, end := r.bounds[i], len(text), len(text)
		if i+1 < len(r.bounds) {
			next = r.bounds[i+1]
		}
		if i+2 < len(r.bounds) {
			end = r.bounds[i+2]
		}
		for value < len(r.values) && r.values[value].Start < b {
			value++
		}
		kept = append(kept, b)
		before := value - 1
		if before < 0 || value < len(r.values) && r.values[value].Start < next || !adds(text[b:]) ||
			r.wordsIn(b, next) > joined+1 {
			continue
		}
		from := 0
		if len(kept) > 1 {
			from = kept[len(kept)-2]
		}
		switch {
		case r.values[before].Start < from: // nor has the clause before
		case r.wordsIn(r.values[before].End, b) > counted(&r.values[before]):
			kept = kept[:len(kept)-1]
		case next < len(text) && adds(text[next:]) && value < len(r.values) && r.values[value].Start < end:
			i++ // the next bound
		}
	}
	r.bounds = kept
}

// adds reports whether a text begins with a word that adds a subject to another.
func adds(text string) bool {
	return hasAnyPrefix(text, "and ", "und ", "et ", "y ")
}

// counted is how many words behind a number tell what it counts.
func counted(v *quantity.Value) int {
	if v.Dim == quantity.Plain {
		return 1
	}
	return 0
}

// wordsIn counts the words that begin in [from, to).
func (r *reading) wordsIn(from, to int) int { return r.wordFrom(to) - r.wordFrom(from) }

// joins reports words that begin a clause with a subject of its own.
func joins(s string) bool {
	switch s {
	case "and", "while", "whereas", "but", "und", "aber", "et", "mais", "y", "pero", "versus", "vs":
		return true
	}
	return false
}

// clause is the number of the clause that holds offset at.
func (r *reading) clause(at int) int32 {
	n, _ := slices.BinarySearch(r.bounds, at+1)
	return int32(n)
}

// clauseAround is where the clause that holds offset at begins and ends.
func (r *reading) clauseAround(at int) (from, to int) {
	to = math.MaxInt
	n := r.clause(at)
	if n > 0 {
		from = r.bounds[n-1]
	}
	if int(n) < len(r.bounds) {
		to = r.bounds[n]
	}
	return from, to
}

// wordFrom is the first word that begins at or behind an offset.
func (r *reading) wordFrom(at int) int {
	k, _ := slices.BinarySearchFunc(r.words, at, func(w words.Word, at int) int { return w.Start - at })
	return k
}

// numbersOfClauses notes, for each clause, where its first number ends; -1 for one without any.
func (r *reading) numbersOfClauses() {
	r.ends = slices.Grow(r.ends[:0], len(r.bounds)+1)[:len(r.bounds)+1]
	for i := range r.ends {
		r.ends[i] = -1
	}
	for i := range r.values {
		if n := r.clause(r.values[i].Start); r.ends[n] < 0 {
			r.ends[n] = r.values[i].End
		}
	}
}

// behindNumber reports whether a number of the clause stands before an offset in it, after
// numbersOfClauses.
func (r *reading) behindNumber(at int, clause int32) bool {
	return r.ends[clause] >= 0 && r.ends[clause] <= at
}

// noun is the word right behind a value, what it counts; 0 when there is none.
func (r *reading) noun(text string, v *quantity.Value) uint64 {
	k := r.wordFrom(v.End)
	if k == len(r.words) {
		return 0
	}
	w := r.words[k]
	if w.Has(words.Stop) || w.Start-v.End > 1 || w.Start > v.End && text[v.End] != ' ' && text[v.End] != '-' {
		return 0
	}
	return w.Hash
}

// newest stands for the x of "22.x".
const newest = "999999"

// versionsAt are the version that value n is, and the one up to which it goes: 3.9 of "3.9 up to and
// including 3.12", 12 of "12 a 15".
func (r *reading) versionsAt(text string, n int) (from, until string) {
	v := &r.values[n]
	from = strings.Clone(text[v.Start:v.End])
	if v.Range() {
		first := strings.IndexFunc(from, func(c rune) bool { return !unicode.IsDigit(c) && c != '.' })
		last := strings.LastIndexFunc(from, func(c rune) bool { return !unicode.IsDigit(c) && c != '.' })
		if first > 0 {
			_, size := utf8.DecodeRuneInString(from[last:])
			return from[:first], from[last+size:]
		}
	}
	rest := strings.TrimLeft(text[v.End:], " ")
	for _, to := range [...]string{
		"up to and including ", "up to ", "to ", "through ", "until ", "bis ", "à ", "a ", "hasta ", "– ", "- ", "–", "-",
	} {
		if next, ok := strings.CutPrefix(rest, to); ok {
			end := strings.IndexFunc(next, func(c rune) bool { return !unicode.IsDigit(c) && c != '.' })
			if end < 0 {
				end = len(next)
			}
			until = strings.TrimRight(next[:end], ".")
			if end > 0 && next[end-1] == '.' && strings.HasPrefix(next[end:], "x") {
				until += "." + newest // 22.x
			}
			return from, strings.Clone(until)
		}
	}
	return from, until
}

// versioned reports whether a word may be the name of what has versions: iOS, Node.js, firmware.
func versioned(text string, w words.Word) bool {
	return strings.IndexFunc(text[w.Start:w.End], unicode.IsUpper) >= 0 || text[w.Start:w.End] == "firmware" ||
		w.Start > 0 && text[w.Start-1] == '.'
}

// ofVersion reports words between what has a version and the version.
func ofVersion(word string) bool {
	switch word {
	case "is", "now", "version", "must", "be", "at", "least":
		return true
	}
	return false
}

// name is the name right before a bare number, which may be the version of what has it, or 0.
func (r *reading) name(text string, v *quantity.Value) uint64 {
	k := r.wordFrom(v.Start) - 1
	if k < 0 || v.Kind != quantity.Count || v.Dim != quantity.Plain {
		return 0
	}
	for k > 0 && ofVersion(text[r.words[k].Start:r.words[k].End]) {
		k-- // Python is now 3.9
	}
	w := r.words[k]
	if w.Has(words.Stop) || w.Has(words.Number) || w.End >= len(text) || text[w.End] != ' ' ||
		!versioned(text, w) {
		return 0
	}
	if at := strings.LastIndexAny(text[w.Start:w.End], "'’"); at > 0 && at <= elided {
		_, size := utf8.DecodeRuneInString(text[w.Start+at:])
		if own := words.Scan(nil, text[w.Start+at+size:w.End]); len(own) == 1 {
			return own[0].Hash // d'Android
		}
	}
	return w.Hash
}

// elided is how many letters an article or a preposition of French has at most before its apostrophe.
const elided = 2

// inValue reports whether a word lies in a number that is no date, or, with dates, in any; such
// words tell no subject.
func (r *reading) inValue(w words.Word, dates bool) bool {
	v := r.valueOf(w)
	return v != nil && (v.Kind != quantity.Date || dates)
}

// inDate reports whether a word is part of a date, as a day or the name of a month.
func (r *reading) inDate(w words.Word) bool {
	v := r.valueOf(w)
	return v != nil && (v.Kind == quantity.Date || w.Has(words.Number))
}

// bareAt reports whether a word is a number without a unit.
func (r *reading) bareAt(w words.Word) bool {
	v := r.valueOf(w)
	return v != nil && v.Start == w.Start && v.End == w.End && v.Dim == quantity.Plain
}

// valueOf is the number that a word lies in, or nil.
func (r *reading) valueOf(w words.Word) *quantity.Value {
	i, _ := slices.BinarySearchFunc(r.values, w.Start, func(v quantity.Value, at int) int { return v.End - at - 1 })
	if i == len(r.values) || r.values[i].Start >= w.End {
		return nil
	}
	return &r.values[i]
}
