package pii

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// Addresses, account numbers and names in Chinese, Japanese and Korean text, found in sentences
// without a key.

// maxPlaceRun is the maximum number of characters of a Chinese or Japanese address before its
// number.
const maxPlaceRun = 24

// eastAddress reads a Chinese or Korean address whose number is [i, end): 海淀区中关村大街27号, 강남구 역삼동
// 737번지.
func (s *scanner) eastAddress(i, end int) int {
	if i < 2*len("路") || end-i > 5 || s.text[i-1] < utf8.RuneSelf && s.text[i-1] != ' ' {
		return 0
	}
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s.text[:i], " "))
	from := i
	switch {
	case strings.ContainsRune("路街道巷弄村同", r) && hasPrefix(s.text[end:], "号", "號", "弄"):
		from = s.hanStreet(i)
	case strings.ContainsRune("로길동리가", r):
		from = s.hangulStreet(i)
	}
	if from == i {
		return 0
	}
	return s.add(StreetAddress, from, s.houseEnd(end), scoreCue)
}

// hanStreet returns the start of the Chinese address before a house number at i: after the verb of
// its sentence, and containing the name of a town or a district. Otherwise it returns i.
func (s *scanner) hanStreet(i int) int {
	from, districts := i, 0
	for n := 0; n < maxPlaceRun && from > 0; n++ {
		r, size := utf8.DecodeLastRuneInString(s.text[:from])
		if !unicode.Is(unicode.Han, r) || strings.ContainsRune("到在于於至是为為址往寄住", r) {
			break
		}
		if strings.ContainsRune("省市区區县縣镇鎮州", r) {
			districts++
		}
		from -= size
	}
	if districts == 0 {
		return i
	}
	return from
}

// hangulStreet returns the start of the Korean address before a house number at i: words with the
// endings of names of provinces, towns and districts. Otherwise it returns i.
func (s *scanner) hangulStreet(i int) int {
	from, words := i, 0
	for end := i; words <= maxEntryWords+1; {
		word := len(strings.TrimRight(s.text[:end], " "))
		start := word
		for start > 0 && word-start < maxKey {
			r, size := utf8.DecodeLastRuneInString(s.text[:start])
			if !script.IsHangul(r) && !isDigit(s.byteAt(start-1)) {
				break
			}
			start -= size
		}
		last, _ := utf8.DecodeLastRuneInString(s.text[:word])
		if word-start < 2*len("구") || words > 0 && !strings.ContainsRune("시도군구읍면", last) {
			break
		}
		words++
		from, end = start, start
		if s.byteAt(start-1) != ' ' {
			break
		}
	}
	if words < 2 {
		return i
	}
	return from
}

// houseEnd returns the end of the rest of a house number whose first digits end at i: further
// digits, and the words for houses, floors and flats.
func (s *scanner) houseEnd(i int) int {
	for {
		rest := s.text[i:]
		unit := 0
		for _, u := range houseUnits {
			if strings.HasPrefix(rest, u) {
				unit = len(u)
				break
			}
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case unit > 0:
			i += unit
		case isDigit(s.byteAt(i)), isDigit(ascii(r)):
			i += size
		case strings.ContainsRune("-−‐ー－のノ", r) && digitAt(s.text[i+size:]):
			i += size
		default:
			return i
		}
	}
}

// digitAt reports whether text begins with an ASCII or full-width digit.
func digitAt(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r >= '0' && r <= '9' || isDigit(ascii(r))
}

// prefecture adds the Japanese address that begins with the name of a prefecture, [i, end):
// 東京都渋谷区道玄坂1-2-3.
func (s *scanner) prefecture(i, end int) {
	at := end
	for n := 0; ; n++ {
		r, size := utf8.DecodeRuneInString(s.text[at:])
		if digitAt(s.text[at:]) {
			break
		}
		if n == maxPlaceRun || !ideographic(r) || strings.ContainsRune("はがをでへ", r) {
			return
		}
		at += size
	}
	if at == end {
		return
	}
	_, size := utf8.DecodeRuneInString(s.text[at:])
	s.out = append(s.out, Span{
		Type: StreetAddress, Start: i, End: s.houseEnd(at + size), Score: scoreCue, Pattern: true,
	})
}

