package tokenize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// each applies f to every word. f emits the parts of w.text.b[s.from:s.to].
func each(f func(w *work, s span)) step {
	return func(w *work) {
		w.parts = w.parts[:0]
		for _, s := range w.words {
			f(w, s)
		}
		w.words, w.parts = w.parts, w.words
	}
}

// splitBert splits at white space, which is dropped, and isolates punctuation.
func splitBert(w *work, s span) {
	b, start := w.text.b, s.from
	for i := s.from; i < s.to; {
		c := b[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(b[i:])
		}
		switch {
		case isSpace(r):
			w.emit(start, i)
			start = i + n
		case isPunctuation(r):
			w.emit(start, i)
			w.emit(i, i+n)
			start = i + n
		}
		i += n
	}
	w.emit(start, s.to)
}

// isPunctuation counts every ASCII symbol as punctuation, as BERT does.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.IsPunct(r)
}

// splitSpace splits at white space, which is dropped.
func splitSpace(w *work, s span) {
	start := s.from
	for i := s.from; i < s.to; {
		r, n := utf8.DecodeRune(w.text.b[i:s.to])
		if isSpace(r) {
			w.emit(start, i)
			start = i + n
		}
		i += n
	}
	w.emit(start, s.to)
}

// prefixSpace puts a space before every word that has none. It is the first part of the byte-level
// pre-tokenizer.
func prefixSpace(w *work) {
	dst, src := &w.spare, &w.text
	dst.prepare(src)
	w.parts = w.parts[:0]
	for _, s := range w.words {
		start := len(dst.b)
		if src.b[s.from] != ' ' {
			dst.byte(' ', src.from[s.from], src.to[s.from])
		}
		dst.copy(src, s.from, s.to)
		w.emit(start, len(dst.b))
	}
	w.words, w.parts = w.parts, w.words
	w.flip()
}

// metaspace marks spaces with a visible character and, with split, cuts the text before each mark.
type metaspace struct {
	mark   string
	always bool // every part gets a mark in front
	first  bool // only the part that starts the input gets one
	split  bool
}

func (m metaspace) step(w *work) {
	dst, src := &w.spare, &w.text
	dst.prepare(src)
	w.parts = w.parts[:0]
	for _, s := range w.words {
		start := len(dst.b)
		marked := src.b[s.from] == ' ' || strings.HasPrefix(string(src.b[s.from:min(s.to, s.from+len(m.mark))]), m.mark)
		if !marked && (m.always || m.first && src.from[s.from] == 0) {
			dst.string(m.mark, src.from[s.from], src.to[s.from])
		}
		for i := s.from; i < s.to; i++ {
			if src.b[i] == ' ' {
				dst.string(m.mark, src.from[i], src.to[i])
			} else {
				dst.byte(src.b[i], src.from[i], src.to[i])
			}
		}
		if m.split {
			m.cut(w, dst.b, start)
		} else {
			w.emit(start, len(dst.b))
		}
	}
	w.words, w.parts = w.parts, w.words
	w.flip()
}

// cut emits the parts of b[start:], each of which begins with a mark.
func (m metaspace) cut(w *work, b []byte, start int) {
	for i := start; i+len(m.mark) <= len(b); {
		if b[i] != m.mark[0] || string(b[i:i+len(m.mark)]) != m.mark {
			i++
			continue
		}
		w.emit(start, i)
		start = i
		i += len(m.mark)
	}
	w.emit(start, len(b))
}

// runeClass is what the GPT-2 splitting rule distinguishes.
type runeClass uint8

const (
	classSpace runeClass = iota
	classLetter
	classNumber
	classOther
)

func classOf(r rune) runeClass {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			return classLetter
		case r >= '0' && r <= '9':
			return classNumber
		case isSpace(r):
			return classSpace
		}
	case unicode.IsLetter(r):
		return classLetter
	case unicode.IsNumber(r):
		return classNumber
	case isSpace(r):
		return classSpace
	}
	return classOther
}

// gpt2Pattern is the splitting rule of GPT-2 (openai/gpt-2, src/encoder.py), which splitGPT2 scans by hand.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func splitGPT2(w *work, s span) {
	b := w.text.b[:s.to]
	for i := s.from; i < s.to; {
		if n := contraction(b[i:]); n > 0 {
			w.emit(i, i+n)
			i += n
			continue
		}
		start := i
		if b[i] == ' ' && i+1 < s.to {
			if r, _ := utf8.DecodeRune(b[i+1:]); classOf(r) != classSpace {
				i++
			}
		}
		r, last := utf8.DecodeRune(b[i:])
		class := classOf(r)
		i += last
		for i < s.to {
			r, n := utf8.DecodeRune(b[i:])
			if classOf(r) != class {
				break
			}
			i, last = i+n, n
		}
		if class == classSpace && i < s.to && i-last > start {
			i -= last // \s+(?!\S): the last space belongs to the next word
		}
		w.emit(start, i)
	}
}

// contraction returns the length of the English contraction that b starts with, or 0.
func contraction(b []byte) int {
	if len(b) < 2 || b[0] != '\'' {
		return 0
	}
	switch b[1] {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(b) > 2 && b[2] == 'e' {
			return 3
		}
	case 'l':
		if len(b) > 2 && b[2] == 'l' {
			return 3
		}
	}
	return 0
}
