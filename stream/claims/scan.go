package claims

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

type mathKind uint8

const (
	noMath mathKind = iota
	dollarMath
	dollarsMath // $$
	parenMath   // \(
	bracketMath // \[
)

// verdict is a decision about a position: no, yes, or more text is needed first.
type verdict uint8

const (
	no verdict = iota
	yes
	more
)

// scan processes the text from pos on, as far as possible.
func (s *Splitter) scan() {
	for s.pos < len(s.buf) {
		if s.json.open {
			if !s.readJSON() {
				return
			}
			continue
		}
		if s.lineStart {
			if !s.beginLine() {
				return
			}
			continue
		}
		if !s.final && !utf8.FullRune(s.buf[s.pos:]) {
			return
		}
		r, size := utf8.DecodeRune(s.buf[s.pos:])
		if !s.step(r, size) {
			return
		}
	}
}

// step processes one rune. It returns false if more text is needed.
func (s *Splitter) step(r rune, size int) bool {
	switch {
	case s.fence.open:
		return s.codeRune(r, size)
	case r == '\n':
		return s.newline()
	case s.table.row && r == '|':
		s.bar(size)
		return true
	case r == '`' || r == '$' || r == '\\':
		return s.special(r)
	}
	if (r == '{' || r == '[') && s.announced() {
		if v := s.laterJSON(s.pos); v != no {
			return v == yes
		}
	}
	if s.opts.Blocks && (r == '<' || r == '{') {
		if v := s.beginForm(r); v != no {
			return v == yes
		}
	}
	if s.tick == 0 && s.math == noMath && !s.table.row {
		switch s.ends(r, size) {
		case more:
			return false
		case yes:
			return true
		case no:
		}
	}
	s.advance(r, size)
	return true
}

// advance adds a rune to the open claim, or opens one.
func (s *Splitter) advance(r rune, size int) {
	space := unicode.IsSpace(r)
	if !space {
		s.countWord(r)
		if !s.open {
			s.begin()
		}
	} else {
		s.inWord = false
	}
	s.track(r)
	if s.behind || s.value.formed() {
		s.heed(r)
	}
	s.pos += size
	s.lineLen++
	if !space {
		s.end = s.pos
	}
	if s.open && s.pos-s.start >= s.opts.MaxBytes {
		s.close(s.pos, true)
	}
}

func (s *Splitter) begin() {
	s.open, s.start, s.markOK = true, s.pos, false
}

// track follows brackets, so that a semicolon inside them is not a boundary.
func (s *Splitter) track(r rune) {
	switch r {
	case '(', '[', '（', '「', '«':
		s.depth++
	case ')', ']', '）', '」', '»':
		s.depth = max(0, s.depth-1)
	}
}

// countWord counts words and closes the claim by length before the first excess word. A claim is
// closed this way only at the start of a word.
func (s *Splitter) countWord(r rune) {
	wide := script.IsIdeograph(r)
	if s.inWord && !wide {
		return
	}
	if s.open && s.words >= s.opts.MaxWords {
		s.window()
	}
	s.inWord = !wide
	s.words++
	if s.open && s.words == s.opts.Stride+1 {
		s.mark, s.markOK = s.pos, true
	}
}

// window closes the open claim by length and opens the next one at the mark, within its text.
func (s *Splitter) window() {
	mark, ok := s.mark, s.markOK
	overlap := s.words - s.opts.Stride
	s.emit(s.start, s.end, true)
	s.open, s.words = false, 0
	if ok && mark < s.pos {
		s.open, s.start, s.words, s.markOK = true, mark, overlap, false
	}
}

// close finishes the open claim at offset end.
func (s *Splitter) close(end int, window bool) {
	if s.open && end > s.start && s.says(s.buf[s.start:end]) {
		s.emit(s.start, end, window)
	}
	s.open, s.words, s.inWord, s.depth, s.tick, s.math = false, 0, false, 0, 0, noMath
	s.start, s.end, s.markOK = s.pos, s.pos, false
}

