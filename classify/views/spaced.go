package views

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minSingles is the minimum number of letters with gaps between them that may be disguised
	// words.
	minSingles = 5
	// minForeignSingles is the same for letters beyond ASCII, for which there is no lexicon.
	minForeignSingles = 6
	// maxSingles is the maximum number of letters joined at once.
	maxSingles = 512
	// minShare is the minimum share of letters that must belong to words.
	minShare = 0.7
)

// singleRun is a sequence of tokens of one letter each: "i g n o r e".
type singleRun struct {
	start, at int
	count     int
	// gaps[i] is the white space, in bytes, before letter i; a line end counts as a wide gap.
	letters []byte
	gaps    []int
	line    bool
	foreign int // number of letters beyond ASCII
}

// single reports whether a token is one letter or digit.
func single(token string) bool {
	if len(token) == 1 {
		return classOf[token[0]]&(isLetter|isDigit) != 0
	}
	if len(token) == 0 || len(token) > utf8.UTFMax || token[0] < utf8.RuneSelf {
		return false
	}
	c, n := utf8.DecodeRuneInString(token)
	return n == len(token) && unicode.IsLetter(c) && !logographic(c)
}

func (s *singleRun) add(r *reading, start, end int) {
	if s.count >= maxSingles {
		s.end(r)
	}
	if s.count == 0 {
		s.start, s.at, s.letters, s.gaps = start, start, s.letters[:0], s.gaps[:0]
	}
	gap := start - s.at
	if s.line {
		gap, s.line = gap+1, false
	}
	for range end - start {
		s.gaps = append(s.gaps, gap)
		gap = 0
	}
	s.letters = append(s.letters, r.text[start:end]...)
	if end-start > 1 {
		s.foreign++
	}
	s.count++
	s.at = end
}

// endLine marks that the run may continue on the next line.
func (s *singleRun) endLine(r *reading) {
	if s.line {
		s.end(r) // an empty line
	}
	s.line = s.count > 0
}

// end joins the run if that results in words.
func (s *singleRun) end(r *reading) {
	if s.count == 0 {
		return
	}
	count, foreign := s.count, s.foreign == s.count
	mixed := s.foreign > 0 && !foreign
	s.count, s.foreign, s.line = 0, 0, false
	if mixed {
		return
	}
	read, least := spelled, minSingles
	if foreign {
		read, least = spelledForeign, minForeignSingles
	}
	if count < least {
		return
	}
	if words, ok := joined(s.letters, s.gaps, read); ok {
		r.edits = append(r.edits, edit{s.start, s.at, words})
	}
}

// joined joins letters to words. A gap wider than the usual one ends a word; without such gaps,
// read splits the words. read also returns the share of letters in words.
func joined(letters []byte, gaps []int, read func(string) (string, float64)) (words string, ok bool) {
	usual := 0
	for _, g := range gaps[1:] {
		if g > 0 && (usual == 0 || g < usual) {
			usual = g
		}
	}
	var b strings.Builder
	inWords, total := 0.0, 0
	for i := 0; i < len(letters); {
		j := i + 1
		for j < len(letters) && gaps[j] <= usual {
			j++
		}
		word, share := read(string(letters[i:j]))
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		inWords += share * float64(j-i)
		total += j - i
		i = j
	}
	return b.String(), inWords >= minShare*float64(total)
}

// spelledForeign returns letters beyond ASCII as one word.
func spelledForeign(letters string) (words string, share float64) {
	words, _ = normalise(letters)
	return words, 1
}

// spelled returns the words in a sequence of letters and digits, and the share of it that belongs
// to words.
func spelled(letters string) (words string, share float64) {
	if plain, ok := unleet(letters); ok {
		return plain, 1
	}
	if !onlyLetters(letters) {
		// Digits used as letters.
		buf := []byte(letters)
		for i, c := range buf {
			if leetOf[c] != 0 {
				buf[i] = leetOf[c]
			}
		}
		letters = string(buf)
		if !onlyLetters(letters) {
			return letters, 0
		}
	}
	if len(letters) >= 3 && known(letters) {
		return letters, 1
	}
	return segment(letters)
}

// dotted joins letters separated by punctuation within a token: "i.g.n.o.r.e", "i-g-n-o-r-e".
func (r *reading) dotted(start, end int) {
	for i := start; i < end; {
		if i > start && classOf[r.text[i-1]]&(isLetter|isDigit|isForeign) != 0 {
			i++ // inside of a longer word
			continue
		}
		stop, count, foreign := separated(r.text, i, end)
		if count < minSingles || foreign && count < minForeignSingles {
			i = max(i+1, stop)
			continue
		}
		r.join(i, stop, foreign)
		i = stop
	}
}

// join replaces a row of letters with one separator between each two by the words that they spell.
//
//nolint:revive // flag-parameter: a finding about the letters
func (r *reading) join(start, stop int, foreign bool) {
	var letters []byte
	for _, c := range r.text[start:stop] {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			letters = utf8.AppendRune(letters, c)
		}
	}
	if len(letters) > maxSingles {
		return
	}
	read := spelled
	if foreign {
		read = spelledForeign
	}
	if words, ok := joined(letters, make([]int, len(letters)), read); ok {
		r.edits = append(r.edits, edit{start, stop, words})
	}
}

// separated returns the end of a sequence of single letters, each followed by the same separator,
// that starts at i.
func separated(text string, i, end int) (stop, count int, foreign bool) {
	separator := byte(0)
	for stop = i; i < end; {
		c, n := utf8.DecodeRuneInString(text[i:end])
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) || logographic(c) {
			return stop, count, foreign
		}
		next := i + n
		if next < end && (letterOf[text[next]] != 0 || text[next] >= utf8.RuneSelf || classOf[text[next]] == isDigit) {
			// Two letters in a row: the sequence ended with the previous letter.
			return stop, count, foreign
		}
		count, stop = count+1, next
		foreign = foreign || n > 1
		if next >= end || separator != 0 && text[next] != separator {
			return stop, count, foreign
		}
		separator = text[next]
		i = next + 1
	}
	return stop, count, foreign
}
