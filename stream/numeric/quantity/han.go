package quantity

import "unicode/utf8"

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

func han(r rune) hanRune {
	switch r {
	case '零', '〇':
		return hanRune{hanDigit, 0}
	case '一':
		return hanRune{hanDigit, 1}
	case '二', '两', '兩':
		return hanRune{hanDigit, 2}
	case '三':
		return hanRune{hanDigit, 3}
	case '四':
		return hanRune{hanDigit, 4}
	case '五':
		return hanRune{hanDigit, 5}
	case '六':
		return hanRune{hanDigit, 6}
	case '七':
		return hanRune{hanDigit, 7}
	case '八':
		return hanRune{hanDigit, 8}
	case '九':
		return hanRune{hanDigit, 9}
	case '十':
		return hanRune{hanPart, 10}
	case '百':
		return hanRune{hanPart, 100}
	case '千':
		return hanRune{hanPart, 1000}
	case '万', '萬':
		return hanRune{hanGroup, 1e4}
	case '亿', '億':
		return hanRune{hanGroup, 1e8}
	}
	return hanRune{}
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
		h := han(r)
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
		h := han(r)
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
