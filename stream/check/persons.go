package check

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
	"signalbox/stream/claims"
	"signalbox/stream/evidence"
)

// Words and characters next to the names of persons in scripts without capitals.
//
//nolint:gochecknoglobals // constant tables
var (
	// titlesBehind directly follow a name, possibly after a space.
	titlesBehind = []string{
		"さん", "氏", "先生", "教授", "様", "女士", "小姐", "老师", "老師", "经理", "經理", "主任", "医生", "博士",
		"씨", "님", "교수", "박사", "선생님", "팀장", "부장", "과장",
	}
	// titlesBefore precede a name.
	titlesBefore = []string{
		"السيد", "السيدة", "الدكتور", "الدكتورة", "المهندس", "المهندسة", "الأستاذ", "الأستاذة",
	}
	// actsBehind and cuesBefore are next to a Chinese name without a title.
	actsBehind = []string{"主持", "负责", "担任", "主讲", "讲授", "授课", "表示", "指出", "带领"}
	cuesBefore = []string{"联系", "联系人", "负责人", "主持人", "主讲人", "讲师", "导师", "作者", "由"}
	// surnames are the first characters of most Chinese names.
	surnames = "王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴" +
		"夏钟汪田姜范石姚谭廖邹熊陆郝孔崔康毛邱秦江史顾侯邵孟龙段雷钱汤尹黎武乔贺赖龚張劉陳楊趙黃吳孫羅鄭謝韓馮鄧許蘇盧蔣葉鍾"
	// noNames are words before a title that name nobody.
	noNames = strings.Fields(`お客 皆 奥 医者 患者 業者 店員 担当 利用者 両親 会員 息子 娘 各 御 고객 회원 손 선생 사용자 담당자 부모 기사
		이용자 보호자 환자 학생 작가 판매자 구매자 관리자 여러분 강사 의사 신청자 참가자 배우 부 과 팀 대표 총 조 명예 담임 지도`)
)

// personAt is a person that a text names.
type personAt struct {
	name       string
	start, end int
}

// personsIn returns the persons that a text names, as far as the words next to a name show.
func personsIn(text string) (list []personAt) {
	add := func(start, end int) {
		if end > start {
			list = append(list, personAt{text[start:end], start, end})
		}
	}
	each := func(words []string, found func(start, end int)) {
		for _, w := range words {
			for from := 0; ; {
				i := strings.Index(text[from:], w)
				if i < 0 {
					break
				}
				from += i + len(w)
				found(from-len(w), from)
			}
		}
	}
	each(titlesBehind, func(at, _ int) { add(nameBefore(text, at)) })
	each(actsBehind, func(at, _ int) { add(chineseBefore(text, at)) })
	each(cuesBefore, func(_, end int) { add(chineseFrom(text, end)) })
	each(titlesBefore, func(_, end int) { add(wordFrom(text, end)) })
	return list
}

// nameBefore returns the range of the name before a title at offset at. The range is empty if there
// is no name.
func nameBefore(text string, at int) (start, end int) {
	end = len(strings.TrimRight(text[:at], " "))
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	kind := unicode.Han
	switch {
	case script.IsHangul(last):
		kind = unicode.Hangul
	case unicode.Is(unicode.Katakana, last):
		kind = unicode.Katakana
	case !unicode.Is(unicode.Han, last):
		return 0, 0
	case end < at:
		return 0, 0 // a Chinese or Japanese name contains no space
	}
	start = end
	for n := 0; start > 0 && n < 9; n++ {
		r, size := utf8.DecodeLastRuneInString(text[:start])
		if !unicode.Is(kind, r) && r != 'ー' {
			break
		}
		start -= size
	}
	switch n := utf8.RuneCountInString(text[start:end]); {
	case kind == unicode.Han && !strings.ContainsRune("さ氏様", firstRune(text[at:])):
		start, end = chineseBefore(text, end)
	case kind == unicode.Han && (n < 2 || n > 4), kind == unicode.Hangul && n != 3, n < 2:
		return 0, 0
	}
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	if before == 'お' || before == 'ご' || nobody(text[start:end]) {
		return 0, 0
	}
	return start, end
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// nobody reports whether a word before a title is not a name.
func nobody(name string) bool {
	return slices.ContainsFunc(noNames, func(w string) bool { return strings.HasSuffix(name, w) && name != "" }) ||
		strings.HasSuffix(name, "者")
}

// chineseBefore returns the range of a Chinese name that ends at offset end. It has two or three
// characters, begins with a surname, and is at the start of a clause or after a word that
// introduces a name. The range is empty if there is none.
func chineseBefore(text string, end int) (start, to int) {
	at := end
	for n := 1; n <= 3 && at > 0; n++ {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		if !unicode.Is(unicode.Han, r) {
			return 0, 0
		}
		at -= size
		if n > 1 && strings.ContainsRune(surnames, r) && nameBegins(text[:at]) && !titled(text[at:end]) {
			return at, end
		}
	}
	return 0, 0
}

// titled reports whether a text ends in a title.
func titled(text string) bool {
	return slices.ContainsFunc(titlesBehind, func(w string) bool { return strings.HasSuffix(text, w) })
}

// nameBegins reports whether a name may begin after the given text.
func nameBegins(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return !unicode.IsLetter(r) || strings.ContainsRune("由请和与及是系为被跟让", r) ||
		slices.ContainsFunc(cuesBefore, func(w string) bool { return strings.HasSuffix(before, w) })
}

// chineseFrom returns the range of a Chinese name that begins at offset at. It has two or three
// characters, begins with a surname, and ends its clause or precedes a title or a verb of its
// bearer. The range is empty if there is none.
func chineseFrom(text string, at int) (start, end int) {
	rest := strings.TrimLeft(text[at:], "：: ")
	start = len(text) - len(rest)
	if !strings.ContainsRune(surnames, firstRune(rest)) || rest == "" {
		return 0, 0
	}
	end = start
	for n := 1; n <= 3 && end < len(text); n++ {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !unicode.Is(unicode.Han, r) {
			return 0, 0
		}
		end += size
		behind := text[end:]
		if n > 1 && (!unicode.IsLetter(firstRune(behind)) ||
			hasPrefixOf(behind, titlesBehind) || hasPrefixOf(behind, actsBehind)) {
			return start, end
		}
	}
	return 0, 0
}

func hasPrefixOf(s string, list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return strings.HasPrefix(s, w) })
}

// wordFrom returns the range of the word after a title and a space.
func wordFrom(text string, at int) (start, end int) {
	rest := strings.TrimLeft(text[at:], " ")
	start = len(text) - len(rest)
	if start == at {
		return 0, 0
	}
	end = start + len(rest)
	if n := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }); n >= 0 {
		end = start + n
	}
	return start, end
}

// strangePerson returns the span of a person that the claim names and the evidence does not, if the
// evidence names another person. It covers scripts without capitals. The span is empty if there is
// none.
func strangePerson(text string, e *evidence.Evidence) (span claims.Span) {
	for _, p := range personsIn(text) {
		others := false
		for _, t := range e.Texts() {
			if strings.Contains(t, p.name) {
				others = false
				break
			}
			others = others || len(personsIn(t)) > 0
		}
		if others {
			return spanOf(text, p.start, p.end)
		}
	}
	return span
}
