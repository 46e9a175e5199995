package pii

import (
	"strings"
	"unicode/utf8"
)

// In Romance and Slavic addresses the word for a street precedes its name: calle Mayor 45, 27 rue
// des Tanneurs, ul. Długa 14/3.

// opened reads an address whose house number is [i, first), after or before a street that begins
// with its word.
func (s *scanner) opened(i, first int) int {
	if first-i > 4 || s.text[i] == '0' || s.byteAt(i-1) > ' ' {
		return 0
	}
	if from, risky := s.streetOpener(i); from < i {
		end := s.houseNumberEnd(first)
		town := s.town(end, true)
		if s.wordAfter(end) || (risky || validYear4(s.text[i:first])) && town == end {
			return 0
		}
		return s.add(StreetAddress, from, town, scoreCue)
	}
	if end := s.numberedStreet(first); end > 0 {
		return s.add(StreetAddress, i, s.town(end, true), scoreCue)
	}
	return 0
}

// capitalized returns a word with its first letter in upper case.
func capitalized(word string) string {
	_, size := utf8.DecodeRuneInString(word)
	return strings.ToUpper(word[:size]) + word[size:]
}

// inEnglish reports whether the line around i has at least as many words of English as of other
// languages.
func (s *scanner) inEnglish(i int) bool {
	from, to := lineOf(s.text, i)
	english, others := tongues(s.text[from:to])
	return others <= english
}

func validYear4(digits string) bool { return len(digits) == 4 && validYear(digits) }

// streetOpener returns the start of the street whose house number is at i, and whether its first
// word has another meaning in English; otherwise i.
func (s *scanner) streetOpener(i int) (from int, risky bool) {
	end := i
	if s.byteAt(i-1) != ' ' {
		return i, false
	}
	for _, sign := range [...]string{" ", "nº", "n°", "n.", "nr", "no.", " ", ","} {
		if strings.HasSuffix(s.text[:end], sign) {
			end -= len(sign)
		}
	}
	if end == i {
		return i, false
	}
	for capitals := 0; end > 0 && i-end < maxFieldValue; {
		start := s.nameStart(end)
		word := s.text[start:end]
		opener := strings.TrimSuffix(word, ".")
		kind := opensStreets[opener]
		switch {
		case word == "":
			return i, false
		case kind != 0 && capitals > 0:
			return start, kind&opensAlso != 0 && s.inEnglish(start) || s.opensOther(word, start, i)
		case s.capitalAt(start):
			capitals++
		case !inStreetName(opener):
			return i, false
		}
		if s.byteAt(start-1) != ' ' {
			break
		}
		end = start - 1
	}
	return i, false
}

// opensOther reports whether the word for a street at start, with the house number at i, has
// another meaning in its sentence: via USB 3, al Jazeera 24, il corso Java 8.
func (s *scanner) opensOther(word string, start, i int) bool {
	switch word {
	case "al", "Al", "av", "cours", "Cours":
		return true
	case "corso", "Corso", "largo", "Largo":
		_, article := beforeCourse[s.wordBehind(start)]
		return article
	case "via", "Via":
		return !s.viaOfItalian(start, i)
	}
	return false
}

// viaOfItalian reports whether the word via at start is the Italian word for a street, with the
// house number at i: by the preceding word, the language of its line, or because it is alone.
func (s *scanner) viaOfItalian(start, i int) bool {
	if _, ok := beforeVia[s.wordBehind(start)]; ok {
		return true
	}
	from, to := lineOf(s.text, start)
	before := strings.TrimRight(s.text[from:start], " \"'")
	opens := before == "" || strings.IndexByte(",:;(|-", before[len(before)-1]) >= 0
	if rest := s.text[min(to, s.houseNumberEnd(s.digitsEnd(i))):to]; opens &&
		(rest == "" || strings.IndexByte(",.;)|\r\"'", rest[0]) >= 0) {
		return true
	}
	for w := range strings.FieldsSeq(s.text[from:to]) {
		if _, ok := withVia[fold(strings.Trim(w, ".,;:!?()"))]; ok {
			return true
		}
	}
	return false
}

