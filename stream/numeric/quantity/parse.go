package quantity

import (
	"math"
	"strings"
	"sync"
)

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var parsers = sync.Pool{New: func() any { return new(parser) }}

// Parse appends the numbers, dates and times of text to dst, in order, and returns the extended
// slice. Numbers that state no fact are omitted: list numbers, "step 2", versions, citations,
// identifiers, addresses, code. Safe for concurrent use; allocates only to grow dst.
func Parse(dst []Value, text string) []Value {
	p := parsers.Get().(*parser) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer parsers.Put(p)
	return p.parse(dst, text)
}

type parser struct {
	text string
	toks []token
	none token // returned for indices outside of toks
	free int   // first token that belongs to no value yet
}

func (p *parser) parse(dst []Value, text string) []Value {
	l := lexer{text: text, toks: p.toks[:0]}
	l.run()
	p.text, p.toks = text, l.toks
	p.none = token{kind: tokOpaque, start: len(text), end: len(text)}
	first := len(dst)
	p.free = 0
	for i := p.listNumber(); i < len(p.toks); {
		v, next, ok := p.value(i)
		switch {
		case ok && (p.labelled(i) || v.Kind == Ordinal && p.percentile(next)):
			i = next
		case ok:
			p.withOne(i, &v)
			dst = p.push(dst, first, v)
			i, p.free = next, next
		case next > i:
			i = next
		default:
			i++
		}
	}
	p.text = ""
	return dst
}

// value reads the value that starts at token i and returns the token after it.
func (p *parser) value(i int) (v Value, next int, ok bool) {
	if v, ok = p.code(i); ok {
		return v, i + 1, true
	}
	if v, next, ok = p.date(i); ok {
		return v, next, true
	}
	if v, next, ok = p.clock(i); ok {
		return v, next, true
	}
	if v, next, ok = p.fractionWords(i); ok {
		return v, next, true
	}
	if v, next, ok = p.ordinal(i); ok {
		return v, next, true
	}
	if v, next, ok = p.oneLength(i); ok {
		return v, next, true
	}
	if v, ok = p.dual(i); ok {
		return v, i + 1, true
	}
	return p.amount(i)
}

// oneLength reads an article before a unit of time if another word shows that it is a length: for a
// week, within a month, dauert eine Woche. It is weak, because it is not written as a number,
// except for a time before something.
func (p *parser) oneLength(i int) (v Value, next int, ok bool) {
	t, u := p.tok(i), p.tok(i+1).unit
	if t.word.role&roleArticle == 0 || u.dim != Duration || u.offset != 0 || u.factor < hour || p.has(i+2, roleAnd) ||
		!p.lasts(i-1) && !p.aheadOf(i+2) {
		return v, i, false
	}
	v = plainValue(1, 1)
	v.Start, v.End, v.Weak = t.start, p.tok(i+1).end, !p.aheadOf(i+2)
	v.setUnit(u)
	v.Hedge = p.hedge(i)
	return v, i + 2, true
}

// lasts reports whether the word at token k, after hedges are skipped, announces a length of time.
func (p *parser) lasts(k int) bool {
	for n := 0; n < 2 && p.has(k, roleHedge); n++ {
		k--
	}
	switch p.tokText(k) {
	case "for", "within", "in", "takes", "take", "took", "last", "lasts", "lasted", "after", "is", "of",
		"dauert", "dauern", "dauerte", "innerhalb", "binnen", "für", "nach", "beträgt", "gilt":
		return true
	}
	return false
}

// aheadOf reports whether the word at token k says that a length of time lies before something.
func (p *parser) aheadOf(k int) bool {
	return p.word(k, "before") || p.word(k, "prior") || p.word(k, "vor") || p.word(k, "avant")
}

// push appends v, or merges it with the previous value: 2 hours 30 minutes, 5 ft 10 in.
func (p *parser) push(dst []Value, first int, v Value) []Value {
	if len(dst) > first && v.Kind == Clock {
		p.shareZone(&dst[len(dst)-1], &v)
	}
	if len(dst) == first || v.Kind != Count || v.Range() {
		return append(dst, v)
	}
	last := &dst[len(dst)-1]
	between := p.text[last.End:v.Start]
	joined := between == "" || between == " " || between == " and " || between == " et " || between == " und " || between == " y "
	compound := v.Dim == length || v.Dim == Duration || v.Dim == mass
	if !joined || !compound || last.Kind != Count || last.Dim != v.Dim || last.Range() || v.Factor >= last.Factor || last.Step < 1 || v.Lo >= last.Factor {
		return append(dst, v)
	}
	last.Raw += v.Lo / last.Factor
	last.RawHi = last.Raw
	last.Step = v.Step * v.Factor / last.Factor
	last.Place = last.Step
	last.Alt = math.NaN()
	last.End = v.End
	last.scaled()
	return dst
}

