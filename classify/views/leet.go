package views

import "strings"

// leetOf gives the letter that a digit or symbol stands for in leetspeak; '1', '|' and '!' may also
// be an l. Digits that rarely stand for one letter (2, 6) are left out: product codes have many.
//
//nolint:gochecknoglobals // constant table
var leetOf = [256]byte{
	'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g',
	'@': 'a', '$': 's', '|': 'i', '!': 'i',
}

// maxLeet is the maximum length of a word that is tried, in bytes.
const maxLeet = 24

// leet replaces words in leetspeak within a token.
func (r *reading) leet(start, end int) {
	for i := start; i < end; {
		if !leetByte(r.text[i]) {
			i++
			continue
		}
		j := i
		for j < end && leetByte(r.text[j]) {
			j++
		}
		word := strings.TrimRight(r.text[i:j], "!|")
		if plain, ok := unleet(word); ok {
			e := edit{i, i + len(word), plain}
			if weakLeet(word) {
				r.weak = append(r.weak, e)
			} else {
				r.edits = append(r.edits, e)
				r.leets++
			}
		}
		i = j
	}
}

// weakLeet reports whether a word only counts as leetspeak together with other such words: short
// ones and those that differ in their first or last character are often names, amounts or codes.
func weakLeet(word string) bool {
	if len(word) <= 3 {
		return true
	}
	inner, letters := 0, 0
	for i := range len(word) {
		if letterOf[word[i]] != 0 {
			letters++
		}
	}
	for i := 1; i < len(word)-1; i++ {
		if leetOf[word[i]] != 0 && letterOf[word[i]] == 0 {
			inner++
		}
	}
	return letters < 3 || inner == 0 && classOf[word[0]]&isSymbol == 0 && classOf[word[len(word)-1]]&isSymbol == 0 || classOf[word[0]]&classOf[word[1]] == isDigit
}

func leetByte(c byte) bool {
	return letterOf[c] != 0 || leetOf[c] != 0
}

// unleet returns the word spelled in leetspeak. Only words of the lexicon count, with at least two
// letters of their own, and without a substitute at the start or the end the rest must not be a
// word: "item5" and "$table" are names, not disguises.
func unleet(word string) (plain string, ok bool) {
	if len(word) < 3 || len(word) > maxLeet {
		return "", false
	}
	p, ok := profileOf(word)
	switch {
	case !ok, p.letters < 2, p.substitutes == 0, len(word) == 3 && p.substitutes > 1:
		return "", false
	case p.first > p.last && (p.letters < 5 || known(word[:p.first])):
		return "", false // a name with a number
	case p.substitutes == 1 && p.first == 0 && classOf[word[0]] == isSymbol && known(word[1:]):
		return "", false // a variable or a handle
	}
	return p.read(word)
}

// maxAmbiguous is the maximum number of characters of a word for which two readings are tried.
const maxAmbiguous = 3

// profile describes the characters of a word in leetspeak.
type profile struct {
	letters, substitutes int
	first, last          int // first substitute, last letter
	ambiguous            [maxAmbiguous]int
	choices              int // how many of ambiguous are set
}

// profileOf returns false for words in camel case and for words that are not leetspeak.
func profileOf(word string) (p profile, ok bool) {
	p.first = -1
	small := false
	for i := range len(word) {
		c := word[i]
		if letterOf[c] != 0 {
			upper := classOf[c]&isUpper != 0
			if upper && small {
				return p, false
			}
			small = small || !upper
			p.letters++
			p.last = i
			continue
		}
		if leetOf[c] == 0 {
			return p, false
		}
		p.substitutes++
		if p.first < 0 {
			p.first = i
		}
		if (c == '1' || c == '|' || c == '!') && p.choices < maxAmbiguous {
			p.ambiguous[p.choices] = i
			p.choices++
		}
	}
	return p, true
}

// read replaces the substitutes by letters until the result is a known word.
func (p *profile) read(word string) (plain string, ok bool) {
	var buf [maxLeet]byte
	out := buf[:len(word)]
	for i := range len(word) {
		if out[i] = word[i]; leetOf[word[i]] != 0 {
			out[i] = leetOf[word[i]]
		}
	}
	for choice := range 1 << p.choices {
		for bit, at := range p.ambiguous[:p.choices] {
			out[at] = 'i'
			if choice>>bit&1 == 1 {
				out[at] = 'l'
			}
		}
		if s := string(out); known(s) {
			return s, true
		}
	}
	return "", false
}
