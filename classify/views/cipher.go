package views

import (
	"slices"
	"strings"
)

// cipherRun is a sequence of words in one line of which the lexicon contains few: it may be
// readable in ROT13 or backwards.
type cipherRun struct {
	start, stop int
	strangers   int
	familiar    int // known words since the last unknown one
}

const (
	// maxFamiliar is the number of consecutive known words that ends a run.
	maxFamiliar = 2
	// minStrangers is the minimum number of unknown words in a run.
	minStrangers = 2
	// minCipher is the minimum length of a run in bytes.
	minCipher = 10
)

// unknown adds a word that is not in the lexicon.
func (c *cipherRun) unknown(start, end int) {
	if c.strangers == 0 {
		c.start = start
	}
	c.strangers++
	c.familiar, c.stop = 0, end
}

// known adds a word of the lexicon.
func (c *cipherRun) known(r *reading, start, end int) {
	if c.strangers == 0 {
		return
	}
	if end-start > 1 {
		c.familiar++
	}
	if c.familiar >= maxFamiliar {
		c.end(r)
	}
}

// end reads the run as ROT13 and backwards and keeps the result if it is text.
func (c *cipherRun) end(r *reading) {
	if c.strangers == 0 {
		return
	}
	strangers, s := c.strangers, r.text[c.start:c.stop]
	c.strangers, c.familiar = 0, 0
	if strangers < minStrangers || len(s) < minCipher {
		return
	}
	w := weigh(s)
	switch {
	case w.convinces(w.rotated, w.longRotated):
		r.payload(rot13(s))
	case w.convinces(w.reversed, w.longReversed):
		r.payload(reverse(s))
		r.payload(reverseWords(s))
	}
}

// weights counts the letters in words of three letters or more: all, and those in the lexicon as
// written, in ROT13 and backwards.
type weights struct {
	letters, raw, rotated, reversed int
	longRotated, longReversed       int // number of words with at least four letters
}

// convinces reports whether one reading of the text is better than the text itself: at least 6 of
// 10 letters in known words, two of these with at least four letters, and three times as many
// letters as in the text as written. Ordinary texts hardly ever meet all three; the package comment
// says how often.
func (w *weights) convinces(letters, long int) bool {
	return long >= 2 && 10*letters >= 6*w.letters && letters >= 3*w.raw
}

func weigh(s string) weights {
	var w weights
	for i := 0; i < len(s); {
		if letterOf[s[i]] == 0 {
			i++
			continue
		}
		j := i
		plain, rotated := hashStart, hashStart
		for ; j < len(s) && letterOf[s[j]] != 0; j++ {
			plain = (plain + uint32(letterOf[s[j]])) * hashStep
			rotated = (rotated + uint32(rotate(letterOf[s[j]]))) * hashStep
		}
		reversed := hashStart
		for k := j - 1; k >= i; k-- {
			reversed = (reversed + uint32(letterOf[s[k]])) * hashStep
		}
		w.add(j-i, lexiconWords.has(plain), lexiconWords.has(rotated), lexiconWords.has(reversed))
		i = j
	}
	return w
}

//nolint:revive // flag-parameter: three findings about one word
func (w *weights) add(letters int, raw, rotated, reversed bool) {
	if letters < 3 {
		return
	}
	w.letters += letters
	if raw {
		w.raw += letters
	}
	if rotated {
		w.rotated += letters
		if letters >= 4 {
			w.longRotated++
		}
	}
	if reversed {
		w.reversed += letters
		if letters >= 4 {
			w.longReversed++
		}
	}
}

func rotate(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a' + (c-'a'+13)%26
	case c >= 'A' && c <= 'Z':
		return 'A' + (c-'A'+13)%26
	}
	return c
}

func rot13(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = rotate(c)
	}
	return string(b)
}

func reverse(s string) string {
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

// reverseWords reverses the letters of each word and keeps the order of the words.
func reverseWords(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = reverse(w)
	}
	return strings.Join(words, " ")
}

// upsideDown maps letters turned by half a circle to what they are.
//
//nolint:gochecknoglobals // constant table
var upsideDown = map[rune]rune{
	'ɐ': 'a', 'q': 'b', 'ɔ': 'c', 'p': 'd', 'ǝ': 'e', 'ɟ': 'f', 'ƃ': 'g', 'ɓ': 'g', 'ɥ': 'h', 'ᴉ': 'i', 'ı': 'i', 'ɾ': 'j', 'ʞ': 'k',
	'ן': 'l', 'ɯ': 'm', 'u': 'n', 'd': 'p', 'b': 'q', 'ɹ': 'r', 'ʇ': 't', 'n': 'u', 'ʌ': 'v', 'ʍ': 'w', 'ʎ': 'y', '¡': '!', '¿': '?', '˙': '.',
}

// turned reports whether a letter is upside down and occurs in hardly any ordinary text.
func turned(c rune) bool {
	switch c {
	case 'ɐ', 'ǝ', 'ɥ', 'ᴉ', 'ʞ', 'ɯ', 'ɹ', 'ʇ', 'ʎ', 'ʍ':
		return true
	}
	return false
}

// turnBack returns a line rotated by 180 degrees.
func turnBack(line string) (text string, ok bool) {
	runes := []rune(line)
	slices.Reverse(runes)
	for i, c := range runes {
		if up, ok := upsideDown[c]; ok {
			runes[i] = up
		}
	}
	text = string(runes)
	return text, allKnown(text)
}