// says reports whether a stretch of text is a claim. Punctuation alone, such as a leftover
// quotation mark, is not. Code and cells always are.
func (s *Splitter) says(text []byte) bool {
	if s.fence.open || s.kind == Code || s.kind == Cell {
		return true
	}
	return bytes.ContainsFunc(text, func(r rune) bool { return !unicode.IsPunct(r) && !unicode.IsSpace(r) })
}

func (s *Splitter) emit(start, end int, window bool) {
	runes := s.baseRune + utf8.RuneCount(s.buf[:start])
	kind := s.kind
	if s.fence.open {
		kind = Code
	}
	c := Claim{
		Text:   string(s.buf[start:end]),
		Bytes:  Span{s.base + start, s.base + end},
		Runes:  Span{runes, runes + utf8.RuneCount(s.buf[start:end])},
		Kind:   kind,
		Window: window,
	}
	if s.formed() {
		c.Place = Inside
	}
	if kind == Cell {
		c.Context = s.table.context(c.Text)
	}
	if kind != Code {
		s.intro = c.Text
	}
	s.out = append(s.out, c)
}

// compact drops the text of finished claims from the buffer.
func (s *Splitter) compact() {
	drop := s.pos
	switch {
	case s.json.open:
		drop = s.kept()
		s.json.from -= drop
	case s.open:
		drop = s.start
	}
	if drop == 0 {
		return
	}
	s.baseRune += utf8.RuneCount(s.buf[:drop])
	s.base += drop
	s.buf = s.buf[:copy(s.buf, s.buf[drop:])]
	s.pos -= drop
	s.start, s.end, s.mark = max(0, s.start-drop), max(0, s.end-drop), max(0, s.mark-drop)
}

// special handles inline code and formulas. It returns false if more text is needed.
func (s *Splitter) special(r rune) bool {
	run, done := s.run(byte(r))
	if !done {
		return false
	}
	switch r {
	case '`':
		switch s.tick {
		case 0:
			s.tick = run
		case run:
			s.tick = 0
		}
		s.advanceBytes(run)
		return true
	case '\\':
		return s.backslash()
	}
	return s.dollar(run)
}

// run returns the length of the run of c at pos. done is false if the run may continue in later
// text.
func (s *Splitter) run(c byte) (n int, done bool) {
	for s.pos+n < len(s.buf) && s.buf[s.pos+n] == c && n < 16 {
		n++
	}
	return n, s.final || s.pos+n < len(s.buf) || n == 16
}

func (s *Splitter) advanceBytes(n int) {
	for range n {
		s.advance(rune(s.buf[s.pos]), 1)
	}
}

// backslash opens and closes \( \) and \[ \]. An escaped rune is text.
func (s *Splitter) backslash() bool {
	if s.pos+1 >= len(s.buf) && !s.final {
		return false
	}
	if s.pos+1 >= len(s.buf) {
		s.advanceBytes(1)
		return true
	}
	next := s.buf[s.pos+1]
	switch {
	case s.tick > 0:
	case next == '(' && s.math == noMath:
		s.math = parenMath
	case next == '[' && s.math == noMath:
		s.math = bracketMath
	case next == ')' && s.math == parenMath, next == ']' && s.math == bracketMath:
		s.math = noMath
	}
	n := 1
	if next < utf8.RuneSelf && next != '\n' {
		n = 2
	}
	s.advanceBytes(n)
	return true
}

// dollar opens and closes formulas. A single dollar opens a formula only before a letter, a
// backslash or a brace; before a digit it is money.
func (s *Splitter) dollar(run int) bool {
	if s.pos+run >= len(s.buf) && !s.final {
		return false
	}
	next := byte(0)
	if s.pos+run < len(s.buf) {
		next = s.buf[s.pos+run]
	}
	switch {
	case s.tick > 0:
	case run >= 2 && s.math == dollarsMath, run == 1 && s.math == dollarMath:
		s.math = noMath
	case run >= 2 && s.math == noMath:
		s.math = dollarsMath
	case s.math == noMath && (next == '\\' || next == '{' || next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z'):
		s.math = dollarMath
	}
	s.advanceBytes(run)
	return true
}
