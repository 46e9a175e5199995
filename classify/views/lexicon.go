package views

import (
	_ "embed" // the tables
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordList holds common words, one to a line, in small ASCII letters.
//
//go:embed words.txt
var wordList string

// pairCosts holds 28 x 28 bytes: 16 times the negative logarithm of the probability of a letter
// after another one; 0-25 are letters, 26 is a space, 27 anything else.
//
//go:embed bigrams.bin
var pairCosts string

const (
	pairSpace = 26
	pairOther = 27
	// maxCost is the maximum mean pair cost of text. On rows of the training sets that the pairs
	// were not counted on, 1 to 3 % of ordinary sequences of 16 characters are above it and
	// practically all (99 %) of random base64 of 24 characters; random letters are below it in 7 %
	// at 16 characters and in under 1 % at 24.
	maxCost = 58
	// minLetters is the minimum share of letters and spaces among the characters of text.
	minLetters = 0.7
	// minText is the minimum length of a payload, in bytes, that counts as text by its pairs alone.
	minText = 12
)

// hashStart and hashStep define the hash of a word: h = (h + letter) * hashStep, from hashStart.
const (
	hashStart uint32 = 0x9e3779b9
	hashStep  uint32 = 0x85ebca6b // odd, from the finaliser of MurmurHash3
)

// slots is the size of the lexicon's table, a power of two above twice the number of words.
const slots = 1 << 14

// lexicon is a set of words by their hashes, with open addressing; 0 marks a free slot. Two of some
// 6,500 words share a 32-bit hash with a probability of one in 200, and an unknown word with the
// hash of a known one is harmless.
type lexicon [slots]uint32

// lexiconWords is the set of wordList.
//
//nolint:gochecknoglobals // constant table
var lexiconWords = func() *lexicon {
	l := new(lexicon)
	for word := range strings.Lines(wordList) {
		l.add(hashWord(strings.TrimSuffix(word, "\n")))
	}
	return l
}()

func (l *lexicon) add(h uint32) {
	at := slot(h)
	for l[at] != 0 && l[at] != h {
		at = (at + 1) % slots
	}
	l[at] = h
}

func (l *lexicon) has(h uint32) bool {
	for at := slot(h); ; at = (at + 1) % slots {
		switch l[at] {
		case h:
			return true
		case 0:
			return false
		}
	}
}

func slot(h uint32) uint32 {
	return (h ^ h>>15) % slots
}

// hashWord hashes ASCII letters of either case.
func hashWord(word string) uint32 {
	h := hashStart
	for i := range len(word) {
		h = (h + uint32(word[i]|0x20)) * hashStep
	}
	return h
}

// known reports whether a word of ASCII letters is in the lexicon, as written or without a common
// ending.
func known(word string) bool {
	if lexiconWords.has(hashWord(word)) {
		return true
	}
	for _, ending := range [...]string{"s", "d", "ed", "es", "ing", "er", "ly"} {
		if len(word) >= len(ending)+4 && strings.EqualFold(word[len(word)-len(ending):], ending) {
			if lexiconWords.has(hashWord(word[:len(word)-len(ending)])) {
				return true
			}
		}
	}
	return false
}

// isText reports whether a decoded payload is readable text: valid UTF-8 without control
// characters, mostly letters, with the letter pairs of Latin-script languages or mostly in another
// script.
func isText(s string) bool {
	if len(s) < 4 || !utf8.ValidString(s) {
		return false
	}
	letters, spaces, foreign, total := 0, 0, 0, 0
	for _, r := range s {
		total++
		switch {
		case r < utf8.RuneSelf && letterOf[r] != 0:
			letters++
		case r == ' ' || r == '\n' || r == '\t' || r == '\r':
			spaces++
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError:
			return false
		case r >= utf8.RuneSelf && unicode.IsLetter(r):
			foreign++
		case r >= utf8.RuneSelf && unicode.Is(unicode.Co, r):
			return false
		}
	}
	if float64(letters+spaces+foreign) < minLetters*float64(total) || letters+foreign < 3 {
		return false
	}
	if foreign > letters {
		return foreign >= 4
	}
	if allKnown(s) {
		return true
	}
	return len(s) >= minText && meanCost(s) <= maxCost
}

// allKnown reports whether at least 4 of 5 letters belong to words of the lexicon of 3 letters or
// more, and there are at least 4 such letters.
func allKnown(s string) bool {
	letters, hit := 0, 0
	for i := 0; i < len(s); {
		if letterOf[s[i]] == 0 {
			i++
			continue
		}
		j := i
		for j < len(s) && letterOf[s[j]] != 0 {
			j++
		}
		letters += j - i
		if j-i >= 3 && known(s[i:j]) || j-i < 3 && j-i > 0 && lexiconWords.has(hashWord(s[i:j])) {
			hit += j - i
		}
		i = j
	}
	return hit >= 4 && 5*hit >= 4*letters
}

// hasWord reports whether a text has a word of the lexicon of at least four letters.
func hasWord(s string) bool {
	for word := range strings.FieldsSeq(s) {
		from, to := trim(word, 0, len(word))
		if to-from >= 4 && onlyLetters(word[from:to]) && known(word[from:to]) {
			return true
		}
	}
	return false
}

// meanCost returns the mean cost of the letter pairs of a text, with a space before and after it.
func meanCost(s string) float64 {
	sum, n, before := 0, 0, pairSpace
	add := func(class int) {
		sum += int(pairCosts[before*28+class])
		n++
		before = class
	}
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && letterOf[r] != 0:
			add(int(letterOf[r] - 'a'))
		case r == ' ' || r == '\n' || r == '\t' || r == '\r':
			add(pairSpace)
		case r >= utf8.RuneSelf && unicode.IsLetter(r):
			// An accented letter is left out, because the pairs were counted without accents.
		default:
			add(pairOther)
		}
	}
	add(pairSpace)
	return float64(sum) / float64(n)
}

