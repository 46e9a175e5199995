package quantity

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxCounted is the maximum number of words between a number and its "per" that name what is
// counted: "100 API requests per minute".
const maxCounted = 3

// period sets the period that v is for if the words from token j on state it: a month, per year, im
// Monat.
func (p *parser) period(j int, v *Value) {
	if v.Period != 0 || v.Dim == Duration || v.Dim == workdays {
		return
	}
	for k := j; k < j+maxCounted+1; k++ {
		t := p.tok(k)
		if p.has(k, rolePer|roleArticle) || p.each(k) {
			length, told := p.lengthAt(k + 1)
			if length != 0 {
				v.Period = length
			}
			if told || !p.has(k, rolePer) {
				return
			}
			k++ // per key and minute
			continue
		}
		if t.kind != tokWord || t.word.role != 0 || t.unit.dim != Plain || v.Dim != Plain && v.Dim != storage && k > j {
			return
		}
	}
}

// lengthAt returns the length of time in seconds that token k names, after words such as
// "calendar". told is false if it names none. For units that cannot be converted the length is 0.
func (p *parser) lengthAt(k int) (length float64, told bool) {
	if Whole(p.tokText(k)) {
		k++
	}
	switch u := p.tok(k).unit; {
	case night(p.tokText(k)):
		return day, true
	case u.dim != Duration:
		return 0, false
	case u.offset != 0:
		return 0, true
	default:
		return u.factor, true
	}
}

// each reports whether the word at token k precedes a "per" unit.
func (p *parser) each(k int) bool {
	switch t := p.tok(k); p.text[t.start:t.end] {
	case "each", "every", "im", "je", "al", "jeden", "jede", "jedes", "ao", "в":
		return t.kind == tokWord
	}
	return false
}

// periods are words that state the period of an amount by themselves. compounds are the first
// parts, and paid the second parts, of German compounds that do.
//
//nolint:gochecknoglobals // constant tables
var (
	periods = func() map[string]float64 {
		m := map[string]float64{}
		for _, p := range [...]struct {
			seconds float64
			words   string
		}{
			{year, "annual annually yearly annum jährlich jährliche jährlichen jährlicher jährl annuel annuelle " +
				"anual annuale ежегодно سنويا سنويًا"}, //nolint:misspell // Spanish
			{month, "monthly monatlich monatliche monatlichen monatlicher monatl mtl mensuel mensuelle mensual mensal " +
				"mensile ежемесячно شهريا شهريًا"},
			{7 * day, "weekly wöchentlich wöchentliche wöchentlichen wöchentlicher hebdomadaire semanal"},
			{day, "daily täglich tägliche täglichen täglicher quotidien quotidienne diario diaria nightly"},
			{hour, "hourly stündlich stündliche stündlichen stündlicher"},
		} {
			for w := range strings.FieldsSeq(p.words) {
				m[w] = p.seconds
			}
		}
		return m
	}()
	compounds = []struct {
		head    string
		seconds float64
	}{{"jahres", year}, {"monats", month}, {"wochen", 7 * day}, {"tages", day}, {"stunden", hour}}
	paid = []string{
		"beitrag",
		"gebühr",
		"gebühren",
		"miete",
		"preis",
		"lohn",
		"gehalt",
		"umsatz",
		"kosten",
		"zins",
		"abo",
		"pauschale",
		"satz",
		"einkommen",
		"verbrauch",
	}
)

// PeriodOf returns the period in seconds that a word, in lower case, states for an amount, or 0:
// monthly, jährlich, Monatsbeitrag.
func PeriodOf(word string) float64 {
	if s := periods[word]; s != 0 {
		return s
	}
	for _, c := range compounds {
		if rest, ok := strings.CutPrefix(word, c.head); ok {
			if slices.Contains(paid, rest) {
				return c.seconds
			}
		}
	}
	return 0
}

// shortLengths are lengths of time in one Chinese or Japanese character, and Korean ones.
//
//nolint:gochecknoglobals // constant table
var shortLengths = map[string]float64{
	"年": year, "月": month, "周": 7 * day, "週": 7 * day, "天": day, "日": day,
	"연": year, "매년": year, "연간": year, "년": year, "월": month, "매월": month, "매달": month, "달": month,
}

// spacelessPeriod sets the period of money v, in tokens [i, j), in Chinese, Japanese and Korean:
// 月99元, 每年1188元, 月額9,800円, 99元/月, 월 9,900원.
func (p *parser) spacelessPeriod(i, j int, v *Value) {
	if v.Period != 0 || !v.Dim.currency() || v.Dim > 0xff {
		return
	}
	if p.sym(j, '/') || p.sym(j, '／') || p.word(j, "每") || p.word(j, "毎") || p.word(j, "一") {
		if p.word(j+1, "个") || p.word(j+1, "個") {
			j++
		}
		if v.Period = shortLengths[p.tokText(j+1)]; v.Period != 0 {
			return
		}
	}
	k := i - 1
	if p.money(k) {
		k--
	}
	if p.sym(k, '：') || p.sym(k, ':') {
		k--
	}
	switch p.tokText(k) {
	case "额", "額", "费", "費", "付", "租", "薪", "缴", "々":
		k--
	}
	before := p.tok(k - 1)
	if u := p.tok(k).unit; u.dim == Duration && before.kind == tokNumber && before.num == 1 && p.touches(k) {
		v.Period = u.factor // 1个月99元
		return
	}
	if before.kind == tokNumber && p.touches(k) || p.thatOne(k-1) {
		return // 3月99元
	}
	v.Period = shortLengths[p.tokText(k)]
}

// thatOne reports whether token i says which year, month or day follows, or that it is a part of
// one: 去年, 上月, 半年.
func (p *parser) thatOne(i int) bool {
	r, _ := utf8.DecodeRuneInString(p.tokText(i))
	return p.touches(i+1) && strings.ContainsRune("去今明前後后昨本上下半当當同翌次季隔来來", r)
}

// Whole reports whether a word only specifies which kind of period is meant: per calendar year.
func Whole(word string) bool {
	switch word {
	case "calendar", "full", "whole", "fiscal", "financial", "contract", "single":
		return true
	}
	return false
}

// Periodic reports whether a word, in lower case, is an adjective or adverb of time: monthly, but
// not Monatsbeitrag.
func Periodic(word string) bool { return periods[word] != 0 }

// night reports whether a word means a night, which counts as a day for amounts. German nouns may
// be in lower case.
func night(word string) bool {
	switch word {
	case "night", "Nacht", "nacht", "nuit", "noche":
		return true
	}
	return false
}

// LengthOf returns the length in seconds of a unit of time, given in lower case, or 0.
func LengthOf(word string) float64 {
	if night(word) {
		return day
	}
	if u := unitNames[word]; u.dim == Duration && u.offset == 0 {
		return u.factor
	}
	return 0
}
