package claims

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// maxAhead is how far, in bytes, a boundary looks ahead beyond its terminal. After that the
// position counts as decided.
const maxAhead = 64

// ends decides whether the rune at pos ends the claim, and closes the claim if it does.
func (s *Splitter) ends(r rune, size int) verdict {
	switch {
	case !s.open:
		return no
	case r == ';' || r == '；' || r == '؛':
		return s.semicolon(r, size)
	case stops(r):
		return s.terminal()
	case r > 0x7f && unicode.Is(unicode.STerm, r) && r != '．':
		return s.wideTerminal(size)
	}
	return no
}

// semicolon ends a clause, unless it is inside brackets or a word (an HTML entity).
func (s *Splitter) semicolon(r rune, size int) verdict {
	if s.depth > 0 {
		return no
	}
	if r == ';' {
		next, v := s.peek(s.pos + size)
		if v == more {
			return more
		}
		if !unicode.IsSpace(next) && next != 0 {
			return no
		}
	}
	s.finish(s.pos + size)
	return yes
}

// wideTerminal ends a sentence in scripts whose full stop needs no space after it.
func (s *Splitter) wideTerminal(size int) verdict {
	at := s.pos + size
	for {
		next, v := s.peek(at)
		if v == more {
			return more
		}
		wide := next > 0x7f && unicode.Is(unicode.STerm, next)
		if !closes(next) && !wide || at-s.pos > maxAhead {
			break
		}
		at += utf8.RuneLen(next)
	}
	s.finish(at)
	return yes
}

// terminal decides on . ! ? and runs of them.
func (s *Splitter) terminal() verdict {
	if prev, _ := utf8.DecodeLastRune(s.buf[s.start:s.pos]); stops(prev) {
		return no // decided at the first of its run
	}
	at := s.pos
	for at < len(s.buf) && at-s.pos < maxAhead {
		r, size := utf8.DecodeRune(s.buf[at:])
		if !stops(r) {
			break
		}
		at += size
	}
	dots := s.buf[s.pos:min(at, len(s.buf))]
	at, v := s.closing(at)
	if v == more {
		return more
	}
	next, v := s.peek(at)
	switch {
	case v == more:
		return more
	case next == 0 && s.final:
		return no // the end of the text closes it
	case !unicode.IsSpace(next):
		if script.IsIdeograph(next) && len(dots) == 1 && dots[0] != '.' {
			break
		}
		return no
	}
	v = yes
	if dots[0] == '.' && len(dots) == 1 {
		v = s.fullStop(at)
	} else if bytes.IndexByte(dots, '!') < 0 && bytes.IndexByte(dots, '?') < 0 {
		v = s.nextOpens(at)
	}
	switch v {
	case yes:
		s.finish(at)
	case no, more:
	}
	return v
}

func stops(r rune) bool { return r == '.' || r == '!' || r == '?' || r == '…' }

// closing skips quotation marks, brackets, emphasis and citations after a terminal.
func (s *Splitter) closing(at int) (int, verdict) {
	for at-s.pos < maxAhead {
		r, v := s.peek(at)
		if v == more {
			return at, more
		}
		switch {
		case closes(r):
			at += utf8.RuneLen(r)
		case r == '[':
			end, v := s.citation(at)
			if v != yes {
				return at, v
			}
			at = end
		default:
			return at, no
		}
	}
	return at, no
}

// citation finds the end of [3] or [3, 4] at offset at.
func (s *Splitter) citation(at int) (int, verdict) {
	for i := at + 1; i < at+16; i++ {
		if i >= len(s.buf) {
			if s.final {
				return at, no
			}
			return at, more
		}
		switch c := s.buf[i]; {
		case c == ']' && i > at+1:
			return i + 1, yes
		case c >= '0' && c <= '9' || c == ',' || c == ' ' || c == '-' || c == '^':
		default:
			return at, no
		}
	}
	return at, no
}

// peek returns the rune at offset at. It returns 0 after the end of the text, and more if the rune
// has not arrived yet.
func (s *Splitter) peek(at int) (rune, verdict) {
	if at >= len(s.buf) || !utf8.FullRune(s.buf[at:]) {
		if !s.final {
			return 0, more
		}
		if at >= len(s.buf) {
			return 0, no
		}
	}
	r, _ := utf8.DecodeRune(s.buf[at:])
	return r, no
}

// closes reports whether r may be between a terminal and the space after it.
func closes(r rune) bool {
	switch r {
	case '"', '\'', '”', '’', '»', '›', ')', ']', '}', '*', '_', '」', '』', '）', '】', '》', '〉', '“':
		return true
	}
	return false
}

// fullStop decides whether a single full stop followed by a space ends a sentence.
func (s *Splitter) fullStop(at int) verdict {
	word := s.lastWord()
	switch s.kindBefore(s.pos) {
	case ordinary:
		if isLetter(word) && !s.ofScale(s.pos-len(word)) {
			return s.nextLetter(at, word)
		}
		return yes
	case numberWord:
		return s.nextAfterDay(at)
	case neverLast:
		return no
	case maybeLast:
		return s.nextOpens(at)
	case initial:
		return s.nextStarter(at)
	}
	return yes
}

