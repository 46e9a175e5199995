package quantity

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Telephone and account numbers identify something and measure nothing. Two of them agree if their
// digits are the same, however they are grouped.

// Limits on telephone numbers: maxPhone is the maximum number of digits with a country code, by
// ITU-T E.164; leastPhone is the minimum without one.
const (
	maxPhone   = 15
	leastPhone = 7
	leastAbove = 8  // minimum digits after a plus sign
	maxCall    = 40 // maximum length in bytes
	maxTalked  = 24 // bytes before a number in which a word for calling counts
)

// phone takes a telephone number at the current position: with + and a country code, or with a
// leading 0 or an area code in brackets.
func (l *lexer) phone() bool {
	text := l.text[l.pos:min(len(l.text), l.pos+maxCall)]
	if before, _ := utf8.DecodeLastRuneInString(l.text[:l.pos]); isDigit(before) || unicode.IsLetter(before) ||
		strings.ContainsRune(".,-/:€$£_", before) {
		return false
	}
	var c call
	end := c.read(text)
	if end == 0 || isAmount(l.text[l.pos+end:]) || strings.HasPrefix(text[end:], ":") || !c.stands(l.text[:l.pos]) {
		return false
	}
	t := token{start: l.pos, end: l.pos + end, kind: tokCode, unit: unit{dim: telephone, factor: 1}}
	t.country, t.num = c.parse()
	l.toks = append(l.toks, t)
	l.pos = t.end
	return true
}

// isAmount reports whether the text after a number makes it an amount: +1234567890 EUR.
func isAmount(rest string) bool {
	rest = strings.TrimLeft(rest, " \u00a0\u202f")
	for _, unit := range [...]string{
		"%", "€", "$", "£", "EUR", "Euro", "euro", "euros", "USD", "GBP", "CHF", "dollars",
	} {
		if behind, ok := strings.CutPrefix(rest, unit); ok && !startsWord(behind) {
			return true
		}
	}
	return false
}

// call is a telephone number as written.
type call struct {
	digits  [maxPhone + 1]byte
	n       int
	groups  [maxGroups]int  // digits in each
	seps    [maxGroups]byte // separator after each, 0: none
	parts   int
	plus    bool
	bracket bool // the area code is in brackets
	dots    bool // separators other than spaces occur
}

// read reads digits and separators. It returns the end of the number, or 0 if there is none.
func (c *call) read(text string) (end int) {
	at := 0
	if c.plus = text[0] == '+'; c.plus {
		at++
	}
	for at < len(text) {
		size := c.group(text[at:])
		if size == 0 {
			break
		}
		at += size
		end = at
		gap := c.gap(text[at:])
		if gap < 0 {
			break
		}
		at += gap
	}
	return end
}

// group reads a group of digits, possibly in brackets, and returns its length in bytes. The (0)
// after a country code is skipped and does not count as a group.
func (c *call) group(text string) int {
	size, open := 0, strings.HasPrefix(text, "(")
	if open {
		size++
	}
	first := c.n
	for size < len(text) && text[size] >= '0' && text[size] <= '9' {
		if c.n == len(c.digits) || c.parts == maxGroups {
			return 0
		}
		c.digits[c.n] = text[size]
		c.n, size = c.n+1, size+1
	}
	if c.n == first || open && !strings.HasPrefix(text[size:], ")") {
		c.n = first
		return 0
	}
	if open {
		size++
		if c.plus && c.n == first+1 && c.digits[first] == '0' {
			c.n = first
			return size
		}
		c.bracket = c.bracket || first == 0
	}
	c.groups[c.parts] = c.n - first
	c.parts++
	return size
}

// gap returns the length of the separator before the next group, or -1 if no group follows.
func (c *call) gap(text string) int {
	for _, sep := range [...]string{" / ", "/", "-", ".", " ", "\u00a0", "\u202f", ""} {
		rest, ok := strings.CutPrefix(text, sep)
		if !ok || rest == "" || (rest[0] < '0' || rest[0] > '9') && (rest[0] != '(' || sep != " " && sep != "") {
			continue
		}
		if c.n >= leastPhone && rest[0] == '0' && strings.HasPrefix(sep, " /") {
			return -1 // another number
		}
		if mark := strings.Trim(sep, " "); mark != "" {
			c.seps[max(0, c.parts-1)] = mark[0]
		} else if sep != "" {
			c.seps[max(0, c.parts-1)] = ' '
		}
		c.dots = c.dots || len(sep) > 0 && (sep[0] == '-' || sep[0] == '.' || strings.Contains(sep, "/"))
		return len(sep)
	}
	return -1
}

// stands reports whether the digits are a telephone number, and not a date or an amount with a plus
// sign. Without + or a leading 0, a word for calling must precede them.
func (c *call) stands(before string) bool {
	if c.n > maxPhone || c.parts == 0 || c.dated() || !c.plus && !c.bracket && c.timed() {
		return false
	}
	g, thousands := c.groups, c.thousands()
	switch {
	case c.plus:
		return c.n >= leastAbove && c.digits[0] != '0' && (c.parts > 1 || c.n > leastAbove+1) &&
			(!thousands || c.n > leastAbove+1)
	case c.bracket:
		return c.n >= leastPhone && c.parts > 1 && (g[0] == 3 || g[0] > 3 && c.digits[0] == '0')
	case c.digits[0] == '0':
		return c.n >= leastPhone && g[0] > 1 && (c.parts > 1 || c.n > leastAbove) && string(c.digits[:3]) != "000"
	case c.n == 10 && c.parts == 3 && c.dots && g[0] == 3 && g[1] == 3, // North America
		c.n == 11 && c.parts == 4 && c.dots && c.digits[0] == '1' && g[1] == 3 && g[2] == 3:
		return true
	}
	return c.parts > 2 && !thousands && g[0] > 1 && (c.n == 9 || c.n == 10) && calls(before)
}

