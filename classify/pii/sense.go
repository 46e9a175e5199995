package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Values that the model takes for an address or an age because a number is next to a word.

// noAddress reports an address without a word for a street that is not valid: in lower case, with
// the columns of a table in it, or a word that counts or abbreviates something with its number.
func noAddress(value string) bool {
	if inStreetWords(value) || strings.ContainsAny(value, wideStreets) {
		return false
	}
	first := firstLetter(value)
	word, rest := nextToken(value)
	bare := strings.TrimRight(word, ".:°")
	_, label := labels[bare]
	_, small := betweenStreet[word]
	numbered := strings.Trim(rest, " 0123456789.,") == "" && rest != ""
	switch {
	case !unicode.Is(unicode.Latin, first):
		return false
	case !hasWord(value), lowerCase(value), strings.Contains(value, "  "), strings.IndexByte(value, '\t') >= 0:
		return true
	case unicode.IsLower(first) && !small && !isDigit(value[0]):
		return true
	case !strings.ContainsAny(value, "0123456789") && lowerCase(value[strings.LastIndexByte(value, ' ')+1:]):
		return true
	case numbered && (label || len(bare) < len(word) && utf8.RuneCountInString(bare) > 3):
		return true
	}
	return false
}

// hasWord reports whether value has three letters in a row: 4 C 221/23 does not.
func hasWord(value string) bool {
	n := 0
	for _, c := range value {
		if n++; !unicode.IsLetter(c) {
			n = 0
		}
		if n == 3 {
			return true
		}
	}
	return false
}

// inStreetWords reports whether a word of value is, or ends in, a word for a street.
func inStreetWords(value string) bool {
	for w := range strings.FieldsSeq(value) {
		w = strings.Trim(w, ".,;")
		_, typed := streetWords[fold(w)]
		_, opens := streetOpeners[fold(w)]
		if typed || opens || len(w) >= 3 && streetLike(w) || shortStreet(fold(w)) {
			return true
		}
	}
	return false
}

// shortStreet reports a word that ends in str, the abbreviation of street: hauptstr, but not
// constr.
func shortStreet(word string) bool {
	_, other := notStreets[word]
	return len(word) > len("str") && strings.HasSuffix(word, "str") && !other
}

// noAge reports whether the number [start, end) belongs to a version or a variable, or counts
// things named after it in a language other than English.
func (s *scanner) noAge(start, end int) bool {
	before := strings.TrimRight(s.text[max(0, start-cueWidth):start], " ")
	if key, ok := strings.CutSuffix(before, "="); ok {
		_, age := ageKeys[(&scanner{text: before}).wordBehind(len(strings.TrimRight(key, " "))+1)]
		return !age
	}
	if _, ok := versions[s.wordBehind(start)]; ok {
		return true
	}
	if strings.HasPrefix(s.text[end:], ". ") {
		next := s.text[end+2 : s.wordEnd(end+2)]
		return next != "" && isMonth(next)
	}
	if s.byteAt(end) != ' ' {
		return false
	}
	word := s.text[end+1 : s.wordEnd(end+1)]
	first, _ := utf8.DecodeRuneInString(word)
	if _, ok := behindAge[word]; ok || !unicode.IsLower(first) {
		return false
	}
	if _, joins := commons["function"][word]; joins {
		return false
	}
	from, to := lineOf(s.text, start)
	english, others := tongues(s.text[from:to])
	return others > english
}

//nolint:gochecknoglobals // constant tables
var (
	streetOpeners = wordSet("rue calle via viale corso piazza piazzale largo vicolo rua avenida av avda travessa praça " +
		"plaza plaça paseo camino carrera carretera carrer chemin impasse allée quai cours place passage ul ulica " +
		"aleja al os osiedle plac pl str am auf zum zur unter hinter laan kade plein hof dijk po box postfach " +
		"apartado boîte sokak sok cad caddesi mah mahallesi bulvarı gasse ring damm ufer steig stieg markt")
	notStreets = wordSet("constr instr distr demonstr registr illustr industr orchestr magistr monstr " +
		"substr bitstr cstr maxstr minstr lstr wstr bstr tostr getstr")
	versions = wordSet("version versie versión versione versão wersja wersji versionen " +
		"sürüm release kapitel bab page seite")
	ageKeys   = wordSet("age âge alter edad età idade leeftijd wiek yaş")
	behindAge = wordSet("jahre jahren jahr jährig jährige jähriger ans an años año anos ano anni anno jaar lat lata " +
		"rok år yaş yaşında yaşındaki yaşındayım yıl years year yrs old évek éves vuotta " +
		"let")
)
