package quantity

import (
	"math"
	"strings"
)

// clock reads 14:30, 2:30 pm, 9 am, 14 Uhr, 9 o'clock, 14 h 30.
func (p *parser) clock(i int) (v Value, next int, ok bool) {
	t := p.tok(i)
	v = Value{Start: t.start, Kind: Clock, Dim: clock, Alt: math.NaN(), Factor: 1, Step: 1, Place: 1}
	minutes := t.num
	next = i + 1
	switch {
	case t.kind == tokClock:
		v.Half = minutes < 13*60 && p.text[t.start] != '0' && !t.told
	case p.hourOfDay(i):
		minutes = 60 * max(t.num, t.word.num)
	case t.kind == tokNumber && t.step == 1 && t.num <= 24 && t.digits > 0 && (p.has(next, roleClockCue) || p.has(next, roleMeridiem)):
		minutes *= 60
	case p.spokenHour(i, &minutes, &next):
		v.Half = t.kind == tokWord && minutes <= 12*60
	case p.dottedClock(t, next):
		hours := math.Floor(minutes)
		minutes = hours*60 + math.Round((minutes-hours)*100)
	case p.opensHours(i):
		minutes *= 60
		minutes, v.Half = p.openingHour(i, minutes)
		v.Spoken = p.nineToFive(i) != 0
	case p.portugueseHour(i):
		minutes *= 60
		next++
	case p.frenchClock(i):
		minutes = minutes*60 + p.tok(i+2).num
		next = i + 3
	default:
		return v, i, false
	}
	switch {
	case p.has(next, roleMeridiem):
		minutes, v.Half, v.Spoken = inHalf(minutes, p.tok(next).word.num), false, true
		next++
	case p.has(next, roleClockCue):
		v.Half = v.Half || p.word(next, "o'clock") || p.word(next, "o’clock")
		next++
	}
	if v.Half || minutes <= 12*60 {
		if later, end := p.partOfDay(next, minutes); end > next {
			minutes, v.Half, v.Spoken, next = inHalf(minutes, later), false, true, end
		}
	}
	if v.Zone = t.zone; v.Zone == 0 {
		if v.Zone = zones[p.tokText(next)]; v.Zone != 0 {
			next++
		}
	}
	v.Raw, v.RawHi, v.Lo, v.Hi = minutes, minutes, minutes, minutes
	v.End = p.tok(next - 1).end
	return v, next, true
}

// inHalf moves a time to the first half of the day or, with later 12, to the second.
func inHalf(minutes, later float64) float64 {
	if minutes >= 12*60 {
		minutes -= 12 * 60
	}
	return minutes + later*60
}

// partOfDay reads a phrase such as "in the morning" at token i. It returns the hours that it adds
// and the token after it, which is i if there is none.
func (p *parser) partOfDay(i int, minutes float64) (later float64, next int) {
	switch {
	case p.word(i, "in") && p.word(i+1, "the") && p.word(i+2, "morning"):
		return 0, i + 3
	case p.word(i, "in") && p.word(i+1, "the") && (p.word(i+2, "afternoon") || p.word(i+2, "evening")):
		return 12, i + 3
	case p.word(i, "at") && p.word(i+1, "night"):
		if minutes >= 6*60 && minutes < 12*60 {
			return 12, i + 2
		}
		return 0, i + 2
	}
	return p.partElsewhere(i, minutes)
}

// hourOfDay reports whether token i is an hour because of its context: at six in the morning.
func (p *parser) hourOfDay(i int) bool {
	t := p.tok(i)
	hour := t.kind == tokNumber && t.step == 1 && t.digits > 0 || t.kind == tokWord && t.word.role&roleCardinal != 0
	if !hour || t.num > 12 || t.word.num > 12 {
		return false
	}
	for _, before := range [...]string{"at", "until", "till", "from", "to", "by", "before", "after", "around", "about", "since"} {
		if p.word(i-1, before) {
			_, next := p.partOfDay(i+1, 0)
			return next > i+1
		}
	}
	return false
}

// dottedClock reports whether token t is a number such as 7.42 before Uhr.
func (p *parser) dottedClock(t *token, next int) bool {
	return t.kind == tokNumber && t.step == 0.01 && t.num < 24.6 && t.num-math.Floor(t.num) < 0.595 && p.word(next, "Uhr")
}

// portugueseHour reports whether the hours at token i are a time of day: das 9h às 17h, but not the
// German das 24h-Rennen.
func (p *parser) portugueseHour(i int) bool {
	if p.hour(i) && p.word(i-1, "às") && (p.word(i+1, "horas") || p.word(i+1, "hora")) {
		return true
	}
	if !p.hour(i) || !p.touches(i+1) || !p.word(i+1, "h") || p.tok(i+2).kind == tokNumber {
		return false
	}
	return p.word(i-1, "às") || p.word(i-1, "das") && (p.word(i+2, "às") || p.word(i+2, "até"))
}

