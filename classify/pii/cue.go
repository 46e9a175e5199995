package pii

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// cueWidth is the maximum distance between a value and a word before it that names it, in bytes:
// enough for a name between the two ("call Anna Maria Lindgren at ...").
const cueWidth = 44

// cues are lower-case words or phrases. A cue that begins with a letter must be at the start of a
// word.
type cues []string

// before returns the text before i in lower case, back to the end of the previous sentence, at most
// width bytes. It is stored in buf.
func (s *scanner) before(i, width int, buf *[cueWidth]byte) []byte {
	from := max(0, i-min(width, cueWidth))
	if cut := strings.LastIndexAny(s.text[from:i], "\n?!;"); cut >= 0 {
		from += cut + 1
	}
	b := buf[:copy(buf[:], s.text[from:i])]
	for k, c := range b {
		if isUpper(c) {
			b[k] = c | 0x20
		}
	}
	return b
}

// cued reports whether one of the cues occurs within width bytes before i.
func (s *scanner) cued(i, width int, words cues) bool {
	var buf [cueWidth]byte
	window := s.before(i, width, &buf)
	return slices.ContainsFunc(words, func(w string) bool { return hasCue(window, w) })
}

func hasCue(window []byte, w string) bool {
	for from := 0; ; {
		k := bytes.Index(window[from:], []byte(w))
		if k < 0 {
			return false
		}
		k += from
		if starts := k == 0 || !isLetter(window[k-1]); starts {
			end := k + len(w)
			if end == len(window) || !isLetter(window[end]) || !isLetter(w[len(w)-1]) {
				return true
			}
		}
		from = k + 1
	}
}

// direct is a list of cues that directly precede a value.
type direct uint8

const (
	beforeAge direct = iota
	beforeOwnAge
	beforeTurn
	beforeZip
	beforeLicense
	beforeOther
	beforeSSN
	beforePhone
	beforeName
	beforeHome
	beforeCreed
	beforeCode
	beforeCard
	beforeWork
	beforeQuantity
	numDirect
)

// directCues are the lists by their name, and lastWords the lists, as bits, by the last words of
// their cues: one look at the word before a value rules out nearly all of them.
//
//nolint:gochecknoglobals // constant tables
var (
	directCues = [numDirect]cues{
		ageCues, ownAgeCues, turnCues, zipCues, licenseCues, otherNumberCues, ssnCues, phoneCues,
		nameCues, homeCues, creedCues, codeCues, cardCues, workCues, quantityCues,
	}
	lastWords = func() map[string]uint16 {
		m := make(map[string]uint16)
		for d, list := range directCues {
			for _, cue := range list {
				cue = strings.TrimRight(cue, ".")
				m[cue[lastWord([]byte(cue)):]] |= 1 << d
			}
		}
		for _, w := range fillers {
			m[strings.Trim(w, " .")] |= filler
		}
		return m
	}()
	// lastPairs is a fast filter for lastWords, by the low bits of a word's first and last byte.
	lastPairs = func() (t [32][32]bool) {
		for w := range lastWords {
			if w != "" {
				t[w[0]&31][w[len(w)-1]&31] = true
			}
		}
		return t
	}()
	fillers = [...]string{
		" is", " number", " no.", " no", " code", " num", " nr", " nr.", " was", " id", " ist",
		" est", " är",
	}
)

// filler marks, in lastWords, a word that may be between a cue and its value.
const filler = 1 << 15

// lastWord returns the start of the last word of b, which consists of letters and bytes of other
// scripts.
func lastWord(b []byte) int {
	k := len(b)
	for k > 0 && (isLetter(b[k-1]) || b[k-1] >= utf8.RuneSelf) {
		k--
	}
	return k
}

// between is what may separate a cue and its value in addition to fillers.
const between = " \t:=#-('\"."

// cuedBy reports whether one of the cues of a list directly precedes i, ignoring fillers, spaces,
// colons and the like.
func (s *scanner) cuedBy(i int, list direct) bool {
	if s.nearAt != i+1 {
		s.nearAt, s.near = i+1, s.nearLists(i)
	}
	if s.near>>list&1 == 0 {
		return false
	}
	var buf [cueWidth]byte
	window := s.before(i, cueWidth, &buf)
	for {
		window = bytes.TrimRight(window, between)
		for _, w := range directCues[list] {
			w = strings.TrimRight(w, ".")
			k := len(window) - len(w)
			if k >= 0 && string(window[k:]) == w && (k == 0 || !isLetter(window[k-1])) {
				return true
			}
		}
		shorter := trimFiller(window)
		if len(shorter) == len(window) {
			return false
		}
		window = shorter
	}
}

// nearLists returns, as bits, the lists that may have a cue directly before i.
func (s *scanner) nearLists(i int) uint16 {
	var lists uint16
	for range 3 {
		end := i
		for end > 0 && strings.IndexByte(between, s.text[end-1]) >= 0 {
			end--
		}
		start := end
		for start > 0 && end-start < cueWidth &&
			(isLetter(s.text[start-1]) || s.text[start-1] >= utf8.RuneSelf) {
			start--
		}
		if start == end {
			break
		}
		word := s.text[start:end]
		found := listsOf(word)
		if found == 0 && word[0] >= utf8.RuneSelf {
			// In scripts without spaces a cue may end a longer run.
			return lists | 1<<numDirect - 1
		}
		if lists |= found; found&filler == 0 {
			break
		}
		i = start
	}
	return lists
}

// listsOf looks up a word of at most cueWidth bytes, in lower case, in lastWords.
func listsOf(word string) uint16 {
	if !lastPairs[word[0]&31][word[len(word)-1]&31] {
		return 0
	}
	var buf [cueWidth]byte
	b := buf[:copy(buf[:], word)]
	for k, c := range b {
		if isUpper(c) {
			b[k] = c | 0x20
		}
	}
	return lastWords[string(b)]
}

// trimFiller removes a filler between a cue and its value.
func trimFiller(b []byte) []byte {
	for _, w := range fillers {
		if k := len(b) - len(w); k >= 0 && string(b[k:]) == w {
			return b[:k]
		}
	}
	return b
}
