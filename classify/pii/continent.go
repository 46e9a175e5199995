package pii

import (
	"strings"
	"unicode/utf8"
)

// In continental European addresses the number follows the street, and the postcode precedes the
// town.

// continental reads an address whose house number is [i, first): after a German or Dutch word for a
// street, or before a postcode and a town.
func (s *scanner) continental(i, first int) int {
	last := s.byteAt(i - 2)
	if first-i > 4 || s.byteAt(i-1) != ' ' || s.text[i] == '0' ||
		!isLetter(last) && last != '.' && last < utf8.RuneSelf {
		return 0
	}
	end := s.houseNumberEnd(first)
	town := s.townAfter(end)
	from := i - 1
	if strings.IndexByte("ert.", last) >= 0 { // the last letters of words for streets
		from = s.germanStreet(i - 1)
	}
	if from == i-1 && town > end {
		from = s.streetName(i - 1)
	}
	if from == i-1 || s.wordAfter(end) || s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		return 0
	}
	return s.add(StreetAddress, from, town, scoreCue)
}

// houseNumberEnd returns the end of the rest of a house number whose first digits end at i: 12a,
// 123/4/5, 7-9.
func (s *scanner) houseNumberEnd(i int) int {
	for {
		if isLetter(s.byteAt(i)) && !s.wordAfter(i+1) {
			i++
		}
		if b := s.byteAt(i); b != '/' && b != '-' || !isDigit(s.byteAt(i+1)) || s.groupEnd(i+1)-i > 4 {
			return i
		}
		i = s.groupEnd(i + 1)
	}
}

// townAfter returns the end of ", 50667 Köln" after i, or i. A year or a count is not a postcode.
func (s *scanner) townAfter(i int) int { return s.town(i, false) }

// town is townAfter; marked says that a round number is a postcode, too. In a line of its own
// nothing else stands.
//
//nolint:revive // the caller knows what street it is
func (s *scanner) town(i int, marked bool) int {
	var at int
	var alone bool
	switch {
	case strings.HasPrefix(s.text[i:], ", "), strings.HasPrefix(s.text[i:], ",\n"):
		alone, at = s.text[i+1] == '\n', i+2
	case s.byteAt(i) == '\n':
		alone, at = true, i+1
	case strings.HasPrefix(s.text[i:], "\r\n"):
		alone, at = true, i+2
	default:
		return i
	}
	for _, country := range [...]string{"D-", "A-", "CH-", "DE-", "AT-", "F-", "I-", "B-", "L-"} {
		if strings.HasPrefix(s.text[at:], country) {
			at, marked = at+len(country), true
			break
		}
	}
	end := s.postcodeEnd(at)
	if end-at > len("00000") { // with a sign or letters in it
		marked = true
	}
	if !isPostcode(s.text[at:end], marked) || s.byteAt(end) != ' ' || !s.capitalAt(end+1) {
		return i
	}
	town := s.nameEnd(end + 1)
	if _, ok := counted[s.text[end+1:town]]; ok || town-end < 3 {
		return i
	}
	full := s.fullName(end + 1)
	rest := strings.TrimRight(beforeLineEnd(s.text[full:min(len(s.text), full+cueWidth)]), " \t\r")
	if rest == "" || strings.IndexByte(",.;)|", rest[0]) >= 0 {
		town = full
	}
	if alone && rest != "" {
		return i
	}
	return town
}

// postcodeEnd returns the end of the postcode at i: 50667, 1250-146, 00-238, 3511 KX.
func (s *scanner) postcodeEnd(i int) int {
	end := s.groupEnd(i)
	switch next := s.groupEnd(end + 1); {
	case s.byteAt(end) == '-' && next-end == 4 && (end-i == 4 || end-i == 2 || end-i == 5):
		return next
	case s.byteAt(end) == ' ' && end-i == 4 && isUpper(s.byteAt(end+1)) && isUpper(s.byteAt(end+2)) &&
		s.byteAt(end+3) == ' ':
		return end + 3
	}
	return end
}

// isPostcode reports five digits that are not a round number, or four that are not a year; with a
// country prefix any.
func isPostcode(digits string, marked bool) bool {
	switch len(digits) {
	case len("00-000"), len("0000 AA"), len("0000-000"), len("00000-000"):
		return marked
	case 4:
		return marked || !validYear(digits) && !strings.HasSuffix(digits, "000")
	case 5:
		return marked || !strings.HasSuffix(digits, "000")
	}
	return false
}

