package pii

import (
	"strings"
	"unicode/utf8"
)

// Numbers that states assign to citizens and taxpayers. A row of the table describes the layout of
// a number, its check and the words that name it.

// identity is one kind of national number.
type identity struct {
	// layouts are its notations, separated by spaces: 9 is a digit, A a letter, X either, _ a
	// space, and any other character itself. A prefix ! means that a number with this layout and a
	// valid check cannot be anything else, ~ that it cannot be anything else in a sentence. Other
	// layouts require a word that names the number.
	layouts string
	words   string // that name it, between commas
	check   func(number string) bool
}

//nolint:gochecknoglobals // constant table
var identities = []identity{
	// America.
	{"!999.999.999-99 99999999999", "cpf", rests("A98765432", "BA98765432")},
	{
		"!99.999.999/9999-99 !99.XXX.XXX/XXXX-99 99999999999999", "cnpj",
		rests("543298765432", "6543298765432"),
	},
	{"!99-99999999-9 99999999999", "cuit,cuil", lookedUp("5432765432", "09987654321")},
	{"!99.999.999-X !9.999.999-X 99999999-X 9999999-X", "rut", chilean},
	{"!AAAA999999AAAAAAX9", "curp", both(bornAt(4, "ymd"), mexican)},
	{"AAAA999999XXX", "rfc", bornAt(4, "ymd")},
	{"99999999 99.999.999 9.999.999", "dni", uncontrolled},
	{
		"9999999999 999999999 99999999 9.999.999.999 99.999.999", "cédula,cedula,c.c.", uncontrolled,
	},
	{"999-999-999 999_999_999 999999999", "social insurance,sin number,sin no", luhn},
	{"999-99-9999", "itin,taxpayer identification", func(s string) bool { return s[0] == '9' }},

	// Europe.
	{
		"~99999999A ~99999999-A ~99.999.999-A ~99.999.999A", "dni,nif,d.n.i",
		letter("TRWAGMYFPDXBNJZSQVHLCKE"),
	},
	{"~A9999999A ~A-9999999-A ~A9999999-A", "nie,nif,n.i.e", func(s string) bool {
		k := strings.IndexByte("XYZ", s[0])
		return k >= 0 && letter("TRWAGMYFPDXBNJZSQVHLCKE")(string("012"[k])+s[1:])
	}},
	{"!AAAAAA99A99A999A", "codice fiscale,c.f.", italian},
	{"99999999999", "partita iva,p.iva,p. iva", luhn},
	{
		"!999999999999999 !9_99_99_99_999_999_99 !9999999999999_99 !999999A99999999 " +
			"!9_99_99_9A_999_999_99", "sécurité sociale,nir,insee", french,
	},
	{"9999999999999 99_99_999_999_999", "numéro fiscal,n° fiscal,référence fiscale,spi", func(s string) bool {
		return remainder(s[:10], 511) == toInt(s[10:])
	}},
	{
		"99999999999 99_999_999_999",
		"steuer-id,steuerid,idnr,steueridentifikationsnummer,identifikationsnummer,tin", german,
	},
	{
		"99999999A999 99_999999_A_999",
		"sozialversicherungsnummer,rentenversicherungsnummer,versicherungsnummer,sv-nummer,rvnr",
		pension,
	},
	{"9999_999999 9999999999", "sozialversicherungsnummer,svnr,sv-nummer", func(s string) bool {
		return weighed(s, "3790584216")%11 == int(s[3]-'0')
	}},
	{"!999.9999.9999.99 9999999999999", "ahv,avs", func(s string) bool {
		return s[:3] == "756" && sums("1313131313131", 10)(s)
	}},
	{"99999999999", "pesel", both(bornAt(0, "ymd", 20, 40, 60, 80), checked("1379137913", 10))},
	{"9999999999 999-999-99-99 999-99-99-999", "nip", equals("657234567")},
	{"AAA999999 AAA_999999", "dowód,dowodu,dowod", func(s string) bool {
		return (value36(s[0])*7+value36(s[1])*3+value36(s[2])+weighed(s[3:], "973173"))%10 == 0
	}},
	{"99999999999", "kimlik,tckn,tc no,t.c.,tc", turkish},
	{"9999999999", "vergi,vkn", turkishTax},
	{"999999999 999_999_999", "nif,contribuinte,nipc", rests("98765432")},
	{"999999999", "bsn,burgerservicenummer,sofinummer", func(s string) bool {
		return (weighed(s, "98765432")-int(s[8]-'0'))%11 == 0
	}},
	{"!99.99.99-999.99 99999999999", "rijksregister,rijksregisternummer,registre national", belgian},
	{"~AA_99_99_99_A AA999999A", "national insurance,nino,ni number,ni no", func(s string) bool {
		return s[8] <= 'D'
	}},
	{"999_999_9999 9999999999", "nhs", rests("A98765432")},
	{"9999999A 9999999AA", "pps,ppsn", irish},
	{
		"999999-9999 999999+9999 9999999999", "personnummer,personnr,samordningsnummer",
		both(bornAt(0, "ymd", 60), luhn),
	},
	{"99999999-9999 999999999999", "personnummer,personnr,samordningsnummer", func(s string) bool {
		return both(bornAt(0, "ymd", 60), luhn)(s[2:])
	}},
	{
		"99999999999 999999_99999", "fødselsnummer,fødselsnr,personnummer",
		both(bornAt(0, "dmy", 40), rests("376189452", "5432765432")),
	},
	{"999999-9999 9999999999", "cpr,cpr-nr", bornAt(0, "dmy")},
	{"!999999-999X !999999+999X !999999A999X", "henkilötunnus,hetu", func(s string) bool {
		const letters = "0123456789ABCDEFHJKLMNPRSTUVWXY"
		serial, last := s[6:], s[len(s)-1]
		serial = strings.TrimLeft(serial[:len(serial)-1], "ABCDEFYXWVU")
		return bornAt(0, "dmy")(s) && letters[remainder(s[:6]+serial, 31)] == last
	}},
	{
		"999999/9999 9999999999", "rodné číslo,rodne cislo,rodného čísla",
		both(bornAt(0, "ymd", 50, 20, 70), func(s string) bool {
			return remainder(s[:9], 11)%10 == int(s[9]-'0')
		}),
	},
	{"9999999999999", "cnp", both(bornAt(1, "ymd"), lookedUp("279146358279", "01234567891"))},
	{"9999999999", "егн,ЕГН", both(bornAt(0, "ymd", 20, 40), equals("2485A9736"))},
	{"99999999999", "oib", hybrid},
	{"999999999", "αφμ,ΑΦΜ,α.φ.μ", equals("379A5842")},
	{"99999999999", "αμκα,ΑΜΚΑ", both(bornAt(0, "dmy"), luhn)},
	{
		"99999999999", "isikukood,asmens kodas",
		both(bornAt(1, "ymd"), twice("1234567891", "3456789123")),
	},
	{
		"999999999999", "инн,ИНН", both(equals("724A359468"), equals("3724A359468")),
	},
	{"!999-999-999_99 99999999999 999-999-999-99", "снилс,СНИЛС", russian},
	{"99_99_999999 9999_999999", "паспорт,Паспорт,паспорта,серия,Серия", uncontrolled},
	{"9999999999", "іпн,ІПН,рнокпп,РНОКПП", uncontrolled},
	{
		"999999999999", "иин,ИИН,жсн,ЖСН",
		both(bornAt(0, "ymd"), twice("123456789AB", "3456789AB12")),
	},

	// Asia, Africa and Oceania.
	{"!99999999999999999X !999999999999999999", "身份证,身份證,证件", both(bornIn(6), chinese)},
	{"!999999-9999999", "주민", both(bornAt(0, "ymd"), elevens("234567892345"))},
	{
		"999999-9999999 9999999999999", "주민,외국인등록,resident registration",
		both(bornAt(0, "ymd"), func(s string) bool { return s[6] != '9' }),
	},
	{"999999999999 9999_9999_9999 9999-9999-9999", "マイナンバー,個人番号,my number", rests("65432765432")},
	{
		"999999999999 9999_9999_9999 9999-9999-9999", "aadhaar,aadhar,adhaar,uidai,आधार",
		func(s string) bool { return s[0] > '1' && verhoeff(s) },
	},
	{"AAAAA9999A", "pan,पैन,permanent account", func(s string) bool {
		return strings.IndexByte("ABCFGHJLPT", s[3]) >= 0
	}},
	{"~AAAAA9999A", "pan", func(s string) bool { return s[3] == 'P' }},
	{"!9-9999-99999-99-9 9999999999999", "ประชาชน,เลขบัตร", elevens("DCBA98765432")},
	{"~A9999999A", "nric,fin no", singaporean},
	{"!A999999(X) !AA999999(X)", "hkid,身份證", hongkong},
	{"A999999999", "身分證,身份證,身分证", taiwanese},
	{"999999-99-9999 999999999999", "mykad,kad pengenalan,no. ic,ic no", bornAt(0, "ymd")},
	{"9999999999999999", "nik,ktp", bornAt(6, "dmy", 40)},
	{"999999999999", "cccd,căn cước,cmnd", uncontrolled},
	{"9999999999", "الهوية,هويتي,الإقامة,iqama", func(s string) bool { return s[0] <= '2' && luhn(s) }},
	{"!999-9999-9999999-9 999999999999999", "الهوية,emirates", func(s string) bool {
		return s[:3] == "784" && luhn(s)
	}},
	{"99999999999999", "القومي", func(s string) bool {
		return (s[0] == '2' || s[0] == '3') && bornAt(1, "ymd")(s)
	}},
	{"999999999", "ת.ז,תעודת זהות,תז", luhn},
	{"9999999999999", "id number,identity number,sa id", both(bornAt(0, "ymd"), luhn)},
	{"999999999 999_999_999", "tfn,tax file", sums("14375869A", 11)},
	{
		"AA999999 A9999999 AA9999999 999999999 A99999999 99AA99999",
		"passport,reisepass,passeport,pasaporte,passaporto,passaporte,paszport,护照,護照,パスポート,旅券," +
			"여권,جواز", uncontrolled,
	},
}

