package quantity

import (
	"math"
	"strings"
	"unicode/utf8"

	"signalbox/internal/script"
)

// hanMixed extends the last number with the digits and ideographs that belong to it: 3億5000万,
// 12亿5千万, 3万2千, 1万2000.
func (l *lexer) hanMixed() {
	last := &l.toks[len(l.toks)-1]
	if last.kind != tokNumber || last.step != 1 {
		return
	}
	total, part, above, at := 0.0, last.num, math.Inf(1), l.pos
	for n := 1; ; n++ {
		factor, end := hanFactor(l.text, at)
		if factor >= above || part*factor >= above {
			return
		}
		if factor == 1 || end == len(l.text) || !isDigitAt(l.text, end) {
			if n > 1 {
				last.num, last.alt, last.step, last.digits, last.end = total+part*factor, nan(), factor, 0, end
				l.pos = end
			}
			return
		}
		total, above = total+part*factor, factor
		var buf [maxGroups]group
		next := lexer{text: l.text, pos: end}
		groups := next.groups(buf[:0])
		took, t := assemble(groups)
		if t.step != 1 {
			return
		}
		part, at = t.num, groups[took-1].end
	}
}

// trillion is the value of 兆 for amounts of money.
const trillion = 1e12

// hanFactor returns the product of the multipliers at offset i, 1 without any, and the offset after
// them.
func hanFactor(text string, i int) (factor float64, end int) {
	factor = 1
	for {
		r, size := utf8.DecodeRuneInString(text[i:])
		n := hanRunes[r].num
		switch {
		case r == '兆':
			n = trillion
		case n < 100:
			return factor, i
		}
		factor *= n
		i += size
	}
}

func isDigitAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return isDigit(r)
}

// eras are the eras of Japan and of Taiwan, with the year before their first year.
//
//nolint:gochecknoglobals // constant table
var eras = [...]struct {
	name   string
	before float64
}{{"令和", 2018}, {"平成", 1988}, {"昭和", 1925}, {"大正", 1911}, {"明治", 1867}, {"民國", 1911}, {"民国", 1911}}

// mostOfEra is the maximum number of years of an era.
const mostOfEra = 189

// japaneseYear takes a year of an era and converts it to a calendar year: 令和7年, 平成元年, 昭和五十年.
func (l *lexer) japaneseYear() bool {
	for _, era := range eras {
		rest, ok := strings.CutPrefix(l.text[l.pos:], era.name)
		if !ok {
			continue
		}
		start, n := l.pos, 1.0
		if after, ok := strings.CutPrefix(rest, "元"); ok {
			rest = after
		} else if n, rest = yearOfEra(rest); n < 1 || n > mostOfEra {
			return false
		}
		if !strings.HasPrefix(rest, "年") {
			return false
		}
		l.pos = len(l.text) - len(rest)
		t := token{start: start, end: l.pos, kind: tokNumber, num: era.before + n, alt: nan(), step: 1, digits: 4}
		l.toks = append(l.toks, t)
		return true
	}
	return false
}

// yearOfEra returns the number at the start of s, in digits or ideographs, and the rest of s.
func yearOfEra(s string) (n float64, rest string) {
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		h := hanRunes[r]
		switch d := digitOf(r); {
		case d >= 0 && n < 19:
			n = n*10 + float64(d)
		case h.kind == hanPart && h.num == 10:
			n = max(n, 1) * 10
		case h.kind == hanDigit:
			n += h.num
		default:
			return n, s
		}
		s = s[size:]
	}
	return n, s
}

// halfOfDay returns the hours that the word before an hour adds, and whether that word identifies
// the half of the day.
func halfOfDay(before string, hour float64) (later float64, known bool) {
	before = strings.TrimRight(before, " ")
	for _, w := range [...]string{"午後", "下午", "傍晚", "오후"} {
		if strings.HasSuffix(before, w) {
			return 12, true
		}
	}
	for _, w := range [...]string{"午前", "上午", "早上", "凌晨", "清晨", "早朝", "오전", "새벽", "아침"} {
		if strings.HasSuffix(before, w) {
			return 0, true
		}
	}
	for _, w := range [...]string{"中午", "正午"} {
		if strings.HasSuffix(before, w) {
			return 12, hour == 12 || hour < 3
		}
	}
	for _, w := range [...]string{"晚上", "夜", "저녁", "밤"} {
		if strings.HasSuffix(before, w) {
			return 12, hour >= 5 && hour < 12
		}
	}
	return 0, false
}

// hanClock converts the last number to a time of day if an hour in ideographs follows, possibly
// with minutes: 8点30分, 午後5時半, 下午3点.
func (l *lexer) hanClock() bool {
	if !l.behindNumber() {
		return false
	}
	last := &l.toks[len(l.toks)-1]
	mark, size := utf8.DecodeRuneInString(l.text[l.pos:])
	if !strings.ContainsRune("点點時时", mark) || last.kind != tokNumber || last.step != 1 || last.num >= 25 {
		return false
	}
	before := l.text[:last.start]
	if strings.HasSuffix(before, "第") {
		return false
	}
	later, told := halfOfDay(before, last.num)
	minutes, end := hanMinutes(l.text, l.pos+size)
	if end == l.pos+size && !told && !hourAlone(mark, before, l.text[end:]) {
		return false
	}
	hours := last.num
	if told && hours <= 12 {
		hours = inHalf(hours*60, later) / 60
	}
	last.kind, last.num, last.end, last.told = tokClock, hours*60+minutes, end, told
	l.pos = end
	return true
}

// hanMinutes reads what follows an hour, at offset i: 30分, 30, 半, 整. end is i if nothing does.
func hanMinutes(text string, i int) (minutes float64, end int) {
	rest := text[i:]
	if strings.HasPrefix(rest, "半") {
		return 30, i + len("半")
	}
	for _, full := range [...]string{"整", "钟", "鐘"} {
		if strings.HasPrefix(rest, full) {
			return 0, i + len(full)
		}
	}
	digits := 0
	for digits < 3 && isDigitAt(rest, digits) && rest[digits] < utf8.RuneSelf {
		minutes = minutes*10 + float64(rest[digits]-'0')
		digits++
	}
	marked := strings.HasPrefix(rest[digits:], "分")
	switch {
	case digits == 0 || digits > 2 || minutes > 59 || digits == 1 && !marked:
		return 0, i
	case marked:
		return minutes, i + digits + len("分")
	}
	return minutes, i + digits
}

// hourAlone reports whether an hour without minutes is a time of day, and not a length of time, a
// point of a list or part of a word: 15時から, 于15点召开.
func hourAlone(mark rune, before, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	if mark == '時' || mark == '时' {
		return !strings.ContainsRune("間间代点點刻候段制期給给効效速差", next)
	}
	before = strings.TrimRight(before, " ")
	prev, size := utf8.DecodeLastRuneInString(before)
	if day, _ := utf8.DecodeLastRuneInString(before[:len(before)-size]); strings.ContainsRune("期周週拜", day) &&
		strings.ContainsRune("一二三四五六", prev) {
		return true // 星期三9点
	}
	return strings.ContainsRune("日号天于於在从從到至早晚", prev) ||
		script.IsIdeograph(next) && strings.ContainsRune("到至召开開前后後起关關出", next)
}
