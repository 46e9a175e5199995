package numeric

import (
	"strings"

	"signalbox/stream/evidence/words"
)

// opening tells how a sentence names what it speaks of.
type opening uint8

const (
	nameless opening = iota // no name: "the company employs 312 people", "opened 1883"
	pronoun                 // a pronoun before any name: "In 2020 it moved to Oslo"
	titled                  // no capital but that of its first word, a name or not: "Tullis employs", "Tickets cost"
	named                   // a name of its own
)

// opens reads the opening of a sentence. Months in dates and signs of units name nothing.
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

// stands reports pronouns that stand for a subject, of English, German and French.
func stands(s string) bool {
	var form [12]byte
	switch string(appendLower(form[:0], s)) {
	case "it", "he", "she", "they", "er", "sie", "il", "elle", "ils", "elles":
		return true
	}
	return false
}

// refers reports pronouns that go back to what was named before, of English, German, French and
// Spanish. Some are other words inside a sentence: "Las torres son", "la tour est".
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

// carry tells whose names a sentence goes on with.
type carry struct {
	from int32    // the sentence of its group that has them, -1: none
	as   standing // how much they count: beside for a sentence with a subject of its own, up to ahead for an item of a list
}

// carrier follows the subject through the sentences of a group. Its zero value is ready.
type carrier struct {
	group   int
	began   int32 // first sentence of the group
	subject int32 // last sentence that named a subject, -1: none yet
	colons  int   // of the sentence that began the list that goes on
	listing bool  // the sentence before ended with a semicolon
}

// next is the carry of sentence i, which r has read. Sentences come in order.
func (c *carrier) next(i int32, s Sentence, r *reading) carry {
	if i == 0 || c.group != s.Group {
		*c = carrier{group: s.Group, began: i, subject: -1}
	}
	how := carry{from: c.subject, as: c.standing(s.Text, r)}
	if how.from < 0 && i > c.began {
		how.from = i - 1
	}
	switch {
	case isRecord(s.Text): // each is of its own
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

// standing is how much the names before a sentence count for it. An item of a list speaks of what
// stands before the colon: "Orrin Building: height 241 m; Opened 1883; by Jon Marlow". With a colon
// as the first item has, it names its own subject: "Brixa: 120 people; Oltmann: 340 people".
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

// colons counts those that open something; the one in 14:30 does not.
func colons(text string) int { return strings.Count(text, ": ") + strings.Count(text, "：") }

// capital reports whether a text begins with a capital.
func (r *reading) capital() bool {
	return len(r.words) > 0 && r.words[0].Has(words.Capital)
}