// form is one way to write a number of the table.
type form struct {
	*identity
	layout string
	next   byte // what stands behind its first letters or digits, 0 for a letter or for the end
	alone  byte // ! or ~ as in layouts: a match needs no word that names it; 0 otherwise
	words  cues
}

// longestFront is how many letters a number begins with at most.
const longestFront = 6

// forms are all ways to write a number, by how many letters, or digits, it begins with.
//
//nolint:gochecknoglobals // constant tables
var formsOfDigits, formsOfLetters = func() (digits [maxCard][]form, letters [longestFront + 1][]form) {
	for i := range identities {
		id := &identities[i]
		words := cues(strings.Split(id.words, ","))
		for layout := range strings.FieldsSeq(id.layouts) {
			f := form{identity: id, layout: strings.TrimLeft(layout, "!~"), words: words}
			if f.layout != layout {
				f.alone = layout[0]
			}
			front := len(f.layout) - len(strings.TrimLeft(f.layout, f.layout[:1]))
			if front < len(f.layout) && strings.IndexByte("AX9", f.layout[front]) < 0 {
				f.next = strings.ReplaceAll(f.layout, "_", " ")[front]
			}
			if f.layout[0] == '9' {
				digits[front] = append(digits[front], f)
			} else {
				letters[front] = append(letters[front], f)
			}
		}
	}
	return digits, letters
}()

