package simulator

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendString appends a string by a schema: one that matches its pattern, one of its format, or
// the word "simulated", with a valid length. nth distinguishes strings that must differ.
func appendString(dst []byte, s *node, nth int) (out []byte, ok bool) {
	least, most := s.count("minLength", 0), s.count("maxLength", math.MaxInt32)
	if least > most || least > maxFillChars {
		return dst, false
	}
	if p := s.get("pattern"); p != nil {
		text, ok := matching(p.text, least)
		if n := utf8.RuneCountInString(text); !ok || n < least || n > most {
			return dst, false
		}
		return appendQuoted(dst, text), true
	}
	text := "simulated"
	if f := s.get("format"); f != nil {
		if sample := formatted(f.text, nth); sample != "" {
			return appendQuoted(dst, sample), true
		}
	}
	if nth > 0 {
		text = strconv.Itoa(nth) + " " + text
	}
	if n := len(text); n < least {
		text += strings.Repeat(".", least-n)
	}
	return appendQuoted(dst, text[:min(len(text), most)]), true
}

// formatted returns a string of a JSON schema format; empty for an unknown one.
func formatted(format string, nth int) string {
	day := strconv.Itoa(10 + nth%18)
	switch format {
	case "date-time":
		return "2024-01-" + day + "T09:30:00Z"
	case "date":
		return "2024-01-" + day
	case "time":
		return "09:" + day + ":00Z"
	case "duration":
		return "P" + day + "D"
	case "email":
		return "someone" + strconv.Itoa(nth) + "@example.com"
	case "hostname":
		return "host" + strconv.Itoa(nth) + ".example.com"
	case "ipv4":
		return "192.0.2." + strconv.Itoa(nth%256)
	case "ipv6":
		return "2001:db8::" + strconv.FormatInt(int64(nth%65536), 16)
	case "uri", "url", "iri", "uri-reference":
		return "https://example.com/" + strconv.Itoa(nth)
	case "uuid":
		return string(appendUUID(nil, nth))
	}
	return ""
}

// appendUUID appends a UUID of version 4 that depends only on n.
func appendUUID(dst []byte, n int) []byte {
	hex := appendHexID(nil, 1, uint64(n))
	hex[12], hex[16] = '4', 'a'
	for i, b := range hex {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			dst = append(dst, '-')
		}
		dst = append(dst, b)
	}
	return dst
}

// matching returns a text that a regular expression matches completely, with at least the given
// number of characters if possible; ok is false if the expression is invalid.
func matching(pattern string, least int) (text string, ok bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	for more := 0; ; more = 2*more + 1 {
		var b strings.Builder
		if !spell(&b, re, more) {
			return "", false
		}
		if text = b.String(); utf8.RuneCountInString(text) >= least || more > least {
			break
		}
	}
	check, err := regexp.Compile("^(?:" + pattern + ")$")
	return text, err == nil && check.MatchString(text)
}

// spell writes a text that an expression matches, with up to more additional repetitions.
func spell(b *strings.Builder, re *syntax.Regexp, more int) bool {
	if b.Len() > maxFillChars {
		return false
	}
	switch re.Op { //nolint:exhaustive // the others match no character
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return false
		}
		b.WriteRune(readable(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if !spell(b, sub, more) {
				return false
			}
		}
	case syntax.OpAlternate:
		return spell(b, re.Sub[0], more)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return spellTimes(b, re, more)
	case syntax.OpNoMatch:
		return false
	default:
	}
	return true
}

// spellTimes writes a repeated expression.
func spellTimes(b *strings.Builder, re *syntax.Regexp, more int) bool {
	low, high := re.Min, re.Max
	switch re.Op { //nolint:exhaustive // what repeats
	case syntax.OpStar:
		low, high = 0, -1
	case syntax.OpPlus:
		low, high = 1, -1
	case syntax.OpQuest:
		low, high = 0, 1
	}
	times := max(low, more)
	if high >= 0 {
		times = min(times, high)
	}
	for range times {
		if !spell(b, re.Sub[0], min(more, 1)) {
			return false
		}
	}
	return true
}

// readable returns a letter or digit of a character class if it has one, else its first character.
func readable(class []rune) rune {
	for _, want := range "a0A" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= want && want <= class[i+1] {
				return want
			}
		}
	}
	return class[0]
}
