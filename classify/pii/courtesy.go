package pii

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// courtesy reads the name at i after a title written with the case used within sentences: mevrouw
// De Vries, de heer van den Berg, dott.ssa Elisa Fontana. addressed reads those after titles of the
// gazetteer.
func (s *scanner) courtesy(i int) int {
	if s.byteAt(i-1) != ' ' || !s.maybeCourtesy(i-1) {
		return 0
	}
	from := s.particlesBefore(i)
	if s.byteAt(from-1) != ' ' {
		return 0
	}
	start := from - 1
	for start > 0 && from-start <= maxCourtesy && s.text[start-1] > ' ' {
		start--
	}
	word := strings.TrimLeft(s.text[start:from-1], "(\"'[,>")
	start = from - 1 - len(word)
	title := strings.TrimSuffix(word, ".")
	kind := courtesies[fold(title)]
	if kind&withDot != 0 && title == word {
		return 0
	}
	if kind == 0 || kind&onlyCapital != 0 && !isUpper(title[0]) || len(title) > 1 && isUpper(title[1]) {
		return 0
	}
	if kind&afterStreet != 0 && s.capitalBefore(start) {
		return 0 // Willow Creek Dr
	}
	end := s.courteous(from, i, kind)
	if end == 0 {
		return 0
	}
	s.add(Person, from, end, scoreCue)
	return end
}

// maybeCourtesy reports whether the word that ends at i may be a title or a name particle, by its
// first and last letter.
func (s *scanner) maybeCourtesy(i int) bool {
	end := i
	if s.byteAt(end-1) == '.' {
		end--
	}
	start := end
	for start > 0 && s.text[start-1] > ' ' && strings.IndexByte("(\"'[,>", s.text[start-1]) < 0 {
		if start--; i-start > maxCourtesy {
			return false
		}
	}
	return start < end && courtesyPairs[s.text[start]&31][s.text[end-1]&31]
}

// particlesBefore returns the start of the particles that belong to the surname at i: van den Berg.
func (s *scanner) particlesBefore(i int) int {
	for range maxName {
		if s.byteAt(i-1) != ' ' {
			break
		}
		start := s.wordStart(i - 1)
		if word := s.text[start : i-1]; !isParticle(word) || word != fold(word) {
			break
		}
		i = start
	}
	return i
}

func isParticle(word string) bool { _, ok := particlesOfNames[word]; return ok }

// capitalBefore reports whether the word before i is capitalised, and neither a title nor an
// address itself.
func (s *scanner) capitalBefore(i int) bool {
	if s.byteAt(i-1) != ' ' {
		return false
	}
	start := s.wordStart(i - 1)
	_, calls := beforeTitle[fold(s.text[start:i-1])]
	return start < i-1 && s.capitalAt(start) && !calls || isDigit(s.byteAt(i-2))
}

// courteous returns the end of the name at i after a title, or 0; its particles begin at from. In
// German nouns are capitalised too, so several words are only taken if nothing else follows them.
func (s *scanner) courteous(from, i int, kind courtesyKind) int {
	end, last, words := i, 0, 0
	var office bool // comes first: Pani Doktor Kowalska, señor Presidente del Gobierno
	for at := i; words <= maxName; {
		next := s.nameEnd(at)
		word := s.text[at:next]
		small := isParticle(fold(word)) && s.byteAt(next) == ' ' && (!office || words > 0)
		initial := len(word) == 1 && isUpper(word[0]) && s.byteAt(next) == '.'
		switch {
		case small:
		case words == 0 && !office && isOffice(word):
			office = true
		case initial:
			next++
			words++
		case s.namesSomeone(word), words == 0 && at != from && !office && isFunction(word):
			words++
			end = next
			last = cmp.Or(last, next)
		default:
			next = len(s.text)
		}
		if s.byteAt(next) != ' ' {
			break
		}
		at = next + 1
	}
	if last == 0 {
		return 0
	}
	if kind&nounsCapital != 0 && end < len(s.text) && strings.IndexByte(",.;:!?)\r\n", s.text[end]) < 0 {
		return last
	}
	return end
}

