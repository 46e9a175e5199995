package pii

import (
	"strings"
	"unicode/utf8"
)

// number looks at a digit. It returns where to go on, behind what it found or behind the digits.
func (s *scanner) number(i int) int {
	end := s.digitsEnd(i)
	if start := s.lettersBefore(i); start < i {
		if found := s.national(start, s.wordEnd(start)-start); found > 0 {
			return found
		}
	}
	if s.wordBefore(i) {
		if found := s.coded(i); found > 0 {
			return found
		}
		if s.byteAt(end) == ':' { // the front of an IPv6 address
			return end
		}
		return s.wordRest(end)
	}
	next := s.byteAt(end)
	if next == '.' && end-i <= 3 {
		if found := s.ipv4(i); found > 0 {
			return found
		}
	}
	if found := s.numeric(i, end); found > 0 {
		return found
	}
	if next == ':' && end-i <= 4 {
		return end
	}
	return s.wordRest(end)
}

// numeric reads what begins with the digits [i, end). The order is that of how much a shape tells.
func (s *scanner) numeric(i, end int) int {
	if found := s.national(i, end-i); found > 0 {
		return found
	}
	if found := s.date(i, end); found > 0 {
		return found
	}
	if found := s.ssn(i, end); found > 0 {
		return found
	}
	if found := s.card(i, end); found > 0 {
		return found
	}
	if found := s.age(i, end); found > 0 {
		return found
	}
	if found := s.licenseDigits(i, end); found > 0 {
		return found
	}
	if found := s.zip(i, end); found > 0 {
		return found
	}
	if found := s.street(i, end); found > 0 {
		return found
	}
	if found := s.opened(i, end); found > 0 {
		return found
	}
	if found := s.continental(i, end); found > 0 {
		return found
	}
	if found := s.eastAddress(i, end); found > 0 {
		return found
	}
	if found := s.account(i, end); found > 0 {
		return found
	}
	return s.phone(i, end)
}

// wordRest returns the end of what is left of a word at i, up to a byte that could begin something.
func (s *scanner) wordRest(i int) int {
	for i < len(s.text) && isLetter(s.text[i]) {
		i++
	}
	return i
}

// coded reads what begins with letters before its first digit, at i: IBAN, driver licence, postal
// code.
func (s *scanner) coded(i int) int {
	start := i
	for start > 0 && i-start < 5 && isLetter(s.text[start-1]) {
		start--
	}
	if start == i || s.wordBefore(start) {
		return 0
	}
	if i-start == 2 {
		if end := s.iban(start); end > 0 {
			return end
		}
	}
	if end := s.license(start); end > 0 {
		return end
	}
	return s.zipCode(start)
}

// grouped copies the digits from i on into buf, over single spaces, hyphens and dots of one kind
// between groups, and returns the number of digits and of groups and the end. It stops at max
// digits or where the grouping ends.
func (s *scanner) grouped(i int, buf []byte) (n, groups, end int) {
	sep := byte(0)
	groups = 1
	for end = i; i < len(s.text) && n < len(buf); i++ {
		b := s.text[i]
		switch {
		case isDigit(b):
			buf[n] = b
			n++
			end = i + 1
			continue
		case !joint(b), !isDigit(s.byteAt(i + 1)), !isDigit(s.byteAt(i - 1)), sep != 0 && sep != b:
			return n, groups, end
		}
		sep = b
		groups++
	}
	return n, groups, end
}

// ibanLengths are the lengths by country (ISO 13616 registry, release 99).
//
//nolint:gochecknoglobals // constant table
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
	"BI": 27, "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27,
	"DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27,
	"GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28,
	"IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
	"LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22,
	"MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23,
	"PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24,
	"SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28,
	"TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}

// ibanDigits are countries whose account numbers have no letters but those of the country (the same
// registry). What has, and fits by chance, is a hexadecimal number such as the id of a span.
const ibanDigits = "AE AT BA BE CZ DE DK EE ES FI FO GL HR HU IL IS LT ME NO PL PT RS SE SI SK XK "

