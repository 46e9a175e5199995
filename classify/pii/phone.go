package pii

import "strings"

// Numbers have at most 15 digits including the country code (ITU-T E.164, section 6.2.1), and at
// least 7 when dialled within a city.
const (
	minPhone = 7
	maxPhone = 15
)

// shape is a number as it is written.
type shape struct {
	start, end int
	digits     [maxPhone + 4]byte
	n          int // digits
	groups     [8]int
	g          int  // groups
	plus       bool // begins with +
	open       bool // has a part in parentheses
	sep        bool // has something between groups
}

// phone reads a telephone number whose first digits are [i, first). Shapes that only telephone
// numbers have are accepted by themselves: + and a country code, a national prefix and groups, the
// North American 3-3-4. Others require a word about telephones nearby.
func (s *scanner) phone(i, first int) int {
	switch b := s.byteAt(i - 1); {
	case b == '$', b == '.', b == '#', b == '/', b == '=' && !s.keyed(i, PhoneNumber),
		b == ':' && isDigit(s.byteAt(i-2)), b == '-' && s.byteAt(i-2) != ' ' && i > 1,
		s.called(i - 1):
		return 0
	}
	var p shape
	if first-i > maxPhone || !s.shapePhone(i, &p) {
		return 0
	}
	score := s.phoneScore(&p)
	if score == 0 || !p.plus && s.otherThanPhone(&p) {
		return 0
	}
	return s.add(PhoneNumber, p.start, s.extension(p.end), score)
}

// otherThanPhone reports whether a number has the layout or name of something else, or is only a
// part of a number.
func (s *scanner) otherThanPhone(p *shape) bool {
	return s.cuedBy(p.start, beforeOther) || s.cuedBy(p.start, beforeSSN) || p.isbn() ||
		cardSizes(p.groups[:p.g]) || s.goods(p.start, p.end) || s.quantity(p.start, p.end) ||
		isDigit(s.text[p.start]) && s.tornBefore(p.start, p.end)
}

// shapePhone measures the number around i and reports whether it could be one.
func (s *scanner) shapePhone(i int, p *shape) bool {
	p.start = i
	if p.open = s.byteAt(i-1) == '(' && s.closes(i-1); p.open {
		p.start--
	}
	if p.plus = s.byteAt(p.start-1) == '+'; p.plus {
		p.start--
		if s.wordBefore(p.start) {
			return false
		}
	}
	inside := p.open // of parentheses
	for k := i; k < len(s.text) && p.n < len(p.digits); k++ {
		b := s.text[k]
		switch {
		case isDigit(b):
			if !p.digit(b, k) {
				return false
			}
			continue
		case b == '(' && !inside && s.closes(k):
			inside, p.open = true, true
			continue
		case b == ')' && inside:
			inside = false
		case !joint(b) || !s.goesOn(k) || b == ' ' && s.anotherPhone(p, k+1):
			return p.whole() && !s.wordBroken(p.end)
		}
		p.sep = true
	}
	return p.whole() && !s.wordBroken(p.end)
}

// digit adds the digit at k, and reports false when there are too many groups.
func (p *shape) digit(b byte, k int) bool {
	if p.n == 0 || p.end != k {
		if p.g == len(p.groups) {
			return false
		}
		p.g++
	}
	p.groups[p.g-1]++
	p.digits[p.n] = b
	p.n++
	p.end = k + 1
	return true
}

// whole reports whether it has as many digits as a number.
func (p *shape) whole() bool { return p.n >= minPhone && p.n <= maxPhone }

// isbn reports the prefixes of books in 13 digits (ISO 2108, section 4.2).
func (p *shape) isbn() bool {
	front := string(p.digits[:3])
	return p.n == 13 && (front == "978" || front == "979")
}

