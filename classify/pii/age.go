package pii

import (
	"slices"
	"strings"
)

// maxAge is the highest number accepted as an age, in years; the oldest person on record died at
// 122.
const maxAge = 122

// age reads the age [i, end) of a person. Its span is the number alone.
func (s *scanner) age(i, end int) int {
	if end-i > 3 || toInt(s.text[i:end]) > maxAge {
		return 0
	}
	switch s.byteAt(i - 1) {
	case '.', ',', '-', '/', '$':
		return 0
	}
	if s.torn(i, end) {
		return 0
	}
	for _, u := range s.unitsAt(end) {
		if !strings.HasPrefix(s.text[end:], u.unit) ||
			isLetter(u.unit[len(u.unit)-1]) && s.wordAfter(end+len(u.unit)) {
			continue
		}
		if u.before == nil || s.cued(i, u.width, u.before) {
			return s.add(Age, i, end, scoreCue)
		}
	}
	switch {
	case s.byteAt(i-1) == '=' || s.byteAt(i-2) == '=': // a variable
		return 0
	case s.moreThanAge(end):
		return 0
	case s.cuedBy(i, beforeAge) && !s.cued(i, 14, rangeCues):
		return s.add(Age, i, end, scoreCue)
	case s.cuedBy(i, beforeOwnAge) && s.endsClause(end):
		return s.add(Age, i, end, scoreCue)
	case s.cuedBy(i, beforeTurn) && s.turnsAge(end):
		return s.add(Age, i, end, scoreCue)
	}
	return 0
}

// moreThanAge reports whether the text at i shows that the number before it is not an age: a share,
// a time, a part of a word, or one end of a range of ages, which describes no one person.
func (s *scanner) moreThanAge(i int) bool {
	switch next := s.byteAt(i); next {
	case '%', '-', ':', '/', '_':
		return true
	case '.', ',':
		return isDigit(s.byteAt(i + 1))
	default:
		if isLetter(next) {
			return true
		}
	}
	return hasPrefix(s.text[i:], " to ", "–", " or ", " and over")
}

//nolint:gochecknoglobals // constant tables
var (
	// ageCues are words directly before an age.
	ageCues = cues{
		"aged", "age", "alter", "edad", "idade", "età", "leeftijd", "ålder", "wiek", "wieku", "yaş",
		"yaşı", "возраст", "年龄", "年齢",
	}
	ownAgeCues = cues{
		"when i was", "when he was", "when she was", "i am", "i turned", "i turn", "ich bin",
		"i'm", "i’m",
	}
	turnCues = cues{"turns", "turned", "turning"}
	// rangeCues announce an age in general, not the age of a person.
	rangeCues = cues{"until age", "at age", "from age", "by age", "to age", "under age", "over age"}
)

// endsClause reports whether a sentence or a part of it ends at i.
func (s *scanner) endsClause(i int) bool {
	b := s.byteAt(i)
	return b == 0 || strings.IndexByte(".,;!?\n)", b) >= 0
}

// turnsAge reports whether the text at i may follow an age as in "she turns 40": an end or a time.
// Knobs, cars and weeks also turn numbers of something.
func (s *scanner) turnsAge(i int) bool {
	return s.endsClause(i) || hasPrefix(s.text[i:], " on ", " today", " tomorrow", " this ", " next ", " in ", " years old")
}

// hasPrefix reports whether one of the prefixes begins s.
func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// ageUnit is a unit after the number of an age. If the same words also measure a time, before holds
// the words of which one must precede within width bytes.
type ageUnit struct {
	unit   string
	before cues
	width  int
}

// unitsAt returns the units if one of them may begin at i. It is a fast filter: after most numbers
// none can.
func (s *scanner) unitsAt(i int) []ageUnit {
	switch b := s.byteAt(i); b {
	case '-', 'y', 0xE5, 0xE6: // the last two begin 岁, 歲 and 歳
		return ageUnits
	case ' ':
		switch s.byteAt(i+1) | 0x20 {
		case 'y', 'j', 'a', 'l', 0xE3, 0xF0: // å and Cyrillic, with the bit of lower case
			return ageUnits
		}
	}
	return nil
}

// plainUnits returns the units that measure nothing but age.
func plainUnits() (units []ageUnit) {
	const names = "-year-old| year old| years old|-years-old| year-old|-year old| yrs old| y/o|yo| years of age" +
		"| Jahre alt|-jährige|-jähriger| jaar oud| år gammal| yaşında| yaşındayım| años de edad| anos de idade" +
		"| anni compiuti|岁|歲|歳"
	for name := range strings.SplitSeq(names, "|") {
		units = append(units, ageUnit{unit: name})
	}
	return units
}

//nolint:gochecknoglobals // constant table
var ageUnits = append(plainUnits(), []ageUnit{
	{" ans", cues{
		"j'ai", "j’ai", "il a", "elle a", "âge de", "âgé de", "âgée de", "agé de", "agée de",
		"avait", "tu as",
	}, 12},
	{" años", cues{
		"tengo", "tiene", "tienes", "cumplo", "cumple", "cumplió", "edad de", "hombre de",
		"mujer de", "tenía",
	}, 14},
	{" anos", cues{"tenho", "tem", "tinha", "fez", "faz", "idade de", "homem de", "mulher de"}, 14},
	{" anni", cues{"ho", "ha", "hai", "aveva", "età di", "uomo di", "donna di", "compie"}, 12},
	{" år", cues{"jag är", "hon är", "han är", "fyller"}, 12},
	{" jaar", cues{"ik ben", "hij is", "zij is", "ze is", "leeftijd van"}, 14},
	{" Jahre", cues{"ich bin", "er ist", "sie ist", "alter von", "wurde"}, 14},
	{" lat", cues{"mam", "ma", "mój wiek", "w wieku", "skończył", "skończyła"}, 14},
	{" lata", cues{"mam", "ma"}, 8},
	{" лет", cues{"мне", "Мне", "ему", "ей", "возраст", "исполнилось"}, 26},
	{" год", cues{"мне", "Мне", "ему", "ей", "исполнился"}, 26},
	{" года", cues{"мне", "Мне", "ему", "ей", "исполнилось"}, 26},
}...)