// account reads a bank account number whose first digits are [i, first), directly after a word for
// it. Banks have no common check digits.
func (s *scanner) account(i, first int) int {
	var buf [maxAccount + 1]byte
	n, _, end := s.grouped(i, buf[:])
	if n < minAccount || n > maxAccount || s.wordAfter(end) && s.byteAt(end) < utf8.RuneSelf || first-i > maxAccount {
		return 0
	}
	var window [cueWidth]byte
	front := bytes.TrimRight(s.before(i, cueWidth, &window), " \t:：=#*(（「は是为為은는이가")
	for _, word := range [...]string{" is", " ist", " nr.", " no."} {
		front = bytes.TrimRight(bytes.TrimSuffix(front, []byte(word)), " :")
	}
	mobile := n == 11 && buf[0] == '1' && buf[1] > '2'
	if behind, _ := utf8.DecodeLastRuneInString(s.text[:i]); n == len("20240101") && script.IsIdeograph(behind) &&
		isDay(s.text[i:end]) { // 账户20240101
		return 0
	}
	if endsWith(front, accountNames) || n >= longAccount && !mobile && endsWith(front, bankNames) {
		return s.add(IBAN, i, end, scoreCue)
	}
	return 0
}

// isDay reports whether eight digits are a year, a month and a day.
func isDay(digits string) bool {
	return len(digits) == len("20240101") && strings.Trim(digits, "0123456789") == "" && validYear(digits[:4]) &&
		validDay(digits[6:], digits[4:6])
}

func endsWith[T string | []byte](text T, endings []string) bool {
	return slices.ContainsFunc(endings, func(e string) bool {
		return len(text) >= len(e) && string(text[len(text)-len(e):]) == e
	})
}

// The number of digits of an account number, and of one after only the name of a bank.
const (
	minAccount  = 6
	longAccount = 11
	maxAccount  = 20
)

//nolint:gochecknoglobals // constant tables
var (
	accountNames = []string{
		"口座番号", "普通預金", "当座預金", "普通口座", "账号", "帐号", "帳號", "账户", "帳戶", "账户号码", "계좌번호", "계좌 번호",
		"bank account number", "bank account no", "bank account", "kontonummer", "konto-nr", "kontonr",
		"numéro de compte", "número de cuenta", "número da conta", "numero di conto", "numer konta",
		"numer rachunku", "rekeningnummer", "hesap numaram", "hesap numarası", "номер счета", "номер счёта", "расчетный счет",
	}
	bankNames = []string{"银行", "銀行", "은행"}
	// houseUnits are words after the parts of a house number.
	houseUnits = []string{
		"丁目", "番地", "番", "号", "號", "弄", "栋", "棟", "幢", "座", "单元", "室", "楼", "樓", "层", "階", "번지", "번길", "동", "호", "층",
	}
)

// behindName looks for the name before the word at i, or in it, and reports whether the word is one
// that names precede.
func (s *scanner) behindName(i int, h herald) bool {
	from := i
	switch h.how {
	case patronymic:
		s.patronym(i, i+len(h.word))
	case isPrefecture:
		s.prefecture(i, i+len(h.word))
	case titles, tells:
		from = s.family(i, h)
	case endsIt:
		from = s.nameBefore(i, h.word)
	case isField, isName, follows, hints, bare, isAddress:
		return false
	}
	if from < i {
		s.addName(from, strings.TrimRight(s.text[from:i], " "))
	}
	return true
}

// family returns the start of the name before the title at i, or before a word with which people
// introduce themselves; otherwise i.
func (s *scanner) family(i int, h herald) int {
	next, _ := utf8.DecodeRuneInString(s.text[i+len(h.word):])
	if r, _ := utf8.DecodeRuneInString(h.word); script.IsHangul(r) {
		return s.koreanFamily(i, h, next)
	}
	if unicode.IsLetter(next) && (h.word == "总" && !strings.ContainsRune("您好的说", next) ||
		h.how == tells && strings.HasSuffix(h.word, "です")) {
		return i
	}
	end := i
	if r, size := utf8.DecodeLastRuneInString(s.text[:end]); r == ' ' || r == '　' {
		end -= size
	}
	from := end
	for from > 0 && end-from < 6*len("王") {
		r, size := utf8.DecodeLastRuneInString(s.text[:from])
		if !isHan(r) {
			break
		}
		from -= size
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:from])
	if h.how == tells && from > 0 && unicode.IsLetter(before) && before != 'の' && before != 'た' {
		return i
	}
	return from + hanTitled(s.text[from:end], h.how, i-from)
}

// hanTitled returns the start of the name at the end of a run of Han, or none.
func hanTitled(name string, how announces, none int) int {
	n := utf8.RuneCountInString(name)
	_, whole := hanFamilies[name]
	long := hanFamily(name) > len("王") || whole && n > 1 // a Japanese family name
	switch {
	case !whole && endsIn(name, placeEnds):
	case long && n <= 5, how == titles && (whole || n == 3 && hanFamily(name) > 0):
		return 0
	case how == titles && n > 1 && n < 6: // 请孙老师
		last := len(name) - len("孙")
		before, _ := utf8.DecodeLastRuneInString(name[:last])
		if _, ok := hanFamilies[name[last:]]; ok && strings.ContainsRune("请給给找和与跟问的", before) {
			return last
		}
	}
	return none
}