// anotherPhone reports whether the group of digits at i does not belong to the number before it: a
// word of another form, or text after a complete North American number that has no spaces of its
// own, or another number of the same form.
func (s *scanner) anotherPhone(p *shape, i int) bool {
	if !isDigit(s.text[i]) {
		return false
	}
	if end := s.groupEnd(i); p.whole() && s.strange(end) {
		return true
	}
	if !northAmerican(p) {
		return false
	}
	return compact(s.text[p.start:p.end]) || s.otherAt(i) || s.phoneRun(i)
}

// phoneRun reports whether nothing but North American numbers, without a 1, follows from i to where
// the digits end.
func (s *scanner) phoneRun(i int) bool {
	const reach = 1 << 10 // is a verdict for all numbers in it
	if i < s.runTo {
		return s.run
	}
	s.run, s.runTo = false, i
	for k := i; s.runTo-i < reach; k++ {
		var p shape
		for ; p.n < 10 && (isDigit(s.byteAt(k)) || s.joinsOn(k)); k++ {
			if isDigit(s.text[k]) && !p.digit(s.text[k], k) {
				break
			}
		}
		if s.runTo = k; !northAmerican(&p) || isDigit(s.byteAt(k)) || s.wordBroken(k) {
			return false
		}
		if !s.joinsOn(k) || s.text[k] == ' ' && s.otherAt(k+1) {
			break
		}
	}
	s.run = true
	return true
}

// closes reports whether the parenthesis at k holds 1 to 5 digits.
func (s *scanner) closes(k int) bool {
	end := s.groupEnd(k + 1)
	return end-k > 1 && end-k <= 6 && s.byteAt(end) == ')'
}

// goesOn reports whether the separator at k is followed by more of the number.
func (s *scanner) goesOn(k int) bool {
	next := s.byteAt(k + 1)
	return isDigit(next) || next == '(' && s.closes(k+1) ||
		s.text[k] == ' ' && (next == '-' || next == '.') && isDigit(s.byteAt(k+2))
}

// wordBroken reports whether what ends at i is the front of something longer. An extension may
// follow.
func (s *scanner) wordBroken(i int) bool {
	b := s.byteAt(i)
	if b|0x20 == 'x' && isDigit(s.byteAt(i+1)) {
		return false
	}
	return s.wordAfter(i) || b == '%' || b == '@' ||
		(b == '.' || b == '-' || b == '/' || b == ':') && isDigit(s.byteAt(i+1))
}

// extension returns the end of the extension behind i, or i.
func (s *scanner) extension(i int) int {
	for _, mark := range [...]string{
		"x", " x", "X", " ext. ", " ext ", " ext.", ", ext. ", " Ext. ", " extension ",
	} {
		if !strings.HasPrefix(s.text[i:], mark) {
			continue
		}
		from := i + len(mark)
		end := s.groupEnd(from)
		if end > from && end-from <= maxExtension && !s.wordAfter(end) {
			return end
		}
	}
	return i
}

// phoneCues speak of telephones in the languages that the patterns are made for.
//
//nolint:gochecknoglobals // constant table
var phoneCues = cues{
	"phone", "call", "tel", "tel.", "telephone", "mobile", "cell", "fax", "whatsapp", "sms",
	"text me", "dial", "number is", "my number", "hotline", "contact", "reach me",
	"telefon", "handy", "rufen", "anrufen", "rufnummer", "mobil", "téléphone", "numéro", "appelez",
	"portable", "teléfono", "telefono", "móvil", "llame", "llámame", "celular",
	"telefone", "ligue", "numero è", "cellulare", "chiamami", "telefoon", "telefoonnummer", "bel",
	"nummer", "ring", "ringa", "telefonnummer", "zadzwoń", "numer",
	"telefonum", "numaram", "ara", "телефон", "номер", "звоните", "позвоните", "电话", "手机", "電話",
	"携帯", "号码", "전화", "휴대폰", "연락처", "هاتف", "جوال", "موبايل", "تلفون", "محمول", "تلفن", "موبایل",
	"फोन", "फ़ोन", "मोबाइल", "โทร", "טלפון",
}

