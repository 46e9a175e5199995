package pii

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// A model that was trained on the Latin script alone takes words of other scripts for names because
// they are unfamiliar. abroad reports whether a span of such a model that begins in another script
// has the form of its type: a capital in the middle of a sentence, a known surname and a plausible
// length, the ending of a place. For scripts without such a form, names are only found through the
// words that announce them.
func (r *reader) abroad(p *Span) bool {
	value := r.text[p.Start:p.End]
	first := firstLetter(value)
	next, _ := utf8.DecodeRuneInString(r.text[p.End:])
	if first == 0 || unicode.Is(unicode.Latin, first) || !spelled(p.Type) && p.Type != StreetAddress ||
		!script.IsIdeograph(next) && (&scanner{text: r.text}).keyed(p.Start, p.Type) {
		return true
	}
	switch {
	case unicode.In(first, unicode.Cyrillic, unicode.Greek, unicode.Armenian):
		return r.cased(p, value)
	case p.Type == StreetAddress:
		return strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, " ，。、,") &&
			strings.ContainsAny(value, wideStreets)
	case p.Type == Person:
		return familyName(value)
	case p.Type == Place:
		return endsIn(value, placeEnds)
	case p.Type == Organization:
		return endsIn(value, companyEnds) && value != "株式会社"
	}
	return false
}

// sureWord is the probability from which a single capitalised word, of a script that the model does
// not know, counts as a name in the middle of a sentence.
const sureWord = 0.8

// cased judges a span in a script with capitals.
func (r *reader) cased(p *Span, value string) bool {
	switch p.Type {
	case Person, Place:
		if fullNameLike(value) && p.Type == Person {
			return true
		}
		before := strings.TrimRight(r.text[:p.Start], " ")
		last, _ := utf8.DecodeLastRuneInString(before)
		return p.Score >= sureWord && unicode.IsUpper(firstLetter(value)) && len(before) < p.Start &&
			(unicode.IsLower(last) || last == ',')
	case StreetAddress:
		return strings.ContainsAny(value, "0123456789") && casedStreets(value)
	}
	return false
}

// casedStreets reports whether value contains a Russian, Ukrainian or Greek word for a street.
func casedStreets(value string) bool {
	value = strings.ToLower(value)
	return slices.ContainsFunc(casedStreetWords,
		func(w string) bool { return strings.Contains(value, w) })
}

// endsIn reports whether value is longer than one of the endings and ends in it.
func endsIn(value string, endings []string) bool {
	for _, e := range endings {
		if len(value) > len(e)+2 && strings.HasSuffix(value, e) {
			return true
		}
	}
	return false
}

// familyName reports whether value is a Chinese, Japanese or Korean name, judging by its length and
// the family name that it begins with.
func familyName(value string) bool {
	n := utf8.RuneCountInString(value)
	if last, _ := utf8.DecodeLastRuneInString(value); strings.ContainsRune(notNames.roles, last) {
		return false // 程序员 is a programmer
	}
	if r, _ := utf8.DecodeRuneInString(value); script.IsHangul(r) {
		return n == 3 && koreanName(value)
	}
	_, whole := hanFamilies[value]
	return n >= 2 && n <= 4 && strings.IndexFunc(value, func(c rune) bool { return !unicode.Is(unicode.Han, c) }) < 0 &&
		(whole || hanFamily(value) > 0)
}

//nolint:gochecknoglobals // constant tables
var (
	casedStreetWords = strings.Fields("ул. улиц просп пр. пр-т пер. переул шоссе бульв площ дом д. кв. наб вул. οδό λεωφ")

	placeEnds = strings.Fields("省 市 县 縣 区 區 镇 州 町 村 都 道 府 県 国 國 시 도 구 군")
	// companyEnds end the names of companies and schools.
	companyEnds = strings.Fields("公司 集团 集團 银行 銀行 大学 大學 医院 醫院 会社 病院 学校 회사 은행 대학교 그룹 병원")
)
