package numeric

import (
	"context"
	"math"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// Verdict is the outcome of a check, with the names the guard uses.
type Verdict uint8

// The verdicts, from the mildest to the worst.
const (
	NotCheckable Verdict = iota // there is no number to check
	Supported                   // every number is in the evidence or follows from it
	Unsupported                 // a number is nowhere in the evidence
	Contradicted                // the evidence has another number for the same subject
)

// String returns the name of the verdict as used in the API.
func (v Verdict) String() string {
	switch v {
	case Supported:
		return "supported"
	case Unsupported:
		return "unsupported"
	case Contradicted:
		return "contradicted"
	case NotCheckable:
	}
	return "not_checkable"
}

// Reason says why a number got its verdict.
type Reason string

// The reasons.
const (
	SameValue    Reason = "same value"
	Rounded      Reason = "same value, rounded"
	Converted    Reason = "same value in another unit"
	Derived      Reason = "follows from values of the evidence"
	Reached      Reason = "follows from a date and a length of time in the evidence"
	Counted      Reason = "count of listed things"
	Listed       Reason = "may count what the evidence lists"
	Named        Reason = "part of what something is called in the evidence"
	OtherValue   Reason = "another value for the same subject"
	OtherSubject Reason = "value of another subject"
	OtherRate    Reason = "same value, for each of something else"
	NoSuchNumber Reason = "no such number in the evidence"
	NoFact       Reason = "small number that may be no fact"
	Elsewhere    Reason = "stands in the evidence, perhaps of something else"
	WithinBound  Reason = "within a bound of the evidence"
	Multiple     Reason = "perhaps a multiple of an amount of the evidence"
	Difference   Reason = "perhaps what lies between two numbers of the evidence"
	Concluded    Reason = "a conclusion, which the evidence does not tell"
)

// Finding is the verdict on one number of a claim.
type Finding struct {
	Start, End int // byte offsets of the number in the claim
	Verdict    Verdict
	Reason     Reason
	Sentence   int     // index of the evidence sentence that decided, or -1
	Score      float64 // agreement of the words around both numbers, in [0,1]
	// Untold is set if the deciding sentence has another date as well and no word of the claim says
	// which date it means.
	Untold bool
}

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var checkers = sync.Pool{New: func() any { return new(checker) }}

// Check compares every number of a claim with the evidence. The text before is what the claim
// continues, such as the previous sentence or the head of its table row; it may be empty. Check
// appends one finding per number to dst, in order, and returns the worst verdict. The cost grows
// with the numbers in the claim and in the evidence; use CheckFrom to limit it. Safe for concurrent
// use.
func (x *Index) Check(dst []Finding, claim, before string) (Verdict, []Finding) {
	t := DefaultThresholds()
	return x.CheckWith(dst, claim, before, &t)
}

// CheckWith is Check with thresholds chosen by the caller.
func (x *Index) CheckWith(dst []Finding, claim, before string, t *Thresholds) (Verdict, []Finding) {
	verdict, dst, _ := x.check(dst, claim, before, t, &budget{ctx: context.Background(), left: math.MaxInt})
	return verdict, dst
}

func (x *Index) check(dst []Finding, claim, before string, t *Thresholds, b *budget) (Verdict, []Finding, error) {
	c := checkers.Get().(*checker) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer checkers.Put(c)
	c.x, c.limit, c.budget = x, *t, *b
	defer func() { c.x, c.claim, c.ctx = nil, "", nil }()
	worst := NotCheckable
	c.prepare(claim, before)
	for i := range c.values {
		if c.spent() {
			break
		}
		f := c.judge(i)
		if c.spent() {
			break // f may be incomplete
		}
		worst = max(worst, f.Verdict)
		dst = append(dst, f)
	}
	b.left = c.left
	return worst, dst, c.err()
}

// checker is the scratch space of one check.
type checker struct {
	reading
	budget

	x           *Index
	limit       Thresholds
	claim       string
	own         int  // words of the claim missing from the evidence, plus negations
	negated     bool // the claim has a negation
	limited     bool // the claim is about a bound itself
	cues        cue
	nearNumbers []int32  // scratch of derivable
	takenIn     []uint64 // words after "including"
	lasts       bool     // the claim has a length of time other than a year
	yearly      bool     // the claim mentions a year
	noun        uint64   // noun counted by the number being judged, or 0
	// all is the total weight of the terms that describe the subject of the number being judged.
	all    float64
	said   []words.Word // words of the preceding text
	tenses []phase      // of the claim's numbers
	tense  phase        // of the number being judged
	at     int          // index of the number being judged
	other  candidate    // an equal number that is per another unit
	zoned  bool         // a time of day in the claim has a time zone
	than   than
	unit   uint64   // unit that the number being judged is per, or 0
	trend  turn     // direction of the number being judged, or 0
	homes  []int32  // clauses of the claim's numbers
	places []around // of the claim's numbers

	terms  []claimTerm
	scores []float32 // per sentence
	names  []float32 // per sentence: score of names alone
	top    []int32   // sentences by score
	near   []candidate
}

// claimTerm is a word of the claim that occurs in the evidence.
type claimTerm struct {
	hash   uint64
	weight float64
	clause int32 // -1: from the context
	date   bool
	name   bool     // capitalised, or of a script without capitals
	side   bool     // describes only the side of a bound, or a change
	at     standing // place in the claim relative to the number being judged
}

// candidate is a number of the evidence, or a sentence with a list.
type candidate struct {
	known, sentence int32
	score           float64
}

//nolint:gochecknoglobals // constant
var nobody = candidate{known: -1, sentence: -1}

func (c *checker) by(known int32, score float64) candidate {
	return candidate{known: known, sentence: c.x.known[known].sentence, score: score}
}

// maxTop is the maximum number of sentences whose numbers are compared one by one.
const maxTop = 24

func (c *checker) prepare(claim, before string) {
	c.claim = claim
	c.read(claim)
	c.nameMeasures()
	c.terms, c.top, c.homes = c.terms[:0], c.top[:0], c.homes[:0]
	c.left -= len(c.words)
	if len(c.values) == 0 {
		return
	}
	if c.left -= (len(c.words) + len(c.values)) * (len(c.values) + len(c.bounds)); c.spent() {
		return
	}
	c.sterling()
	for i := range c.values {
		c.homes = append(c.homes, c.clause(c.values[i].Start))
	}
	c.places = c.placesOf(c.places[:0])
	c.phasesOf(claim)
	c.ratesOf(claim)
	c.datesOf(claim)
	c.zoned, c.than = c.hasZone(), c.thanOf()
	c.tenses = c.tenses[:0]
	present := c.present(claim)
	for i := range c.values {
		c.tenses = append(c.tenses, c.reading.tense(i, present, c.dates))
	}
	c.cues = cuesOf(claim)
	c.noteYears()
	c.context(before, c.ownTerms(claim))
	c.rank()
}

// sterling reads pounds in the claim as money if the evidence has pounds sterling and no weights.
func (c *checker) sterling() {
	if len(c.x.byDim[quantity.Sterling]) == 0 || len(c.x.byDim[quantity.Mass]) > 0 {
		return
	}
	for i := range c.values {
		if v := &c.values[i]; v.Pounds() {
			v.MeasureAs(&quantity.Value{Dim: quantity.Sterling, Factor: 1})
		}
	}
}

// ownTerms records the words of the claim and reports whether one of them is a name.
func (c *checker) ownTerms(claim string) (named bool) {
	c.own, c.negated, c.limited, c.takenIn = 0, false, false, c.takenIn[:0]
	for i, w := range c.words {
		within := i > 0 && len(c.takenIn) < mostTaken && inclusive[c.words[i-1].Hash]
		if within {
			c.takenIn = append(c.takenIn, w.Hash)
		}
		c.limited = c.limited || limits[w.Hash]
		if w.Has(words.Negation) {
			c.own++
			c.negated = true
		}
		if !w.Has(words.Stop) && !c.inValue(w, false) && !within {
			named = named || w.Has(words.Name)
			if c.addTerm(w, c.clause(w.Start), 1) {
				text := claim[w.Start:w.End]
				c.terms[len(c.terms)-1].side = sides(text) || turnOf(text)&^turnOwn != 0
			}
			if _, known := c.x.idf[w.Hash]; !known && !sides(claim[w.Start:w.End]) {
				c.own++
			}
		}
	}
	return named
}

// context records the names in the preceding text. They weigh less if the claim has names of its
// own (named).
func (c *checker) context(before string, named bool) { //nolint:revive // a fact about the claim
	weight := 0.6
	if named {
		weight = 0.3
	}
	c.said = words.Scan(c.said[:0], before)
	for _, w := range c.said {
		if w.Has(words.Capital) && !w.Has(words.Stop) {
			c.addTerm(w, -1, weight)
		}
	}
}

// addTerm records a word of the claim, weighted by factor. It reports false if the evidence lacks
// the word or the word was already recorded.
func (c *checker) addTerm(w words.Word, clause int32, factor float64) bool {
	idf, ok := c.x.idf[w.Hash]
	if !ok {
		return false
	}
	c.left -= len(c.terms)
	for i := range c.terms {
		if c.terms[i].hash == w.Hash {
			return false
		}
	}
	weight := float64(idf) * factor
	if w.Has(words.Name) {
		weight *= 1.5
	}
	c.terms = append(c.terms, claimTerm{
		hash: w.Hash, weight: weight, clause: clause,
		date: clause >= 0 && c.inDate(w),
		name: isName(w.Class),
	})
	return true
}

// rank finds the sentences of the evidence that share most with the claim. A sentence that
// continues about an earlier subject also gets the score of that subject's names.
func (c *checker) rank() {
	c.left -= 2 * len(c.x.sentences)
	for i := range c.terms {
		c.left -= len(c.x.postings[c.terms[i].hash])
	}
	if c.spent() {
		return
	}
	c.scores, c.names = zeros(c.scores, len(c.x.sentences)), zeros(c.names, len(c.x.sentences))
	for i := range c.terms {
		t := &c.terms[i]
		for _, s := range c.x.postings[t.hash] {
			c.scores[s] += float32(t.weight)
			if t.name {
				c.names[s] += float32(t.weight)
			}
		}
	}
	for s := range c.x.sentences {
		in := &c.x.sentences[s]
		if in.from >= 0 && in.as >= neighbour {
			c.scores[s] += c.names[in.from] * float32(together(inSentence, in.as))
		}
		if c.scores[s] == 0 || in.known == in.knownEnd && in.list == 0 {
			continue
		}
		c.keep(int32(s), c.scores[s])
	}
}

// zeros returns n zeros, reusing the space of list if it suffices.
func zeros(list []float32, n int) []float32 {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

func isName(class words.Class) bool { return class&(words.Capital|words.Uncased) != 0 }

// keep maintains the best maxTop sentences, best first.
func (c *checker) keep(s int32, score float32) {
	if len(c.top) == maxTop {
		if score <= c.scores[c.top[maxTop-1]] {
			return
		}
		c.top = c.top[:maxTop-1]
	}
	at := len(c.top)
	for at > 0 && c.scores[c.top[at-1]] < score {
		at--
	}
	c.top = slices.Insert(c.top, at, s)
}

// judge decides on number i of the claim.
func (c *checker) judge(i int) Finding {
	v := &c.values[i]
	c.unit, c.at, c.other = c.each[i], i, nobody
	c.tense, c.trend = c.tenses[i], c.reading.trend(i)
	if c.noun = 0; v.Dim == quantity.Plain && v.Kind == quantity.Count {
		c.noun = c.reading.noun(c.claim, v)
	}
	c.locate(v)
	f := Finding{Start: v.Start, End: v.End, Sentence: -1}
	if by := c.ratio(v); by.sentence >= 0 {
		return c.found(f, Supported, Derived, by)
	}
	if c.eitherOr(v) {
		f.Reason = NoFact
		return f
	}
	match, how := c.bestMatch(v)
	other := c.bestOther(v, match)
	if c.ofTitle(v, match) {
		return c.found(f, Supported, how, match)
	}
	stray := match.sentence >= 0 && !c.ofItsPart(v, other) && c.coincidence(match)
	if stray {
		match = nobody
	}
	if match.sentence >= 0 {
		return c.matched(f, v, match, other, how)
	}
	if from, reason := c.following(v, other); from.sentence >= 0 {
		return c.found(f, Supported, reason, from)
	}
	if c.other.sentence >= 0 && (other.sentence < 0 || other.score <= c.other.score) {
		return c.rated(f)
	}
	if c.noFact(v, other) {
		f.Reason = NoFact
		return f
	}
	if f.Reason = c.possible(v, other); f.Reason != "" {
		return f
	}
	if other.sentence >= 0 && other.score >= c.limit.SameSubject {
		return c.found(f, Contradicted, OtherValue, other)
	}
	_, counted := c.x.idf[c.noun]
	switch {
	case stray:
		f.Reason = Elsewhere
	case counted && c.fewInWords(v):
		f.Reason = NoFact
	default:
		f.Verdict, f.Reason = Unsupported, NoSuchNumber
	}
	return f
}

// few is the largest count written in words that an answer may have counted itself; our choice.
const few = 12

// fewInWords reports whether v is a small count written in words: "two of the three men". If the
// evidence lacks such a count or has it for something else, it is more often true than false (ADR
// 72).
func (c *checker) fewInWords(v *quantity.Value) bool {
	first, _ := utf8.DecodeRuneInString(c.claim[v.Start:])
	return v.Kind == quantity.Count && v.Dim == quantity.Plain && !v.Range() && v.Raw >= 1 && v.Raw <= few &&
		unicode.In(first, unicode.Latin)
}

// noFact reports whether v may not be a factual number: "one of them", "once", or a factor of
// another number.
func (c *checker) noFact(v *quantity.Value, other candidate) bool {
	return v.Dim == quantity.Multiple && v.Raw == 1 || v.Weak && !(v.Raw >= 2 && c.sameNoun(other)) ||
		c.listsItself(v, other) || c.multiplies(v)
}

// matched decides on a number whose value is in the evidence: whether it belongs to the claim's
// subject.
func (c *checker) matched(f Finding, v *quantity.Value, match, other candidate, how Reason) Finding {
	if at := c.elsewhere(v, match, other); at.sentence >= 0 {
		if from := c.workedOutApart(v, match); from.sentence >= 0 {
			return c.found(f, Supported, Derived, from)
		}
		if c.ownSum(v) {
			f.Reason = NoFact
			return f
		}
		if c.fewInWords(v) && !c.x.sentences[at.sentence].row && (!c.sameNoun(at) || c.sameNoun(match)) {
			f.Reason = NoFact // not for records, nor for counts of the same thing
			return f
		}
		return c.found(f, Contradicted, OtherSubject, at)
	}
	f.Untold = c.untold(v, match)
	return c.found(f, Supported, how, match)
}

// following looks for what v follows from: the year a quarter belongs to, a date plus a length of
// time, or arithmetic.
func (c *checker) following(v *quantity.Value, other candidate) (candidate, Reason) {
	if year := c.yearAlone(v); year.sentence >= 0 {
		return year, SameValue
	}
	if from := c.reached(v); from.sentence >= 0 {
		return from, Reached
	}
	return c.derive(v, other)
}

// possible returns why v may be true although the evidence does not contain it, or "" if there is
// no reason.
func (c *checker) possible(v *quantity.Value, other candidate) Reason {
	switch {
	case c.newer(v), c.bounded(v), c.complements(v), c.above(v), c.tiered(v), c.datedWithin(v), c.clockedWithin(v):
		return WithinBound
	case c.multiplied(v, c.own == 0 && other.sentence >= 0 && other.score >= c.limit.Stated), c.factored(v),
		c.percentOf(v):
		return Multiple
	case c.listsAsMany(v, other):
		return Listed
	case c.named(v):
		return Named
	case c.unitAlone(v, other), c.ownSum(v):
		return NoFact
	case c.spans(v), c.months(v), c.agedThen(v), c.shared(v), c.timesOwn(v), c.restOf(v), c.fromRowToRow(v),
		c.lasted(v), c.derivable(v), c.premise(v), c.reckoned(v):
		return Difference
	case (other.sentence < 0 || other.score < c.limit.Stated) && c.concluded(v):
		// otherwise the evidence states it
		return Concluded
	}
	return ""
}

// elsewhere returns the number of the evidence that the claim actually refers to if match, which
// has the claim's value, belongs to another subject. It returns nobody if match is the right one.
func (c *checker) elsewhere(v *quantity.Value, match, other candidate) candidate {
	if match.sentence == other.sentence && match.known >= 0 && other.known >= 0 &&
		c.x.known[match.known].value.Side == v.Side && apartOf(v.Side, c.x.known[other.known].value.Side) {
		return nobody // "a minimum of 60 and a maximum of 90"
	}
	if c.swapped(v, match, other) {
		return other
	}
	if at := c.exchanged(c.at, match); at.sentence >= 0 && !v.Weak {
		return at
	}
	if at := c.otherPart(v, match); at.sentence >= 0 {
		return at
	}
	if at := c.otherTier(v, match); at.sentence >= 0 {
		return at
	}
	return c.ofOtherDate(v, match)
}

// exact reports whether a number has so many digits that another is unlikely to equal it by chance,
// and is in a line of so few words that the line cannot state a subject: "126 passed in 14.32s".
// Our choice.
func (c *checker) exact(match candidate) bool {
	const digits, few = 1e3, 4
	v, in := &c.x.known[match.known].value, &c.x.sentences[match.sentence]
	return v.Kind == quantity.Count && !v.Range() && in.termEnd-in.terms <= few &&
		v.Place > 0 && math.Abs(v.Raw) >= digits*v.Place
}

// coincidence reports whether a matching number shares nothing with the claim but its value, while
// the evidence has a sentence about the claim's subject.
func (c *checker) coincidence(match candidate) bool {
	if match.score >= c.limit.Stray || len(c.top) == 0 || c.all == 0 || c.exact(match) || c.besideTop(match) {
		return false
	}
	return float64(c.scores[c.top[0]]) >= c.limit.Topic*c.all && c.foreignName(match.known)
}

// besideTop reports whether an amount with a unit is in the sentence directly before or after the
// best matching one. Example: "1,200 mg in 24 hours" after the sentence about the tablets.
func (c *checker) besideTop(match candidate) bool {
	top := c.top[0]
	v := &c.x.known[match.known].value
	return v.Kind == quantity.Count && v.Dim != quantity.Plain &&
		c.x.sentences[top].group == c.x.sentences[match.sentence].group &&
		(top == match.sentence-1 || top == match.sentence+1)
}

// titleSentences is how many sentences at the start of a source may be its title and fields; our
// choice.
const titleSentences = 3

// ofTitle reports whether v matches a date at the head of a source, in a line without other
// numbers. The content of the source is of that date.
func (c *checker) ofTitle(v *quantity.Value, match candidate) bool {
	if v.Kind != quantity.Date || match.sentence < 0 || match.known < 0 {
		return false
	}
	in := &c.x.sentences[match.sentence]
	if i := match.sentence - titleSentences; in.row || !in.line || i >= 0 && c.x.sentences[i].group == in.group {
		return false
	}
	for k := in.known; k < in.knownEnd; k++ {
		if c.x.known[k].value.Kind != quantity.Date {
			return false
		}
	}
	return true
}

// foreignClause reports whether number k is in a clause with a word that the claim lacks. A clause
// without words of its own is about the subject of its sentence.
func (c *checker) foreignClause(k int32) bool {
	e := &c.x.known[k]
	in := &c.x.sentences[e.sentence]
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if c.left < 0 {
			return false
		}
		if w.clause == e.clause && (!in.row || w.class&words.Number == 0) && !c.says(w.hash) {
			return true
		}
	}
	return false
}

// foreignName reports whether the sentence of number k names something that the claim does not: by
// a name, by a number used as a name ("article 4471"), or by continuing about an unmentioned
// subject.
func (c *checker) foreignName(k int32) bool {
	e := &c.x.known[k]
	in := &c.x.sentences[e.sentence]
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if c.left < 0 {
			return false
		}
		if (isName(w.class) || w.class&words.Number != 0) && !w.date && !c.says(w.hash) && !c.taken(in, w.clause, e) {
			return true
		}
	}
	return c.foreignSubject(in)
}

