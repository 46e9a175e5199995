package tokenize

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// bertOptions are the settings of the normalizer that BERT models use.
type bertOptions struct{ clean, cjk, accents, lower bool }

// bert removes control characters, isolates CJK ideographs, strips accents and lowers the case.
// ASCII is finished in the first pass: decomposition and case of ASCII depend on nothing around it.
func bert(o bertOptions) step {
	return func(w *work) {
		dst, src := &w.spare, &w.text
		dst.prepare(src)
		ascii := true
		for i := 0; i < len(src.b); {
			c := src.b[i]
			if c < utf8.RuneSelf {
				if c, keep := o.ascii(c); keep {
					dst.byte(c, src.from[i], src.to[i])
				}
				i++
				continue
			}
			r, n := utf8.DecodeRune(src.b[i:])
			o.put(dst, r, src.from[i], src.to[i])
			ascii = false
			i += n
		}
		w.flip()
		if ascii {
			return
		}
		if o.accents {
			decompose(norm.NFD)(w)
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

// isDropped tells which characters outside ASCII BERT's text cleaning removes.
func isDropped(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// isCJK is the list of blocks in the BERT tokenizer.
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
	dst.prepare(src)
	for i := 0; i < len(src.b); {
		r, n := utf8.DecodeRune(src.b[i:])
		if r == 'İ' { // the one letter whose full lower case is two code points (SpecialCasing.txt)
			dst.rune('i', src.from[i], src.to[i])
			dst.rune('\u0307', src.from[i], src.to[i])
		} else {
			dst.rune(unicode.ToLower(r), src.from[i], src.to[i])
		}
		i += n
	}
	w.flip()
}

func mapRunes(w *work, f func(r rune) (rune, bool)) {
	dst, src := &w.spare, &w.text
	dst.prepare(src)
	for i := 0; i < len(src.b); {
		r, n := utf8.DecodeRune(src.b[i:])
		if r, keep := f(r); keep {
			dst.rune(r, src.from[i], src.to[i])
		}
		i += n
	}
	w.flip()
}

// graphemeJoiner is what the Stream-Safe Text Format puts into long runs of combining marks.
const graphemeJoiner = '\u034F'

// decompose applies a Unicode normalization form. Output and input runes are matched by counting
// the code points of their full decompositions, which both sides share up to reordering.
func decompose(form norm.Form) step {
	full := norm.NFD
	if form == norm.NFKC || form == norm.NFKD {
		full = norm.NFKD
	}
	return func(w *work) {
		if form.IsNormal(w.text.b) {
			return
		}
		dst, src := &w.spare, &w.text
		dst.prepare(src)
		c := cursor{src: src.b, full: full}
		var it norm.Iter
		it.Init(form, src.b)
		for !it.Done() {
			at := it.Pos()
			out := it.Next()
			if c.settle(); c.at == at && c.ahead == 0 && string(out) == string(src.b[at:it.Pos()]) {
				dst.copy(src, at, it.Pos())
				c.at, c.size = it.Pos(), 0
				continue
			}
			for i := 0; i < len(out); {
				r, n := utf8.DecodeRune(out[i:])
				c.settle()
				at := min(c.at, len(src.b)-1)
				dst.rune(r, src.from[at], src.to[at])
				if r != graphemeJoiner || c.rune() == graphemeJoiner {
					c.ahead += decomposedLen(full, out[i:i+n])
				}
				i += n
			}
		}
		w.flip()
	}
}

// cursor is the input rune at byte at; ahead code points of its decomposition, and perhaps of its
// successors, are written.
type cursor struct {
	src       []byte
	full      norm.Form
	at, ahead int
	size      int // bytes of the rune at at; 0 when not looked at yet
	points    int // code points of its decomposition
}

func (c *cursor) rune() rune {
	r, _ := utf8.DecodeRune(c.src[c.at:])
	return r
}

// settle moves past the input runes that are written completely.
func (c *cursor) settle() {
	for c.ahead > 0 && c.at < len(c.src) {
		if c.size == 0 {
			_, c.size = utf8.DecodeRune(c.src[c.at:])
			c.points = decomposedLen(c.full, c.src[c.at:c.at+c.size])
		}
		if c.points > c.ahead {
			return
		}
		c.at, c.ahead, c.size = c.at+c.size, c.ahead-c.points, 0
	}
}

// decomposedLen is the number of code points in the full decomposition of one rune.
func decomposedLen(full norm.Form, r []byte) int {
	if r[0] < utf8.RuneSelf {
		return 1
	}
	if d := full.Properties(r).Decomposition(); d != nil {
		return utf8.RuneCount(d)
	}
	if c, _ := utf8.DecodeRune(r); c >= 0xAC00 && c <= 0xD7A3 { // Hangul syllables decompose by rule, not by table
		if (c-0xAC00)%28 == 0 {
			return 2
		}
		return 3
	}
	return 1
}

func replaceString(old, with string) step {
	return func(w *work) {
		if old == "" || !strings.Contains(string(w.text.b), old) {
			return
		}
		dst, src := &w.spare, &w.text
		dst.prepare(src)
		for i := 0; i < len(src.b); {
			if src.b[i] == old[0] && i+len(old) <= len(src.b) && string(src.b[i:i+len(old)]) == old {
				last := i + len(old) - 1
				dst.string(with, src.from[last], src.to[last]) // as in the reference: the last character replaced
				i += len(old)
				continue
			}
			dst.byte(src.b[i], src.from[i], src.to[i])
			i++
		}
		w.flip()
	}
}

func replaceRegexp(re *regexp.Regexp, with string) step {
	return func(w *work) {
		found := re.FindAllIndex(w.text.b, -1)
		if found == nil {
			return
		}
		dst, src := &w.spare, &w.text
		dst.prepare(src)
		last := 0
		for _, m := range found {
			dst.copy(src, last, m[0])
			if m[1] > m[0] {
				dst.string(with, src.from[m[1]-1], src.to[m[1]-1]) // as in the reference: the last character replaced
			}
			last = m[1]
		}
		dst.copy(src, last, len(src.b))
		w.flip()
	}
}

func prepend(prefix string) step {
	return func(w *work) {
		if len(w.text.b) == 0 {
			return
		}
		dst, src := &w.spare, &w.text
		dst.prepare(src)
		dst.string(prefix, src.from[0], src.to[0])
		dst.copy(src, 0, len(src.b))
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
	t.b, t.from, t.to = t.b[:i], t.from[:i], t.to[:i]
}
