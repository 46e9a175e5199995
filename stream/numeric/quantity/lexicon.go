package quantity

import (
	"cmp"
	_ "embed" // of the words
	"strings"
)

// role is a bit set of the roles a word can have in a number phrase.
type role uint32

const (
	roleCardinal role = 1 << iota
	roleOrdinal
	roleMagnitude // hundred, thousand, million, dozen
	roleMonth
	roleFraction
	roleAnd       // joins parts of a number: and, und, y, et
	roleTo        // joins the ends of a range
	roleBetween   // opens a range whose ends "and" joins
	roleFrom      // opens two numbers that are not a range
	roleLabel     // the number after it is a name: step 2, page 3
	roleHedge     // carries word.hedge
	roleThan      // after more, less, fewer
	roleNeedsThan // a hedge only with "than" after it
	roleAt        // before least, most
	roleNeedsAt   // a hedge only with "at" before it
	roleMeridiem  // am, pm: value 0 or 12
	roleEra       // BC, v. Chr.
	roleCentury
	rolePer
	roleSquare
	roleCubic
	roleOf       // of, de: may stand between day and month
	roleYearCue  // in, since, until: a four-digit number after it is a year
	roleArticle  // a, an, ein: one, before a magnitude or a fraction
	roleMinus    // minus, negative
	roleClockCue // o'clock, Uhr
)

// word is the lexicon entry of a word.
type word struct {
	role  role
	num   float64
	month uint8
	hedge Hedge
	span  bool // a word for a length of time: a four-digit number before it may be a year
}

//go:embed lexicon.txt
var lexiconLists string

//nolint:gochecknoglobals // constant table
var lexicon = buildLexicon()

func buildLexicon() map[string]word {
	roles := map[string]role{
		"cardinal": roleCardinal, "ordinal": roleOrdinal, "magnitude": roleMagnitude, "month": roleMonth, "fraction": roleFraction, "and": roleAnd, "to": roleTo, "between": roleBetween,
		"from": roleFrom, "label": roleLabel, "hedge": roleHedge, "than": roleThan, "needsthan": roleNeedsThan, "at": roleAt, "needsat": roleNeedsAt, "meridiem": roleMeridiem, "era": roleEra,
		"century": roleCentury, "per": rolePer, "square": roleSquare, "cubic": roleCubic, "of": roleOf,
		"yearcue": roleYearCue, "article": roleArticle, "minus": roleMinus, "clockcue": roleClockCue,
	}
	hedges := map[string]Hedge{"about": About, "nearly": Nearly, "over": Over, "under": Under, "least": Least, "most": Most}
	m := map[string]word{}
	for line := range strings.Lines(lexiconLists) {
		what, list, ok := strings.Cut(line, ": ")
		if !ok || line[0] == '#' {
			continue
		}
		var w word
		for part := range strings.FieldsSeq(what) {
			switch {
			case part == "span":
				w.span = true
			case roles[part] != 0:
				w.role |= roles[part]
			case hedges[part] != 0:
				w.hedge = hedges[part]
			default:
				w.num = number(part)
			}
		}
		if w.role == roleMonth {
			w.month, w.num = uint8(w.num), 0
		}
		for name := range strings.FieldsSeq(list) {
			m[name] = m[name].with(w)
		}
	}
	return m
}

// with returns w combined with its entry from another list.
func (w word) with(more word) word {
	w.role |= more.role
	if more.num != 0 && (more.role != roleOrdinal || w.num == 0) {
		w.num = more.num
	}
	w.month, w.hedge = max(w.month, more.month), cmp.Or(more.hedge, w.hedge)
	w.span = w.span || more.span
	return w
}
