package check

import (
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// week is a set of days of the week, Monday first, a bit each.
type week uint8

const (
	workdays week = 1<<5 - 1
	weekend  week = 3 << 5
)

// dayNames are the days of the week and words for several of them, of English, by hash.
//
//nolint:gochecknoglobals // constant table
var dayNames = func() map[uint64]week {
	m := map[uint64]week{}
	for i, name := range strings.Fields("monday tuesday wednesday thursday friday saturday sunday") {
		m[hashOf(name)], m[hashOf(name+"s")] = 1<<i, 1<<i
	}
	for name, days := range map[string]week{
		"weekday": workdays, "weekdays": workdays, "weekend": weekend, "weekends": weekend, "daily": workdays | weekend,
	} {
		m[hashOf(name)] = days
	}
	return m
}()

//nolint:gochecknoglobals // constant table
var shut = hashes("closed closes shut")

// among reports whether the claim names a day of the week that no premise names and that follows
// from those that one does: "open on Wednesday" of "Monday to Friday", "closed on Sundays" of the
// same, "on a Tuesday" of 12 March 2024. A small judge does not count days.
func (r *reading) among() bool {
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	m.claim = words.Scan(m.claim[:0], r.claim.Text)
	var asked week
	denied := false
	for i := range m.claim {
		asked |= dayNames[m.claim[i].Hash]
		denied = denied || shut[m.claim[i].Hash] || m.claim[i].Has(words.Negation)
	}
	if asked == 0 {
		return false
	}
	for i := range r.found {
		m.premise = words.Scan(m.premise[:0], r.found[i].Text)
		named, told := daysOf(m.premise, r.found[i].Text)
		if told != named && asked&named == 0 && (told&asked == asked) != denied {
			return true
		}
		if !denied && datesOn(r.found[i].Text)&asked != 0 {
			return true
		}
	}
	return false
}

// datesOn are the days of the week on which the dates of a text fall.
func datesOn(text string) (days week) {
	for _, v := range quantity.Parse(nil, text) {
		if day := v.DayOfWeek(); day > 0 {
			days |= 1 << (day - 1)
		}
	}
	return days
}

// daysOf are the days that a text names by name, and all that it tells of: those between two days
// of a range and those of words for several.
func daysOf(list []words.Word, text string) (named, told week) {
	last := -1 // word that names a day
	for i := range list {
		days := dayNames[list[i].Hash]
		if days == 0 {
			continue
		}
		told |= days
		if days&(days-1) != 0 {
			last = -1
			continue
		}
		named |= days
		if last >= 0 && ranged(list[last:i+1], text) {
			for d := dayNames[list[last].Hash]; d < days; d <<= 1 {
				told |= d
			}
		}
		last = i
	}
	return named, told
}

// ranged reports whether a range lies between the first and the last of some words: "Monday to
// Friday", "Monday–Friday".
func ranged(list []words.Word, text string) bool {
	if len(list) == 3 {
		return until[list[1].Hash]
	}
	return len(list) == 2 && strings.ContainsAny(text[list[0].End:list[1].Start], "-–—")
}
