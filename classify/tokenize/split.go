package tokenize

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// each applies f to every word. f emits the parts of w.text.b[s.from:s.to].
func each(f func(w *work, s span)) step {
	return func(w *work) {
		w.parts = w.parts[:0]
		for _, s := range w.words {
			f(w, span{int(s.from), int(s.to)})
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

// prefixSpace adds a space before every word that has none. It is the first part of the byte-level
// pre-tokenizer.
func prefixSpace(w *work) {
	dst, src := &w.spare, &w.text
	dst.prepare(len(src.b) + len(w.words))
	w.parts = w.parts[:0]
	var p place
	for _, s := range w.words {
		start := len(dst.b)
		if src.b[s.from] != ' ' {
			from, to := src.origin(int(s.from), &p)
			dst.byte(' ', from, to)
		}
		dst.copy(src, int(s.from), int(s.to), &p)
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
	spaces := bytes.Count(src.b, []byte{' '})
	dst.prepare(len(src.b) + spaces*(len(m.mark)-1) + len(w.words)*len(m.mark))
	dst.runs = room(dst.runs, spaces+2)
	w.parts = w.parts[:0]
	var p place
	for _, word := range w.words {
		s := span{int(word.from), int(word.to)}
		start := len(dst.b)
		from, to := src.origin(s.from, &p)
		marked := src.b[s.from] == ' ' || bytes.HasPrefix(src.b[s.from:s.to], []byte(m.mark))
		if !marked && (m.always || m.first && from == 0) {
			dst.string(m.mark, from, to)
		}
		for i := s.from; i < s.to; {
			n := bytes.IndexByte(src.b[i:s.to], ' ')
			if n < 0 {
				n = s.to - i
			}
			dst.copy(src, i, i+n, &p)
			if i += n; i < s.to {
				from, to := src.origin(i, &p)
				dst.string(m.mark, from, to)
				i++
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
