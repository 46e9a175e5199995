package quantity

import "strings"

// unitOf gives v the unit before or after the number in tokens [i, j) and returns the token after
// it.
func (p *parser) unitOf(i, j int, v *Value) int {
	if money := p.tok(i - 1); p.money(i-1) && i > p.free && (money.kind == tokSymbol || money.end-money.start >= 2) {
		v.setUnit(money.unit)
		v.Start = min(v.Start, money.start)
		if before := p.tok(i - 2); p.touches(i-1) && i-1 > p.free && before.kind == tokWord && before.end-before.start <= 2 {
			v.setUnit(dollarOf(p.text[before.start:before.end], money.unit))
			v.Start = before.start
		}
		if p.money(j) && p.tok(j).kind == tokWord {
			j++
		}
		return p.perUnit(j, v)
	}
	k := j
	if p.has(j-1, roleMagnitude) && p.has(j, roleOf) && p.tok(j+1).unit.dim.currency() {
		k++ // millones de euros
	}
	u, k, ok := p.unitAt(k)
	if !ok {
		return j
	}
	v.setUnit(u)
	return p.perUnit(k, v)
}

func dollarOf(prefix string, u unit) unit {
	switch prefix {
	case "C", "CA":
		return unit{cad, 1, 0}
	case "A", "AU":
		return unit{aud, 1, 0}
	case "R":
		return unit{brl, 1, 0}
	}
	return u
}

// unitAt reads a unit at token j, possibly with a hyphen before it (10-metre), and square or cubic
// units.
func (p *parser) unitAt(j int) (u unit, next int, ok bool) {
	if p.sym(j, '-') && p.touches(j) && p.touches(j+1) {
		j++
	}
	switch {
	case p.has(j, roleSquare):
		return p.poweredUnit(j, 2)
	case p.has(j, roleCubic):
		return p.poweredUnit(j, 3)
	case (p.has(j, rolePer) || p.word(j, "pour")) && (p.word(j+1, "cent") || p.word(j+1, "ciento") || p.word(j+1, "cento") || p.word(j+1, "hundred")):
		return symbols["%"], j + 2, true
	case p.workday(j):
		return unit{workdays, 1, 0}, j + 2, true
	case p.word(j, "percentage"):
		return symbols["%"], j + 2, p.word(j+1, "point") || p.word(j+1, "points")
	}
	if p.further(j) {
		j++
	}
	t := p.tok(j)
	if t.kind == tokOpaque || t.unit.dim == Plain || !p.unitStands(j) {
		return u, j, false
	}
	u, next = p.unitTail(t.unit, j+1)
	return u, next, true
}

// further reports whether token j is a word such as "more" before a length of time: 14 more weeks,
// 3 additional days.
func (p *parser) further(j int) bool {
	if p.tok(j+1).unit.dim != Duration {
		return false
	}
	switch p.tokText(j) {
	case "more", "additional", "extra", "further", "other", "weitere", "mehr", "zusätzliche":
		return true
	}
	return false
}

// workday reports whether tokens j and j+1 are business days; calendar days are plain days.
func (p *parser) workday(j int) bool {
	next := p.tok(j + 1).unit
	if next.dim != Duration || next.factor != day {
		return false
	}
	return p.word(j, "business") || p.word(j, "working") || p.word(j, "work") || p.word(j, "banking") ||
		p.word(j, "trading")
}

// poweredUnit reads square metres, cu. ft.
func (p *parser) poweredUnit(j, n int) (u unit, next int, ok bool) {
	if p.sym(j+1, '.') {
		j++
	}
	u, ok = p.tok(j + 1).unit.powered(n)
	return u, j + 2, ok
}

// unitTail reads what belongs to unit u after it: an exponent, the scale of degrees, or "points"
// after percent.
func (p *parser) unitTail(u unit, next int) (tail unit, end int) {
	t := p.tok(next)
	switch {
	case t.sym == '²' || t.sym == '³':
		n := 2
		if t.sym == '³' {
			n = 3
		}
		if powered, ok := u.powered(n); ok {
			return powered, next + 1
		}
	case u.dim == degree && t.kind == tokWord && t.unit.dim == temperature:
		return t.unit, next + 1
	case u.dim == degree && (p.word(next, "C") || p.word(next, "F")):
		return symbols["°"+p.text[t.start:t.end]], next + 1
	case u.dim == Percent && (p.word(next, "points") || p.word(next, "point")):
		return u, next + 1
	}
	return u, next
}

