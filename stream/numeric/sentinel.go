package numeric

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// Signs is a bit set of what a claim contains that can be checked.
type Signs uint8

// The signs.
const (
	HasNumber   Signs = 1 << iota // a count, a measurement, an amount of money, a share, a rank
	HasDate                       // a date, a year, a time of day
	HasName                       // a name: a capital inside a sentence, or a quotation
	HasQuantity                   // a quantity without a number: all, most, none, several
	HasNegation                   // a negation
	HasFew                        // a small count in words: "two lanes", but not "both"
	Uncased                       // a script without letter case, where names are unknown
)

// Checkable reports whether there is anything to check.
func (s Signs) Checkable() bool { return s != 0 }

type sentinel struct {
	words  []words.Word
	values []quantity.Value
}

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var sentinels = sync.Pool{New: func() any { return new(sentinel) }}

// Look reports what a claim contains that can be checked. It takes microseconds and needs no
// evidence. Most sentences of small talk have no sign and need no further check. Safe for
// concurrent use; does not allocate in steady state.
func Look(claim string) Signs {
	s := sentinels.Get().(*sentinel) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer sentinels.Put(s)
	s.words = words.Scan(s.words[:0], claim)
	s.values = quantity.Parse(s.values[:0], claim)
	var signs Signs
	for i := range s.values {
		switch s.values[i].Kind {
		case quantity.Date, quantity.Clock:
			signs |= HasDate
		case quantity.Count, quantity.Ordinal, quantity.Fraction:
			if v := &s.values[i]; !v.Weak {
				signs |= HasNumber
			} else if v.Kind == quantity.Count && v.Raw >= 2 && s.counts(claim, v) {
				signs |= HasFew
			}
		}
	}
	return signs | s.wordSigns(claim) | quoted(claim)
}

// counts reports whether a content word directly follows a number.
func (s *sentinel) counts(claim string, v *quantity.Value) bool {
	k, _ := slices.BinarySearchFunc(s.words, v.End, func(w words.Word, at int) int { return w.Start - at })
	if k == len(s.words) {
		return false
	}
	w := s.words[k]
	return w.Start == v.End+1 && claim[v.End] == ' ' && !w.Has(words.Stop)
}

func (s *sentinel) wordSigns(claim string) Signs {
	var signs Signs
	for i, w := range s.words {
		if w.Has(words.Negation) {
			signs |= HasNegation
		}
		if w.Has(words.Uncased) && !w.Has(words.Number) {
			signs |= Uncased
		}
		if s.name(i, claim) {
			signs |= HasName
		}
		if text := claim[w.Start:w.End]; len(text) < 16 {
			var form [32]byte
			if quantities[string(appendLower(form[:0], text))] {
				signs |= HasQuantity
			}
		}
	}
	return signs
}

// name reports whether word i is part of a name. "I" is not. The first word of a sentence is one
// only if another capitalised word follows (New York is) or it is in capitals (NASA is).
func (s *sentinel) name(i int, claim string) bool {
	w := s.words[i]
	text := claim[w.Start:w.End]
	switch {
	case !w.Has(words.Capital) || text == "I" || strings.HasPrefix(text, "I'") || strings.HasPrefix(text, "I’"):
		return false
	case w.Has(words.Name):
		return true
	case w.Has(words.Stop):
		return false
	}
	if i+1 < len(s.words) && s.words[i+1].Has(words.Name) && s.words[i+1].Start == w.End+1 {
		return true
	}
	return acronym(text)
}

func acronym(s string) bool {
	n := 0
	for _, r := range s {
		if !unicode.IsUpper(r) {
			return false
		}
		n++
	}
	return n >= 2
}

// quoted finds a title or a quotation between quotation marks.
func quoted(claim string) Signs {
	for _, pair := range [...][2]string{{`"`, `"`}, {"“", "”"}, {"«", "»"}, {"„", "“"}, {"「", "」"}, {"《", "》"}} {
		_, rest, ok := strings.Cut(claim, pair[0])
		if !ok {
			continue
		}
		inside, _, ok := strings.Cut(rest, pair[1])
		if first, _ := utf8.DecodeRuneInString(inside); ok && (unicode.IsUpper(first) || unicode.Is(unicode.Lo, first)) {
			return HasName
		}
	}
	return 0
}

// quantities are English, German, French and Spanish words for amounts without a number, and
// weekdays that are not capitalised.
//
//nolint:gochecknoglobals // constant table
var quantities = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`all every most many few several both majority minority always only none half double twice entire whole
		alle jeder jede meisten viele wenige mehrere beide immer nur mehrheit
		tous toutes chaque plupart beaucoup plusieurs toujours seulement majorité
		todos todas cada mayoría muchos varios ambos siempre solo
		lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo
		feira feiras lunedì martedì mercoledì giovedì venerdì sabato domenica
		понедельник вторник среду четверг пятницу субботу воскресенье`) {
		m[w] = true
	}
	return m
}()
