package tokenize

import (
	"unicode"
	"unicode/utf8"
)

// runeClass is a class of characters in the GPT-2 splitting rule.
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

// gpt2Pattern is the splitting rule of GPT-2 (openai/gpt-2, src/encoder.py), which splitGPT2 scans
// by hand.
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

// The splitting rules of GPT-4 (openai/tiktoken, tiktoken_ext/openai_public.py, cl100k_base) in the
// form of Llama 3 and Qwen, which differ in the number of digits per word.
const (
	gpt4Head      = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	gpt4Tail      = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	llama3Pattern = gpt4Head + `\p{N}{1,3}` + gpt4Tail
	qwenPattern   = gpt4Head + `\p{N}` + gpt4Tail
)

// splitGPT4 implements the rule by hand: regexp allocates for every match and is ten times slower.
func splitGPT4(digits int) func(w *work, s span) {
	return func(w *work, s span) {
		b := w.text.b[:s.to]
		for i := s.from; i < s.to; {
			end := i + gpt4Word(b[i:], digits)
			w.emit(i, end)
			i = end
		}
	}
}

// gpt4Word returns the length of the first word of b, which is not empty.
func gpt4Word(b []byte, digits int) int {
	if n := foldedContraction(b); n > 0 {
		return n
	}
	r, first := utf8.DecodeRune(b)
	class := classOf(r)
	next, second := classOther, 0 // the character after the first
	if first < len(b) {
		var q rune
		q, second = utf8.DecodeRune(b[first:])
		next = classOf(q)
	}
	switch {
	case class == classLetter:
		return skip(b, first, classLetter)
	case class != classNumber && next == classLetter && second > 0 && r != '\r' && r != '\n':
		return skip(b, first+second, classLetter)
	case class == classNumber:
		n := first
		for k := 1; k < digits && n < len(b); k++ {
			q, size := utf8.DecodeRune(b[n:])
			if classOf(q) != classNumber {
				break
			}
			n += size
		}
		return n
	case class == classOther:
		return lineBreaks(b, skip(b, first, classOther))
	case r == ' ' && next == classOther && second > 0:
		return lineBreaks(b, skip(b, first+second, classOther))
	}
	return whiteRun(b)
}

// skip returns the end of the characters of class from b[n:] on.
func skip(b []byte, n int, class runeClass) int {
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if classOf(r) != class {
			break
		}
		n += size
	}
	return n
}

func lineBreaks(b []byte, n int) int {
	for n < len(b) && (b[n] == '\r' || b[n] == '\n') {
		n++
	}
	return n
}

// whiteRun returns the length of the word at the start of b, which starts with white space: up to
// the last line break of the run, else all of it except the last character, which belongs to the
// next word.
func whiteRun(b []byte) int {
	n, last, broken := 0, 0, 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if classOf(r) != classSpace {
			break
		}
		n, last = n+size, size
		if r == '\r' || r == '\n' {
			broken = n
		}
	}
	switch {
	case broken > 0:
		return broken
	case n == len(b) || n == last:
		return n
	}
	return n - last
}

// foldedContraction is contraction ignoring case. The long s (U+017F) folds to s.
func foldedContraction(b []byte) int {
	if len(b) < 2 || b[0] != '\'' {
		return 0
	}
	switch b[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(b) > 2 && b[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(b) > 2 && b[2]|0x20 == 'l' {
			return 3
		}
	}
	if len(b) > 2 && b[1] == 0xC5 && b[2] == 0xBF {
		return 3
	}
	return 0
}
