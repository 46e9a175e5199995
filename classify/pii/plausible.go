package pii

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token model decides by the appearance of words, and in code and logs much looks like a name or
// number of a person. plausible reports whether a span of the model has the form of its type, and
// in machine text also a sign that it refers to a person: a key that announces it, or a full name.
func (r *reader) plausible(p *Span) bool {
	value := r.text[p.Start:p.End]
	if !formed(p.Type, value) {
		return false
	}
	s := scanner{text: r.text}
	machine, logged := r.lines.at(p.Start), r.lines.logged(p.Start)
	if p.Type == PhoneNumber {
		return !s.namedOther(p) && (s.dialled(p) || trunk(p, value)) && !s.inStamp(p.Start, p.End) &&
			(!machine || s.phoneAt(p.Start, p.End))
	}
	machine = machine || logged
	switch p.Type {
	case Person, Organization, Place:
		return s.plausibleName(p, value) && s.nameInContext(p, machine)
	case Group, Title:
		return s.nameInContext(p, machine)
	case StreetAddress:
		return !designation(value) && !germanNoun(value) && !noAddress(value) &&
			(!machine || s.keyed(p.Start, p.Type) || endsInStreet(value))
	case DateTime:
		return !s.inStamp(p.Start, p.End) && !s.glued(p) && !s.endsKey(p.End) &&
			(!machine || s.keyed(p.Start, p.Type) || logged && s.cued(p.Start, cueWidth, dateCues))
	case ZipCode, DriverLicense, SSN:
		return !s.cuedBy(p.Start, beforeOther) && !s.glued(p) &&
			(!machine || s.keyed(p.Start, p.Type))
	case Age:
		return (!machine || s.keyed(p.Start, p.Type)) && !s.noAge(p.Start, p.End)
	}
	return true
}

// plausibleName reports whether a value is neither a common word nor only a title.
func (s *scanner) plausibleName(p *Span, value string) bool {
	_, title := letterTitles[value]
	title = title || p.Type != Person && gazetteer.words[value]&^entryPrefix == entryTitle
	return !title && (!common(p, value) || s.keyed(p.Start, p.Type)) && !s.plain(p, value)
}

// designation reports an ASCII word that ends in digits and is not a street: i386, cp1252.
func designation(value string) bool {
	name := strings.TrimRight(value, "0123456789")
	return len(name) > 0 && len(name) < len(value) && strings.IndexFunc(name, func(r rune) bool {
		return r >= utf8.RuneSelf || !isLetter(byte(r))
	}) < 0 && !streetLike(name)
}

// germanNoun reports a German noun, or "geb.", followed by a number, which is not a street:
// Kundennummer 12345.
func germanNoun(value string) bool {
	word, rest := nextToken(value)
	_, noun := commons["german"][strings.TrimRight(word, ":.")]
	return (noun || word == "geb.") && strings.Trim(rest, " 0123456789.abcdef") == "" && !hasStreet(value)
}

// glued reports whether a date or a code is only a part of a word with hyphens or slashes: of a
// model name, a fraction, a color.
func (s *scanner) glued(p *Span) bool {
	before, after := s.byteAt(p.Start-1), s.byteAt(p.End)
	if before == '#' && p.Type == ZipCode ||
		strings.IndexByte("-/_", before) >= 0 && isAlnum(s.byteAt(p.Start-2)) {
		return true
	}
	bare := strings.Trim(s.text[p.Start:p.End], "0123456789") == ""
	return after == '-' && isLetter(s.byteAt(p.End+1)) && p.Type != DateTime ||
		bare && after == '/' && isAlnum(s.byteAt(p.End+1))
}

// endsKey reports whether a key in JSON ends at i.
func (s *scanner) endsKey(i int) bool { return strings.HasPrefix(s.text[i:], "\":") }

// inStamp reports whether [start, end) contains a part of a machine's time stamp: one at the start
// of its line, or one with fractions of a second, which people do not write.
func (s *scanner) inStamp(start, end int) bool {
	from := max(0, start-stampReach)
	newline := strings.LastIndexByte(s.text[from:start], '\n')
	if newline >= 0 || from == 0 {
		line := s.text[from+newline+1 : min(len(s.text), start+stampReach)]
		to := from + newline + 1 + len(line)
		line = strings.TrimLeft(line, " \t+-#")
		for _, key := range [...]string{"Date:", "Time:"} {
			line = strings.TrimLeft(strings.TrimPrefix(line, key), " \t")
		}
		if n := stampLen(line); n > 0 {
			behind := start - (to - len(line) + n) // a time zone may be there
			zone := behind < len(" +0000") && strings.Trim(s.text[start:end], "+-:0123456789") == ""
			if behind < 0 || zone {
				return true
			}
		}
	}
	for k := max(from+newline+1, start-len("25 September 2024 05:32:35.0")); k < end; k++ {
		if k > 0 && isAlnum(s.text[k-1]) {
			continue
		}
		if n := s.stamp(k); n > start && s.fraction(k, n) {
			return true
		}
	}
	return false
}