// unitStands distinguishes units from words that look the same. "in" must touch its number or
// precede a symbol; others such as "d" and "x" must touch it or not be followed by a name. An
// apostrophe must not follow.
func (p *parser) unitStands(j int) bool {
	t := p.tok(j)
	s := p.text[t.start:t.end]
	switch s {
	case "in":
		next := p.tok(j + 1)
		return p.touches(j) || next.kind == tokSymbol || next.kind == tokOpaque
	case "d", "x", "N", "V", "K", "pt", "mi", "PS", "sec", "won", "real", "MP", "PB":
		return p.touches(j) || t.start > 0 && !p.tokStartsName(j)
	case "yo":
		return true
	case "год", "года", "ano", "سنة":
		return p.tok(j-1).digits != 4 // 5 марта 2025 года
	}
	if t.unit.dim == Multiple && s == "times" {
		return true
	}
	return !strings.HasPrefix(p.text[t.end:], "'")
}

func (p *parser) tokStartsName(j int) bool {
	next := p.tok(j + 1)
	return next.kind == tokWord && next.start < len(p.text) && p.text[next.start] >= 'A' && p.text[next.start] <= 'Z'
}

// perLength sets the longer period that a length of time is a part of: 20 days per year, 20 days a
// year. The value remains a length of time.
func (p *parser) perLength(j int, v *Value) (next int, ok bool) {
	if v.Dim != Duration || !p.sym(j, '/') && !p.has(j, rolePer|roleArticle) && !p.each(j) {
		return j, false
	}
	length, _ := p.lengthAt(j + 1)
	if length <= v.Factor {
		return j, false
	}
	v.Period = length
	return j + 2, true
}

// perUnit reads "/h" and "per hour" after a unit. The unit after "per" needs a dimension of its
// own.
func (p *parser) perUnit(j int, v *Value) int {
	if next, ok := p.perLength(j, v); ok {
		return next
	}
	slash := p.sym(j, '/')
	if !slash && !p.has(j, rolePer) || v.Dim > 0xff {
		return j
	}
	below := p.tok(j + 1)
	if below.kind == tokWord && (below.word.role&roleArticle != 0) {
		below = p.tok(j + 2)
	}
	if below.kind != tokWord || below.unit.dim == Plain || below.unit.offset != 0 || v.Offset != 0 || below.unit.dim == Multiple || v.Dim == Percent {
		return j
	}
	if below.unit.dim == Duration {
		v.Period = below.unit.factor
	}
	top := unit{v.Dim.per(below.unit.dim), v.Factor / below.unit.factor, 0}
	next := j + 2
	if below != p.tok(j+1) {
		next++
	}
	n := 0
	if p.sym(next, '²') {
		n = 2
	} else if p.sym(next, '³') {
		n = 3
	}
	if u, ok := below.unit.powered(n); n > 0 && ok {
		top = unit{v.Dim.per(u.dim), v.Factor / u.factor, 0}
		next++
	}
	v.setUnit(top)
	return next
}

// upper reads the upper end of a range after the number in tokens [i, j).
func (p *parser) upper(i, j int, v *Value) (hi Value, next int, ok bool) {
	k, join := j, false
	switch {
	case (p.sym(k, '-') || p.sym(k, '–') || p.sym(k, '—') || p.sym(k, '~') || p.sym(k, '～')) && p.dashRange(k):
		join = true
	case p.has(k, roleTo) && !p.opens(i, roleFrom):
		join = true
	case p.has(k, roleAnd) && p.opens(i, roleBetween):
		join = true
	}
	if !join {
		return hi, j, false
	}
	k++
	first := k
	if p.money(k) {
		k++
	}
	hi, next, ok = p.plain(k)
	if !ok || p.tok(next).kind == tokOpaque && p.touches(next) {
		return hi, j, false
	}
	next = p.unitOf(k, next, &hi)
	if first != k && !p.money(i-1) {
		return hi, j, false
	}
	p.share(v, &hi, k, next)
	if hi.Raw <= v.Raw || hi.Dim != v.Dim && v.Dim != Plain && hi.Dim != Plain {
		return hi, j, false
	}
	if hi.Dim == Plain {
		hi.Dim, hi.Factor, hi.Offset = v.Dim, v.Factor, v.Offset
	}
	return hi, next, true
}