// iban reads an account number (ISO 13616): country, two check digits, and what the country's
// length leaves, in one piece or in groups of four.
func (s *scanner) iban(start int) int {
	country := [2]byte{s.text[start] &^ 0x20, s.text[start+1] &^ 0x20}
	length := ibanLengths[string(country[:])]
	if length == 0 || !isDigit(s.byteAt(start+2)) || !isDigit(s.byteAt(start+3)) {
		return 0
	}
	end, n, valid := s.ibanEnd(start, length)
	digits := strings.Contains(ibanDigits, string(country[:])+" ")
	if n == length && valid && (!digits || !hasLetter(s.text[start+2:end])) {
		return s.add(IBAN, start, end, scoreChecksum)
	}
	cued := s.cued(start, cueWidth, accountCues)
	if cued {
		if end, n, valid := s.ibanEnd(start, maxIBAN); n >= minIBAN && valid {
			return s.add(IBAN, start, end, scoreChecksum)
		}
	}
	if n == length && (cued || !s.lines.at(start)) && s.suspectedIBAN(start, end) {
		return s.add(IBAN, start, end, scoreSuspected)
	}
	return 0
}

// suspectedIBAN reports whether [start, end), which has the length of its country's account numbers
// and wrong check digits, is written as one: in capitals and mostly digits, in one piece or all of
// it in groups of four, and nothing goes on behind it.
func (s *scanner) suspectedIBAN(start, end int) bool {
	value := s.text[start:end]
	chars, digits, gaps := 0, 0, 0
	for i := range len(value) {
		switch b := value[i]; {
		case isDigit(b):
			digits++
		case isUpper(b):
		case b == ' ' || b == '-':
			gaps++
			continue
		default:
			return false
		}
		chars++
	}
	if gaps != 0 && gaps != (chars-1)/4 || 2*digits < chars || s.goodsBefore(start) {
		return false
	}
	return !s.joinsOn(end) && !s.cuedBy(start, beforeCode)
}

// Account numbers have 15 to 34 characters (ISO 13616-1, section 5). One whose length is not its
// country's is mistyped or made up, and still meant as one where the words around it say so.
const (
	minIBAN = 15
	maxIBAN = 34
)

// accountCues speak of bank transfers in the languages that the patterns are made for.
//
//nolint:gochecknoglobals // constant table
var accountCues = cues{
	"iban", "account", "wire", "transfer", "bank", "konto", "überweisung", "überweisen", "virement",
	"compte", "transferencia", "cuenta", "transferência", "conta",
	"bonifico", "conto", "rekening", "överföring", "przelew", "havale", "hesap", "перевод", "счет",
	"счёт", "转账", "口座",
}

// ibanEnd reads up to length characters at start, in one piece or in groups of four, and returns
// their end and number, and whether the check digits are right. The number is 0 when they go on as
// a word.
func (s *scanner) ibanEnd(start, length int) (end, n int, valid bool) {
	var head [4]byte
	sum := 0
	for end = start; end < len(s.text) && n < length; end++ {
		b := s.text[end]
		if !isAlnum(b) {
			if (b == ' ' || b == '-') && n%4 == 0 && n > 0 && s.goesOnAs(start, end+1) {
				continue
			}
			break
		}
		if n < len(head) {
			head[n] = b
		} else {
			sum = mod97(sum, b)
		}
		n++
	}
	if s.wordAfter(end) {
		return end, 0, false
	}
	for _, b := range head {
		sum = mod97(sum, b)
	}
	return end, n, sum == 1
}

// goesOnAs reports whether what is at i continues an account number that begins at start: it keeps
// to one case, so that a word behind the number is none of it.
func (s *scanner) goesOnAs(start, i int) bool {
	b := s.byteAt(i)
	return isDigit(b) || isLetter(b) && isUpper(b) == isUpper(s.text[start])
}