// stampReach is the number of bytes before a date within which its line must begin, and the number
// read after it.
const stampReach = 80

// formed reports whether a value can be of its type at all, by its characters.
func formed(kind, value string) bool {
	letters, digits, words := census(value)
	switch kind {
	case PhoneNumber:
		return !strings.Contains(value, "  ") && digits >= minPhone && digits <= maxPhone+maxExtension && !quantity(value)
	case Age:
		return digits > 0 && digits <= 3 && letters == 0 ||
			digits == 0 && letters > 0 && !ageWords.has(value)
	case ZipCode, DriverLicense:
		return digits >= 2 && !strings.ContainsAny(value, "#:_=")
	case SSN:
		return digits == 9
	case StreetAddress:
		return letters > 0 &&
			(digits > 0 || words > 1 || hasStreet(value) ||
				strings.ContainsAny(value, wideStreets)) &&
			!strings.ContainsAny(value, "_=:{}<>@")
	case DateTime:
		return letters+digits > 1
	case Person, Organization, Place, Group:
		return letters > 1 || letters == 1 && !isLetter(value[0])
	case Title:
		return letters > 1 && digits == 0
	}
	return true
}

// ageWords speak of ages and are none.
//
//nolint:gochecknoglobals // constant table
var ageWords = newWordIndex("age ages aged old older year years")

// wideStreets occur in addresses of scripts without spaces: street, lane, number, and the divisions
// of a country.
const wideStreets = "路街巷弄道号號区區市省县縣镇鎮乡鄉村町丁目番地條条府都동로길구시읍면리"

// quantity reports a decimal or a machine address.
func quantity(value string) bool {
	if _, err := netip.ParseAddr(value); err == nil {
		return true
	}
	return decimals(value)
}

// decimals reports numbers with decimal points separated by spaces: an amount, coordinates.
func decimals(value string) bool {
	for part := range strings.FieldsSeq(value) {
		if strings.Count(part, ".") != 1 || strings.Trim(part, "0123456789.-") != "" {
			return false
		}
	}
	return value != ""
}

// maxExtension is the maximum number of digits that an extension adds to a telephone number.
const maxExtension = 7

// census counts the letters, the digits and the words separated by spaces.
func census(value string) (letters, digits, words int) {
	words = 1
	for _, c := range value {
		switch {
		case unicode.IsDigit(c):
			digits++
		case unicode.IsLetter(c):
			letters++
		case c == ' ':
			words++
		}
	}
	return letters, digits, words
}

// dialled reports whether a span of the model is written like a telephone number: groups that are
// not a decimal, date or range, or a +; or one piece with a word about telephones nearby.
func (s *scanner) dialled(p *Span) bool {
	from, to, value := p.Start, p.End, s.text[p.Start:p.End]
	b := s.byteAt(from - 1)
	if isAlnum(b) || b == '_' || b == '#' || b == '$' || b == '/' ||
		b == '.' || b == '=' && !s.keyed(from, PhoneNumber) || s.called(from) || s.called(from-1) {
		return false
	}
	if b == '-' && isLetter(s.byteAt(from-2)) && !s.cued(from, cueWidth, phoneCues) { // visitor-10-20-30-40
		return false
	}
	if b := s.byteAt(to); isAlnum(b) || b == '_' || b == '/' || b == '%' || b == '@' ||
		(b == '.' || b == ':') && isDigit(s.byteAt(to+1)) {
		return false
	}
	groups, longest := groupsOf(value)
	if groups == 0 {
		return false
	}
	plus := value[0] == '+' || s.byteAt(from-1) == '+'
	if plus || groups > 1 && longest < 2*minPhone-1 && !s.numericDateAt(value) &&
		!unlikelyPhone(value) && !rangeLike(value) && (p.Score >= sureName || !madeUp(value)) {
		return true
	}
	return s.cued(from, cueWidth, phoneCues) || s.cuedAfter(to)
}