// share gives the lower end the magnitude of the upper one: 3-4 million.
func (p *parser) share(v, hi *Value, k, next int) {
	mult := 1.0
	for ; k < next; k++ {
		if m := p.magnitude(k); m > 0 {
			mult *= m
		}
	}
	if mult > 1 && v.Raw < mult {
		v.Raw, v.Step, v.Place = v.Raw*mult, v.Step*mult, v.Place*mult
		v.RawHi = v.Raw
	}
	if v.Dim == Plain || hi.Dim == Plain {
		v.scaled()
	}
}

func (p *parser) dashRange(k int) bool {
	spacedBefore, spacedAfter := !p.touches(k), !p.touches(k+1)
	return spacedBefore == spacedAfter
}

// opens reports whether a word of role r precedes the number at i, with only hedges or a currency
// in between.
func (p *parser) opens(i int, r role) bool {
	for k := i - 1; k >= 0 && k >= i-3; k-- {
		if p.has(k, r) {
			return true
		}
		if !p.has(k, roleHedge) && !p.money(k) {
			return false
		}
	}
	return false
}

// hedge returns the hedge from the words before token i.
func (p *parser) hedge(i int) Hedge {
	if h := p.boundBefore(i); h != Exact {
		return h
	}
	k, than := i-1, false
	if p.money(k) {
		k--
	}
	if t := p.tok(k); t.kind == tokWord && t.end-t.start <= 2 && p.touches(k+1) {
		k-- // US$
	}
	for steps := 0; k >= 0 && steps < 3; k, steps = k-1, steps+1 {
		w := p.tok(k).word
		if w.role&roleHedge != 0 {
			if p.dialled(k, i) {
				return Exact
			}
			return p.hedgeAt(k, w, than)
		}
		if w.role&roleThan != 0 {
			than = true
			continue
		}
		if w.role&(roleArticle|roleMinus) == 0 && !p.word(k, "la") {
			return Exact
		}
	}
	return Exact
}

// dialled reports whether the number at token i is a telephone number after "unter" at token k:
// "erreichbar unter 116 116" is not a bound.
func (p *parser) dialled(k, i int) bool {
	if !p.word(k, "unter") || p.money(i-1) || p.tok(i+1).unit.dim != Plain {
		return false
	}
	for n := k - ordered; n <= i+ordered; n++ {
		switch w := p.tokText(n); w {
		case "erreichbar", "Telefon", "Telefonnummer", "telefonisch", "Rufnummer", "Hotline", "Notruf":
			return true
		default:
			if n < k && strings.HasPrefix(w, "erreich") {
				return true
			}
		}
	}
	return false
}

// ordered is the maximum number of words between a prohibition and its number: "do not iron silk
// above 110 degrees"; our choice.
const ordered = 6

// forbids reports whether a prohibition precedes the number at token i in its clause. "Over 4 is
// forbidden" and "at most 4" then mean the same.
func (p *parser) forbids(i int) bool {
	for k := i - 1; k >= i-ordered; k-- {
		switch p.tokText(k) {
		case "never", "Never", "cannot":
			return true
		case "not":
			switch p.tokText(k - 1) {
			case "do", "Do", "may", "must", "can", "should", "shall":
				return !p.has(k+1, roleHedge) // "must not exceed 50" is a bound
			}
			return false
		case "", "if", "that", "when", "whether", "because", "who", "which", "since", "and", "but", "or", "only", "just":
			return false
		}
	}
	return false
}

func (p *parser) hedgeAt(k int, w word, than bool) Hedge {
	before := p.lower(k - 1)
	negated := before == "no" || before == "not"
	switch {
	case w.role&roleNeedsThan != 0 && !than:
		return Exact
	case w.role&roleNeedsAt != 0 && !p.has(k-1, roleAt):
		return Exact
	case negated && w.hedge == Over:
		return Most
	case negated && w.hedge == Under:
		return Least
	case w.hedge == Over && p.word(k-1, "just") || w.hedge == Over && p.word(k-1, "slightly"):
		return Over
	case w.hedge == Under && (p.word(k-1, "just") || p.word(k-1, "slightly")):
		return Nearly
	}
	return w.hedge
}
