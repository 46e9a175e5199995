package numeric

import (
	"strings"

	"signalbox/stream/evidence/words"
)

// opening classifies how a sentence names its subject.
type opening uint8

const (
	nameless opening = iota // no name: "the company employs 312 people", "opened 1883"
	pronoun                 // a pronoun before any name: "In 2020 it moved to Oslo"
	titled                  // only the first word is capitalised: "Tullis employs", "Tickets cost"
	named                   // a proper name
)

// opens determines the opening of a sentence. Month names in dates and unit symbols do not count as
// names.
func (r *reading) opens(text string) opening {
	first := nameless
	for i, w := range r.words {
		switch {
		case r.inValue(w, true):
		case first == nameless && refers(text[w.Start:w.End], i == 0):
			return pronoun
		case first == titled && stands(text[w.Start:w.End]) && (i == 1 || strings.HasSuffix(text[:w.Start], ", ")):
			return pronoun // "Today it employs", "Completed in 1883, it has"
		case w.Has(words.Stop):
		case w.Has(words.Name):
			return named
		case i == 0 && w.Has(words.Capital):
			first = titled
		}
	}
	return first
}

// stands reports whether s is an English, German or French pronoun that replaces a subject.
func stands(s string) bool {
	var form [12]byte
	switch string(appendLower(form[:0], s)) {
	case "it", "he", "she", "they", "er", "sie", "il", "elle", "ils", "elles":
		return true
	}
	return false
}

// refers reports whether s is an English, German, French or Spanish pronoun that refers back to
// something named before. Some of these words count only as the first word, because they mean
// something else inside a sentence: "Las torres son", "la tour est".
func refers(s string, first bool) bool {
	if stands(s) {
		return true
	}
	var form [12]byte
	switch string(appendLower(form[:0], s)) {
	case "its", "his", "her", "their", "seine", "ihr", "ihre", "ses", "leur", "sus":
		return true
	case "this", "these", "es", "sein", "son", "sa", "su":
		return first
	}
	return false
}

// carry says whose names a sentence inherits.
type carry struct {
	from int32 // sentence of the same group whose names are inherited, -1: none
	// as is how much those names count: from beside (the sentence has a subject of its own) to
	// ahead (a list item).
	as standing
}

// carrier tracks the subject through the sentences of a group. The zero value is ready to use.
type carrier struct {
	group   int
	began   int32 // first sentence of the group
	subject int32 // last sentence that named a subject, -1: none yet
	colons  int   // colons in the sentence that began the current list
	listing bool  // the previous sentence ended with a semicolon
}

// next returns the carry of sentence i, which r has read. Sentences must be passed in order.
func (c *carrier) next(i int32, s Sentence, r *reading) carry {
	if i == 0 || c.group != s.Group {
		*c = carrier{group: s.Group, began: i, subject: -1}
	}
	how := carry{from: c.subject, as: c.standing(s.Text, r)}
	if how.from < 0 && i > c.began {
		how.from = i - 1
	}
	switch {
	case isRecord(s.Text): // each record has a subject of its own
		how.from, c.subject = -1, i
	case how.as == beside:
		c.subject = i
	}
	if !c.listing {
		c.colons = colons(s.Text)
	}
	c.listing = strings.HasSuffix(s.Text, ";") || strings.HasSuffix(s.Text, "；")
	return how
}

// standing returns how much the names of earlier sentences count for this one. A list item is about
// what precedes the colon: "Orrin Building: height 241 m; Opened 1883; by Jon Marlow". An item with
// a colon of its own names its own subject: "Brixa: 120 people; Oltmann: 340 people".
func (c *carrier) standing(text string, r *reading) standing {
	opening := r.opens(text)
	switch {
	case c.listing && c.colons > colons(text) && (opening != named || !r.capital()):
		return ahead
	case opening == titled || opening == named:
		return beside
	case opening == pronoun:
		return meant
	}
	return neighbour
}

// colons counts the colons that introduce something, unlike the one in 14:30.
func colons(text string) int { return strings.Count(text, ": ") + strings.Count(text, "：") }

// capital reports whether the text begins with a capital letter.
func (r *reading) capital() bool {
	return len(r.words) > 0 && r.words[0].Has(words.Capital)
}
