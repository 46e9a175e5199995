package tokenize

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// bertOptions are the settings of the normalizer that BERT models use.
type bertOptions struct{ clean, cjk, accents, lower bool }

// bert removes control characters, isolates CJK ideographs, strips accents and lowers the case.
// ASCII is finished in the first pass: decomposition and case of ASCII depend on nothing around it.
func bert(o bertOptions) step {
	nfd := newNormalForm(norm.NFD)
	return func(w *work) {
		dst, src := &w.spare, &w.text
		dst.prepare(len(src.b))
		var p place
		ascii := true
		for i := 0; i < len(src.b); {
			dst.expect(i, len(src.b))
			c := src.b[i]
			if c < utf8.RuneSelf {
				if c, keep := o.ascii(c); keep {
					from, to := src.origin(i, &p)
					dst.byte(c, from, to)
				}
				i++
				continue
			}
			r, n := utf8.DecodeRune(src.b[i:])
			from, to := src.origin(i, &p)
			o.put(dst, r, from, to)
			ascii = false
			i += n
		}
		w.flip()
		if ascii {
			return
		}
		if o.accents {
			nfd.step(w)
			stripAccents(w)
		}
		if o.lower {
			lower(w)
		}
	}
}

// put writes r, which is not ASCII, cleaned and isolated.
func (o bertOptions) put(dst *aligned, r rune, from, to int32) {
	switch {
	case o.clean && isDropped(r):
	case o.clean && isSpace(r):
		dst.byte(' ', from, to)
	case o.cjk && isCJK(r):
		dst.byte(' ', from, to)
		dst.rune(r, from, to)
		dst.byte(' ', from, to)
	default:
		dst.rune(r, from, to)
	}
}

func (o bertOptions) ascii(c byte) (byte, bool) {
	switch {
	case c >= 'A' && c <= 'Z' && o.lower:
		return c + 'a' - 'A', true
	case c > ' ' && c < 0x7F || !o.clean:
		return c, true
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return ' ', true
	}
	return 0, false
}

// isDropped reports which characters outside ASCII BERT's text cleaning removes.
func isDropped(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// isCJK reports whether r is in the blocks listed by the BERT tokenizer.
func isCJK(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

func stripAccents(w *work) {
	mapRunes(w, func(r rune) (rune, bool) { return r, r < utf8.RuneSelf || !unicode.Is(unicode.Mn, r) })
}

func lower(w *work) {
	dst, src := &w.spare, &w.text
	dst.prepare(len(src.b))
	var p place
	for i := 0; i < len(src.b); {
		dst.expect(i, len(src.b))
		r, n := utf8.DecodeRune(src.b[i:])
		from, to := src.origin(i, &p)
		if r == 'İ' { // the one letter whose full lower case is two code points (SpecialCasing.txt)
			dst.rune('i', from, to)
			dst.rune('\u0307', from, to)
		} else {
			if !caseless(r) {
				r = unicode.ToLower(r)
			}
			dst.rune(r, from, to)
		}
		i += n
	}
	w.flip()
}

// caseless is a fast test for the large blocks without case; it may return false for letters
// without case.
func caseless(r rune) bool {
	return r >= 0x0590 && r < 0x10A0 || r >= 0x1100 && r < 0x13A0 || r >= 0x2E80 && r < 0xA640 || r >= 0xAC00 && r < 0xFF00
}

func mapRunes(w *work, f func(r rune) (rune, bool)) {
	dst, src := &w.spare, &w.text
	dst.prepare(len(src.b))
	var p place
	for i := 0; i < len(src.b); {
		r, n := utf8.DecodeRune(src.b[i:])
		if r, keep := f(r); keep {
			from, to := src.origin(i, &p)
			dst.rune(r, from, to)
		}
		i += n
	}
	w.flip()
}

// replacer writes the text with parts of it replaced. Everything before done has been written.
type replacer struct {
	w    *work
	p    place
	done int
}

// replace replaces [from,to) by with, whose origin is the last character replaced, as in the
// reference.
func (r *replacer) replace(from, to int, with string) {
	r.w.spare.expect(from, len(r.w.text.b))
	r.w.spare.copy(&r.w.text, r.done, from, &r.p)
	if to > from {
		a, b := r.w.text.origin(to-1, &r.p)
		r.w.spare.string(with, a, b)
	}
	r.done = to
}

// finish copies the rest.
func (r *replacer) finish() {
	if r.done == 0 {
		return
	}
	r.w.spare.copy(&r.w.text, r.done, len(r.w.text.b), &r.p)
	r.w.flip()
}

func replaceString(old, with string) step {
	pattern := []byte(old)
	return func(w *work) {
		n := 0
		if len(pattern) > 0 {
			n = bytes.Count(w.text.b, pattern)
		}
		if n == 0 {
			return
		}
		w.spare.prepare(len(w.text.b) + n*max(len(with)-len(old), 0))
		w.spare.runs = room(w.spare.runs, n+2)
		r := replacer{w: w}
		for i := 0; ; {
			n := bytes.Index(w.text.b[i:], pattern)
			if n < 0 {
				break
			}
			r.replace(i+n, i+n+len(pattern), with)
			i += n + len(pattern)
		}
		r.finish()
	}
}

// spaceRuns is the only expression that published normalizers replace (sentencepiece's
// remove_extra_whitespaces); replaceSpaceRuns finds its matches.
const spaceRuns = " {2,}"

func replaceSpaceRuns(with string) step {
	return func(w *work) {
		w.spare.prepare(len(w.text.b))
		r := replacer{w: w}
		for i := 0; i < len(w.text.b); {
			n := bytes.Index(w.text.b[i:], []byte("  "))
			if n < 0 {
				break
			}
			from := i + n
			for i = from + 2; i < len(w.text.b) && w.text.b[i] == ' '; {
				i++
			}
			r.replace(from, i, with)
		}
		r.finish()
	}
}

func replaceRegexp(re *regexp.Regexp, with string) step {
	return func(w *work) {
		w.spare.prepare(len(w.text.b))
		r := replacer{w: w}
		for _, m := range re.FindAllIndex(w.text.b, -1) {
			if m[1] > m[0] {
				r.replace(m[0], m[1], with)
			}
		}
		r.finish()
	}
}

func prepend(prefix string) step {
	return func(w *work) {
		if len(w.text.b) == 0 {
			return
		}
		dst, src := &w.spare, &w.text
		dst.prepare(len(prefix) + len(src.b))
		var p place
		from, to := src.origin(0, &p)
		dst.string(prefix, from, to)
		dst.copy(src, 0, len(src.b), &p)
		w.flip()
	}
}

// stripLeft and stripRight remove white space at the ends of the text.
func stripLeft(w *work) {
	i := 0
	for i < len(w.text.b) {
		r, n := utf8.DecodeRune(w.text.b[i:])
		if !isSpace(r) {
			break
		}
		i += n
	}
	if i > 0 {
		w.spare.set(&w.text, i, len(w.text.b))
		w.flip()
	}
}

func stripRight(w *work) {
	i := len(w.text.b)
	for i > 0 {
		r, n := utf8.DecodeLastRune(w.text.b[:i])
		if !isSpace(r) {
			break
		}
		i -= n
	}
	t := &w.text
	t.b = t.b[:i]
	for n := len(t.runs); n > 0 && int(t.runs[n-1].at) >= i; n-- {
		t.runs = t.runs[:n-1]
	}
}
