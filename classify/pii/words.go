package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// word examines the capital at i and returns where to continue, inside or after the word that
// begins there.
func (s *scanner) word(i int) int {
	if s.wordBefore(i) {
		return i + 1
	}
	if found := s.named(i); found > 0 {
		return found
	}
	if found := s.courtesy(i); found > 0 {
		return found
	}
	if found := s.employer(i); found > 0 {
		return found
	}
	end := i + 1
	for end < len(s.text) && (isLetter(s.text[end]) || s.text[end] >= utf8.RuneSelf) {
		end++
	}
	if !gazetteer.mayHave(s.text[i:end]) {
		return end
	}
	full, kinds := s.lookup(i, end)
	switch {
	case kinds&entryTitle != 0 && s.titled(full):
		s.addressed(s.text[i:full], full)
		return s.add(Title, i, full, scoreCue)
	case kinds&entryLegal != 0 && s.company(i, full):
		return full
	case kinds&entryGroup != 0 && s.memberOf(i, full):
		return s.add(Group, i, full, scoreCue)
	case kinds&entryPlace != 0 && s.cuedBy(i, beforeHome):
		return s.add(Place, i, full, scoreCue)
	}
	return end
}

// lookup returns the longest entry of the gazetteer that begins with the word [i, end), and its
// kinds.
func (s *scanner) lookup(i, end int) (full int, kinds entry) {
	full, kinds = end, gazetteer.words[s.text[i:end]]
	if kinds&entryPrefix == 0 {
		return full, kinds
	}
	next := end
	for range maxEntryWords - 1 {
		if b := s.byteAt(next); b != ' ' && b != '-' {
			break
		}
		from := next + 1
		if next = s.wordEnd(from); next == from {
			break
		}
		if k := gazetteer.words[s.text[i:next]]; k&^entryPrefix != 0 {
			full, kinds = next, k
		}
	}
	return full, kinds
}

// title reads a title that ends with the dot at i: "Dr." before a name, in either case.
func (s *scanner) title(i int) int {
	b := s.byteAt(i-1) | 0x20
	if b != 'r' && b != 's' && b != 'f' && b != 'a' && b != 'g' && b != 'n' || s.byteAt(i+1) != ' ' {
		return 0
	}
	start := i
	for start > 0 && i-start < maxTitle && isLetter(s.text[start-1]) {
		start--
	}
	if start == i || i-start >= maxTitle || s.wordBefore(start) {
		return 0
	}
	if _, ok := dottedTitles[fold(s.text[start:i])]; !ok || !s.nameAt(i+2) {
		return 0
	}
	return s.add(Title, start, i+1, scoreCue)
}

// titled reports whether a name follows the title that ends at i.
func (s *scanner) titled(i int) bool {
	if s.byteAt(i) != ' ' {
		return false
	}
	b := s.byteAt(i + 1)
	return isUpper(b) || b >= utf8.RuneSelf || s.nameAt(i+1) && s.byteAt(i-1) == 'r' && s.text[max(0, i-3):i] == "Sir"
}

// nameAt reports whether a word of at least two letters, which may be a name, begins at i.
func (s *scanner) nameAt(i int) bool { return s.wordEnd(i) >= i+2 }

// memberOf reports whether the nationality or creed at [i, end) describes a person: a word for a
// person or a delegation follows, or an age precedes.
func (s *scanner) memberOf(i, end int) bool {
	if strings.HasSuffix(s.text[:i], "year-old ") || strings.HasSuffix(s.text[:i], "years old ") {
		return true
	}
	if s.byteAt(end) != ' ' {
		return s.cuedBy(i, beforeCreed)
	}
	_, ok := personWords[s.text[end+1:s.wordEnd(end+1)]]
	return ok || s.cuedBy(i, beforeCreed)
}

// company reports whether the legal form at [i, end) ends the name of a company, and adds that
// name.
func (s *scanner) company(i, end int) bool {
	start, n := s.companyWords(i, end)
	for n > 0 { // articles and similar words that only begin a sentence
		first := s.text[start:s.wordEnd(start)]
		if _, ok := sentenceWords[first]; !ok {
			break
		}
		start += len(first) + 1
		n--
	}
	if n == 0 || start >= i {
		return false
	}
	if s.byteAt(end) == '.' && end-i <= 4 && !s.endOfText(end+1) {
		end++
	}
	s.add(Organization, start, end, scoreCue)
	return true
}

// companyWords returns the start of the words before the legal form [i, end), and their number.
func (s *scanner) companyWords(i, end int) (start, n int) {
	start = i
	for n < maxCompany && start > 1 {
		k := start
		if s.text[k-1] != ' ' {
			break
		}
		k--
		if s.byteAt(k-1) == ',' && n == 0 {
			if end-i == 2 { // "Lindenport, AB" is a province
				break
			}
			k--
		}
		from := s.companyWord(k)
		if first, _ := utf8.DecodeRuneInString(s.text[from:]); from == k || n > 0 && script.IsIdeograph(first) {
			break // or a sentence without spaces before the name
		}
		start = from
		n++
	}
	return start, n
}

// maxCompany is the maximum number of words of a company's name before its legal form.
const maxCompany = 5

