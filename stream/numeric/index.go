package numeric

import (
	"context"
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// Sentence is one sentence of the evidence. Sentences of one Group (a fact, a document) follow each
// other: one that names no subject of its own goes on about that of the one before, as do the items
// of a list cut at its semicolons.
type Sentence struct {
	Text    string
	Heading string // that it stands under, or empty
	Group   int
	Items   int // entries of the list that begins with it, under a heading or in a text; else 0
	Listed  int // entries of its group, told of its first sentence, where that is nothing but a list; else 0
}

// Index holds the numbers of the evidence with the words around them. It is immutable and safe for
// concurrent use.
type Index struct {
	sentences []indexed
	terms     []term                   // of all sentences, one after the other
	known     []known                  // numbers of all sentences, in order
	places    []around                 // of the known numbers
	postings  map[uint64][]int32       // word to the sentences that hold it, ascending
	byDim     map[quantity.Dim][]int32 // dimension to known numbers
	idf       map[uint64]float32
	equal     [][2]uint64 // what amounts are for each of, and the evidence says is the same
	values    values
	lists     []list // that stand among other text
	lots      int    // how many numbers are the price of one of several
	past      int32  // while it is built: the only number of the last sentence that was so, or -1
}

// list is one of the evidence: the sentence that is its first entry, and how many entries it has.
type list struct{ first, entries int32 }

// isRow reports whether a sentence is a row of a table, put together, or a record in JSON.
func isRow(text string) bool { return strings.Contains(text, " | ") || isRecord(text) }

func isRecord(text string) bool { return strings.Contains(text, `":`) }

type indexed struct {
	group           int32
	terms, termEnd  int32
	known, knownEnd int32
	list            int32 // things listed, or 0
	listed          int32 // Sentence.Listed
	changes         bool  // a number of it took the place of another of it
	row             bool  // isRow
	least, most     bool  // it has a word of the least, or of the greatest, of what is supported
	line            bool  // a title or a field: no sentence that ends as one
	mixed           bool  // "respectively": clauses do not tell what belongs together
	carry
}

type term struct {
	hash   uint64
	clause int32
	class  words.Class
	date   bool // part of a date
	behind bool // a number of its clause stands before it
}

type known struct {
	value    quantity.Value
	noun     uint64 // the word right behind it, 0 when there is none
	name     uint64 // the name right before it, 0 when there is none: PostgreSQL 12
	dotted   string // of a bare number behind a name, as it is written: 3.9
	until    string // up to which one: 3.9 to 3.12
	sentence int32
	clause   int32
	partner  int32  // the other one of its change, -1: none
	phase    phase  // which value of a change it is
	trend    turn   // which way it went, or 0: turnRise, turnFall
	when     int32  // the month it is of, from year 0 on, or of any year up to 12; 0 when not told
	each     uint64 // what it is for each of, 0 when that is not told
	stale    bool   // the next sentence tells what took its place
	takes    uint8  // what its clause takes from the one before it
	early    bool   // of a length of time: it lies before something
	bound    bound  // of a date or a time of day: 1 where what is spoken of lies behind it, -1 before
	to       bool   // of a time of day: the one before it is where what goes up to it begins
	bill     item   // what its clause says that it is of a bill, or empty
	lot      lot    // that it is the price of one of
	bare     bool   // its clause has names and no other words: it goes on with the words of the clause before
}

// NewIndex reads the sentences once. Sentence i of the result of a check is sentences[i]. Of an
// index whose ctx ended before it was whole nothing may be asked.
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
			continue // a bare number of a row may be what it is called
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

// inHeading is the clause of the words of a heading, in no sentence below it.
const inHeading = -2

// maxHeading bounds the words of a heading that are noted with each sentence below it; our choice.
const maxHeading = 12

// heading is the one that sentences stand under, read once for all of them.
type heading struct {
	text  string
	words []words.Word
}

// of is the words of a heading that are noted.
func (h *heading) of(text string) []words.Word {
	if text != h.text {
		h.text, h.words = text, words.Scan(h.words[:0], text)
	}
	return h.words[:min(len(h.words), maxHeading)]
}

// addHeading notes the words of the heading that sentence i stands under as words of it.
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

// What the words of a clause are.
const (
	noWord   = iota
	onlyName // a name and no other word: "and Okoye 39 %"
	anyWord
)

// bareClauses tells of each clause what its words are.
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

// Len is the number of numbers in the evidence.
func (x *Index) Len() int { return len(x.known) }

func isRespectively(s string) bool {
	switch s {
	case "respectively", "jeweils", "respectivement", "respectivamente":
		return true
	}
	return false
}

// listed counts the items of the longest "A, B and C" of a sentence; 0 when there is no list.
func listed(text string, r *reading) int32 {
	best, items := int32(0), int32(1)
	bounds := slices.Clone(r.bounds)
	slices.Sort(bounds)
	for _, b := range bounds {
		switch text[b] {
		case ',', 0xe3, 0xef: // the latter two begin 、 and ，
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

// Knows reports whether the evidence has the words of a text, function words aside.
func (x *Index) Knows(text string) bool {
	return !slices.ContainsFunc(words.Scan(nil, text), func(w words.Word) bool {
		_, known := x.idf[w.Hash]
		return !known && !w.Has(words.Stop)
	})
}

// identifying is how many bytes a number has at least that tells what something is: 2024-117.
const identifying = 4

// KnowsOf is Knows for at least one of the words; short numbers are none.
func (x *Index) KnowsOf(text string) bool {
	return slices.ContainsFunc(words.Scan(nil, text), func(w words.Word) bool {
		_, known := x.idf[w.Hash]
		return known && !w.Has(words.Stop) && (!w.Has(words.Number) || w.End-w.Start >= identifying)
	})
}
