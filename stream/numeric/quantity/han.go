package quantity

import (
	"math"
	"strings"
	"unicode/utf8"
)

// hanKind is what an ideograph is in a number.
type hanKind uint8

const (
	hanDigit hanKind = iota + 1 // 三
	hanPart                     // multiplies one digit: 十, 百, 千
	hanGroup                    // multiplies all before it: 万, 亿
)

type hanRune struct {
	kind hanKind
	num  float64
}

//nolint:gochecknoglobals // constant table
var hanRunes = map[rune]hanRune{
	'零': {hanDigit, 0}, '〇': {hanDigit, 0}, '一': {hanDigit, 1}, '二': {hanDigit, 2}, '两': {hanDigit, 2}, '兩': {hanDigit, 2},
	'三': {hanDigit, 3}, '四': {hanDigit, 4}, '五': {hanDigit, 5}, '六': {hanDigit, 6}, '七': {hanDigit, 7}, '八': {hanDigit, 8},
	'九': {hanDigit, 9}, '十': {hanPart, 10}, '百': {hanPart, 100}, '千': {hanPart, 1000},
	'万': {hanGroup, 1e4}, '萬': {hanGroup, 1e4}, '亿': {hanGroup, 1e8}, '億': {hanGroup, 1e8},
}

// hanNumeral takes a number in ideographs of at least two of them: 一百五十六万, 十二, 二〇二一. Alone they are
// parts of words as often as numbers, and so are runs that begin with a multiplier other than ten
// (万一, 千万).
func (l *lexer) hanNumeral() bool {
	end, count := l.pos, 0
	digits := true // nothing but digits: a year, read digit by digit
	var total, part, digit, positional float64
	for end < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[end:])
		h := hanRunes[r]
		if h.kind == 0 || count == 0 && h.kind != hanDigit && h.num != 10 {
			break
		}
		switch h.kind {
		case hanDigit:
			digit, positional = h.num, positional*10+h.num
		case hanPart:
			if digit == 0 && count == 0 {
				digit = 1
			}
			part, digit, digits = part+digit*h.num, 0, false
		case hanGroup:
			total, part, digit, digits = (total+part+digit)*h.num, 0, 0, false
		}
		end += size
		count++
	}
	total += part + digit
	if digits {
		total = positional
	}
	step := 1.0
	if !digits {
		total, step, end = l.hanDecimals(total, end)
	}
	if count < 2 || digits && count != 4 || total == 0 || total > 1e15 {
		return false
	}
	t := token{start: l.pos, end: end, kind: tokNumber, num: total, alt: nan(), step: step}
	if digits {
		t.digits = count
	}
	l.toks = append(l.toks, t)
	l.pos = end
	return true
}

// hanDecimals adds what stands behind 点 at end: 十二点五.
func (l *lexer) hanDecimals(n float64, end int) (num, step float64, next int) {
	point, size := utf8.DecodeRuneInString(l.text[end:])
	step, next = 1, end
	if point != '点' && point != '點' {
		return n, step, end
	}
	for at := end + size; at < len(l.text); {
		r, size := utf8.DecodeRuneInString(l.text[at:])
		h := hanRunes[r]
		if h.kind != hanDigit || step < 1e-6 {
			break
		}
		step /= 10
		n += h.num * step
		at += size
		next = at
	}
	return n, step, next
}

// behindNumber reports whether the last token is a number, or what multiplies one, that ends where
// the lexer stands.
func (l *lexer) behindNumber() bool {
	if len(l.toks) == 0 {
		return false
	}
	last := &l.toks[len(l.toks)-1]
	return last.end == l.pos && (last.kind == tokNumber || last.word.role&(roleMagnitude|roleCardinal) != 0)
}

// hanUnit takes a unit in ideographs behind a number: 1240米, 2.3公斤.
func (l *lexer) hanUnit() bool {
	if !l.behindNumber() {
		return false
	}
	for i := range hanUnits {
		if name := hanUnits[i].name; strings.HasPrefix(l.text[l.pos:], name) {
			end := l.pos + len(name)
			l.toks = append(l.toks, token{start: l.pos, end: end, kind: tokWord, unit: hanUnits[i].unit})
			l.pos = end
			return true
		}
	}
	return false
}

// hanClock makes a time of the day of an hour and minutes in ideographs: 8点30分.
func (l *lexer) hanClock() bool {
	if !l.behindNumber() {
		return false
	}
	last := &l.toks[len(l.toks)-1]
	rest := l.text[l.pos:]
	for _, o := range [...]string{"点", "點", "时", "時"} {
		if minutes, ok := strings.CutPrefix(rest, o); ok && last.kind == tokNumber && last.num < 25 && last.num == math.Trunc(last.num) {
			digits := len(minutes) - len(strings.TrimLeft(minutes, "0123456789"))
			if digits != 2 || !isMinutes(minutes[:2]) || !strings.HasPrefix(minutes[2:], "分") {
				return false
			}
			last.kind, last.num = tokClock, last.num*60+float64(minutes[0]-'0')*10+float64(minutes[1]-'0')
			last.end = l.pos + len(o) + 2 + len("分")
			l.pos = last.end
			return true
		}
	}
	return false
}
