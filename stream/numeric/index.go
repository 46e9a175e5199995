package numeric

import (
	"context"
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// Sentence is one sentence of the evidence. Sentences with the same Group (a fact, a document)
// follow each other. A sentence without a subject of its own continues the subject of the previous
// one, as do list items cut at semicolons.
type Sentence struct {
	Text    string
	Heading string // heading above the sentence, or empty
	Group   int
	Items   int // entries of the list that begins with it, under a heading or in a text, or 0
	Listed  int // entries of its group if that is only a list, set on its first sentence, or 0
}

// Index holds the numbers of the evidence with the words around them. It is immutable and safe for
// concurrent use.
type Index struct {
	sentences []indexed
	terms     []term                   // of all sentences, one after the other
	known     []known                  // numbers of all sentences, in order
	places    []around                 // of the known numbers
	postings  map[uint64][]int32       // word to the sentences that contain it, ascending
	byDim     map[quantity.Dim][]int32 // dimension to known numbers
	idf       map[uint64]float32
	equal     [][2]uint64 // units of "per" amounts that the evidence equates
	values    values
	lists     []list // lists that are among other text
	lots      int    // how many numbers are the price of one of several items
	past      int32  // while building: the only past value of the previous sentence, or -1
}

// list is a list in the evidence: the sentence of its first entry, and the number of entries.
type list struct{ first, entries int32 }

// isRow reports whether a sentence is an assembled table row or a JSON record.
func isRow(text string) bool { return strings.Contains(text, " | ") || isRecord(text) }

func isRecord(text string) bool { return strings.Contains(text, `":`) }

type indexed struct {
	group           int32
	terms, termEnd  int32
	known, knownEnd int32
	list            int32 // items listed, or 0
	listed          int32 // Sentence.Listed
	changes         bool  // one of its numbers replaced another of its numbers
	row             bool  // isRow
	least, most     bool  // has a word for the least, or the greatest, supported version
	line            bool  // a title or a field, not punctuated as a sentence
	mixed           bool  // "respectively": clauses do not show what belongs together
	carry
}

type term struct {
	hash   uint64
	clause int32
	class  words.Class
	date   bool // part of a date
	behind bool // a number precedes it in its clause
}

type known struct {
	value    quantity.Value
	noun     uint64 // word directly after it, or 0
	name     uint64 // name directly before it, or 0: PostgreSQL 12
	dotted   string // a bare number after a name, as written: 3.9
	until    string // end of its range: 3.12 in "3.9 to 3.12"
	sentence int32
	clause   int32
	partner  int32  // other value of its change, -1: none
	phase    phase  // which value of a change it is
	trend    turn   // its direction: turnRise, turnFall or 0
	when     int32  // month it applies to, counted from year 0; up to 12: of any year; 0: unknown
	each     uint64 // unit that it is per, or 0
	stale    bool   // the next sentence replaces it
	takes    uint8  // what its clause takes from the previous one
	early    bool   // a length of time that lies before something
	bound    bound  // of a date or time of day: 1 if the subject is after it, -1 if before
	to       bool   // of a time of day: end of a span that begins at the previous value
	bill     item   // which item of a bill its clause names, or empty
	lot      lot    // the lot that it is the price of
	bare     bool   // its clause has names only and continues the words of the previous clause
}

// NewIndex reads the sentences once. Finding.Sentence is an index into sentences. If ctx ends
// before NewIndex returns, the index is incomplete and must not be used.
func NewIndex(ctx context.Context, sentences []Sentence) *Index {
	x := &Index{
		sentences: make([]indexed, 0, len(sentences)),
		postings:  make(map[uint64][]int32),
		byDim:     make(map[quantity.Dim][]int32),
		past:      -1,
	}
	var r reading
	var c carrier
	var head heading
	for i, s := range sentences {
		if i%64 == 0 && ctx.Err() != nil {
			return x
		}
		r.read(s.Text)
		x.add(int32(i), s, &r, c.next(int32(i), s, &r), head.of(s.Heading))
		if s.Items > 0 {
			x.lists = append(x.lists, list{first: int32(i), entries: int32(s.Items)})
		}
	}
	x.values = newValues(x.known)
	x.idf = make(map[uint64]float32, len(x.postings))
	for h, list := range x.postings {
		x.idf[h] = float32(math.Log(1 + float64(len(sentences))/float64(len(list))))
	}
	return x
}

func (x *Index) add(i int32, s Sentence, r *reading, from carry, heading []words.Word) {
	in := indexed{
		carry: from, group: int32(s.Group), terms: int32(len(x.terms)), known: int32(len(x.known)),
		list: listed(s.Text, r), listed: int32(s.Listed),
	}
	in.row = isRow(s.Text)
	in.line = !strings.HasSuffix(strings.TrimRight(s.Text, " \"')*_"), ".") && !strings.ContainsAny(s.Text, ";!?")
	r.numbersOfClauses()
	for _, w := range r.words {
		in.least, in.most = in.least || leastWords[w.Hash], in.most || mostWords[w.Hash]
		if isRespectively(s.Text[w.Start:w.End]) {
			in.mixed = true
		}
		if w.Has(words.Stop) || r.inValue(w, false) && (!in.row || !r.bareAt(w)) {
			continue // a bare number in a row may be a name
		}
		t := term{hash: w.Hash, clause: r.clause(w.Start), class: w.Class, date: r.inDate(w)}
		t.behind = r.behindNumber(w.Start, t.clause)
		x.terms = append(x.terms, t)
		if list := x.postings[w.Hash]; len(list) == 0 || list[len(list)-1] != i {
			x.postings[w.Hash] = append(list, i)
		}
	}
	own := len(x.terms)
	x.addHeading(i, heading)
	r.phasesOf(s.Text)
	r.ratesOf(s.Text)
	r.lotsOf(s.Text)
	r.datesOf(s.Text)
	x.equate(s.Text, r)
	first := int32(len(x.known))
	bare := r.bareClauses(x.terms[in.terms:own])
	for n, v := range r.values {
		x.byDim[v.Dim] = append(x.byDim[v.Dim], int32(len(x.known)))
		k := known{
			value:    v,
			noun:     r.noun(s.Text, &v),
			name:     r.name(s.Text, &v),
			sentence: i,
			clause:   r.clause(v.Start),
			phase:    r.phases[n],
			trend:    r.trend(n),
			when:     r.when(s.Text, n),
			each:     r.each[n],
			bound:    r.boundOf(s.Text, &v),
			to:       r.otherEndOf(s.Text, n),
			early:    r.before(s.Text, &v),
			partner:  -1,
		}
		if k.name != 0 {
			k.dotted, k.until = r.versionsAt(s.Text, n)
		}
		if p := r.partners[n]; p >= 0 {
			k.partner = first + p
			in.changes = true
		}
		k.bare = bare[k.clause] == onlyName
		k.takes = r.takes(s.Text, k.clause)
		x.known = append(x.known, k)
	}
	x.addLots(&in, r, x.terms[in.terms:own])
	x.replaceBefore(&in, s, r, x.past)
	x.supersede(&in)
	if x.past = -1; r.past >= 0 {
		x.past = first + int32(r.past)
	}
	x.places = r.placesOf(x.places)
	in.termEnd, in.knownEnd = int32(len(x.terms)), int32(len(x.known))
	x.sentences = append(x.sentences, in)
}

// inHeading is the clause of heading words; it is in no sentence below the heading.
const inHeading = -2

// maxHeading is the maximum number of heading words recorded with each sentence below it; our
// choice.
const maxHeading = 12

// heading caches the words of a heading, so that it is read once for all sentences below it.
type heading struct {
	text  string
	words []words.Word
}

// of returns the recorded words of a heading.
func (h *heading) of(text string) []words.Word {
	if text != h.text {
		h.text, h.words = text, words.Scan(h.words[:0], text)
	}
	return h.words[:min(len(h.words), maxHeading)]
}

// addHeading records the words of the heading above sentence i as words of the sentence.
func (x *Index) addHeading(i int32, heading []words.Word) {
	for _, w := range heading {
		if w.Has(words.Stop) || w.Has(words.Number) {
			continue
		}
		if list := x.postings[w.Hash]; len(list) == 0 || list[len(list)-1] != i {
			x.postings[w.Hash] = append(list, i)
			x.terms = append(x.terms, term{hash: w.Hash, clause: inHeading, class: w.Class})
		}
	}
}

// Which words a clause has.
const (
	noWord   = iota
	onlyName // a name and no other word: "and Okoye 39 %"
	anyWord
)

// bareClauses returns, per clause, which words it has.
func (r *reading) bareClauses(terms []term) []uint8 {
	r.bare = append(r.bare[:0], make([]uint8, len(r.bounds)+1)...)
	for i := range terms {
		switch t := &terms[i]; {
		case t.class&words.Name == 0:
			r.bare[t.clause] = anyWord
		case r.bare[t.clause] == noWord:
			r.bare[t.clause] = onlyName
		}
	}
	return r.bare
}

// Len returns how many numbers the evidence has.
func (x *Index) Len() int { return len(x.known) }

func isRespectively(s string) bool {
	switch s {
	case "respectively", "jeweils", "respectivement", "respectivamente":
		return true
	}
	return false
}

// listed returns the number of items in the longest "A, B and C" of a sentence, or 0 without a
// list.
func listed(text string, r *reading) int32 {
	best, items := int32(0), int32(1)
	bounds := slices.Clone(r.bounds)
	slices.Sort(bounds)
	for _, b := range bounds {
		switch text[b] {
		case ',', 0xe3, 0xef: // the last two begin 、 and ，
			items++
		case 'a', 'u', 'e', 'y': // and, und, et, y
			if b < 2 || text[b-2] != ',' {
				items++
			}
			best = max(best, items)
			items = 1
		default:
			items = 1
		}
	}
	return best
}

// Knows reports whether the evidence contains all words of a text, except function words.
func (x *Index) Knows(text string) bool {
	return !slices.ContainsFunc(words.Scan(nil, text), func(w words.Word) bool {
		_, known := x.idf[w.Hash]
		return !known && !w.Has(words.Stop)
	})
}

// identifying is the minimum length, in bytes, of a number that identifies something: 2024-117.
const identifying = 4

// KnowsOf reports whether the evidence contains at least one word of a text. Function words and
// short numbers do not count.
func (x *Index) KnowsOf(text string) bool {
	return slices.ContainsFunc(words.Scan(nil, text), func(w words.Word) bool {
		_, known := x.idf[w.Hash]
		return known && !w.Has(words.Stop) && (!w.Has(words.Number) || w.End-w.Start >= identifying)
	})
}