// namedOther reports whether a span of the model has the layout of a card number, or is a number of
// goods or a measurement.
func (s *scanner) namedOther(p *Span) bool {
	return cardLike(s.text[p.Start:p.End]) || s.cuedBy(p.Start, beforeOther) ||
		s.goods(p.Start, p.End) || s.quantity(p.Start, p.End)
}

// sizesOf returns the sizes of the groups of digits of value, as far as they fit into buf.
func sizesOf(value string, buf *[maxSizes]int) []int {
	n := 0
	for i := range len(value) {
		if !isDigit(value[i]) {
			continue
		}
		if i == 0 || !isDigit(value[i-1]) {
			if n++; n > len(buf) {
				return buf[:]
			}
		}
		buf[n-1]++
	}
	return buf[:n]
}

// maxSizes is the maximum number of groups counted in a number.
const maxSizes = 12

// cardLike reports whether value has the layout of a card number.
func cardLike(value string) bool {
	var buf [maxSizes]int
	return cardSizes(sizesOf(value, &buf))
}

// unlikelyPhone reports numbers that are not telephone numbers unless a word says so: decimals,
// years, consecutive numbers, three or more repetitions of one digit, and the North American layout
// with an impossible area code.
func unlikelyPhone(value string) bool {
	var buf [maxSizes]int
	if decimals(value) || countsOn(value) {
		return true
	}
	digit := strings.IndexAny(value, "0123456789")
	sizes := sizesOf(value, &buf)
	singles := 0
	for _, n := range sizes {
		if n == 1 {
			singles++
		}
	}
	if singles > 2 {
		return true
	}
	if len(sizes) == 4 && sizes[0] == 1 && value[digit] == '1' {
		digit += 1 + strings.IndexAny(value[digit+1:], "0123456789")
		sizes = sizes[1:]
	}
	// Elsewhere 0 is a trunk prefix, and only area codes are put in parentheses.
	return threeThreeFour(sizes) && value[digit] == '1' && value[0] != '('
}

// madeUp reports the North American layout with an impossible exchange, and no parentheses around
// the area code.
func madeUp(value string) bool {
	var buf [maxSizes]int
	return threeThreeFour(sizesOf(value, &buf)) && isDigit(value[4]) && value[4] < '2'
}

// countsOn reports years, or consecutive numbers.
func countsOn(value string) bool {
	numbers := numbersOf(value)
	years, by1 := true, true
	for i, n := range numbers {
		years = years && len(n) == 4 && validYear(n)
		by1 = by1 && (i == 0 || toInt(n) == toInt(numbers[i-1])+1)
	}
	return len(numbers) > 1 && (years || by1)
}

// rangeLike reports two numbers with a dash between, the first less than the second, that are not a
// local number (3-4) and do not begin with the trunk prefix 0; and numbers that end in a group of
// one digit.
func rangeLike(value string) bool {
	numbers := numbersOf(value)
	last := len(numbers) - 1
	if last > 0 && len(numbers[last]) == 1 {
		return true
	}
	if last != 1 || !strings.Contains(value, "-") || value[0] == '0' || value[0] == '(' {
		return false
	}
	a, b := numbers[0], numbers[1]
	local := len(a) == 3 && len(b) == 4
	return !local && b[0] != '0' && (len(a) < len(b) || len(a) == len(b) && a < b)
}

// numbersOf returns the groups of digits of value that are short enough for arithmetic.
func numbersOf(value string) []string {
	numbers := strings.FieldsFunc(value, func(r rune) bool { return r < '0' || r > '9' })
	return slices.DeleteFunc(numbers, func(n string) bool { return len(n) > maxPhone })
}

// trunk reports a number in one piece that begins with a trunk prefix and has a high probability of
// the model.
func trunk(p *Span, value string) bool {
	// digits including the prefix: national numbers of the larger countries
	const least, most = 10, 13
	for i := range len(value) {
		if !isDigit(value[i]) {
			return false
		}
	}
	return value[0] == '0' && len(value) >= least && len(value) <= most && p.Score >= sureName
}