// mod97 appends a character to a number of which sum is the remainder (ISO 7064, MOD 97-10): A is
// 10.
func mod97(sum int, b byte) int {
	if isDigit(b) {
		return (sum*10 + int(b-'0')) % 97
	}
	return (sum*100 + int(b|0x20-'a') + 10) % 97
}

// ssn reads a US social security number, AAA-GG-SSSS. Since 2011 areas are drawn at random; 000,
// 666 and 900 to 999 are never issued, and neither is group 00 or serial 0000 (SSA, POMS RM
// 10201.035). Without hyphens or spaces it needs a word that names it.
func (s *scanner) ssn(i, first int) int {
	var buf [10]byte
	if first-i != 3 && first-i != 9 {
		return 0
	}
	n, groups, end := s.grouped(i, buf[:])
	if first-i == 9 && s.byteAt(first) == ' ' { // what a space joins to it is another number
		n, groups, end = copy(buf[:], s.text[i:first]), 1, first
	}
	if n != 9 || s.wordAfter(end) || s.torn(i, end) {
		return 0
	}
	if b := s.byteAt(i - 1); b == '-' || b == '.' || b == '+' || b == '(' && groups > 1 {
		return 0
	}
	sep := s.byteAt(first)
	if groups != 1 && (groups != 3 || s.byteAt(i+6) != sep) { // 3-2-4
		return 0
	}
	area, group, serial := string(buf[:3]), string(buf[3:5]), string(buf[5:9])
	if area == "000" || area == "666" || area[0] == '9' || group == "00" || serial == "0000" {
		return 0
	}
	switch {
	case s.cued(i, cueWidth, otherNumberCues):
		return 0
	case s.cued(i, cueWidth, ssnCues):
		return s.add(SSN, i, end, scoreSyntax)
	case groups == 3 && sep == '-':
		return s.add(SSN, i, end, scoreCue)
	}
	return 0
}

//nolint:gochecknoglobals // constant tables
var (
	ssnCues = cues{"ssn", "social security", "social", "soc sec", "ssa", "taxpayer"}
	// otherNumberCues name numbers of the same shape that are something else.
	otherNumberCues = cues{
		"cpf", "dni", "nif", "nie", "id number", "national id", "passport", "order", "invoice",
		"ticket", "isbn", "part number", "serial", "sku", "model",
	}
)

// licenseCues name a driver licence.
//
//nolint:gochecknoglobals // constant table
var licenseCues = cues{
	"driver license", "driver licence", "driver's license", "driver's licence", "drivers license",
	"drivers licence", "driving license", "driving licence",
	"driver’s license", "driver’s licence", "license", "licence", "dl", "dln", "permit",
}

// license reads a driver licence that begins with a letter at i. States use one to three letters
// and 3 to 14 digits, with or without hyphens (AAMVA, table of licence formats by state); the shape
// says so little that a word must name it.
func (s *scanner) license(i int) int {
	letters := s.wordEnd(i)
	end, digits := letters, 0
	for ; end < len(s.text) && digits <= 14; end++ {
		b := s.text[end]
		if isDigit(b) {
			digits++
			continue
		}
		joins := isDigit(s.byteAt(end+1)) && (b == '-' || b == ' ' && isDigit(s.byteAt(end-1)))
		if !joins && (!isLetter(b) || s.wordEnd(end)-end > 2) {
			break
		}
	}
	if letters-i > 3 || digits < 3 || digits > 14 || s.wordAfter(end) || s.tornAfter(i, end) ||
		!s.cued(i, cueWidth, licenseCues) {
		return 0
	}
	return s.add(DriverLicense, i, end, scoreCue)
}

// licenseDigits reads a driver licence without letters: 7 to 12 digits, and the word directly
// before.
func (s *scanner) licenseDigits(i, first int) int {
	var buf [13]byte
	if first-i < 2 {
		return 0
	}
	n, _, end := s.grouped(i, buf[:])
	if n < 7 || n > 12 || s.wordAfter(end) || !s.cuedBy(i, beforeLicense) || s.torn(i, end) {
		return 0
	}
	return s.add(DriverLicense, i, end, scoreCue)
}