// koreanFamily is family for Korean; next is the character after the word.
func (s *scanner) koreanFamily(i int, h herald, next rune) int {
	from := s.hangulBefore(i, h.word)
	name := strings.TrimRight(s.text[from:i], " ")
	last, _ := utf8.DecodeLastRuneInString(name)
	if from == i || strings.ContainsRune(notNames.hangulRoles, last) {
		return i
	}
	var ok bool
	switch {
	case h.word == "드림" || h.word == "올림": // signed
		ok = next == '\n' || next == utf8.RuneError
	case h.how == tells:
		ok = len(name) == i-from && s.introduced(from) && givenName(name)
	default:
		ok = givenName(name)
	}
	if !ok {
		return i
	}
	return from
}

// introduced reports whether the word before the name at i names a part of a company or of an
// office.
func (s *scanner) introduced(i int) bool {
	before := strings.TrimRight(s.text[:i], " ")
	return len(before) < i && endsWith(before, companyParts)
}

// givenName reports whether both syllables after a Korean family name are common in given names.
func givenName(name string) bool {
	for _, r := range name[len("김"):] {
		if !strings.ContainsRune(givenSyllables, r) {
			return false
		}
	}
	return true
}

// signature adds the Chinese or Japanese name at the end of a letter: alone on its line, followed
// only by contact details, and after a line that ends like a sentence or a closing.
func (s *scanner) signature() {
	end := len(strings.TrimRight(s.text, " \t\r\n　"))
	for range maxContacts {
		start := strings.LastIndexByte(s.text[:end], '\n') + 1
		if start == 0 || end-start > maxFieldValue {
			return
		}
		line := strings.TrimLeft(s.text[start:end], " 　")
		before := strings.TrimRight(s.text[:start], " \t\r\n　")
		if signed(line) && endsWith(before, closings) {
			s.addName(end-len(line), line)
			return
		}
		if !strings.ContainsAny(line, "@0123456789０１２３４５６７８９") {
			return
		}
		end = len(before)
	}
}

// signed reports whether a line consists of a Chinese or Japanese name.
func signed(line string) bool {
	name := strings.Replace(strings.Replace(line, "　", "", 1), " ", "", 1)
	n := utf8.RuneCountInString(name)
	family := hanFamily(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	if strings.IndexFunc(name, func(r rune) bool { return !isHan(r) }) >= 0 ||
		strings.ContainsRune(notNames.roles, last) || strings.ContainsRune("部司室局组組科处處所市县縣区區省州", last) {
		return false
	}
	return family == len("王") && n <= 3 || family > len("王") && n <= 5
}

// maxContacts is the maximum number of lines in a signature.
const maxContacts = 5

//nolint:gochecknoglobals // constant tables
var (
	closings     = strings.Fields("。 ！ ! . ， , ？ ? 此致 敬礼 敬禮 谢谢 謝謝 祝好 敬上 以上 敬具 お願いいたします お願いします")
	companyParts = strings.Fields("팀 부 과 실 센터 지점 본사 상담원 담당자 대표 기자 매니저 저는 나는 전자 은행 회사")
)

const (
	prefectures = "北海道,青森県,岩手県,宮城県,秋田県,山形県,福島県,茨城県,栃木県,群馬県,埼玉県,千葉県,東京都,神奈川県,新潟県,富山県,石川県,福井県," +
		"山梨県,長野県,岐阜県,静岡県,愛知県,三重県,滋賀県,京都府,大阪府,兵庫県,奈良県,和歌山県,鳥取県,島根県,岡山県,広島県,山口県,徳島県,香川県," +
		"愛媛県,高知県,福岡県,佐賀県,長崎県,熊本県,大分県,宮崎県,鹿児島県,沖縄県"
	givenSyllables = "민서준우현지영수진은경희정혜미선유나연주아윤하원빈호성재훈석철동상승태규환종용솔람슬별예채다세시이인율건도찬혁웅범식욱균근숙순옥란" +
		"화춘복덕만봉갑창길명무배병섭엽완익일임장중천청충택표필학형홍후구애라리린보비소신운자조초향"
)

// opensSentence reports whether a sentence begins at i.
func (s *scanner) opensSentence(i int) bool {
	before := strings.TrimRight(s.text[:i], " \n")
	return before == "" || strings.HasSuffix(before, ".")
}
