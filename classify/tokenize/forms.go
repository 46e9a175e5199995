package tokenize

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalForm applies a Unicode normalization form. Tables come from x/text. Order and composition
// are implemented here, because x/text breaks up long runs of marks (Stream-Safe Text Format, UAX
// 15 section 13), which the reference does not, and because offsets have to be tracked for every
// code point.
type normalForm struct {
	form       norm.Form
	full       norm.Form       // the decomposition it starts with
	composites map[uint64]rune // first and second code point to the composite; nil for NFD and NFKD
}

// point is a code point of a decomposition. It replaces 1-added input characters.
type point struct {
	r     rune
	added int32
	class uint8 // canonical combining class
}

// First and number of code points of the Hangul blocks (Unicode Standard, section 3.12).
const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	countV, countT                     = 21, 28
	countS                             = 19 * countV * countT
)

// lastComposite is the last code point that has a canonical decomposition.
const lastComposite = 0x2FA1D

func newNormalForm(form norm.Form) *normalForm {
	f := &normalForm{form: form, full: norm.NFD}
	if form == norm.NFKC || form == norm.NFKD {
		f.full = norm.NFKD
	}
	if form == norm.NFD || form == norm.NFKD {
		return f
	}
	f.composites = make(map[uint64]rune, 1024)
	var buf [utf8.UTFMax]byte
	for r := rune(0xC0); r <= lastComposite; r++ {
		b := buf[:utf8.EncodeRune(buf[:], r)]
		parts := []rune(string(norm.NFD.Properties(b).Decomposition()))
		if len(parts) < 2 || !norm.NFC.IsNormal(b) { // none, a singleton, or excluded from composition
			continue
		}
		last := len(parts) - 1
		head := []rune(norm.NFC.String(string(parts[:last])))
		if len(head) == 1 {
			f.composites[pair(head[0], parts[last])] = r
		}
	}
	return f
}

// compose returns the primary composite of a and b.
func (f *normalForm) compose(a, b rune) (rune, bool) {
	if l, v := a-hangulL, b-hangulV; l >= 0 && l < 19 && v >= 0 && v < countV {
		return hangulS + (l*countV+v)*countT, true
	}
	if s, t := a-hangulS, b-hangulT; s >= 0 && s < countS && s%countT == 0 && t > 0 && t < countT {
		return a + t, true
	}
	c, ok := f.composites[pair(a, b)]
	return c, ok
}

func (f *normalForm) step(w *work) {
	if f.form.IsNormal(w.text.b) {
		return
	}
	dst, src := &w.spare, &w.text
	dst.prepare(len(src.b))
	var p place
	for i := 0; i < len(src.b); {
		dst.expect(i, len(src.b))
		n := f.form.QuickSpan(src.b[i:])
		for start := i + n; n > 0 && f.joins(src.b[start:]); start = i + n {
			_, size := utf8.DecodeLastRune(src.b[i:start])
			n -= size
		}
		dst.copy(src, i, i+n, &p)
		if i += n; i == len(src.b) {
			break
		}
		end := f.boundary(src.b, i)
		f.decompose(w, src.b[i:end])
		w.steps += len(w.points)
		reorder(w)
		if f.composites != nil {
			f.recompose(w)
		}
		write(w, i, &p)
		i = end
	}
	w.flip()
}

// boundary returns the end of the segment that starts at i: code points of different segments do
// not compose or reorder.
func (f *normalForm) boundary(b []byte, i int) int {
	for {
		_, n := utf8.DecodeRune(b[i:])
		if i += n; !f.joins(b[i:]) {
			return i
		}
	}
}

// joins reports whether the first character of b may compose with, or be reordered before,
// preceding text. The tables cover all characters except the halfwidth Hangul vowels, which
// decompose to vowels that compose.
func (f *normalForm) joins(b []byte) bool {
	if len(b) == 0 || b[0] < utf8.RuneSelf {
		return false
	}
	if len(b) > 2 && b[0] == 0xEF && b[1] == 0xBF && f.form == norm.NFKC {
		return b[2] >= 0x82 && b[2] <= 0x9C // U+FFC2 to U+FFDC
	}
	return !f.form.Properties(b).BoundaryBefore()
}

// decompose sets w.points to the decomposition of segment.
func (f *normalForm) decompose(w *work, segment []byte) {
	w.points = w.points[:0]
	for i := 0; i < len(segment); {
		r, n := utf8.DecodeRune(segment[i:])
		if s := r - hangulS; s >= 0 && s < countS {
			w.points = push(w.points, point{r: hangulL + s/(countV*countT)})
			w.points = push(w.points, point{r: hangulV + s%(countV*countT)/countT, added: 1})
			if t := s % countT; t > 0 {
				w.points = push(w.points, point{r: hangulT + t, added: 1})
			}
			i += n
			continue
		}
		p := f.full.Properties(segment[i:])
		if d := p.Decomposition(); d != nil {
			for k, added := 0, int32(0); k < len(d); added = 1 {
				r, n := utf8.DecodeRune(d[k:])
				w.points = push(w.points, point{r, added, norm.NFD.Properties(d[k:]).CCC()})
				k += n
			}
		} else {
			w.points = push(w.points, point{r, 0, p.CCC()})
		}
		i += n
	}
}

// reorder sorts the marks after each starter by combining class; equal classes keep their order.
func reorder(w *work) {
	p := w.points
	for i := 0; i < len(p); {
		if p[i].class == 0 {
			i++
			continue
		}
		end := i + 1
		sorted := true
		for end < len(p) && p[end].class != 0 {
			sorted = sorted && p[end-1].class <= p[end].class
			end++
		}
		if !sorted {
			sortMarks(w, p[i:end])
		}
		i = end
	}
}

// sortMarks is a counting sort: runs of marks can be as long as the text.
func sortMarks(w *work, marks []point) {
	var count [257]int32
	for _, m := range marks {
		count[int(m.class)+1]++
	}
	for c := 1; c < len(count); c++ {
		count[c] += count[c-1]
	}
	w.marks = append(room(w.marks[:0], len(marks)), marks...)
	for _, m := range w.marks {
		marks[count[m.class]] = m
		count[m.class]++
	}
}

// recompose is the canonical composition algorithm (Unicode Standard, section 3.11).
func (f *normalForm) recompose(w *work) {
	p := w.points
	starter, last, n := -1, -1, 0 // last is the class of the code point before; -1 next to the starter
	for _, x := range p {
		if starter >= 0 && last < int(x.class) {
			if c, ok := f.compose(p[starter].r, x.r); ok {
				p[starter].r = c
				p[starter].added += x.added - 1
				continue
			}
		}
		last = int(x.class)
		if last == 0 {
			starter, last = n, -1
		}
		p[n] = x
		n++
	}
	w.points = p[:n]
}

// write appends w.points to w.spare, in place of the text from byte i on.
func write(w *work, i int, p *place) {
	dst, src := &w.spare, &w.text
	last := max(i-1, 0) // a byte of the character taken last, to which an added one belongs
	for _, x := range w.points {
		if x.added > 0 {
			from, to := src.origin(last, p)
			dst.rune(x.r, from, to)
			continue
		}
		from, to := src.origin(i, p)
		dst.rune(x.r, from, to)
		for range 1 - x.added {
			_, n := utf8.DecodeRune(src.b[i:])
			last, i = i, i+n
		}
	}
}
