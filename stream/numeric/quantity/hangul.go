package quantity

import (
	"math"
	"strings"
)

// hangulFactors are the Korean multipliers, which follow digits: 5천만.
//
//nolint:gochecknoglobals // constant tables
var (
	hangulFactors = [...]struct {
		name string
		n    float64
	}{{"조", trillion}, {"억", 1e8}, {"만", 1e4}, {"천", 1e3}, {"백", 100}}
	hangulUnits = units("hangul")
	// notHangul are continuations that turn a unit into another word: 80년대, 3분기, 3원칙, 2주택.
	notHangul = map[string][]string{
		"년": {"대", "생", "차", "도", "식"}, "분": {"기", "의"}, "초": {"등"},
		"원": {"칙", "소", "인"}, "프로": {"젝", "그", "세"}, "주": {"택", "년", "차", "민"},
	}
)

// hangul takes what Korean writes directly after the last number: multipliers with digits between
// them, then an hour, a part of a date or a unit.
func (l *lexer) hangul() {
	l.hangulFactor()
	if !l.hangulClock() {
		l.hangulUnit()
	}
}

// hangulFactor combines numbers such as 3억 5천만 into one.
func (l *lexer) hangulFactor() {
	last := &l.toks[len(l.toks)-1]
	if last.kind != tokNumber {
		return
	}
	total, part, step, above, at := 0.0, last.num, last.step, math.Inf(1), l.pos
	for {
		factor, end := hangulProduct(l.text, at)
		if factor == 1 || part*factor >= above {
			return
		}
		total, above = total+part*factor, factor
		last.num, last.alt, last.step, last.digits, last.end = total, nan(), step*factor, 0, end
		l.pos = end
		rest := strings.TrimPrefix(l.text[end:], " ")
		if rest == "" || !isDigitAt(rest, 0) || last.step < factor {
			return
		}
		var buf [maxGroups]group
		next := lexer{text: l.text, pos: len(l.text) - len(rest)}
		groups := next.groups(buf[:0])
		took, t := assemble(groups)
		part, step, at = t.num, t.step, groups[took-1].end
	}
}

// hangulProduct returns the product of the multipliers at offset i, 1 without any, and the offset
// after them.
func hangulProduct(text string, i int) (factor float64, end int) {
	factor = 1
	for n := 0; n < len(hangulFactors); n++ {
		if f := hangulFactors[n]; strings.HasPrefix(text[i:], f.name) {
			factor, i, n = factor*f.n, i+len(f.name), -1
		}
		if factor > 1e15 {
			break
		}
	}
	return factor, i
}

// hangulUnit takes a unit after a number: 24개월, 9900원.
func (l *lexer) hangulUnit() {
	at := len(l.text) - len(strings.TrimPrefix(l.text[l.pos:], " "))
	for _, u := range hangulUnits {
		rest, ok := strings.CutPrefix(l.text[at:], u.name)
		if !ok {
			continue
		}
		if at > l.pos && u.dim == Duration || u.name == "일" && !dayCounted(rest) {
			return
		}
		for _, more := range notHangul[u.name] {
			if strings.HasPrefix(rest, more) {
				return
			}
		}
		end := at + len(u.name)
		l.toks = append(l.toks, token{start: at, end: end, kind: tokWord, unit: u.unit})
		l.pos = end
		return
	}
	// Parts of a date.
	for _, part := range [...]string{"년", "월", "일"} {
		if strings.HasPrefix(l.text[l.pos:], part) {
			end := l.pos + len(part)
			l.toks = append(l.toks, token{start: l.pos, end: end, kind: tokWord})
			l.pos = end
			return
		}
	}
}

// dayCounted reports whether the text after a number of days shows that it is a length of time and
// not a day of the month.
func dayCounted(s string) bool {
	s = strings.TrimPrefix(s, " ")
	for _, word := range [...]string{"이내", "안에", "간", "동안", "내"} {
		if strings.HasPrefix(s, word) {
			return true
		}
	}
	return false
}

// hangulClock converts the last number to a time of day: 오후 3시, 9시 30분, 17시 반.
func (l *lexer) hangulClock() bool {
	last := &l.toks[len(l.toks)-1]
	rest, ok := strings.CutPrefix(l.text[l.pos:], "시")
	if !ok || strings.HasPrefix(rest, "간") || last.kind != tokNumber || last.step != 1 || last.num >= 25 {
		return false
	}
	later, told := halfOfDay(l.text[:last.start], last.num)
	hours := last.num
	if told && hours <= 12 {
		hours = inHalf(hours*60, later) / 60
	}
	minutes, end := 0.0, l.pos+len("시")
	behind := strings.TrimPrefix(rest, " ")
	digits := 0
	for digits < len(behind) && digits < 3 && behind[digits] >= '0' && behind[digits] <= '9' {
		digits++
	}
	switch half, ok := strings.CutPrefix(behind, "반"); {
	case ok:
		minutes, end = 30, len(l.text)-len(half)
	case digits > 0 && digits < 3 && strings.HasPrefix(behind[digits:], "분"):
		minutes = number(behind[:digits])
		end = len(l.text) - len(behind) + digits + len("분")
	}
	if minutes > 59 {
		return false
	}
	last.kind, last.num, last.end, last.told = tokClock, hours*60+minutes, end, told
	l.pos = end
	return true
}