func (c *checker) says(hash uint64) bool {
	c.left -= len(c.terms)
	for i := range c.terms {
		if c.terms[i].hash == hash && c.terms[i].clause >= 0 {
			return true
		}
	}
	return false
}

func (*checker) found(f Finding, v Verdict, r Reason, by candidate) Finding {
	f.Verdict, f.Reason, f.Score = v, r, by.score
	f.Sentence = int(by.sentence)
	return f
}

// bestOther returns the comparable evidence value that differs from v and whose words agree best.
// If v matches a number without a unit in a record, other numbers without units are comparable too.
func (c *checker) bestOther(v *quantity.Value, match candidate) candidate {
	best := nobody
	bare := match.known >= 0 && c.x.sentences[match.sentence].row && c.x.known[match.known].value.Dim == quantity.Plain
	for _, s := range c.top {
		in := &c.x.sentences[s]
		for k := in.known; k < in.knownEnd; k++ {
			if c.left < 0 {
				return best
			}
			e := &c.x.known[k].value
			c.left -= comparing
			meets := quantity.Commensurable(v, e) || bare && c.unnamed(v, k)
			if !meets ||
				c.agree(v, k) != quantity.Differs && !c.denies(v, &c.x.known[k]) {
				continue
			}
			if score := c.affinity(k); best.sentence < 0 || score > best.score {
				best = c.by(k, score)
			}
		}
	}
	return best
}

// unnamed reports whether number k is in a record and has no unit, so that it may have the unit of
// v. If v has a unit, cells that count things are excluded.
func (c *checker) unnamed(v *quantity.Value, k int32) bool {
	e := &c.x.known[k]
	return c.x.sentences[e.sentence].row && e.value.Dim == quantity.Plain && e.value.Kind == quantity.Count &&
		(v.Dim == quantity.Plain || !c.counts(k))
}