// shareZone gives the first of two times of day the time zone after the second: 08:00 to 20:00 CET.
func (p *parser) shareZone(from, to *Value) {
	if from.Kind != Clock || from.Zone != 0 || to.Zone == 0 {
		return
	}
	switch strings.TrimSpace(p.text[from.End:to.Start]) {
	case "to", "until", "till", "-", "–", "—", "and", "bis", "und":
		from.Zone = to.Zone
	}
}

// withOne adds a preceding "an hour and" to v, which begins at token i. An article alone is not a
// number.
func (p *parser) withOne(i int, v *Value) {
	if i < 3 || i-3 < p.free || v.Kind != Count || v.Range() || v.Dim != length && v.Dim != Duration && v.Dim != mass {
		return
	}
	one, u := p.tok(i-3), p.tok(i-2).unit
	if one.word.role&roleArticle == 0 || u.dim != v.Dim || u.factor <= v.Factor || v.Lo >= u.factor || !p.word(i-1, "and") && !p.word(i-1, "und") && !p.word(i-1, "et") && !p.word(i-1, "y") {
		return
	}
	step := v.Step * v.Factor / u.factor
	v.Raw = 1 + v.Lo/u.factor
	v.RawHi, v.Step, v.Place, v.Alt = v.Raw, step, step, math.NaN()
	v.Start = one.start
	v.setUnit(u)
}

func (p *parser) tok(i int) *token {
	if i < 0 || i >= len(p.toks) {
		return &p.none
	}
	return &p.toks[i]
}

func (p *parser) has(i int, r role) bool {
	t := p.tok(i)
	return t.word.role&r != 0
}

func (p *parser) sym(i int, r rune) bool {
	t := p.tok(i)
	return t.kind == tokSymbol && t.sym == r
}

// touches reports whether there is nothing between token i and the one before it.
func (p *parser) touches(i int) bool {
	return i > 0 && i < len(p.toks) && p.toks[i-1].end == p.toks[i].start
}

// listNumber returns the number of tokens in a list mark at the start: 3. or (3) or 3) or a bullet.
func (p *parser) listNumber() int {
	i := 0
	for p.sym(i, '-') || p.sym(i, '*') || p.sym(i, '•') || p.sym(i, '|') || p.sym(i, '>') {
		if p.touches(i + 1) {
			return i // a sign, or emphasis
		}
		i++
	}
	open := p.sym(i, '(')
	n := i
	if open {
		n++
	}
	t := p.tok(n)
	if t.kind != tokNumber || t.step != 1 || t.num > 999 || !p.touches(n+1) {
		return i
	}
	if closes := p.sym(n+1, ')'); !closes && (open || !p.sym(n+1, '.')) {
		return i
	}
	if n+2 >= len(p.toks) || p.touches(n+2) {
		return i
	}
	if p.sym(n+1, '.') && p.monthAt(n+2) {
		return i // 3. Mai
	}
	return n + 2
}

// follows reports whether the word at i continues about what precedes it: "line 7 in main.go".
func (p *parser) follows(i int) bool {
	switch p.tokText(i) {
	case "in", "is", "was", "at", "has", "had", "ist", "war", "dans", "est", "en", "es":
		return true
	}
	return false
}

// labelled reports whether the number at i is a name because of the word before it (step 2) or its
// context.
func (p *parser) labelled(i int) bool {
	t, before := p.tok(i), p.tok(i-1)
	if t.kind == tokDate || t.kind == tokClock {
		return false
	}
	if before.kind == tokSymbol && (before.sym == '№' || before.sym == '§' || before.sym == '^') {
		return true
	}
	dotted := p.sym(i-1, '.') && p.touches(i-1)
	if dotted {
		i--
		before = p.tok(i - 1)
	}
	if t.kind != tokNumber || !p.has(i-1, roleLabel) {
		return false
	}
	switch p.text[before.start:before.end] {
	case "no", "p", "fig", "eq", "pp", "nos", "vol":
		return dotted
	case "room", "line", "lines", "level", "part", "note", "issue", "item", "items", "exercise", "problem", "option", "question", "building", "release", "rule", "article", "examples":
		return p.tok(i+1).kind != tokWord || p.has(i+1, roleOf|roleAnd|roleTo) || p.follows(i+1) || !dotted && p.touches(i)
	}
	return true
}

// percentile reports whether the rank before token i is a percentile, which names a measure and
// counts nothing.
func (p *parser) percentile(i int) bool {
	return p.word(i, "percentile") || p.word(i, "percentil") || p.word(i, "Perzentil") || p.word(i, "centile")
}

// andAHalf adds the half of "two and a half hours" to v, which ends before token j, and returns the
// token after it.
func (p *parser) andAHalf(j int, v *Value) int {
	if v.Kind != Count || v.Range() || v.Raw != math.Trunc(v.Raw) ||
		!p.word(j, "and") || !p.word(j+1, "a") || !p.word(j+2, "half") {
		return j
	}
	v.Raw, v.RawHi, v.Step, v.Place, v.Weak = v.Raw+0.5, v.Raw+0.5, 0.5, 0.5, false
	v.scaled()
	return j + 3
}