// stopped reports whether the open claim ends like a sentence: with a terminal, possibly followed
// by closing marks and citations, or with its line if it is an item. A full stop after a number of
// up to two digits or after an abbreviation may be inside a sentence or a longer number.
func (s *Splitter) stopped() bool {
	if s.kind != Prose && bytes.IndexByte(s.buf[s.end:], '\n') >= 0 {
		return true
	}
	at := s.end
	for at > s.start {
		r, size := utf8.DecodeLastRune(s.buf[s.start:at])
		switch {
		case r == ']':
			at = s.beforeCitation(at - size)
		case closes(r):
			at -= size
		case r != '.':
			return r == ';' || r == '；' || r == '؛' || stops(r) || r > 0x7f && unicode.Is(unicode.STerm, r)
		default:
			switch s.kindBefore(at - size) {
			case numberWord, neverLast, initial:
				return false
			case ordinary, maybeLast:
			}
			return true
		}
	}
	return false
}

// beforeCitation returns the offset before a citation whose bracket closes at offset at, or at if
// it is another bracket.
func (s *Splitter) beforeCitation(at int) int {
	i := at
	for i > s.start && bytes.IndexByte([]byte("0123456789, -^"), s.buf[i-1]) >= 0 {
		i--
	}
	if i > s.start && i < at && s.buf[i-1] == '[' {
		return i - 1
	}
	return at
}

// kindBefore returns the kind of the word that ends at an offset. The letter of a scale, as in 8
// °C, is not an initial.
func (s *Splitter) kindBefore(at int) stopKind {
	word := s.wordBefore(at)
	if kind := kindOf(word); kind != initial || !s.ofScale(at-len(word)) {
		return kind
	}
	return ordinary
}

// ofScale reports whether a degree sign precedes an offset.
func (s *Splitter) ofScale(at int) bool { return bytes.HasSuffix(s.buf[:at], []byte("°")) }

// lastWord returns the word before pos, including the dots inside it: U.S, e.g, 3.5.
func (s *Splitter) lastWord() []byte { return s.wordBefore(s.pos) }

// wordBefore returns the word that ends at an offset.
func (s *Splitter) wordBefore(at int) []byte {
	i := at
	for i > s.start {
		r, size := utf8.DecodeLastRune(s.buf[s.start:i])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '.' {
			break
		}
		i -= size
	}
	return s.buf[i:at]
}

// nextWord returns the first word after offset at, after spaces and opening marks. With yes it is
// complete; no means that the text or the line ends first.
func (s *Splitter) nextWord(at int) ([]byte, verdict) {
	limit := at + maxAhead
	for at < limit {
		r, v := s.peek(at)
		switch {
		case v == more:
			return nil, more
		case r == 0 || r == '\n':
			return nil, no
		}
		if !unicode.IsSpace(r) && !opens(r) {
			break
		}
		at += utf8.RuneLen(r)
	}
	from := at
	for at < limit {
		r, v := s.peek(at)
		if v == more {
			return s.buf[from:min(at, len(s.buf))], more
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || r == 0 {
			break
		}
		at += utf8.RuneLen(r)
	}
	return s.buf[from:at], yes
}

func opens(r rune) bool {
	switch r {
	case '"', '\'', '“', '‘', '«', '„', '(', '[', '*', '_', '¿', '¡', '-', '—', '–':
		return true
	}
	return false
}

// nextOpens decides by the word after the stop: a lower-case letter continues the sentence.
func (s *Splitter) nextOpens(at int) verdict {
	word, v := s.nextWord(at)
	if v == no {
		return yes
	}
	if len(word) == 0 {
		if v == more {
			return more
		}
		return yes
	}
	first, _ := utf8.DecodeRune(word)
	if unicode.IsLower(first) {
		return no
	}
	return yes
}

// nextAfterDay is nextOpens after a number, where a German month also continues the sentence: 3.
// Mai.
func (s *Splitter) nextAfterDay(at int) verdict {
	if v := s.nextOpens(at); v != yes {
		return v
	}
	word, v := s.nextWord(at)
	switch {
	case v == more:
		return more
	case germanMonths[string(word)]:
		return no
	}
	return yes
}

// nextStarter decides on a stop after an initial or a dotted acronym: only a word that typically
// begins a sentence ends the claim.
func (s *Splitter) nextStarter(at int) verdict {
	word, v := s.nextWord(at)
	switch v {
	case more:
		return more
	case no:
		return yes
	case yes:
	}
	if starters[string(word)] {
		return yes
	}
	return no
}

// nextLetter decides on a stop after a single lower-case letter, which may be part of an
// abbreviation: z. B., p. a.
func (s *Splitter) nextLetter(at int, letter []byte) verdict {
	before := bytes.TrimRightFunc(s.buf[s.start:s.pos-len(letter)], unicode.IsSpace)
	if n := len(before) - 1; n > 0 && before[n] == '.' && isLetter(s.wordBefore(s.start+n)) {
		return s.nextStarter(at)
	}
	word, v := s.nextWord(at)
	if v == more {
		return more
	}
	if !isLetter(word) {
		return yes
	}
	next, v := s.peek(at + bytes.Index(s.buf[at:], word) + len(word))
	switch {
	case v == more:
		return more
	case next == '.':
		return no
	}
	return yes
}

// isLetter reports whether a word is a single letter.
func isLetter(word []byte) bool {
	r, size := utf8.DecodeRune(word)
	return size == len(word) && unicode.IsLetter(r)
}

// finish closes the open claim at offset at and continues there.
func (s *Splitter) finish(at int) {
	for s.pos < at {
		r, size := utf8.DecodeRune(s.buf[s.pos:])
		if s.behind || s.value.formed() {
			s.heed(r)
		}
		s.pos += size
		s.lineLen++
	}
	s.end = at
	s.close(at, false)
}
