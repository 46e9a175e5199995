package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// streetWords are the types of streets (USPS Publication 28, appendix C1, the usual ones, and
// British and Indian ones), with the short forms that are no other word.
//
//nolint:gochecknoglobals // constant table
var streetWords = wordSet("street st avenue ave road rd boulevard blvd lane ln drive dr court ct place pl square sq terrace ter way parkway pkwy circle cir highway hwy " +
	"trail trl alley aly crescent close mews grove gardens plaza loop pike row path marg ganj nagar")

// maxStreet is the maximum number of words of a street's name between number and type.
const maxStreet = 4

// street reads an English street address whose house number is [i, first): number, one to four
// capitalised words, type of street, and unit, city, state and code if present.
func (s *scanner) street(i, first int) int {
	if first-i > 6 || s.byteAt(first) != ' ' || !s.capitalAt(first+1) {
		return 0
	}
	if b := s.byteAt(i - 1); b == '.' || b == '$' || b == '-' && isDigit(s.byteAt(i-2)) {
		return 0
	}
	end := first
	for n := 0; n <= maxStreet; n++ {
		if s.byteAt(end) != ' ' || !s.capitalAt(end+1) && !isDigit(s.byteAt(end+1)) {
			return 0
		}
		from := end + 1
		if end = s.nameEnd(from); n == 0 {
			continue
		}
		_, typed := streetWords[fold(s.text[from:end])]
		if typed && s.byteAt(end) == '.' && end-from <= 4 {
			end++
		}
		// A unit, or city, state and code, also identify a street whose type is not listed.
		full := s.localityAfter(s.unitAfter(end))
		if typed || full > end {
			return s.add(StreetAddress, i, full, scoreCue)
		}
	}
	return 0
}

// nameEnd returns the end of the word of a name at i, which may contain digits, apostrophes and
// hyphens.
func (s *scanner) nameEnd(i int) int {
	for i < len(s.text) && (isAlnum(s.text[i]) || s.text[i] >= utf8.RuneSelf || s.text[i] == '\'' || s.text[i] == '-') {
		i++
	}
	return i
}

// capitalAt reports whether there is a capital of the Latin blocks at i.
func (s *scanner) capitalAt(i int) bool {
	b := s.byteAt(i)
	if b < 0xC3 || b > 0xC5 {
		return isUpper(b)
	}
	r, _ := utf8.DecodeRuneInString(s.text[i:])
	return unicode.IsUpper(r)
}

// unitAfter returns the end of "Apt. 5", "Suite 141" and similar after i, or i.
func (s *scanner) unitAfter(i int) int {
	at := i
	if s.byteAt(at) == ',' {
		at++
	}
	if s.byteAt(at) != ' ' {
		return i
	}
	at++
	end := s.wordEnd(at)
	switch fold(s.text[at:end]) {
	case "apt", "apartment", "suite", "ste", "unit", "flat", "floor", "fl", "room", "rm", "bldg", "building":
	default:
		if s.byteAt(at) != '#' {
			return i
		}
		end = at + 1
	}
	if s.byteAt(end) == '.' {
		end++
	}
	if s.byteAt(end) == ' ' {
		end++
	}
	unit := end
	for end < len(s.text) && (isAlnum(s.text[end]) || s.text[end] == '-') {
		end++
	}
	if end == unit {
		return i
	}
	return end
}

// localityAfter returns the end of ", City, ST 12345" after i, or i.
func (s *scanner) localityAfter(i int) int {
	if !strings.HasPrefix(s.text[i:], ", ") || !s.capitalAt(i+2) {
		return i
	}
	if end := s.britishTown(i + 2); end > 0 {
		return end
	}
	end := i + 2
	for end < len(s.text) && end-i < 40 && (isLetter(s.text[end]) || s.text[end] >= utf8.RuneSelf || s.text[end] == ' ' || s.text[end] == '-' || s.text[end] == '\'' || s.text[end] == '.') {
		end++
	}
	if !strings.HasPrefix(s.text[end:], ", ") {
		return i
	}
	code := end + 2
	if k := s.wordEnd(code); k-code == 2 && stateCodes[s.text[code:k]] {
		zip := k + 1
		if last := s.digitsEnd(zip); s.byteAt(k) == ' ' && last-zip == 5 {
			if s.byteAt(last) == '-' && s.digitsEnd(last+1) == last+5 {
				last += 5
			}
			return last
		}
		return k
	}
	return i
}

// britishTown returns the end of "Swansea SA1 8QY" at i, or 0: up to three words and a postcode.
func (s *scanner) britishTown(i int) int {
	for range maxName {
		end := s.nameEnd(i)
		if end == i || !s.capitalAt(i) {
			return 0
		}
		if s.byteAt(end) == ',' {
			end++
		}
		if s.byteAt(end) != ' ' {
			return 0
		}
		i = end + 1
		if code := s.britishCode(i); code > 0 {
			return code
		}
	}
	return 0
}

// britishCode returns the end of the UK postcode at i (BS 7666), or 0: SA1 8QY, W1G 0PJ.
func (s *scanner) britishCode(i int) int {
	at := i
	for at < i+2 && isUpper(s.byteAt(at)) {
		at++
	}
	if at == i || !isDigit(s.byteAt(at)) {
		return 0
	}
	if at++; isDigit(s.byteAt(at)) || isUpper(s.byteAt(at)) {
		at++
	}
	if s.byteAt(at) != ' ' || !isDigit(s.byteAt(at+1)) || !isUpper(s.byteAt(at+2)) || !isUpper(s.byteAt(at+3)) ||
		s.wordAfter(at+4) {
		return 0
	}
	return at + len(" 8QY")
}