// amount reads a count, a measurement, a percentage, money, or a range of them.
func (p *parser) amount(i int) (v Value, next int, ok bool) {
	v, j, ok := p.plain(i)
	if !ok {
		return v, i, false
	}
	v.Start = p.tok(i).start
	j = p.andAHalf(j, &v)
	if opaque := p.tok(j); opaque.kind == tokOpaque && p.touches(j) {
		return v, j, false
	}
	v.Hedge = p.hedge(i)
	v.Forbids = v.Hedge != Exact && p.forbids(i)
	p.sign(i, &v)
	j = p.unitOf(i, j, &v)
	if v.Dim == Multiple && v.Raw == 0 {
		return v, j, false // 0x, the prefix of a hexadecimal number
	}
	p.field(i, &v)
	if hi, k, ok := p.upper(i, j, &v); ok {
		j = k
		v.RawHi = hi.Raw
		if v.Dim == Plain {
			v.Dim, v.Factor, v.Offset = hi.Dim, hi.Factor, hi.Offset
		}
		v.Step, v.Place = max(v.Step, hi.Step), max(v.Place, hi.Place)
		v.scaled()
	}
	v.End = p.tok(j - 1).end
	p.period(j, &v)
	p.spacelessPeriod(i, j, &v)
	if p.sym(j, '+') && p.touches(j) {
		v.Hedge = Least
	} else if h := p.boundAfter(j); h != Exact {
		v.Hedge = h
	}
	if p.word(j, "or") && p.word(j+1, "so") {
		v.Hedge = About
	}
	for k := i + 1; k <= j; k++ {
		if p.touches(k) && p.andMore(k) {
			v.Hedge = Over
		}
	}
	v.Side = p.side(i, j, &v)
	if p.ahead(i, j, &v) {
		v.Hedge, v.Side = Exact, NoSide
	}
	p.weaken(i, j, &v)
	return v, j, true
}

func (p *parser) word(i int, s string) bool {
	t := p.tok(i)
	return t.kind == tokWord && p.text[t.start:t.end] == s
}

// weaken marks small numbers in words without a unit as weak, because they may not be facts: "one
// of them", "the two".
func (p *parser) weaken(i, j int, v *Value) {
	t := p.tok(i)
	if j == i+1 && v.Dim == Plain && (t.weak || t.kind == tokWord && v.Raw < 4) {
		v.Weak = true
	}
}

// plain reads digits or number words with their magnitudes.
func (p *parser) plain(i int) (v Value, next int, ok bool) {
	t := p.tok(i)
	switch {
	case t.kind == tokNumber:
		v, next = p.literal(i)
		return v, next, true
	case t.kind == tokWord &&
		(t.word.role&(roleCardinal|roleArticle|roleMagnitude) != 0 || shortCardinals[p.tokText(i)] > 0):
		return p.spelled(i)
	}
	return v, i, false
}

// literal reads digits, a fraction after them, a power of ten, and magnitude words.
func (p *parser) literal(i int) (v Value, next int) {
	t := p.tok(i)
	v = plainValue(t.num, t.step)
	v.Alt = t.alt
	next = i + 1
	if f := p.tok(next); f.kind == tokNumber && f.num < 1 && f.num > 0 && f.step == 0.01 && math.IsNaN(f.alt) && t.step == 1 && f.end-f.start <= 5 && p.text[f.start] != '0' {
		v = plainValue(t.num+f.num, 0.01)
		next++
	}
	if exp, k, ok := p.power(next); ok {
		v = plainValue(v.Raw*math.Pow(10, exp), v.Step*math.Pow(10, exp))
		next = k
	}
	return p.magnitudes(v, next)
}

// opensValue reports whether token i is a mark that precedes a value: "temp":-4.5.
func (p *parser) opensValue(i int) bool {
	return p.sym(i, ':') || p.sym(i, '=') || p.sym(i, '(') || p.sym(i, '[') || p.sym(i, '|')
}

// sign makes the value negative if a minus precedes it that is neither a hyphen nor a list mark.
func (p *parser) sign(i int, v *Value) {
	k := i - 1
	if p.money(k) && p.touches(i) {
		k--
	}
	if k < p.free {
		return
	}
	minus := p.sym(k, '-') || p.sym(k, '−') || p.sym(k, '–')
	if p.has(k, roleMinus) ||
		minus && p.touches(k+1) && (!p.touches(k) || p.opensValue(k-1)) && p.tok(k-1).kind != tokNumber {
		if p.has(k, roleMinus) && p.tok(k-1).kind == tokNumber {
			return
		}
		v.Raw, v.RawHi = -v.Raw, -v.RawHi
		v.scaled()
		v.Start = p.tok(k).start
	}
}
