package quantity

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hanKind is the role of an ideograph in a number.
type hanKind uint8

const (
	hanDigit hanKind = iota + 1 // 三
	hanPart                     // multiplies one digit: 十, 百, 千
	hanGroup                    // multiplies everything before it: 万, 亿
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

// hanNumeral takes a number of at least two ideographs: 一百五十六万, 十二, 二〇二一. A single ideograph is a
// part of a word as often as a number, so it counts only before a unit. Runs that begin with a
// multiplier other than ten (万一, 千万) do not count.
func (l *lexer) hanNumeral() bool {
	total, count, digits, end := hanRun(l.text, l.pos)
	step := 1.0
	alone := count == 1 && l.hanCounts(total, end)
	if alone {
		digits = false
	} else if !digits {
		total, step, end = l.hanDecimals(total, end)
	}
	if count < 2 && !alone || digits && count != 4 || total == 0 || total > 1e15 {
		return false
	}
	t := token{start: l.pos, end: end, kind: tokNumber, num: total, alt: nan(), step: step}
	t.weak = alone && hanCounter(l.text[end:])
	if digits {
		t.digits = count
	}
	l.toks = append(l.toks, t)
	l.pos = end
	return true
}

// hanRun reads the ideographs of a number from offset end. It returns the value, the number of
// ideographs, whether all are digits, and the offset after them.
func hanRun(text string, end int) (total float64, count int, digits bool, next int) {
	digits = true // a year, read digit by digit
	var part, digit, positional float64
	group := math.Inf(1)
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
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
			if h.num < group { // 三億五千万
				total += (part + digit) * h.num
			} else { // 一万亿
				total = (total + part + digit) * h.num
			}
			group, part, digit, digits = h.num, 0, 0, false
		}
		end += size
		count++
	}
	if digits {
		return positional, count, true, end
	}
	return total + part + digit, count, false, end
}

// hanDecimals adds the decimals after 点 at offset end: 十二点五.
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

// behindNumber reports whether the last token is a number or a multiplier that ends at the current
// position.
func (l *lexer) behindNumber() bool {
	if len(l.toks) == 0 {
		return false
	}
	last := &l.toks[len(l.toks)-1]
	return last.end == l.pos && (last.kind == tokNumber || last.word.role&(roleMagnitude|roleCardinal) != 0)
}

// hanUnit takes a unit in ideographs after a number: 1240米, 2.3公斤.
func (l *lexer) hanUnit() bool {
	if !l.behindNumber() {
		return false
	}
	last := &l.toks[len(l.toks)-1]
	start, halved := l.pos, l.andHalf(last)
	for i := range hanUnits {
		if name := hanUnits[i].name; strings.HasPrefix(l.text[l.pos:], name) {
			end := l.pos + len(name)
			if after, _ := utf8.DecodeRuneInString(l.text[end:]); strings.ContainsRune(notCounted[name], after) {
				return false
			}
			if strings.HasPrefix(name, "日") && strings.HasSuffix(l.text[:last.start], "月") {
				return false // 10月3日前
			}
			switch name {
			case "米":
				end = l.metresAndMore(last, end)
			case "折":
				discount(last)
			}
			if !halved && hanUnits[i].dim == Duration && last.kind == tokNumber && strings.HasPrefix(l.text[end:], "半") {
				last.num, last.step, last.digits = last.num+.5, .01, 0 // 2時間半
				end += len("半")
			}
			l.toks = append(l.toks, token{start: l.pos, end: end, kind: tokWord, unit: hanUnits[i].unit})
			l.pos = end
			return true
		}
	}
	l.pos = start
	return false
}

// metresAndMore takes centimetres directly after metres, at offset end: 1米75, 1米8.
func (l *lexer) metresAndMore(t *token, end int) int {
	digits := 0
	for digits < 3 && end+digits < len(l.text) && l.text[end+digits] >= '0' && l.text[end+digits] <= '9' {
		digits++
	}
	next, _ := utf8.DecodeRuneInString(l.text[min(len(l.text), end+digits):])
	if t.kind != tokNumber || t.step != 1 || t.num >= 10 || digits == 0 || digits > 2 ||
		next == '.' || unicode.IsLetter(next) && !strings.ContainsRune("的高以左上及者和与與", next) {
		return end
	}
	t.step = math.Pow10(-digits)
	t.num, t.digits = t.num+number(l.text[end:end+digits])*t.step, 0
	return end + digits
}