// maxWord is the maximum length of a word, in letters, for segment.
const maxWord = 16

// Costs of a word, of a word of one or two letters, which occur by chance anywhere, and of a letter
// outside of words. The cheapest split thus has long words.
const wordPrice, shortPrice, strayPrice = 4, 14, 20

// segment splits letters without spaces into words of the lexicon, so that as few letters as
// possible are outside of words and then as few words as possible are used. It returns the words
// separated by spaces and the share of letters in words of three letters or more.
func segment(letters string) (words string, share float64) {
	n := len(letters)
	cost, from := make([]int, n+1), make([]int, n+1)
	for i := range n {
		cost[i+1] = math.MaxInt
	}
	relax := func(start, end, price int) {
		if c := cost[start] + price; c < cost[end] {
			cost[end], from[end] = c, start
		}
	}
	for start := range n {
		relax(start, start+1, strayPrice)
		h := hashStart
		for end := start + 1; end <= min(start+maxWord, n); end++ {
			h = (h + uint32(letters[end-1]|0x20)) * hashStep
			switch {
			case !lexiconWords.has(h):
			case end-start < 3:
				relax(start, end, shortPrice)
			default:
				relax(start, end, wordPrice)
			}
		}
	}
	return joinSegments(letters, from)
}

// joinSegments returns the result of the split: from[i] is the start of the piece that ends at i.
func joinSegments(letters string, from []int) (words string, share float64) {
	var cuts []int
	for end := len(letters); end > 0; end = from[end] {
		cuts = append(cuts, end)
	}
	var b strings.Builder
	start, inWords, loose, long := 0, 0, false, false
	for _, end := range slices.Backward(cuts) {
		single := end-start == 1 && !lexiconWords.has(hashWord(letters[start:end]))
		if start > 0 && (!single || !loose) {
			b.WriteByte(' ')
		}
		b.WriteString(letters[start:end])
		if end-start >= 3 {
			inWords += end - start
			long = long || end-start >= 4
		}
		start, loose = end, single
	}
	if !long {
		return b.String(), 0 // three letters in a row are a word by chance
	}
	return b.String(), float64(inWords) / float64(max(len(letters), 1))
}

// letterOf gives the small form of ASCII letters and 0 for everything else.
//
//nolint:gochecknoglobals // constant table
var letterOf = func() (t [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = byte(c), byte(c)
	}
	return t
}()