// lettersBefore returns where the letters begin that stand before the digit at i and begin a word.
func (s *scanner) lettersBefore(i int) int {
	start := i
	for start > 0 && i-start <= longestFront && isLetter(s.text[start-1]) {
		start--
	}
	if b := s.byteAt(i - 1); start == i && (b == '-' || b == ' ') { // X-1234567-L, QQ 12 34 56 C
		start--
		for start > 0 && i-start <= 3 && isLetter(s.text[start-1]) {
			start--
		}
	}
	if i-start > longestFront || s.wordBefore(start) || !isLetter(s.text[start]) {
		return i
	}
	return start
}

// national reads the number of a citizen or a taxpayer that begins at i, with front letters or digits.
func (s *scanner) national(i, front int) int {
	table := formsOfDigits[:]
	if isLetter(s.text[i]) {
		table = formsOfLetters[:]
	}
	if front >= len(table) {
		return 0
	}
	suspected := 0
	var buf [2 * maxCard]byte
	for k := range table[front] {
		f := &table[front][k]
		if f.next != 0 && s.byteAt(i+front) != f.next {
			continue
		}
		number, end := s.laidOutAs(f.layout, i, buf[:0])
		if end == 0 || uniformDigits(number) || s.torn(i, end) {
			continue
		}
		words := s.wordsAround(i)
		if !words && f.alone == 0 {
			continue
		}
		switch right := f.check(number); {
		case right && (f.alone != 0 && s.standsOut(f, i, end) || words && s.namedBy(f, i, end)):
			return s.add(NationalID, i, end, scoreChecksum)
		case !right && words && suspected == 0 && len(number) >= minIdentity && s.cued(i, cueWidth/2, f.words):
			suspected = end
		}
	}
	if suspected > 0 && !s.lines.at(i) && !s.goods(i, suspected) {
		return s.add(NationalID, i, suspected, scoreSuspected)
	}
	return 0
}