// germanStreet returns the start of the street name that ends at i in a word for streets; otherwise
// i.
func (s *scanner) germanStreet(i int) int {
	end := i
	if s.text[end-1] == '.' {
		end--
	}
	start := s.wordStart(end)
	for start > 0 && end-start < maxFieldValue && s.text[start-1] == '-' { // Konrad-Adenauer-Straße
		start = s.wordStart(start - 1)
	}
	if !s.capitalAt(start) {
		return i
	}
	word := fold(s.text[start:end])
	for _, suffix := range [...]string{"straße", "strasse", "gasse", "allee", "str", "straat"} {
		rest, ok := strings.CutSuffix(word, suffix)
		switch {
		case !ok || suffix == "str" && (end == i || !shortStreet(word)):
		case len(rest) > 2:
			return start
		case rest == "": // Mariahilfer Straße
			before := s.wordStart(start - 1)
			if s.byteAt(start-1) == ' ' && before < start-1 && s.capitalAt(before) &&
				!counts(fold(s.text[before:start-1])) {
				return before
			}
		}
	}
	return i
}

// streetName returns the start of the words that end at i and may name a street: capitalised, or
// lower-case words between capitalised ones; otherwise i.
func (s *scanner) streetName(i int) int {
	from := i
	for end, n := i, 0; n < maxStreet; n++ {
		start := s.wordStart(end)
		_, noun := commons["german"][s.text[start:end]]
		_, label := labels[s.text[start:end]]
		if n == 0 && (noun || label || start < end && isMonth(s.text[start:end])) {
			break // Tabelle 4, Table 4
		}
		_, small := betweenStreet[s.text[start:end]]
		if start == end || !small && !s.capitalAt(start) {
			break
		}
		if !small {
			from = start
		}
		if s.byteAt(start-1) != ' ' {
			break
		}
		end = start - 1
	}
	return from
}

// postcodeBefore adds the postcode before the town at i.
func (r *reader) postcodeBefore(i int) {
	s := scanner{text: r.text}
	if s.byteAt(i-1) != ' ' {
		return
	}
	end := i - 1
	start := end
	for start > 0 && end-start < maxPostcode+1 && isDigit(s.text[start-1]) {
		start--
	}
	marked := s.byteAt(start-1) == '-' && isUpper(s.byteAt(start-2))
	if !isPostcode(s.text[start:end], marked) || s.lineOfCode(start) {
		return
	}
	from := start
	for from > 0 && marked && (s.text[from-1] == '-' || isUpper(s.text[from-1])) {
		from--
	}
	opens := from == 0 || strings.IndexByte("\n,(:", s.text[from-1]) >= 0 ||
		s.text[from-1] == ' ' && strings.IndexByte(",:", s.byteAt(from-2)) >= 0
	if _, in := betweenTown[s.wordBehind(from)]; marked || opens || in && end-start == maxPostcode {
		r.out = append(r.out, Span{Type: ZipCode, Start: from, End: end, Score: scoreCue})
	}
}

// lineOfCode reports whether the line around i is machine text.
func (s *scanner) lineOfCode(i int) bool { return (&judge{text: s.text}).at(i) }

// maxPostcode is the maximum number of digits in postcodes before towns.
const maxPostcode = 5

//nolint:gochecknoglobals // constant tables
var (
	betweenStreet = wordSet("der dem den die am an im in zum zur auf du de la le des del da do van het")
	betweenTown   = wordSet("in nach aus bei à en a w te i em")
	// labels are English words that a number identifying one of several things follows.
	labels = wordSet("Table Figure Fig Section Chapter Appendix Volume Page Line Row Column Step Version Release " +
		"Build Server Port Example Question Answer Note Level Day Week Error Warning Code Item Lot Ref Pos Art No Nr " +
		"Unit Part Block Batch Job Task Test Case Phase Class Grade Group Room Slot Index Frame Thread Worker Node Module " +
		"Modul Annex Anexo Annexe Anhang Anlage Allegato Bijlage Załącznik Kapitel Chapitre Capítulo Capitolo " +
		"Hoofdstuk Rozdział Article Artikel Artículo Articolo Artigo Tabelle Tableau Tabla Tabella Tabela Abbildung")
	// counted are words for things that a number before them counts.
	counted = wordSet("Euro EUR CHF USD Franken Mark Dollar Stück Einwohner Menschen Mitarbeiter Besucher " +
		"Zeichen Wörter " +
		"Kilometer Meter Tonnen Teilnehmer Personen Seiten Euros Zuschauer Kunden Studenten Schüler Soldaten " +
		"Jahre Tage Bytes Byte KB MB GB TB Bits Rows Lines Files Records Items Units Users Requests Errors Entries " +
		"Tokens Points Steps Pages Words Characters Connections Seconds Minutes Hours Days Years Times People " +
		"Dollars Pounds Euro Złotych Lignes Pages Fichiers Octets Filas Líneas Archivos Righe Bestanden Regels")
)
