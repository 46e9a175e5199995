package pii

import "strings"

// Long numbers are written as a layout: groups of digits separated by single spaces, dashes or
// dots. A finding must cover its whole layout: 4242 4242 4242 is not a card number if another 4241
// follows.

// maxGroup is the maximum number of digits examined in one group. No number that is searched for
// has more.
const maxGroup = 40

// joint reports whether b may stand between two groups.
func joint(b byte) bool { return b == ' ' || b == '-' || b == '.' }

// joinsOn reports whether a group of digits is joined to what ends at i.
func (s *scanner) joinsOn(i int) bool { return joint(s.byteAt(i)) && isDigit(s.byteAt(i+1)) }

// joinsBack reports whether a group of digits is joined to what begins at i.
func (s *scanner) joinsBack(i int) bool { return joint(s.byteAt(i-1)) && isDigit(s.byteAt(i-2)) }

// groupEnd is digitsEnd for a group of at most maxGroup digits.
func (s *scanner) groupEnd(i int) int {
	limit := min(len(s.text), i+maxGroup)
	for i < limit && isDigit(s.text[i]) {
		i++
	}
	return i
}

// torn reports whether [start, end) is only a part of a number.
func (s *scanner) torn(start, end int) bool {
	return s.tornAfter(start, end) || s.tornBefore(start, end)
}

// tornAfter reports whether a number continues after [start, end). Digits after a space are another
// number if the first number is complete by itself, or if they are clearly something else.
func (s *scanner) tornAfter(start, end int) bool {
	if !s.joinsOn(end) || !isDigit(s.text[end-1]) {
		return false
	}
	return s.text[end] != ' ' || !compact(s.text[start:end]) && !s.otherAt(end+1)
}

// tornBefore reports whether a number begins before [start, end). Digits that belong to an earlier
// finding do not count.
func (s *scanner) tornBefore(start, end int) bool {
	if !s.joinsBack(start) || !isDigit(s.text[start]) {
		return false
	}
	if s.text[start-1] != ' ' {
		return true
	}
	return !compact(s.text[start:end]) && s.bareBefore(start) > 0 && !s.coveredTo(start-1)
}

// coveredTo reports whether the last finding ends at i.
func (s *scanner) coveredTo(i int) bool {
	return len(s.out) > 0 && s.out[len(s.out)-1].End == i
}

// bareBefore returns the number of digits of the word that a space separates from i, or 0 where
// that word has more than digits: a date, a time, an amount.
func (s *scanner) bareBefore(i int) int {
	k := i - 1
	for k > 0 && i-k <= maxGroup && isDigit(s.text[k-1]) {
		k--
	}
	n := i - 1 - k
	for k > 0 && strings.IndexByte("(\"'[", s.text[k-1]) >= 0 {
		k--
	}
	if k > 0 && s.text[k-1] > ' ' {
		return 0
	}
	return n
}

// compact reports a number that is complete by itself next to another: groups without spaces
// between them, or a group longer than those of most layouts.
func compact(value string) bool {
	const long = 5
	groups, digits := 0, 0
	for i := range len(value) {
		if !isDigit(value[i]) {
			continue
		}
		digits++
		if i == 0 || !isDigit(value[i-1]) {
			groups++
		}
		if i > 1 && value[i-1] == ' ' && isDigit(value[i-2]) {
			return false
		}
	}
	return groups > 1 || digits >= long
}

// otherAt reports whether the group of digits at i does not continue the number before it: it is a
// word of another form, or the count of a thing named after it.
func (s *scanner) otherAt(i int) bool {
	const maxCount = 2
	end := s.groupEnd(i)
	if s.strange(end) || s.byteAt(end) != ' ' && s.joinsOn(end) {
		return true
	}
	return end-i <= maxCount && s.byteAt(end) == ' ' && isLetter(s.byteAt(end+1))
}

// strange reports whether a group of digits that ends at i belongs to a date, a time, a share or a
// word. The mark of an extension does not count.
func (s *scanner) strange(i int) bool {
	switch b := s.byteAt(i); b {
	case '%':
		return true
	case '/', ':', ',':
		return isDigit(s.byteAt(i + 1))
	case 'x', 'X':
		return !isDigit(s.byteAt(i + 1))
	}
	return s.wordAfter(i)
}

// whole widens a span of the model to the number that it is a part of. It reports false if that
// number has more groups than a number of the span's type.
func (s *scanner) whole(p *Span) bool {
	most := 2 // besides what was guessed
	switch p.Type {
	case PhoneNumber:
		most = 8
		p.Start = s.areaBefore(p.Start)
	case ZipCode:
		most = 1
	}
	for n := 0; s.tornAfter(p.Start, p.End); n++ {
		if n == most {
			return false
		}
		p.End = s.groupEnd(p.End + 1)
	}
	for n := 0; s.tornBefore(p.Start, p.End); n++ {
		if n == most {
			return false
		}
		p.Start--
		for k := 0; k < maxGroup && isDigit(s.byteAt(p.Start-1)); k++ {
			p.Start--
		}
	}
	return true
}

// areaBefore returns where an area code in parentheses directly before i begins, or i.
func (s *scanner) areaBefore(i int) int {
	k := i
	if s.byteAt(k-1) == ' ' {
		k--
	}
	if s.byteAt(k-1) != ')' {
		return i
	}
	k--
	from := k
	for from > 0 && k-from <= maxGroup && isDigit(s.text[from-1]) {
		from--
	}
	if s.byteAt(from-1) != '(' || !s.closes(from-1) {
		return i
	}
	return from - 1
}

// wholeDate widens a span at the first digits of a date to the numeric date that begins there, and
// a span at a part of a clock time to all of it. It reports false if the digits are a part of
// another number with dots or colons: an address, a version, a time stamp.
func (s *scanner) wholeDate(p *Span) bool {
	first := s.groupEnd(p.Start)
	if first == p.End && p.End-p.Start <= 4 && s.byteAt(first) == '-' {
		probe := scanner{text: s.text[p.Start:min(len(s.text), p.Start+cueWidth)]}
		p.End = max(p.End, p.Start+probe.numericDate(0, first-p.Start))
	}
	from, to := p.Start, p.End
	if strings.Trim(s.text[from:to], "0123456789.:") != "" {
		return true
	}
	for from > 0 && p.Start-from < maxGroup && s.dotted(from-1) {
		from--
	}
	for to < len(s.text) && to-p.End < maxGroup && s.dotted(to) {
		to++
	}
	if from == p.Start && to == p.End {
		return true
	}
	p.Start, p.End = from, to
	return s.clock(from) == to || s.numericDateAt(s.text[from:to]) || dayAndMonth(s.text[from:to])
}

// dotted reports a digit, or a dot or a colon between two digits, at i.
func (s *scanner) dotted(i int) bool {
	b := s.byteAt(i)
	return isDigit(b) || (b == '.' || b == ':') && isDigit(s.byteAt(i-1)) && isDigit(s.byteAt(i+1))
}

// dayAndMonth reports a day and a month with a dot between, and two digits of a year at most: 3.11,
// 3.11.71.
func dayAndMonth(value string) bool {
	day, month, ok := strings.Cut(value, ".")
	month, year, dated := strings.Cut(month, ".")
	if dated && (len(year) != 2 || strings.Trim(year, "0123456789") != "") {
		return false
	}
	return ok && strings.Trim(day+month, "0123456789") == "" && validDay(day, month)
}