// nameStart returns the start of the word that ends at i, including hyphens, apostrophes and a dot.
func (s *scanner) nameStart(i int) int {
	start := i
	if s.byteAt(start-1) == '.' {
		start--
	}
	for {
		next := s.wordStart(start)
		if b := s.byteAt(next - 1); next == start || b != '-' && b != '\'' {
			return next
		}
		start = next - 1
	}
}

// numberedStreet returns the end of the French street whose house number ends at i, or 0.
func (s *scanner) numberedStreet(i int) int {
	for _, more := range [...]string{" bis", " ter", ","} {
		if strings.HasPrefix(s.text[i:], more) {
			i += len(more)
		}
	}
	if s.byteAt(i) != ' ' {
		return 0
	}
	at := i + 1
	if !opensPairs[s.byteAt(at)&31][s.byteAt(at+1)&31] {
		return 0
	}
	end := s.wordEnd(at)
	kind := opensStreets[s.text[at:end]]
	if kind&(behindNumber|behindNumberOf) == 0 {
		return 0
	}
	if s.byteAt(end) == '.' {
		end++
	}
	end = s.streetBehind(end, kind)
	if kind&opensCourse != 0 && s.town(end, true) == end {
		return 0 // 3 cours de Maths
	}
	return end
}

// streetBehind returns the end of the name of a street after its word, which ends at i, or 0.
func (s *scanner) streetBehind(i int, kind opens) (last int) {
	for n := 0; n <= maxStreet+1 && s.byteAt(i) == ' '; n++ {
		next := s.nameEnd(i + 1)
		word := s.text[i+1 : next]
		small := inStreetName(word)
		if elides(word) { // de l'Église
			i, last = next, next
			continue
		}
		if n == 0 && kind&behindNumberOf != 0 && !small || !small && !s.capitalAt(i+1) {
			break
		}
		if i = next; s.capitalAt(next-len(word)) || strings.Contains(word, "'") {
			last = next
		}
	}
	return last
}

// elides reports whether a word has a capital after an elided small word: d'Alsace.
func elides(word string) bool {
	small, name, ok := strings.Cut(strings.Replace(word, "’", "'", 1), "'")
	return ok && inStreetName(small) && (&scanner{text: name}).capitalAt(0)
}

func inStreetName(word string) bool {
	_, small := smallInStreet[word]
	return small
}

// opens is the position of a word for a street.
type opens uint8

const (
	opensStreet  opens = 1 << iota // before the name, with the number after it
	opensAlso                      // like opensStreet, but with another meaning in English
	behindNumber                   // after the number, too
	// after the number, followed by a small word: 5 place du Marché.
	behindNumberOf
	opensCourse // also means a lesson, unless a town follows
)

//nolint:gochecknoglobals // constant tables
var (
	opensStreets = func() map[string]opens {
		m := map[string]opens{}
		for _, list := range [...]struct {
			kind  opens
			words string
		}{
			{opensStreet, "calle viale corso piazza piazzale vicolo rua avenida avda travessa praça plaça paseo " +
				"camino carretera carrer ulica ul aleja al osiedle strada"},
			{opensAlso, "via av plaza largo pl"},
			{opensStreet | behindNumber, "rue allée impasse chemin quai faubourg boulevard"},
			{opensAlso | behindNumberOf, "avenue place bd"},
			{opensAlso | behindNumberOf | opensCourse, "cours"},
		} {
			for w := range strings.FieldsSeq(list.words) {
				m[w], m[capitalized(w)] = list.kind, list.kind
			}
		}
		return m
	}()
	// opensPairs is a fast filter for opensStreets, by the low bits of the first two bytes.
	opensPairs = func() (t [32][32]bool) {
		for w := range opensStreets {
			t[w[0]&31][w[1]&31] = true
		}
		return t
	}()
	beforeVia    = wordSet("in abito abita residente sede presso indirizzo alla dalla nella")
	beforeCourse = wordSet("il un el al del nel dal sul ogni questo este muy más")
	// withVia are Italian words that no other language shares in which via has another meaning.
	withVia       = wordSet("è di della nel abito abita residente gli sono presso nella che degli dalla vivo casa")
	smallInStreet = wordSet("de da do das dos du des la las le les los del della delle dei degli di e y et en sur " +
		"d l al alla san santa i")
)