// groupsOf counts the groups of digits of a telephone number and the digits of the longest; it
// returns no groups if there are characters between them that telephone numbers do not have.
func groupsOf(value string) (groups, longest int) {
	n := 0
	for i := range len(value) {
		switch b := value[i]; {
		case isDigit(b):
			if n++; n == 1 {
				groups++
			}
			longest = max(longest, n)
			continue
		case strings.IndexByte(" -.()+/", b) < 0 && b < utf8.RuneSelf &&
			strings.IndexByte("xXextEXT,nsio", b) < 0:
			return 0, 0
		}
		n = 0
	}
	return groups, longest
}

// numericDateAt reports whether a value is a numeric date, which may look like a telephone number.
func (*scanner) numericDateAt(value string) bool {
	s := scanner{text: value}
	return s.numericDate(0, s.digitsEnd(0)) > 0
}

// cuedAfter reports whether the words after i say that a telephone number ended there.
func (s *scanner) cuedAfter(i int) bool {
	behind := fold(s.text[i:min(len(s.text), i+cueWidth)])
	return slices.ContainsFunc([]string{
		"my number", "my phone", "my cell", "my mobile", "his number",
		"her number", "phone number", "to call", "call me", "text me", "whatsapp",
	}, func(w string) bool { return strings.Contains(behind, w) })
}

// phoneAt reports whether a telephone number at [from, to) is plausible in machine text: with its
// country code, or after a word for it.
func (s *scanner) phoneAt(from, to int) bool {
	if s.keyed(from, PhoneNumber) || s.cued(from, cueWidth, phoneCues) {
		return true
	}
	var p shape
	i := from
	for i < to && !isDigit(s.text[i]) {
		i++
	}
	return s.shapePhone(i, &p) && p.plus && p.n >= 10 && !s.startsLine(p.start)
}

// startsLine reports whether i begins its line, where + marks what a diff adds.
func (s *scanner) startsLine(i int) bool { return i == 0 || s.text[i-1] == '\n' }

// nameInContext judges a name. A word of code is none, and in a machine's line a name needs its
// key, or is a full one that the model is sure of.
//
//nolint:revive // machine says where the span is
func (s *scanner) nameInContext(p *Span, machine bool) bool {
	code := s.inCode(p, machine) || s.partOfWord(p)
	if !code && !machine || s.keyed(p.Start, p.Type) {
		return true
	}
	return !code && p.Type == Person && p.Score >= sureName && fullNameLike(s.text[p.Start:p.End])
}

// sureName is the probability from which a full name in a line of code is accepted. Set by hand:
// names of classes that consist of two words rarely reach it.
const sureName = 0.9

// fullNameLike reports two or three capitalised words, or initials, that consist of letters only.
func fullNameLike(value string) bool {
	n := 0
	for w := range strings.FieldsSeq(value) {
		first, size := utf8.DecodeRuneInString(w)
		if !unicode.IsUpper(first) {
			return false
		}
		for _, c := range w[size:] {
			if !inName(c) && (!unicode.IsUpper(c) || !particleOf(w)) {
				return false
			}
		}
		n++
	}
	return n >= 2 && n <= maxName+1
}

// inName reports whether names may have a character after their first.
func inName(c rune) bool {
	return unicode.IsLower(c) || c == '.' || c == '-' || c == '\'' || c == '’'
}

// particleOf reports whether a word may have a capital inside like a name.
func particleOf(w string) bool {
	for i := 1; i < len(w); i++ {
		if isUpper(w[i]) {
			return particle(w[:i]) || w[i-1] == '-' || w[i-1] == '\'' || w[i-1] >= utf8.RuneSelf
		}
	}
	return true
}

// inCode reports whether a span begins or ends in a word of code: a path, a call, an assignment, a
// name with underscores or in camelCase. Company names may be in camelCase as well.
func (s *scanner) inCode(p *Span, machine bool) bool { //nolint:revive // it says where the span is
	if machine && (s.byteAt(p.Start) == '@' ||
		s.byteAt(p.Start-1) == '@') { // a decorator, a package
		return true
	}
	for _, i := range [...]int{p.Start, p.End - 1} {
		a, b := s.tokenAt(i)
		token := s.text[a:b]
		switch {
		case strings.Contains(token, "://"):
			// findings inside it are independent of it
			if k := strings.Index(token, "://"); i > a+k {
				return true
			}
		case isMailLike(strings.Trim(token, "<>(),;")):
		case p.Type == Organization && !machine && namesCompany(token):
		case !machine && (isHandle(token) || strings.HasSuffix(s.text[:a], "@ ")):
		case marked(token, s.text[max(a, p.Start):min(b, p.End)]):
		case oddToken(token) || suffixed(token):
			return true
		}
	}
	return false
}