// discount converts the discount notation of number t, the tenths of a price that remain: 85折 is
// 8.5折. Its alternative reading is what is subtracted: 八折 is 20 % off.
func discount(t *token) {
	if t.kind != tokNumber || t.num < 1 || t.num >= 100 {
		return
	}
	if t.num >= 10 {
		t.num, t.step = t.num/10, t.step/10
	}
	t.alt, t.digits = 10-t.num, 0
}

// half stands between a number and its unit and adds a half: 一个半小时.
const half = "个半"

// andHalf adds a half that stands between number t and its unit, and reports whether there is one.
func (l *lexer) andHalf(t *token) bool {
	rest := l.text[l.pos:]
	if t.kind != tokNumber || !halfOfUnit(rest) {
		return false
	}
	t.num, t.step, t.digits = t.num+.5, .01, 0
	l.pos += len(half)
	t.end = l.pos
	return true
}

// halfOfUnit reports whether s begins with the half of an hour that belongs to a number.
func halfOfUnit(s string) bool {
	for _, h := range [...]string{half, "個半"} {
		if rest, ok := strings.CutPrefix(s, h); ok {
			return strings.HasPrefix(rest, "小时") || strings.HasPrefix(rest, "小時")
		}
	}
	return false
}

// hanHalf takes a half before a unit: 半小时, 半个月, 半年.
func (l *lexer) hanHalf() bool {
	const size = len("半")
	rest := l.text[l.pos+size:]
	if r, _ := utf8.DecodeLastRuneInString(l.text[:l.pos]); strings.ContainsRune("上下前后後", r) {
		return false // 上半年
	}
	for _, unit := range [...]string{"小时", "小時", "時間", "个小时", "個小時", "个月", "個月", "年"} {
		if after, ok := strings.CutPrefix(rest, unit); ok && !strings.HasPrefix(after, "度") && !l.behindNumber() {
			t := token{start: l.pos, end: l.pos + size, kind: tokNumber, num: .5, alt: nan(), step: .01}
			l.toks = append(l.toks, t)
			l.pos += size
			return true
		}
	}
	return false
}

// notCounted are the characters that turn a unit into another word: 80年代, 三年级, 3分の1.
//
//nolint:gochecknoglobals // constant table
var notCounted = map[string]string{
	"年": "代级級生目次度", "折": "叠疊合返射断斷", "分": "之の析野类類別别钟鐘", "周": "年岁歲", "週": "年",
}

// hanCounts reports whether the text at offset end shows that the single ideograph before it is the
// number n: a unit, a month, a day or an hour follows.
func (l *lexer) hanCounts(n float64, end int) bool {
	rest, before := l.text[end:], l.text[:l.pos]
	switch {
	case n < 1 || n > 10 || hanVague(before):
		return false
	case strings.HasPrefix(rest, "月"), halfOfUnit(rest), n > 1 && hanCounter(rest):
		return true
	case strings.HasPrefix(rest, "日"), strings.HasPrefix(rest, "号"):
		return strings.HasSuffix(before, "月")
	}
	for _, u := range hanUnits {
		// 十分 means "very".
		if u.name != "分" && strings.HasPrefix(rest, u.name) {
			// One of a short unit often means "once" or "some": 一天, 一年.
			after, _ := utf8.DecodeRuneInString(rest[len(u.name):])
			return (n > 1 || len(u.name) > len("天")) && !strings.ContainsRune(notCounted[u.name], after)
		}
	}
	_, known := halfOfDay(before, n)
	return known && strings.IndexAny(rest, "点點時时") == 0 ||
		strings.HasPrefix(rest, "点半") || strings.HasPrefix(rest, "時半")
}

// hanVague reports whether text ends in a character that makes the following number part of a rank
// or an approximate number: 第三, 几十, 数十.
func hanVague(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune("第十几幾数數好何", r)
}

// hanCounter reports whether s begins with a measure word for persons, things or times.
func hanCounter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	if !strings.ContainsRune("个個名位人岁歲次回件项項", r) || halfOfUnit(s) {
		return false
	}
	unit, _ := utf8.DecodeRuneInString(s[utf8.RuneLen(r):])
	return !strings.ContainsRune("月小星", unit) // 三个月, 两个小时
}
