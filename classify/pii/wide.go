package pii

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// leastWide is the minimum number of non-ASCII digits for which a text is rewritten with ASCII
// digits: fewer are not a personal number.
const leastWide = 6

const (
	firstWide = 0xD9 // lowest first byte of a character that ascii converts
	firstHard = 0xC2 // first byte of a no-break space
)

// narrowed is a text in which Arabic, Persian and full-width digits, full-width signs and letters,
// the hyphens and the space that Japanese uses between digits, and no-break spaces are replaced by
// ASCII.
type narrowed struct {
	text string
	cuts []cut // in order
}

// cut is a position after which the text is shorter than the original.
type cut struct{ at, less int }

// narrow rewrites text, if it has enough such digits or a full-width @.
func narrow(text string) (n narrowed, ok bool) {
	digits := 0
	for i := 0; i < len(text) && digits < leastWide; {
		if text[i] < firstWide && text[i] != firstHard {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch a := ascii(r); {
		case a == '@':
			digits = leastWide
		case isDigit(a):
			digits++
		case digitJoint(text, i, r, size) != 0: // two of them separate a number
			digits += leastWide / 2
		}
		i += size
	}
	if digits < leastWide {
		return n, false
	}
	var b strings.Builder
	b.Grow(len(text))
	less := 0
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		a := cmp.Or(ascii(r), hard(r), digitJoint(text, i, r, size))
		if a == 0 {
			b.WriteString(text[i : i+size])
			continue
		}
		b.WriteByte(a)
		less += utf8.RuneLen(r) - 1
		n.cuts = append(n.cuts, cut{b.Len(), less})
	}
	n.text = b.String()
	return n, true
}

// ascii returns the ASCII equivalent of r, or 0 if it has none.
func ascii(r rune) byte {
	switch {
	case r >= 0x660 && r <= 0x669:
		return byte(r-0x660) + '0'
	case r >= 0x6F0 && r <= 0x6F9:
		return byte(r-0x6F0) + '0'
	case r >= 0xFF10 && r <= 0xFF19, r >= 0xFF21 && r <= 0xFF3A, r >= 0xFF41 && r <= 0xFF5A,
		r == 0xFF08, r == 0xFF09, r == 0xFF0B, r == 0xFF0D, r == 0xFF0E, r == 0xFF20, r == 0xFF3F:
		return byte(r - 0xFF00 + ' ')
	}
	return 0
}

// hard returns an ASCII space for a space that keeps the groups of a number on one line (no-break,
// narrow no-break, figure and thin space), and 0 for other runes.
func hard(r rune) byte {
	switch r {
	case '\u00A0', '\u202F', '\u2007', '\u2009':
		return ' '
	}
	return 0
}

// digitJoint returns the ASCII equivalent of a non-ASCII hyphen or space at i between two digits,
// or 0.
func digitJoint(text string, i int, r rune, size int) byte {
	joint := hard(r)
	switch r {
	case 'ー', '‐', '‑', '−':
		joint = '-'
	case '　':
		joint = ' '
	}
	if joint == 0 {
		return 0
	}
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	if !digitAt(text[i+size:]) || (last < '0' || last > '9') && !isDigit(ascii(last)) {
		return 0
	}
	return joint
}

// before returns the position in the original of position i in the rewritten text.
func (n *narrowed) before(i int) int {
	k, found := slices.BinarySearchFunc(n.cuts, i, func(c cut, i int) int { return c.at - i })
	if found {
		k++
	}
	if k == 0 {
		return i
	}
	return i + n.cuts[k-1].less
}
