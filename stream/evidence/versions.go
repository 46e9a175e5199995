package evidence

import (
	"regexp"
	"slices"
	"strings"
)

// maxVersions is the maximum number of versions taken from one text; our choice.
const maxVersions = 8

// maxParts is the maximum number of parts in a version with what follows it, such as a build
// number.
const maxParts = 4

// maxWordBefore is how many bytes before a number are searched for the word that says what it is.
const maxWordBefore = 32

// Versions appends the versions in a text to dst and returns the extended slice. A version is three
// numbers joined by dots, or two after a v or "version", as in 3.1.4, v2.10 and 2.0.0-rc.1. The v,
// everything after a hyphen, and zeros at the end are omitted. Dates, thousands, addresses and
// section numbers are not versions. Allocates only to grow dst.
func Versions(dst []string, text string) []string {
	first, listed := len(dst), -1
	for at := 0; at < len(text) && len(dst)-first < maxVersions; {
		if !digit(text[at]) {
			at++
			continue
		}
		end, parts := numbersFrom(text, at)
		if goesOn := listed >= 0 && parts <= 3 && isList(text[listed:at]); parts > 1 &&
			(goesOn || isVersion(text, at, end, parts)) {
			dst, listed = append(dst, plainVersion(text[at:end])), end
		}
		at = end
	}
	return dst
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// numbersFrom reads numbers joined by dots. It returns their end and their number.
func numbersFrom(text string, at int) (end, parts int) {
	for parts = 1; ; parts++ {
		for at < len(text) && digit(text[at]) {
			at++
		}
		if at+1 >= len(text) || text[at] != '.' || !digit(text[at+1]) {
			return at, parts
		}
		at++
	}
}

// isList reports whether the text between two numbers makes them a list or a range.
func isList(between string) bool {
	switch between {
	case ", ", "/", "–", "-", " and ", " or ", ", and ", ", or ", " to ", " through ", " und ", " oder ", " bis ":
		return true
	}
	return false
}

// isVersion reports whether a number of parts at a position of a text is a version.
func isVersion(text string, at, end, parts int) bool {
	v := at > 0 && text[at-1]|0x20 == 'v' && (at == 1 || !letter(text[at-2]) && !digit(text[at-2]))
	before := strings.TrimRight(text[max(0, at-maxWordBefore):at], " ")
	word := strings.ToLower(strings.TrimRight(before[strings.LastIndexAny(before, " \n(#*`")+1:], "."))
	switch word {
	case "version", "versions", "release", "releases", "v":
		v = v || at > 0 && text[at-1] == ' '
	}
	switch {
	case parts > 3 || parts == 2 && !v:
		return false
	case v:
		return true
	case at > 0 && (letter(text[at-1]) || strings.IndexByte(",-/_$", text[at-1]) >= 0),
		end < len(text) && letter(text[end]):
		return false
	}
	switch word {
	case "section", "sections", "sec", "§", "clause", "chapter", "figure", "fig", "table", "article", "paragraph",
		"rule", "item", "step", "annex", "abschnitt", "kapitel",
		"ziffer", "nr", "punkt", "abbildung", "tabelle", "artikel":
		return false
	}
	a, rest, _ := strings.Cut(text[at:end], ".")
	b, c, _ := strings.Cut(rest, ".")
	thousands := len(b) == 3 && len(c) == 3
	date := len(c) == 4 || len(c) == 2 && len(a) <= 2 && (len(b) == 1 || len(b) == 2 && b <= "12") && c >= "20"
	return !thousands && !date
}

// plainVersion returns a version without the zeros at its end.
func plainVersion(text string) string {
	for strings.HasSuffix(text, ".0") {
		text = strings.TrimSuffix(text, ".0")
	}
	return text
}

// HasVersion reports whether the evidence contains a version, as returned by Versions, also without
// a word such as "version". With line, a longer version that begins with v counts as well. If the
// evidence names no version or a range of versions, HasVersion returns true.
func (e *Evidence) HasVersion(v string, line bool) bool {
	whole, begins := e.joined[v]
	return e.versions == nil || e.ranged || whole || begins && line
}

// RangesVersions reports whether a text covers all versions up to one, or from one on, by a word
// directly before or after its number: "before 2.3.1", "2.3.1 and later".
func RangesVersions(text string) bool {
	for at := 0; at < len(text); {
		if !digit(text[at]) {
			at++
			continue
		}
		end, parts := numbersFrom(text, at)
		before := strings.TrimRight(text[max(0, at-maxWordBefore):at], " vV=`*")
		behind := strings.TrimLeft(text[end:min(len(text), end+maxWordBefore)], " `*")
		if parts > 1 && (rangeBefore.MatchString(before) || rangeBehind.MatchString(behind)) {
			return true
		}
		at = end
	}
	return false
}

var (
	rangeBefore = regexp.MustCompile(
		`(?i)(?:[<>≤≥]|\b(?:before|prior to|below|above|up to|through|until|vor|unter|ab|bis|` +
			`(?:earlier|older|lower|less|later|newer|higher|greater) than))(?: (?:and including|version))?$`)
	rangeBehind = regexp.MustCompile(
		`(?i)^(?:\+|,? ?\(?(?:and|or|und|oder) (?:later|newer|above|higher|up|earlier|older|below|lower|neuer|höher|älter))`)
)

// noteJoined records all dotted numbers of a text, and their beginnings.
func (e *Evidence) noteJoined(text string) {
	for at := 0; at < len(text); {
		if !digit(text[at]) {
			at++
			continue
		}
		end, parts := numbersFrom(text, at)
		for n := end; parts > 1 && parts <= maxParts; parts-- {
			v := plainVersion(text[at:n])
			e.joined[v] = e.joined[v] || n == end
			n = at + strings.LastIndexByte(text[at:n], '.')
		}
		at = end
	}
}

// VersionsOf returns the versions that sentence i is about: its own, otherwise those of the last
// sentence before it that has some and is not in another section.
func (e *Evidence) VersionsOf(i int) []string {
	const none = 99
	rank := none // lowest number of marks among the headings above the sentence
	for k := i; k >= 0 && len(e.versions) > 0 && e.sentences[k].source == e.sentences[i].source; k-- {
		r := e.rankOf(k)
		within := k == i || r == 0 && rank == none || r > 0 && r < rank
		if within && len(e.versions[k]) > 0 {
			return e.versions[k]
		}
		if r > 0 && k < i {
			rank = min(rank, r)
		}
	}
	return nil
}

// noteVersions records the versions of all sentences, if there are any.
func (e *Evidence) noteVersions() {
	var list []string
	for i := range e.sentences {
		if list = Versions(list[:0], e.sentences[i].text); len(list) == 0 {
			continue
		}
		if e.versions == nil {
			e.versions = make([][]string, len(e.sentences))
		}
		e.versions[i] = slices.Clone(list)
		e.ranged = e.ranged || RangesVersions(e.sentences[i].text)
	}
	if e.versions == nil {
		return
	}
	e.joined = make(map[string]bool)
	for i := range e.sentences {
		e.noteJoined(e.sentences[i].text)
	}
}
