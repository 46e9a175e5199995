package claims

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// stopKind is what a full stop after a word may mean.
type stopKind uint8

const (
	ordinary   stopKind = iota
	numberWord          // digits: 3. Mai
	neverLast           // Dr., e.g.
	maybeLast           // etc., Inc.
	initial             // J., U.S., Mio.
)

func kindOf(word []byte) stopKind {
	if len(word) == 0 {
		return ordinary
	}
	digits := true
	for _, c := range word {
		digits = digits && c >= '0' && c <= '9'
	}
	if digits {
		if len(word) <= 2 {
			return numberWord
		}
		return ordinary
	}
	var form [24]byte
	if len(word) < len(form) {
		lower := form[:0]
		for at := 0; at < len(word); {
			r, size := utf8.DecodeRune(word[at:])
			lower = utf8.AppendRune(lower, unicode.ToLower(r))
			at += size
		}
		if kind, ok := abbreviations[string(lower)]; ok {
			return kind
		}
	}
	first, size := utf8.DecodeRune(word)
	if unicode.IsLetter(first) && size == len(word) && unicode.IsUpper(first) {
		return initial
	}
	if dotted(word) {
		return initial
	}
	return ordinary
}

// dotted reports whether a word consists of single letters joined by dots: U.S, z.B.
func dotted(word []byte) bool {
	if bytes.IndexByte(word, '.') < 0 {
		return false
	}
	for part := range bytes.SplitSeq(word, []byte(".")) {
		if r, size := utf8.DecodeRune(part); size != len(part) || !unicode.IsLetter(r) {
			return false
		}
	}
	return true
}

// abbreviations are words whose full stop may not end a sentence, in lower case, without the last
// dot.
//
//nolint:gochecknoglobals // constant table
var abbreviations = func() map[string]stopKind {
	m := map[string]stopKind{}
	for _, w := range []string{
		"dr", "mr", "mrs", "ms", "mx", "prof", "st", "rev", "hon", "gen", "col", "lt", "sgt", "capt", "cmdr", "adm", "gov", "sen", "rep",
		"e.g", "i.e", "eg", "ie", "cf", "vs", "viz", "fig", "figs", "eq", "eqs", "sec", "ch", "vol", "pp", "ed", "eds", "nr", "art",
		"ca", "approx", "z.b", "d.h", "u.a", "bzw", "usw", "bspw", "ggf", "vgl", "hr", "fr", "str", "abb", "tab", "kap", "sog",
		"mme", "mlle", "env", "p.ex", "sr", "sra", "srta", "ud", "uds", "dña", "p.ej", "ej", "núm", "pág", "av", "mt", "ft", "op",
		"zzgl", "abzgl", "inkl", "exkl", "einschl", "bzgl", "evtl", "ziff",
	} {
		m[w] = neverLast
	}
	// After these a noun or number follows, which does not show whether a sentence begins.
	for _, w := range []string{"mio", "mrd", "tsd", "max", "abs", "mtl", "jährl"} {
		m[w] = initial
	}
	for _, w := range []string{
		"etc", "inc", "ltd", "co", "corp", "jr", "llc", "plc", "bros", "est", "dept", "univ", "assn", "ave", "blvd", "rd", "al", "no",
		"a.m", "p.m", "pm", "min", "jan", "feb", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
		"gmbh", "mwst", "ust", "nos", "avg", "oz", "lb", "lbs", "hrs", "tel", "ph.d", "b.c", "a.d", "b.c.e", "c.e",
	} {
		m[w] = maybeLast
	}
	return m
}()

//nolint:gochecknoglobals // constant table
var germanMonths = set("Januar", "Jänner", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November",
	"Dezember", "Jahrhundert", "Jahrhunderts", "Jh", "Platz", "Stock", "Klasse", "Quartal", "Quartals", "Halbjahr", "Halbjahres", "Semester", "Auflage", "Kapitel", "Liga", "Weltkrieg", "Bundesliga")

// starters are words that begin sentences, and rarely a name after an initial.
//
//nolint:gochecknoglobals // constant table
var starters = set("The", "A", "An", "In", "It", "He", "She", "They", "We", "You", "I", "This", "That", "These", "Those", "There", "Its", "His", "Her",
	"Their", "However", "But", "And", "As", "At", "On", "For", "If", "When", "While", "After", "Before", "Since", "Although", "Also", "Both", "By",
	"From", "With", "Some", "Many", "Most", "Each", "Here", "What", "Who", "How", "Why", "Then", "Thus", "So", "To", "Of", "During", "Today",
	"Der", "Die", "Das", "Er", "Sie", "Es", "Ein", "Eine", "Im", "Am", "Le", "La", "Les", "Il", "Elle", "Ils", "Un", "Une", "El", "Los", "Las")

func set(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m
}
