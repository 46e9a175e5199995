package numeric

import (
	"math"
	"sync"
)

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var parsers = sync.Pool{New: func() any { return new(parser) }}

// Parse appends the numbers, dates and times of text to dst, in order, and returns it. What is no fact is left out:
// list numbers, "step 2", versions, citations, identifiers, addresses, code. Safe for concurrent use; allocates only to
// grow dst.
func Parse(dst []Value, text string) []Value {
	p := parsers.Get().(*parser) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer parsers.Put(p)
	return p.parse(dst, text)
}

type parser struct {
	text string
	toks []token
	free int // first token that no value holds yet
}

func (p *parser) parse(dst []Value, text string) []Value {
	l := lexer{text: text, toks: p.toks[:0]}
	l.run()
	p.text, p.toks = text, l.toks
	first := len(dst)
	p.free = 0
	for i := p.listNumber(); i < len(p.toks); {
		v, next, ok := p.value(i)
		switch {
		case ok && p.labelled(i):
			i = next
		case ok:
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

// value reads what starts at token i.
func (p *parser) value(i int) (v Value, next int, ok bool) {
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
	return p.amount(i)
}

// push appends v, or joins it to the value before it: 2 hours 30 minutes, 5 ft 10 in.
func (p *parser) push(dst []Value, first int, v Value) []Value {
	if len(dst) == first || v.Kind != Count || v.Range() {
		return append(dst, v)
	}
	last := &dst[len(dst)-1]
	between := p.text[last.End:v.Start]
	joined := between == "" || between == " " || between == " and " || between == " et " || between == " und " || between == " y "
	compound := v.Dim == length || v.Dim == duration || v.Dim == mass
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

func (p *parser) tok(i int) *token {
	if i < 0 || i >= len(p.toks) {
		return &token{kind: tokOpaque, start: len(p.text), end: len(p.text)}
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

// touches reports whether nothing stands between token i and the one before it.
func (p *parser) touches(i int) bool {
	return i > 0 && i < len(p.toks) && p.toks[i-1].end == p.toks[i].start
}

// listNumber is the number of tokens that a list mark takes at the start: 3. or (3) or 3) or a bullet.
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

// labelled reports whether the number at i is a name by the word before it (step 2) or by what is around it.
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
		return p.tok(i+1).kind != tokWord || !dotted && p.touches(i)
	}
	return true
}

// amount reads a count, a measurement, a percentage, money or a range of them.
func (p *parser) amount(i int) (v Value, next int, ok bool) {
	v, j, ok := p.plain(i)
	if !ok {
		return v, i, false
	}
	v.Start = p.tok(i).start
	if opaque := p.tok(j); opaque.kind == tokOpaque && p.touches(j) {
		return v, j, false
	}
	v.Hedge = p.hedge(i)
	p.sign(i, &v)
	j = p.unitOf(i, j, &v)
	if hi, k, ok := p.upper(i, j, &v); ok {
		j = k
		v.RawHi = hi.Raw
		if v.Dim == plain {
			v.Dim, v.Factor, v.Offset = hi.Dim, hi.Factor, hi.Offset
		}
		v.Step, v.Place = max(v.Step, hi.Step), max(v.Place, hi.Place)
		v.scaled()
	}
	v.End = p.tok(j - 1).end
	if p.sym(j, '+') && p.touches(j) || p.has(j, roleAnd) && p.word(j+1, "more") || p.word(j, "or") && p.word(j+1, "more") {
		v.Hedge = Least
	}
	if p.word(j, "or") && p.word(j+1, "so") {
		v.Hedge = About
	}
	p.weaken(i, j, &v)
	return v, j, true
}

func (p *parser) word(i int, s string) bool {
	t := p.tok(i)
	return t.kind == tokWord && p.text[t.start:t.end] == s
}

// weaken marks small numbers in words that carry no unit: "one of them", "the two". "One" alone with no unit is a pronoun.
func (p *parser) weaken(i, j int, v *Value) {
	t := p.tok(i)
	if t.kind == tokWord && j == i+1 && v.Dim == plain && v.Raw < 4 {
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
	case t.kind == tokWord && t.word.role&(roleCardinal|roleArticle|roleMagnitude) != 0:
		return p.spelled(i)
	}
	return v, i, false
}

// literal reads digits, a fraction after them, a power of ten and magnitude words.
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

// power reads ×10^6, x 10⁶ and e6.
func (p *parser) power(i int) (exp float64, next int, ok bool) {
	t := p.tok(i)
	if t.kind == tokWord && p.touches(i) && (p.word(i, "e") || p.word(i, "E")) {
		return p.exponent(i + 1)
	}
	times := p.sym(i, '×') || p.sym(i, '·') || p.sym(i, '*') || p.word(i, "x")
	if !times || p.tok(i+1).kind != tokNumber || p.tok(i+1).num != 10 {
		return 0, i, false
	}
	if p.sym(i+2, '^') {
		i++
	}
	return p.exponent(i + 2)
}

func (p *parser) exponent(i int) (exp float64, next int, ok bool) {
	sign := 1.0
	if p.sym(i, '⁻') {
		return p.superscript(i+1, -1)
	}
	if p.sym(i, '-') || p.sym(i, '−') {
		sign = -1
		i++
	}
	if p.sym(i, '+') {
		i++
	}
	if t := p.tok(i); t.kind == tokNumber && t.step == 1 && t.num <= 40 {
		return sign * t.num, i + 1, true
	}
	return p.superscript(i, sign)
}

func (p *parser) superscript(i int, sign float64) (exp float64, next int, ok bool) {
	start := i
	for {
		t := p.tok(i)
		d := superscriptDigit(t.sym)
		if t.kind != tokSymbol || d < 0 || exp > 4 {
			return sign * exp, i, i > start
		}
		exp = exp*10 + float64(d)
		i++
	}
}

func superscriptDigit(r rune) int {
	switch {
	case r == '¹':
		return 1
	case r == '²':
		return 2
	case r == '³':
		return 3
	case r == '⁰' || r >= '⁴' && r <= '⁹':
		return int(r - '⁰')
	}
	return -1
}

// magnitudes multiplies by thousand, million, k and M that follow.
func (p *parser) magnitudes(v Value, i int) (Value, int) {
	for {
		mult := p.magnitude(i)
		if mult == 0 {
			return v, i
		}
		v.Raw, v.Step, v.Place = v.Raw*mult, v.Step*mult, v.Place*mult
		v.RawHi = v.Raw
		v.Alt *= mult
		v.scaled()
		i++
	}
}

func (p *parser) magnitude(i int) float64 {
	t := p.tok(i)
	if t.kind != tokWord {
		return 0
	}
	if p.touches(i) {
		if mult := p.gluedMagnitude(i); mult > 0 {
			return mult
		}
	}
	if t.word.role&roleMagnitude != 0 {
		return t.word.num
	}
	if p.money(i-2) && (p.word(i, "m") || p.word(i, "M")) {
		return 1e6
	}
	return 0
}

func (p *parser) gluedMagnitude(i int) float64 {
	t := p.tok(i)
	switch p.text[t.start:t.end] {
	case "k", "K":
		return 1e3
	case "M":
		return 1e6
	case "m":
		if p.money(i - 2) {
			return 1e6
		}
	case "B":
		return 1e9
	case "T":
		return 1e12
	}
	return 0
}

// money reports whether token i is a currency sign or code.
func (p *parser) money(i int) bool {
	t := p.tok(i)
	return i >= 0 && t.unit.dim.currency() && (t.kind == tokSymbol || p.text[t.start] <= 'Z')
}

// spelled reads a number in words: two hundred and thirty-four thousand; treinta y cinco; quatre-vingt-dix.
func (p *parser) spelled(i int) (v Value, next int, ok bool) {
	var total, part, last float64
	j, seen := i, false
	if p.has(i, roleArticle) && !p.has(i, roleCardinal) {
		if !p.has(i+1, roleMagnitude) {
			return v, i, false
		}
		j, part = i+1, 1
	} else if !p.has(i, roleCardinal) && !p.bareMagnitude(i) {
		return v, i, false
	}
	for {
		t := p.tok(j)
		switch {
		case t.kind != tokWord:
			return p.spelledEnd(total+part, j, seen)
		case t.word.role&roleCardinal != 0 && fits(t.word.num, last, seen):
			if score := t.word.num == 20 && part == 4 && p.sym(j-1, '-'); score {
				part = 80
			} else {
				part += t.word.num
			}
			last = t.word.num
		case t.word.role&roleMagnitude != 0 && t.word.num == 100:
			part = max(part, 1) * 100
			last = 100
		case t.word.role&roleMagnitude != 0 && !(seen && t.word.num == 12):
			total += max(part, 1) * t.word.num
			part, last = 0, 1000
		default:
			return p.spelledEnd(total+part, j, seen)
		}
		seen = true
		j = p.joint(j+1, last)
	}
}

// bareMagnitude allows hundert, mil, cent, mille without a number before them; English says "a hundred".
func (p *parser) bareMagnitude(i int) bool {
	t := p.tok(i)
	if t.word.role&roleMagnitude == 0 || t.word.num > 1000 {
		return false
	}
	switch p.text[t.start:t.end] {
	case "hundert", "tausend", "cent", "cien", "mil", "mille":
		return p.tok(i-1).kind != tokNumber
	}
	return false
}

// fits reports whether cardinal n can follow last inside one number.
func fits(n, last float64, seen bool) bool {
	switch {
	case !seen:
		return true
	case last >= 100:
		return n < 100 && n > 0
	case last == 60 || last == 80 || last == 20:
		return n > 0 && n < 20
	case last >= 20:
		return n > 0 && n < 10
	case last == 4:
		return n == 20
	}
	return false
}

// joint skips a hyphen or "and" inside a number.
func (p *parser) joint(j int, last float64) int {
	if p.sym(j, '-') && p.touches(j) == p.touches(j+1) && p.has(j+1, roleCardinal|roleMagnitude) {
		return j + 1
	}
	if p.has(j, roleAnd) && p.has(j+1, roleCardinal) && last >= 20 {
		next := p.tok(j + 1).word.num
		english := p.word(j, "and")
		if english && last >= 100 && next < 100 || !english && next < 20 {
			return j + 1
		}
	}
	return j
}

func (p *parser) spelledEnd(n float64, j int, seen bool) (Value, int, bool) {
	v := plainValue(n, 1)
	if p.sym(j-1, '-') {
		j--
	}
	return v, j, seen
}

// sign makes the value negative for a minus that is no hyphen and no list mark.
func (p *parser) sign(i int, v *Value) {
	k := i - 1
	if p.money(k) && p.touches(i) {
		k--
	}
	if k < p.free {
		return
	}
	minus := p.sym(k, '-') || p.sym(k, '−') || p.sym(k, '–')
	if p.has(k, roleMinus) || minus && p.touches(k+1) && !p.touches(k) && p.tok(k-1).kind != tokNumber {
		if p.has(k, roleMinus) && p.tok(k-1).kind == tokNumber {
			return
		}
		v.Raw, v.RawHi = -v.Raw, -v.RawHi
		v.scaled()
		v.Start = p.tok(k).start
	}
}
