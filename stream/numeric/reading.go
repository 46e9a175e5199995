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

// reading holds a text with its words, numbers and clauses, and what the methods named below record
// about them.
type reading struct {
	words    []words.Word
	values   []quantity.Value
	bounds   []int     // byte offsets at which a new clause begins
	ends     []int     // see numbersOfClauses
	lengths  []float64 // per word: period in seconds or 0; ratesOf
	lasting  []int32   // words with a period; ratesOf
	owns     []int32   // per word: last verb of having before it, or -1; noteOwners
	pers     []int32   // per word: next word, itself or later, after "per"; noteOwners
	lots     []lot     // per value: lot it is the single price of; lotsOf
	each     []uint64  // per value: unit it is per, or 0; ratesOf
	bare     []uint8   // per clause: which words it has; bareClauses
	dates    int       // how many values are dates; datesOf
	only     int32     // month of the last date, as in known.when; datesOf
	months   bool      // a word names a month, no value is a date; datesOf
	phases   []phase   // per value; phasesOf
	partners []int32   // per value: other value of its change, or -1; phasesOf
	past     int       // the only past value, -1: none or several; phasesOf
	courses  []course  // per clause; phasesOf
	turns    []turn    // per word; phasesOf
	allTurns turn      // of all words together; phasesOf
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

// partsOf gives a part of an amount of money the currency that is written only with the whole:
// "62,000 of the 80,000 euros", "80,000 euros, of which 62,000".
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

// cutClauses records where clauses begin. The words must have been scanned. The head of a cell and
// the name of a field belong to the clause of their number: "Upload (Mbit/s): 40".
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

// What a clause takes from the previous one.
const (
	nothing   = iota
	subject   // "and may be raised to 5000"
	predicate // "and again in 2019", "then 3 months"
	sentence  // only the subject: "and ends on 12 July"
	unclear   // only the subject or nothing: "and reached general availability", "and members pay"
)

// takes returns what a clause takes from the previous one. That can be a clause that begins with
// "and" or a similar word, with a pronoun, or with a verb after a comma.
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

// standsIn reports whether a word is a pronoun that replaces a subject.
func standsIn(word string) bool {
	switch word {
	case "it", "he", "she", "they", "er", "sie", "il", "elle":
		return true
	}
	return false
}

// lacksSubject reports whether word i, the first of a clause, is a verb that takes its subject from
// the previous clause, judged by its form and the next word: "and released on 16 July", "und tritt
// am 1. Dezember in Kraft".
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

// follows reports whether a word may stand between a verb and a date.
func follows(word string) bool {
	switch word {
	case "on", "at", "in", "by", "until", "till", "from", "to", "for", "again",
		"am", "um", "im", "bis", "ab", "vom", "zum":
		return true
	}
	return false
}

// thenWords, by hash, begin a clause that continues all of the previous one. monthWords are month
// names, by hash, in languages that do not capitalise them.
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

// joined is the maximum number of words in a subject that shares the number of the previous one.
const joined = 3

// rejoin attaches a clause without a number to the clause whose number it shares: "and 90 days on
// Business and Enterprise", "and children and seniors 5 euros". Which neighbour that is depends on
// whether numbers precede their subjects.
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
		case r.values[before].Start < from: // nor does the previous clause
		case r.wordsIn(r.values[before].End, b) > counted(&r.values[before]):
			kept = kept[:len(kept)-1]
		case next < len(text) && adds(text[next:]) && value < len(r.values) && r.values[value].Start < end:
			i++ // the next bound
		}
	}
	r.bounds = kept
}

// adds reports whether a text begins with a word for "and".
func adds(text string) bool {
	return hasAnyPrefix(text, "and ", "und ", "et ", "y ")
}

// counted returns how many words after a number name what it counts.
func counted(v *quantity.Value) int {
	if v.Dim == quantity.Plain {
		return 1
	}
	return 0
}

// wordsIn counts the words that begin in [from, to).
func (r *reading) wordsIn(from, to int) int { return r.wordFrom(to) - r.wordFrom(from) }

// joins reports whether a word begins a clause with a subject of its own.
func joins(s string) bool {
	switch s {
	case "and", "while", "whereas", "but", "und", "aber", "et", "mais", "y", "pero", "versus", "vs":
		return true
	}
	return false
}

// clause returns the number of the clause at offset at.
func (r *reading) clause(at int) int32 {
	n, _ := slices.BinarySearch(r.bounds, at+1)
	return int32(n)
}

// clauseAround returns the range of the clause at offset at.
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

// wordFrom returns the index of the first word that begins at or after an offset.
func (r *reading) wordFrom(at int) int {
	k, _ := slices.BinarySearchFunc(r.words, at, func(w words.Word, at int) int { return w.Start - at })
	return k
}

// numbersOfClauses records, for each clause, where its first number ends, or -1 if it has none.
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

// behindNumber reports whether a number of the clause ends at or before an offset. numbersOfClauses
// must have run.
func (r *reading) behindNumber(at int, clause int32) bool {
	return r.ends[clause] >= 0 && r.ends[clause] <= at
}

// noun returns the word directly after a value, which is what it counts, or 0.
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

// newest replaces the x of "22.x".
const newest = "999999"

// versionsAt returns the version that value n is, and the end of its range: 3.9 and 3.12 for "3.9
// up to and including 3.12", 12 and 15 for "12 a 15".
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

// versioned reports whether a word may name something that has versions: iOS, Node.js, firmware.
func versioned(text string, w words.Word) bool {
	return strings.IndexFunc(text[w.Start:w.End], unicode.IsUpper) >= 0 || text[w.Start:w.End] == "firmware" ||
		w.Start > 0 && text[w.Start-1] == '.'
}

// ofVersion reports whether a word may stand between a name and its version.
func ofVersion(word string) bool {
	switch word {
	case "is", "now", "version", "must", "be", "at", "least":
		return true
	}
	return false
}

// name returns the name directly before a bare number, which may be its version, or 0.
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

// elided is the maximum length in bytes of a French article or preposition before its apostrophe.
const elided = 2

// inValue reports whether a word is part of a number other than a date or, if dates is set, of any
// number. Such words do not describe a subject.
func (r *reading) inValue(w words.Word, dates bool) bool {
	v := r.valueOf(w)
	return v != nil && (v.Kind != quantity.Date || dates)
}

// inDate reports whether a word is part of a date, such as a day or a month name, or is a number
// within a value.
func (r *reading) inDate(w words.Word) bool {
	v := r.valueOf(w)
	return v != nil && (v.Kind == quantity.Date || w.Has(words.Number))
}

// bareAt reports whether a word is a number without a unit.
func (r *reading) bareAt(w words.Word) bool {
	v := r.valueOf(w)
	return v != nil && v.Start == w.Start && v.End == w.End && v.Dim == quantity.Plain
}

// valueOf returns the value that contains a word, or nil.
func (r *reading) valueOf(w words.Word) *quantity.Value {
	i, _ := slices.BinarySearchFunc(r.values, w.Start, func(v quantity.Value, at int) int { return v.End - at - 1 })
	if i == len(r.values) || r.values[i].Start >= w.End {
		return nil
	}
	return &r.values[i]
}