// companyWord returns the start of the capitalised word, or of "and" or "&", that ends at k, or k.
func (s *scanner) companyWord(k int) int {
	from, last := k, rune(0)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(s.text[:from])
		if !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("-'’&–·®™", r) ||
			from < k && ideographic(r) != ideographic(last) {
			break
		}
		last = r
		from -= size
	}
	if from == k {
		return k
	}
	if b := s.text[from]; isUpper(b) || b == '&' || b >= utf8.RuneSelf {
		return from
	}
	switch s.text[from:k] {
	case "and", "und", "et", "y", "e", "van", "de", "och":
		return from
	}
	return k
}

// ideographic is script.IsIdeograph, including the mark of a long vowel.
func ideographic(r rune) bool { return r == 'ー' || script.IsIdeograph(r) }

func (s *scanner) endOfText(i int) bool { return i >= len(s.text) || s.text[i] == '\n' }

// named reads a name at i after words that announce a name: up to three capitalised words.
func (s *scanner) named(i int) int {
	if b := s.byteAt(i - 1); b != ' ' && b != ':' {
		return 0
	}
	if !s.cuedBy(i, beforeName) {
		return 0
	}
	end := s.fullName(i)
	if end-i < 2 || gazetteer.words[s.text[i:end]]&^entryPrefix != 0 {
		return 0
	}
	return s.add(Person, i, end, scoreCue)
}

// employer reads the name of a company at i after words that announce an employer: up to three
// capitalised words.
func (s *scanner) employer(i int) int {
	if s.byteAt(i-1) != ' ' || !s.cuedBy(i, beforeWork) {
		return 0
	}
	end := s.fullName(i)
	if _, ok := sentenceWords[s.text[i:s.wordEnd(i)]]; ok || end-i < 2 || gazetteer.words[s.text[i:end]]&^entryPrefix != 0 {
		return 0
	}
	return s.add(Organization, i, end, scoreCue)
}

// maxName is the maximum number of words of a name.
const maxName = 3

// fullName returns the end of the capitalised words that begin at i.
func (s *scanner) fullName(i int) int {
	end := i
	for range maxName {
		next := s.wordEnd(i)
		for s.byteAt(next) == '-' || s.byteAt(next) == '\'' {
			more := s.wordEnd(next + 1)
			if more == next+1 {
				break
			}
			next = more
		}
		if next == i {
			break
		}
		if s.byteAt(next) == '.' && next-i == 1 { // an initial
			next++
		}
		end = next
		if s.byteAt(end) != ' ' || !s.capitalAt(end+1) {
			break
		}
		i = end + 1
	}
	return end
}

// Words and phrases around names, places and groups.
//
//nolint:gochecknoglobals // constant tables
var (
	nameCues = cues{
		"my name", "name's", "my full name", "his name", "her name", "i am called", "call me", "named", "signed", "ich heiße", "ich heisse", "mein name", "je m'appelle", "je m’appelle", "mon nom est",
		"me llamo", "mi nombre es", "me chamo", "meu nome é", "mi chiamo", "il mio nome è", "mijn naam", "ik heet", "jag heter", "mitt namn är", "nazywam się", "mam na imię", "benim adım",
		"hola soy", "hola, soy", "yo soy", "buenas, soy", "días, soy", "tardes, soy", "buongiorno, sono", "ciao, sono",
		"salve, sono", "buonasera, sono", "olá, sou", "bonjour, je suis",
	}
	// homeCues precede the place where someone was born, lives or works.
	homeCues = cues{
		"born in", "live in", "lives in", "lived in", "living in", "reside in", "resides in", "residing in", "resident of", "grew up in", "moved to", "relocated to", "hometown of", "based in",
		"wohne in", "wohnt in", "geboren in", "habite à", "né à", "née à", "vivo en", "vive en", "nació en", "nací en", "moro em", "nasceu em", "vivo a", "abito a", "nato a", "nata a", "woon in", "woont in", "bor i", "född i",
	}
	// workCues precede an employer.
	workCues = cues{
		"work at", "works at", "worked at", "working at", "work for", "works for", "worked for", "working for", "employed by", "employed at", "job at", "my employer", "hired by",
		"ceo of", "cto of", "cfo of", "founder of", "arbeite bei", "arbeitet bei", "travaille chez", "trabajo en", "trabajo para", "trabalho na", "lavoro per", "lavoro in", "werk bij", "werkt bij",
		"jobbar på", "arbetar på", "pracuję w",
	}
	// creedCues precede what people say about themselves or others.
	creedCues = cues{"i am", "i'm", "i’m", "he is", "she is", "as a", "as an", "nationality", "citizenship", "religion", "ethnicity"}
	// personWords follow a nationality or creed that describes people.
	personWords = wordSet("citizen citizens delegation national nationals woman man women men girl boy immigrant immigrants refugee refugees native passport descent origin family " +
		"patient wife husband couple student employee employees voter voters senator politician community")
	// sentenceWords begin a sentence, not a company.
	sentenceWords = wordSet("The A An In At For From By Of On To And Or Our My Your Their His Her Invoice Dear Contact Why When What Who How Is Are Was Did Does Do Has Have Had If This That With Please Ask Tell")
	dottedTitles  = wordSet("mr mrs ms dr prof sr sra srta sig dott dra hr fr mgr inż st rev hon sn")
)

// maxTitle is more than the length of the longest of dottedTitles, in bytes.
const maxTitle = 6
