package quantity

import (
	"strings"
	"unicode/utf8"
)

// buddhistYears is how many years the Thai calendar is ahead.
const buddhistYears = 543

// thaiYears may precede a Thai year: the era, "year", months.
//
//nolint:gochecknoglobals // constant table
var thaiYears = [...]string{
	"พ.ศ.", "พ.ศ", "พศ.", "พุทธศักราช", "ปี", "มกราคม", "กุมภาพันธ์", "มีนาคม", "เมษายน", "พฤษภาคม", "มิถุนายน", "กรกฎาคม",
	"สิงหาคม", "กันยายน", "ตุลาคม", "พฤศจิกายน", "ธันวาคม", "ม.ค.", "ก.พ.", "มี.ค.", "เม.ย.", "พ.ค.", "มิ.ย.", "ก.ค.",
	"ส.ค.", "ก.ย.", "ต.ค.", "พ.ย.", "ธ.ค.",
}

// buddhist reports whether number t, after the given text, is a year of the Thai calendar: พ.ศ.
// 2567 is 2024.
func buddhist(before string, t *token) bool {
	if t.digits != 4 || t.num < 1900+buddhistYears || t.num > 2100+buddhistYears {
		return false
	}
	before = strings.TrimRight(before, " \u00a0")
	if r, _ := utf8.DecodeLastRuneInString(before); r != '.' && (r < 0xe00 || r > 0xe7f) {
		return false
	}
	for _, w := range thaiYears {
		if strings.HasSuffix(before, w) {
			return true
		}
	}
	return false
}

// shortCardinals are cardinals that are frequent words in other languages or contain a half. They
// count only before a length of time: due settimane, sei mesi, once días, dez dias, anderthalb
// Jahre.
//
//nolint:gochecknoglobals // constant table
var shortCardinals = map[string]float64{
	"due": 2, "tre": 3, "quattro": 4, "sei": 6, "otto": 8, "once": 11, "dez": 10,
	"anderthalb": 1.5, "eineinhalb": 1.5, "zweieinhalb": 2.5, "dreieinhalb": 3.5, "viereinhalb": 4.5,
	"Due": 2, "Tre": 3, "Quattro": 4, "Sei": 6, "Otto": 8,
}

// duals are Arabic words for two units of time.
//
//nolint:gochecknoglobals // constant table
var duals = func() map[string]unit {
	m := map[string]unit{}
	for seconds, list := range map[float64]string{
		year: "سنتان سنتين عامان عامين", month: "شهران شهرين", 7 * day: "أسبوعان أسبوعين اسبوعان اسبوعين",
		day: "يومان يومين", hour: "ساعتان ساعتين", minute: "دقيقتان دقيقتين",
	} {
		for w := range strings.FieldsSeq(list) {
			m[w] = unit{Duration, seconds, 0}
		}
	}
	return m
}()

// dual reads two units of time that token i expresses in one word.
func (p *parser) dual(i int) (v Value, ok bool) {
	u, ok := duals[p.tokText(i)]
	if !ok {
		return v, false
	}
	v = plainValue(2, 1)
	v.Start, v.End = p.tok(i).start, p.tok(i).end
	v.setUnit(u)
	return v, true
}

// arabicTeens are eleven and twelve in Arabic, by the word before ten.
//
//nolint:gochecknoglobals // constant table
var arabicTeens = map[string]float64{
	"أحد": 11, "احد": 11, "إحدى": 11, "احدى": 11, "اثنا": 12, "اثني": 12, "اثنتا": 12, "اثنتي": 12,
}

// beside returns the cardinal that token i is because of an adjacent word, or 0.
func (p *parser) beside(i int) float64 {
	if n := shortCardinals[p.tokText(i)]; n > 0 && p.tok(i+1).unit.dim == Duration {
		return n
	}
	if p.tok(i).word.num == 10 {
		return arabicTeens[p.tokText(i-1)]
	}
	return 0
}

// arabicTens reports whether token t is the tens after the ones in Arabic, where last is the ones:
// خمسة وعشرون, خمسة عشر.
func (p *parser) arabicTens(t *token, last float64) bool {
	if last < 1 || last > 9 || t.word.num < 10 || t.word.num > 90 {
		return false
	}
	s := p.text[t.start:t.end]
	return t.word.num == 10 && strings.HasPrefix(s, "عشر") || strings.HasPrefix(s, "و")
}