// frenchClock reports whether token i begins a time such as 14 h 30, but not 14 h 30 min.
func (p *parser) frenchClock(i int) bool {
	t, m := p.tok(i), p.tok(i+2)
	if t.kind != tokNumber || t.step != 1 || t.num > 24 || !p.word(i+1, "h") && !p.word(i+1, "heures") && !p.word(i+1, "heure") {
		return false
	}
	if m.kind != tokNumber || m.step != 1 || m.end-m.start != 2 || m.num > 59 || p.word(i-1, "dure") || p.word(i-1, "pendant") {
		return false
	}
	_, _, unit := p.unitAt(i + 3)
	return !unit
}

// fractionWords reads half, two thirds, a quarter, three-quarters, 3/4, half an hour.
func (p *parser) fractionWords(i int) (v Value, next int, ok bool) {
	t := p.tok(i)
	if p.slashed(t) {
		if _, _, unitFollows := p.unitAt(i + 1); unitFollows {
			return v, i, false
		}
		return p.fractionValue(i, i+1, t.num), i + 1, true
	}
	count, j := 1.0, i
	if t.word.role&(roleCardinal|roleArticle) != 0 && !p.has(i, roleMagnitude) {
		if t.word.role&roleCardinal != 0 {
			count = t.word.num
		}
		j++
		if p.sym(j, '-') {
			j++
		}
	}
	f := p.tok(j)
	third := j > i && f.word.role&roleOrdinal != 0 && f.word.num == 3 && count == 1 && p.word(j+1, "of")
	if f.word.role&roleFraction == 0 && !third || count == 0 {
		return v, i, false
	}
	if j == i && f.word.num != 0.5 {
		return v, i, false
	}
	share := f.word.num
	if third {
		share = 1.0 / 3
	}
	if count*share >= 1 {
		return v, i, false
	}
	if v, next, ok = p.fractionOf(i, j+1, count*share); ok {
		return v, next, true
	}
	return p.fractionValue(i, j+1, count*share), j + 1, true
}

// fractionOf reads the unit of a share in words: half an hour, three quarters of a mile, half a
// million.
func (p *parser) fractionOf(i, j int, n float64) (v Value, next int, ok bool) {
	if p.has(j, roleOf) {
		j++
	}
	if !p.has(j, roleArticle) {
		return v, i, false
	}
	v = plainValue(n, 0.01)
	u, next, ok := p.unitAt(j + 1)
	switch {
	case ok && u.offset == 0 && u.dim != Percent:
		v.setUnit(u)
	case p.magnitude(j+1) >= 1000:
		v, next = p.magnitudes(v, j+1)
		if u, k, ok := p.unitAt(next); ok {
			v.setUnit(u)
			next = k
		}
	default:
		return v, i, false
	}
	v.Start, v.End = p.tok(i).start, p.tok(next-1).end
	v.Hedge = p.hedge(i)
	return v, next, true
}

// slashed reports whether a token is a share in digits: 3/4, ½.
func (p *parser) slashed(t *token) bool {
	if t.kind != tokNumber || t.num >= 1 || t.num <= 0 {
		return false
	}
	return p.text[t.start] > 0x7f || t.step == 0.01 && t.end-t.start >= 3 && strings.Contains(p.text[t.start:t.end], "/")
}

func (p *parser) fractionValue(i, j int, n float64) Value {
	v := plainValue(n, 0.01)
	v.Kind, v.Start, v.End = Fraction, p.tok(i).start, p.tok(j-1).end
	v.Hedge = p.hedge(i)
	v.Weak = p.tok(i).kind == tokWord
	return v
}

// ordinalWord reads third and twenty-first.
func (p *parser) ordinalWord(i int, n *float64, next *int) bool {
	t, last := p.tok(i), p.tok(i+2)
	if t.word.role&roleCardinal != 0 && t.word.num >= 20 && p.sym(i+1, '-') && last.word.role&roleOrdinal != 0 && last.word.num < 10 {
		*n, *next = t.word.num+last.word.num, i+3
		return true
	}
	if t.word.role&roleOrdinal == 0 || t.word.role&roleCardinal != 0 {
		return false
	}
	*n, *next = t.word.num, i+1
	return true
}

// ordinal reads 3rd, 3., third, twenty-first.
func (p *parser) ordinal(i int) (v Value, next int, ok bool) {
	t := p.tok(i)
	switch {
	case t.kind == tokNumber && t.step == 1 && p.touches(i+1) && p.tok(i+1).kind == tokWord && p.ordinalMark(i+1):
		v, next = plainValue(t.num, 1), i+2
	case t.kind == tokWord && p.ordinalWord(i, &v.Raw, &next):
		if p.word(i, "second") && (p.tok(i-1).kind == tokNumber || p.has(i-1, rolePer)) {
			return v, i, false
		}
		v = plainValue(v.Raw, 1)
		v.Weak = true
	default:
		return v, i, false
	}
	v.Kind, v.Dim, v.Start, v.End = Ordinal, rank, t.start, p.tok(next-1).end
	return v, next, true
}