// wordsAround reports whether letters stand near what begins at i, so that a word may name it.
func (s *scanner) wordsAround(i int) bool {
	around := s.text[max(0, i-cueWidth):min(len(s.text), i+2*cueWidth)]
	for k := range len(around) {
		if b := around[k]; isLetter(b) || b >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// minIdentity is how many characters a number has at least that a word names and that fails its
// check.
const minIdentity = 9

// laidOutAs reads a number at i in a layout. It returns its digits and capitals, in buf, and its end,
// or 0.
func (s *scanner) laidOutAs(layout string, i int, buf []byte) (number string, end int) {
	if i+len(layout) > len(s.text) {
		return "", 0
	}
	for k := range len(layout) {
		b := s.text[i+k]
		var ok bool
		switch layout[k] {
		case '9':
			ok = isDigit(b)
		case 'A':
			ok = isLetter(b)
		case 'X':
			ok = isAlnum(b)
		case '_':
			ok = b == ' '
		default:
			ok = b == layout[k]
		}
		if !ok {
			return "", 0
		}
		if isLetter(b) {
			b &^= 0x20
		}
		if isAlnum(b) {
			buf = append(buf, b)
		}
	}
	if end = i + len(layout); s.text[end-1] != ')' && s.wordAfter(end) {
		return "", 0
	}
	return string(buf), end
}

// namedBy reports whether a word for the number in [i, end) stands before it, or a little behind.
func (s *scanner) namedBy(f *form, i, end int) bool {
	if s.cued(i, cueWidth, f.words) {
		return true
	}
	const more = cueWidth / 2 // for scripts of three bytes a letter
	if from := i - more; from > 0 && s.text[from] >= utf8.RuneSelf && !strings.ContainsAny(s.text[from:i], "\n?!;") &&
		s.cued(from, cueWidth, f.words) {
		return true
	}
	const behind = cueWidth * 2 / 3
	to := min(len(s.text), end+behind)
	after := scanner{text: s.text[:to]}
	return after.cued(to, to-end, f.words)
}

// standsOut reports whether a number without a word for it is one: its letters are capitals, it is no
// part of a longer word with hyphens or slashes, and nothing names it as that of goods.
func (s *scanner) standsOut(f *form, i, end int) bool {
	if strings.IndexByte("-/.+$#", s.byteAt(i-1)) >= 0 && i > 0 ||
		strings.IndexByte("-/", s.byteAt(end)) >= 0 && isAlnum(s.byteAt(end+1)) {
		return false
	}
	if f.alone == '!' {
		return true
	}
	value := s.text[i:end]
	return value == strings.ToUpper(value) && !s.lines.at(i) && !s.goods(i, end)
}