// zipCues name a postal code in the languages that the patterns are made for.
//
//nolint:gochecknoglobals // constant table
var zipCues = cues{
	"zip", "zipcode", "postcode", "postal", "post", "pincode", "pin", "plz", "postleitzahl",
	"code postal", "cp", "código postal", "codigo postal", "cep", "cap",
	"postnummer", "postnr", "kod pocztowy", "posta kodu", "индекс", "почтовый индекс", "邮编", "邮政编码",
	"郵便番号", "〒", "우편번호", "zip/postal", "eircode",
}

// zip reads a postal code that begins with a digit: behind a word that names it, or a US one behind
// a state.
func (s *scanner) zip(i, first int) int {
	if n := first - i; n < 3 || n > 7 {
		return 0
	}
	if end := s.zipCode(i); end > 0 {
		return end
	}
	if first-i != 5 || s.wordAfter(first) || !s.stateBefore(i) {
		return 0
	}
	end := first
	if s.byteAt(end) == '-' && s.groupEnd(end+1) == end+5 { // ZIP+4
		end += 5
	}
	if s.tornAfter(i, end) {
		return 0
	}
	return s.add(ZipCode, i, end, scoreCue)
}

// zipCode reads a postal code at i behind a word that names it: 3 to 8 letters and digits, in one
// or two groups, of which at least two are digits (Universal Postal Union, addressing systems by
// country).
func (s *scanner) zipCode(i int) int {
	if s.byteAt(i-1) == '#' || !s.cuedBy(i, beforeZip) {
		return 0
	}
	for _, gaps := range [...]int{1, 0} {
		if end := s.zipEnd(i, gaps); end > 0 && !s.torn(i, end) {
			return s.add(ZipCode, i, end, scoreCue)
		}
	}
	return 0
}

// zipEnd returns the end of what could be a postal code at i with at most so many gaps, or 0.
func (s *scanner) zipEnd(i, gaps int) int {
	end, n, digits := i, 0, 0
	for end < len(s.text) && n <= 10 {
		b := s.text[end]
		switch {
		case isDigit(b):
			digits++
			n++
		case isLetter(b):
			n++
		case (b == ' ' || b == '-') && gaps > 0 && n >= 2 && s.innerGroup(end+1):
			gaps--
		default:
			b = 0
		}
		if b == 0 {
			break
		}
		end++
	}
	if n < 3 || n > 9 || digits < 2 || s.wordAfter(end) {
		return 0
	}
	return end
}

// innerGroup reports whether the word at i could be the second group of a postal code: 3 or 4
// letters and digits with a digit among them.
func (s *scanner) innerGroup(i int) bool {
	end, digits := i, 0
	for end < len(s.text) && end-i <= 4 && isAlnum(s.text[end]) {
		if isDigit(s.text[end]) {
			digits++
		}
		end++
	}
	return digits > 0 && end-i >= 3 && end-i <= 4
}

// stateBefore reports whether a US state stands directly before i: as its two letters behind a
// comma, or by its name.
func (s *scanner) stateBefore(i int) bool {
	end := i
	for end > 0 && s.text[end-1] == ' ' {
		end--
	}
	start := s.wordStart(end)
	word := s.text[start:end]
	if end == i || word == "" {
		return false
	}
	if len(word) == 2 {
		k := start
		for k > 0 && s.text[k-1] == ' ' {
			k--
		}
		return stateCodes[word] && k > 0 && s.text[k-1] == ','
	}
	if !utf8.ValidString(word) {
		return false
	}
	e, ok := gazetteer.words[word]
	if !ok && start > 0 {
		two := s.wordStart(start - 1)
		e, ok = gazetteer.words[s.text[two:end]]
	}
	return ok && e&entryState != 0
}