// thousands reports whether the groups are those of an amount.
func (c *call) thousands() bool {
	return !c.dots && c.parts > 1 && !slices.ContainsFunc(c.groups[1:c.parts], func(n int) bool { return n != 3 })
}

// dated reports whether the first groups are those of a date.
func (c *call) dated() bool {
	g := c.groups
	return c.parts > 2 && !c.plus && g[1] == 2 &&
		(g[0] == 2 && (g[2] == 4 || c.parts == 3) || g[0] == 4 && g[2] == 2)
}

// timed reports whether the separators are those of times, dates or ranges: 08.30-12.00, 05.06.24
// 14, 03/2024-05/2024. Only telephone numbers like 02/123.45.67 combine dots with other separators.
func (c *call) timed() bool {
	slashes, dots, others := 0, 0, 0
	for _, sep := range c.seps[:c.parts-1] {
		switch sep {
		case '/':
			slashes++
		case '.':
			dots++
		default:
			others++
		}
	}
	area := c.seps[0] == '/' && c.groups[1] > 2
	return slashes > 1 || dots > 0 && (others > 0 || slashes > 0 && !area)
}

// calls reports whether the end of a text contains a word for calling.
func calls(before string) bool {
	var form [2 * maxTalked]byte
	n := 0
	for _, r := range before[max(0, len(before)-maxTalked):] {
		if n+utf8.UTFMax <= len(form) {
			n += utf8.EncodeRune(form[n:], unicode.ToLower(r))
		}
	}
	for _, word := range [...]string{
		"tel", "phone", "call", "dial", "fax", "mobil", "móvil", "llam", "appel", "hotline", "ruf", "number", "nummer",
		"numéro", "número",
	} {
		if bytes.Contains(form[:n], []byte(word)) {
			return true
		}
	}
	return false
}

// parse returns the country code, or 0 if there is none, and the number without the country code.
// Leading zeros do not count.
func (c *call) parse() (country int16, number float64) {
	digits, code := c.digits[:c.n], 0
	switch {
	case c.plus:
		code = countryCode(string(digits))
	case digits[0] == '0' && digits[1] == '0':
		digits = digits[2:]
		code = countryCode(string(digits))
	case c.parts == 4 && c.n == 11 && digits[0] == '1':
		code = 1
	}
	for _, d := range digits[:code] {
		country = country*10 + int16(d-'0')
	}
	for _, d := range digits[code:] {
		number = number*10 + float64(d-'0')
	}
	return country, number
}

// twoDigits are the country codes with two digits.
const twoDigits = "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 " +
	"65 66 81 82 84 86 90 91 92 93 94 95 98"

// countryCode returns how many digits at the start of a number are its country code, by ITU-T
// E.164.
func countryCode(digits string) int {
	switch two := digits[:min(2, len(digits))]; {
	case digits[0] == '1' || digits[0] == '7':
		return 1
	case strings.Contains(twoDigits, two):
		return 2
	}
	return min(3, len(digits))
}

// accounts are the IBAN countries with the length of their IBANs, from the registry of ISO 13616.
const accounts = "AD24 AE23 AT20 BE16 BG22 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FR27 GB22 GR27 HR21 HU28 IE22 " +
	"IS26 IT27 LI21 LT20 LU20 LV21 MC27 MT31 NL18 NO15 PL28 PT25 RO24 SA24 SE24 SI19 SK24 SM27 TR26 UA29"

// account takes an IBAN, written in one piece or in groups of four.
func (l *lexer) account() bool {
	text := l.text[l.pos:]
	if len(text) < 15 || !isUpper(text[0]) || !isUpper(text[1]) || !isDigit(rune(text[2])) {
		return false
	}
	_, after, ok := strings.Cut(accounts, text[:2])
	if !ok {
		return false
	}
	long := int(after[0]-'0')*10 + int(after[1]-'0')
	h, n, at := uint64(14695981039346656037), 0, 0
	for ; at < len(text) && n < long; at++ {
		c := text[at]
		if c == ' ' && n > 0 && n%4 == 0 {
			continue
		}
		if !isDigit(rune(c)) && !isUpper(c) {
			return false
		}
		h = (h ^ uint64(c)) * 1099511628211 // FNV-1a
		n++
	}
	if n < long || startsWord(text[at:]) {
		return false
	}
	l.toks = append(l.toks, token{
		start: l.pos, end: l.pos + at, kind: tokCode, num: float64(h >> 12), unit: unit{dim: account, factor: 1},
	})
	l.pos += at
	return true
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// code returns the telephone or account number at token i.
func (p *parser) code(i int) (v Value, ok bool) {
	t := p.tok(i)
	if t.kind != tokCode {
		return v, false
	}
	v = plainValue(t.num, 1)
	v.Start, v.End, v.Place, v.Country = t.start, t.end, 1, t.country
	v.setUnit(t.unit)
	return v, true
}
