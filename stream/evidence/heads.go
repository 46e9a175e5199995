package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// writeCell writes a cell after the head of its column. If the head has a unit in brackets and the
// cell is a bare number, the unit is written with the number: 12 under "Revenue (EUR million)"
// becomes "Revenue EUR 12 million".
func writeCell(b *strings.Builder, head, cell string) {
	name, unit, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(head), ")"), "(")
	number := strings.Trim(cell, "*_` ")
	if !ok || !strings.HasSuffix(strings.TrimSpace(head), ")") || !bareNumber(number) {
		b.WriteString(head)
		b.WriteByte(' ')
		b.WriteString(cell)
		return
	}
	name = strings.TrimSpace(name)
	b.WriteString(name)
	if r, _ := utf8.DecodeLastRuneInString(name); unicode.IsDigit(r) {
		b.WriteByte(':') // 2023: EUR 12 million
	}
	var behind []string
	glued, money := false, false
	for word := range strings.FieldsSeq(strings.ReplaceAll(unit, ",", " ")) {
		sign, rest := currencySign(word)
		switch {
		case sign != "":
			b.WriteString(" " + sign)
			glued, money = true, true
			if rest != "" {
				behind = append(behind, rest)
			}
		case currencyCode(word):
			b.WriteString(" " + word)
			glued, money = false, true
		case word != "in":
			behind = append(behind, word)
		}
	}
	if !glued {
		b.WriteByte(' ')
	}
	b.WriteString(number)
	for _, word := range behind {
		b.WriteByte(' ')
		b.WriteString(magnitudeOf(word, money))
	}
}

// unitOfRow returns the unit that the head of the first column has for the period columns after it:
// "EUR million" for "Segment (EUR million) | 2023 | 2024" and for "EUR million | 2023 | 2024". It
// returns "" if the head has no unit, or if the first column contains numbers itself.
func unitOfRow(head, cell string) string {
	name, unit, inside := strings.Cut(strings.TrimSuffix(strings.TrimSpace(head), ")"), "(")
	if !inside {
		unit = name
	}
	if bareNumber(strings.Trim(cell, "*_` ")) {
		return ""
	}
	known := false
	for word := range strings.FieldsSeq(strings.ReplaceAll(unit, ",", " ")) {
		sign, rest := currencySign(word)
		if sign == "" {
			rest = word
		}
		switch {
		case currencyCode(word), currencyName(word), sign != "" && rest == "", isMagnitude(magnitudeOf(rest, true)):
			known = true
		case !strings.EqualFold(word, "in") && !strings.EqualFold(word, "of"):
			return ""
		}
	}
	if !known {
		return ""
	}
	return strings.TrimSpace(unit)
}

func isMagnitude(word string) bool {
	switch word {
	case "thousand", "million", "billion":
		return true
	}
	return false
}

// ofPeriod reports whether a column head is a period: 2023, Q1 2024, FY23, H1.
func ofPeriod(head string) bool {
	digits := 0
	for _, r := range head {
		switch {
		case unicode.IsDigit(r):
			digits++
		case !strings.ContainsRune("QHFYTM /-*_", r):
			return false
		}
	}
	return digits >= 4 || digits > 0 && strings.ContainsAny(head, "QHF")
}

// bareNumber reports whether a cell consists only of digits and their separators.
func bareNumber(s string) bool {
	digits := false
	for _, r := range s {
		digits = digits || unicode.IsDigit(r)
		if !unicode.IsDigit(r) && !strings.ContainsRune(".,'’-+−  ", r) {
			return false
		}
	}
	return digits
}

// currencySign splits a currency sign off the start of a word: €m.
func currencySign(word string) (sign, rest string) {
	r, size := utf8.DecodeRuneInString(word)
	if unicode.Is(unicode.Sc, r) {
		return word[:size], word[size:]
	}
	return "", word
}

// currencyCode reports whether a word is the code of a currency that numbers are read with.
func currencyCode(word string) bool {
	switch word {
	case "EUR", "USD", "GBP", "JPY", "CHF", "CNY", "INR", "CAD", "AUD", "SEK", "BRL", "RUB", "MXN", "KRW", "US$",
		"NOK", "DKK", "PLN", "CZK", "HUF", "NZD", "SGD", "HKD", "ZAR", "ILS", "AED", "THB":
		return true
	}
	return false
}

// currencyName reports whether a word is the name of a common currency.
func currencyName(word string) bool {
	switch strings.ToLower(word) {
	case "euro", "euros", "dollar", "dollars", "pounds", "francs", "franken", "yen":
		return true
	}
	return false
}

// magnitudeOf spells out the magnitude in a column head. Single letters count only next to a
// currency (money); other words are returned unchanged.
func magnitudeOf(word string, money bool) string { //nolint:revive // a fact about the head
	switch word {
	case "mn", "mln", "mio", "millions":
		return "million"
	case "bn", "mrd", "billions":
		return "billion"
	case "'000", "’000", "000", "thousands":
		return "thousand"
	}
	if money {
		switch word {
		case "m", "M":
			return "million"
		case "B":
			return "billion"
		case "k", "K":
			return "thousand"
		}
	}
	return word
}
