package check

import (
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// week is a bit set of weekdays; Monday is the lowest bit.
type week uint8

const (
	workdays week = 1<<5 - 1
	weekend  week = 3 << 5
)

// dayNames maps English names of weekdays and of groups of them, by hash, to the days.
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

// among reports whether the claim names a weekday that no premise names but that follows from one:
// "open on Wednesday" or "closed on Sundays" from "Monday to Friday", or "on a Tuesday" from 12
// March 2024. A small model cannot count days.
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

// datesOn returns the weekdays of the dates in a text.
func datesOn(text string) (days week) {
	for _, v := range quantity.Parse(nil, text) {
		if day := v.DayOfWeek(); day > 0 {
			days |= 1 << (day - 1)
		}
	}
	return days
}

// daysOf returns the days that a text names, and all days that it covers, including those within a
// range and those of words such as "weekdays".
func daysOf(list []words.Word, text string) (named, told week) {
	last := -1 // the last word that names a day
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

// ranged reports whether the first and the last of some words form a range: "Monday to Friday",
// "Monday–Friday".
func ranged(list []words.Word, text string) bool {
	if len(list) == 3 {
		return until[list[1].Hash]
	}
	return len(list) == 2 && strings.ContainsAny(text[list[0].End:list[1].Start], "-–—")
}