// codeCues name numbers that orders, goods, files and machines have. They stand directly before
// them.
//
//nolint:gochecknoglobals // constant table
var codeCues = cues{
	"order", "invoice", "ticket", "isbn", "ean", "upc", "gtin", "asin", "sku", "tracking",
	"reference", "ref", "case", "id", "version", "build", "commit",
	"serial", "imei", "batch", "part", "model", "account", "po", "rma", "issue", "incident",
	"patent", "port", "pid", "uid", "row", "timestamp", "epoch",
	"bestellung", "bestellnummer", "auftrag", "auftragsnummer", "rechnung", "rechnungsnummer",
	"sendungsnummer", "pedido", "factura", "commande", "facture", "ordine", "fattura",
	"zamówienie", "faktura", "sipariş", "fatura", "заказ", "счет", "订单", "订单号", "注文番号",
	"주문번호", "송장번호", "رقم الطلب",
}

func (s *scanner) phoneScore(p *shape) float64 {
	digits := string(p.digits[:p.n])
	cued := s.cued(p.start, cueWidth, phoneCues)
	switch {
	case uniformDigits(digits):
		return 0
	case p.plus:
		if cued || p.n >= 8 && callingCode(digits) &&
			(digits[0] != '1' || p.n == maxNorthAmerican) {
			return scoreSyntax
		}
		return 0
	case cued && (p.sep || p.n >= 9 || p.n >= minPhone && s.cuedBy(p.start, beforePhone)):
		return scoreCue
	case s.extension(p.end) > p.end && p.sep && p.n >= 10:
		return scoreCue
	case p.sep && northAmerican(p):
		return scoreCue
	case strings.HasPrefix(digits, "00") && p.sep && p.n >= 11 && callingCode(digits[2:]):
		return scoreCue
	case unlikelyPhone(s.text[p.start:p.end]):
		return 0
	case p.open && p.n >= 9 && digits[0] == '0':
		return scoreShape
	case p.sep && digits[0] == '0' && p.n >= 9 && p.n <= 11 && p.g <= 5 && p.groups[0] >= 2 &&
		p.groups[0] <= 5 && p.groups[p.g-1] >= 2:
		return scoreShape
	}
	return 0
}

// maxNorthAmerican is how many digits a number of the North American Numbering Plan has, with its
// 1.
const maxNorthAmerican = 11

// northAmerican reports the grouping of the North American Numbering Plan, 3-3-4 with or without a
// 1 before, and an area code and an exchange that begin with 2 to 9. The exchange may begin
// otherwise where the area stands in parentheses, as in (555) 123-4567: made up, and still meant as
// a number.
func northAmerican(p *shape) bool {
	g, at := p.groups[:p.g], 0
	if p.n == maxNorthAmerican && p.digits[0] == '1' && len(g) == 4 && g[0] == 1 {
		g, at = g[1:], 1
	}
	return threeThreeFour(g) && p.digits[at] >= '2' && (p.open || p.digits[at+3] >= '2')
}

func threeThreeFour(groups []int) bool {
	return len(groups) == 3 && groups[0] == 3 && groups[1] == 3 && groups[2] == 4
}

// callingCode reports whether digits begin with a country calling code that is assigned (ITU-T
// E.164, list of assigned codes). Zone 1 and 7 are one digit; the two-digit codes are listed; any
// other first digits belong to a code of three.
func callingCode(digits string) bool {
	switch digits[0] {
	case '1', '7':
		return true
	case '0':
		return false
	}
	if strings.Contains(twoDigitCodes, " "+digits[:2]+" ") {
		return true
	}
	switch digits[:2] {
	case "21", "22", "23", "24", "25", "26", "29", "35", "37", "38", "42", "50", "59", "67", "68",
		"69", "80", "85", "87", "88", "96", "97", "99":
		return true
	}
	return false
}

const twoDigitCodes = " 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 " +
	"57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98 "