// partOfWord reports whether a span in lower case is only a part of a word with hyphens, slashes or
// an @.
func (s *scanner) partOfWord(p *Span) bool {
	value := s.text[p.Start:p.End]
	if value != fold(value) || p.Score >= sureName && p.Type != Title {
		return false
	}
	before, after := s.byteAt(p.Start-1), s.byteAt(p.End)
	return strings.IndexByte("-/@", before) >= 0 && isAlnum(s.byteAt(p.Start-2)) ||
		strings.IndexByte("-/@", after) >= 0 && isAlnum(s.byteAt(p.End+1))
}

// marked reports whether a token is a name surrounded by punctuation and mark-up.
func marked(token, name string) bool {
	return strings.Trim(token, "*_`\"'()[].,;:!?<>“”‘’") == name && !named(name)
}

// namesCompany reports a word of letters only, in any case, with the punctuation of a sentence.
func namesCompany(token string) bool {
	token = strings.Trim(token, "\"'“”‘’(),;:.!?*")
	for i := range len(token) {
		if !isAlnum(token[i]) && token[i] < utf8.RuneSelf && token[i] != '&' && token[i] != '-' &&
			token[i] != '\'' {
			return false
		}
	}
	return true
}

// maxToken is the maximum distance over which a word between spaces is followed to each side.
const maxToken = 64

// tokenAt returns the word between spaces around i, at most maxToken to each side.
func (s *scanner) tokenAt(i int) (from, to int) {
	from, to = i, i
	for from > 0 && i-from < maxToken && s.text[from-1] > ' ' {
		from--
	}
	for to < len(s.text) && to-i < maxToken && s.text[to] > ' ' {
		to++
	}
	return from, to
}

// keyWidth is the maximum distance between a value and its key, in bytes.
const keyWidth = 32

// keyed reports whether a key, or a word with a colon, before i announces a value of a type:
// "name": , author=, Signed-off-by:.
func (s *scanner) keyed(i int, kind string) bool {
	from := max(0, i-keyWidth)
	if k := strings.LastIndexAny(s.text[from:i], "\n,;{&"); k >= 0 {
		from += k + 1
	}
	before := s.text[from:i]
	sep := strings.LastIndexAny(before, ":=")
	if sep < 0 {
		return false
	}
	key := fold(strings.Trim(before[:sep], " \t\"'-*`"))
	key = key[strings.LastIndexAny(key, " \t\"'.>[(?")+1:]
	return slices.ContainsFunc(keysOf[kind], func(w string) bool { return strings.HasSuffix(key, w) })
}

// keysOf are the ends of keys that announce a type.
//
//nolint:gochecknoglobals // constant table
var keysOf = map[string][]string{
	Person: strings.Fields(`full_name fullname first_name firstname last_name lastname surname given_name family_name
		author customer customer_name patient contact owner employee assignee reviewer signed-off-by
		co-authored-by reported-by reviewed-by acked-by user_name display_name displayname
		recipient sender holder cardholder nombre nom imie kunde`),
	Organization:  strings.Fields("company employer organization organisation org company_name firma empresa"),
	Place:         strings.Fields("city country state birthplace town hometown nationality"),
	Group:         strings.Fields("nationality religion ethnicity"),
	PhoneNumber:   strings.Fields("phone phone_number phonenumber tel telephone mobile cell fax msisdn whatsapp telefon"),
	StreetAddress: strings.Fields("address street street_address address1 address_line1 addr"),
	Age:           strings.Fields("age"),
	ZipCode:       strings.Fields("zip zipcode zip_code postcode postal_code postalcode plz"),
	DateTime:      strings.Fields("birthday birth_date birthdate date_of_birth dateofbirth dob born"),
	Title:         strings.Fields("salutation honorific"),
	DriverLicense: strings.Fields("license_number licence_number driver_license drivers_license driver_licence"),
	SSN:           strings.Fields("ssn social_security_number"),
}

// endsInStreet reports whether a value has a house number and a word for a street.
func endsInStreet(value string) bool {
	_, digits, words := census(value)
	if digits == 0 || words < 2 {
		return false
	}
	n := 0
	for w := range strings.FieldsSeq(value) {
		if _, ok := streetWords[fold(strings.Trim(w, ".,"))]; ok && n > 1 || !ok && streetLike(w) {
			return true // 2022 Square is a year and a company
		}
		n++
	}
	return false
}
