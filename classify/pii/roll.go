package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lists of attendees, and names before a mail address.

// maxRoll is the maximum length of a list of names, in bytes.
const maxRoll = 1024

// roll adds the full names between commas in the line at i, after a key for attendees. Text in
// parentheses after a name does not belong to it.
func (s *scanner) roll(i int) {
	end := min(len(s.text), i+maxRoll)
	if k := strings.IndexByte(s.text[i:end], '\n'); k >= 0 {
		end = i + k
	}
	for i < end {
		next := end
		if k := strings.IndexAny(s.text[i:end], ",;"); k >= 0 {
			next = i + k
		}
		s.rolled(i, next)
		i = next + 1
	}
}

// rolled adds the names in one item of a list, which may be two joined by "and".
func (s *scanner) rolled(from, to int) {
	item := s.text[from:to]
	if k := strings.IndexByte(item, '('); k >= 0 {
		item = item[:k]
	}
	for at, end := joinIn(item); at >= 0; at, end = joinIn(item) {
		s.attends(from, from+at)
		from, item = from+end, item[end:]
	}
	s.attends(from, from+len(item))
}

// joinIn returns the range of the first word between two names of a list, including its spaces, or
// -1.
func joinIn(item string) (start, end int) {
	for {
		k := strings.IndexByte(item[end:], ' ')
		if k < 0 {
			return -1, -1
		}
		start = end + k
		if k = strings.IndexByte(item[start+1:], ' '); k < 0 {
			return -1, -1
		}
		end = start + 1 + k
		switch item[start+1 : end] {
		case "and", "und", "et", "e", "y", "en", "i", "&":
			return start, end + 1
		}
	}
}

// attends adds the name of one item of a list.
func (s *scanner) attends(from, to int) {
	item := strings.TrimSpace(s.text[from:to])
	if strings.IndexByte(item, ' ') < 0 {
		return
	}
	item = strings.TrimRight(item, " \t\r.")
	for {
		bare := strings.TrimLeft(item, " \t*-")
		word, rest := nextToken(bare)
		if courtesies[fold(strings.TrimSuffix(word, "."))] == 0 && !dottedTitle(word) {
			item = bare
			break
		}
		item = rest
	}
	if strings.IndexByte(item, ' ') < 0 || namedWords(item) < 2 || !nobodysTeam(item) {
		return
	}
	at := from + strings.Index(s.text[from:to], item)
	s.addName(at, item)
}

// dottedTitle reports a title with a dot.
func dottedTitle(word string) bool {
	title, ok := strings.CutSuffix(word, ".")
	if !ok {
		return false
	}
	_, ok = dottedTitles[fold(title)]
	return ok
}

// nobodysTeam reports whether no word of a name is one with which parts of a company sign.
func nobodysTeam(name string) bool {
	for w := range strings.FieldsSeq(name) {
		_, signs := commons["signer"][w]
		_, noun := commons["german"][w]
		_, role := roles[fold(w)]
		if signs || noun || role {
			return false
		}
	}
	return true
}

// mailed adds the full name before a mail address in angle brackets whose first byte is at i, if
// the address contains a word of the name, or a key announces an author.
func (s *scanner) mailed(i, at int) {
	if s.byteAt(i-1) != '<' {
		return
	}
	end := len(strings.TrimRight(s.text[:i-1], " \""))
	if end == i-1 && s.byteAt(end-1) != '"' {
		return
	}
	from := end
	for from > 0 && end-from < maxFieldValue {
		r, size := utf8.DecodeLastRuneInString(s.text[:from])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune(" .,-'’", r) {
			break
		}
		from -= size
	}
	name := strings.TrimLeft(s.text[from:end], " .,-'’")
	from = end - len(name)
	// the last of several
	if k := strings.LastIndex(name, ", "); k >= 0 && s.byteAt(from-1) != '"' {
		name, from = name[k+2:], from+k+2
	}
	plainName := strings.Replace(name, ",", "", 1)
	if strings.IndexByte(plainName, ' ') < 0 || namedWords(plainName) < 2 || !nobodysTeam(plainName) {
		return
	}
	if s.keyed(from, Person) || inAddress(plainName, fold(s.text[i:at])) {
		s.addName(from, name)
	}
}

// inAddress reports whether a word of a name occurs in the local part of a mail address.
func inAddress(name, local string) bool {
	for w := range strings.FieldsSeq(name) {
		if utf8.RuneCountInString(w) > 2 && strings.Contains(local, fold(w)) {
			return true
		}
	}
	return false
}

// roles are words of names of departments and services that send mail.
//
//nolint:gochecknoglobals // constant table
var roles = wordSet("billing support info sales noreply no-reply hello contact admin team office news " +
	"newsletter service notifications alerts security accounts accounting careers jobs press media marketing " +
	"help helpdesk desk orders shipping returns care customer bot ci build builds system mailer daemon postmaster " +
	"webmaster bank store shop vertrieb buchhaltung kundenservice bestellung rechnung facturation comptabilité ventas " +
	"facturación vendite administratie klantenservice biuro faturamento vendas online digital community events " +
	"project group board mailing list lists regards studio web preview native cloud app apps labs software hub " +
	"developer developers platform release releases digest weekly daily data science machine learning analytics " +
	"balancer load open source real bayern united city")