func isOffice(word string) bool { _, ok := offices[fold(word)]; return ok }

// isFunction reports whether a capitalised word is a function word in lower case: van der Meer.
func isFunction(word string) bool {
	_, joins := commons["function"][fold(word)]
	return joins && utf8.RuneCountInString(word) > 2
}

// namesSomeone reports whether a word may be part of a name after a title.
func (*scanner) namesSomeone(word string) bool {
	if word == "" || !signsWith(word, 1) {
		return false
	}
	_, day := calendar[word]
	_, noun := commons["noun"][fold(word)]
	return !day && !noun && utf8.RuneCountInString(word) > 1
}

// maxCourtesy is the length of the longest of courtesies, in bytes.
const maxCourtesy = 12

// courtesyKind is how a title is written and what may precede it.
type courtesyKind uint8

const (
	isCourtesy   courtesyKind = 1 << iota
	onlyCapital               // in lower case it is another word
	afterStreet               // after a capitalised word it is the type of a street
	nounsCapital              // of a language whose nouns have capitals
	withDot                   // without a dot it is another word
)

//nolint:gochecknoglobals,misspell // constant tables
var (
	courtesies = func() map[string]courtesyKind {
		m := map[string]courtesyKind{}
		for _, list := range [...]struct {
			kind  courtesyKind
			words string
		}{
			{isCourtesy, "mrs mme mlle mevrouw mevr meneer dhr heer señor señora señorita senhor senhora signor " +
				"signora signorina sig.ra sig.na dott dott.ssa dott.sa dra srta dña doña monsieur madame maître " +
				"pani panią panem sayın dokter docteur dottore dottoressa doctora professeur professoressa " +
				"notaire notaio notaris"},
			{isCourtesy | withDot, "lek avv geom"},
			{isCourtesy | onlyCapital, "mr ms prof don dona sra"},
			{isCourtesy | onlyCapital | afterStreet, "dr"},
			{isCourtesy | nounsCapital, "frau herrn"},
			{isCourtesy | nounsCapital | onlyCapital, "herr"},
		} {
			for w := range strings.FieldsSeq(list.words) {
				m[w] = list.kind
			}
		}
		return m
	}()
	// courtesyPairs is a fast filter for courtesies and particlesOfNames, by the low bits of the
	// first and the last byte.
	courtesyPairs = func() (t [32][32]bool) {
		for w := range courtesies {
			t[w[0]&31][w[len(w)-1]&31] = true
		}
		for w := range particlesOfNames {
			t[w[0]&31][w[len(w)-1]&31] = true
		}
		return t
	}()
	particlesOfNames = wordSet("van von de der den del della di da do dos du ten ter la le el al bin zu zur")
	// offices are words for the holder of an office after a title: Madame la Directrice.
	offices = wordSet("maire ministre directeur directrice président présidente juge préfet préfète ambassadeur " +
		"inspecteur procureur proviseur recteur commissaire gérant gérante client cliente director directora presidente " +
		"presidenta ministro ministra juez jueza alcalde alcaldesa rector rectora gerente cónsul embajador profesor " +
		"profesora diretor diretora presidenta juiz juíza prefeito direttore direttrice sindaco giudice prezes dyrektor " +
		"dyrektorko dyrektorka minister prezydent burmistrz sędzia redaktor profesor doktor kierownik oberbürgermeister " +
		"bürgermeister bundeskanzler bundeskanzlerin bundespräsident bundespräsidentin ministerin staatsanwalt " +
		"burgemeester directeur voorzitter rechter notaris wethouder")
	// beforeTitle are capitalised words before a title.
	beforeTitle = wordSet("dear prof professor herr herrn frau kollege kollegin lieber liebe sehr geehrter geehrte " +
		"cher chère estimado estimada hi hello von bei an mit für und and by from patient with see ask von")
)
