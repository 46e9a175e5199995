package tokenize

import (
	"sort"
	"unicode/utf8"
)

// aligned is text that records the origin of each of its bytes in the input. It is valid UTF-8.
// Where the text is a copy of the input, a single run describes any length of it, so that unchanged
// text costs nothing, and a character that is expanded to many costs one run.
type aligned struct {
	b    []byte
	runs []run // by at; runs[0].at is 0 unless b is empty
}

// run describes the origin of the bytes from b[at] up to the next run.
type run struct {
	at   int32 // in b
	from int32 // in the input
	// size > 0: every byte represents the input [from,from+size). 0: the run copies the input from
	// byte from on, as far as lengths go, and a byte represents the character around it.
	size int32
}

// place is the position in the runs of an aligned text that was looked up last; looking up
// neighbours is cheap.
type place int

func (a *aligned) reset() { a.b, a.runs = a.b[:0], a.runs[:0] }

// prepare empties a and makes room for n bytes.
func (a *aligned) prepare(n int) {
	a.reset()
	a.b = room(a.b, n+64)
}

// room returns s with space for n more elements, exactly when it has to be moved.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]T, 0, len(s)+n), s...)
}

// atLeast is room for slices that are reused for many words: if one has to move, it at least
// doubles.
func atLeast[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return room(s, max(n, 2*cap(s)-len(s)))
}

// push appends v. It doubles the capacity: append alone copies large slices five times over.
func push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		s = room(s, max(len(s), 64))
	}
	return append(s, v)
}

// forecast returns how many more elements to make room for, if n of them were needed for done of
// total bytes: the rest at the same rate, once there are enough to rely on it.
func forecast(n, done, total int) int {
	const trusted = 1 << 13
	rest := int(int64(n) * int64(total-done) / int64(max(done, 1)))
	if n < trusted {
		rest = min(rest, 15*n)
	}
	return max(rest+rest/64, n/4) + 64
}

// expect makes room for a character of a step that has processed done of total bytes of its source.
func (a *aligned) expect(done, total int) {
	const character = 64 // no decomposition is longer
	if cap(a.b)-len(a.b) < character {
		a.b = room(a.b, forecast(len(a.b), done, total))
	}
	if len(a.runs) == cap(a.runs) {
		a.runs = room(a.runs, forecast(len(a.runs), done, total))
	}
}

// seek moves p to the run of byte i.
func (a *aligned) seek(i int, p *place) *run {
	k := int(*p)
	for k+1 < len(a.runs) && int(a.runs[k+1].at) <= i {
		k++
	}
	for int(a.runs[k].at) > i {
		k--
	}
	*p = place(k)
	return &a.runs[k]
}

// origin returns the input range [from,to) of byte i.
func (a *aligned) origin(i int, p *place) (from, to int32) {
	r := a.seek(i, p)
	if r.size > 0 {
		return r.from, r.from + r.size
	}
	from = r.from + int32(i) - r.at
	if a.b[i] < utf8.RuneSelf {
		return from, from + 1
	}
	start := i
	for !utf8.RuneStart(a.b[start]) {
		start--
	}
	_, n := utf8.DecodeRune(a.b[start:])
	from -= int32(i - start)
	return from, from + int32(n)
}

// load replaces a by text, which starts at byte base of the input. Bytes that are not UTF-8 become
// U+FFFD.
func (a *aligned) load(text string, base int) {
	a.prepare(len(text))
	if utf8.ValidString(text) {
		if text != "" {
			a.follow(int32(base))
			a.b = append(a.b, text...)
		}
		return
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		a.rune(r, int32(base+i), int32(base+i+n))
		i += n
	}
}

// set replaces a by src[from:to].
func (a *aligned) set(src *aligned, from, to int) {
	a.reset()
	p := place(max(0, sort.Search(len(src.runs), func(k int) bool { return int(src.runs[k].at) > from })-1))
	a.copy(src, from, to, &p)
}

// copy appends src[from:to], which are whole characters.
func (a *aligned) copy(src *aligned, from, to int, p *place) {
	for i := from; i < to; {
		r := src.seek(i, p)
		end := to
		if next := int(*p) + 1; next < len(src.runs) {
			end = min(end, int(src.runs[next].at))
		}
		if r.size > 0 {
			a.emit(r.from, r.size)
		} else {
			a.follow(r.from + int32(i) - r.at)
		}
		a.b = append(a.b, src.b[i:end]...)
		i = end
	}
}

// follow marks the next bytes as a copy of the input from byte from on.
func (a *aligned) follow(from int32) {
	at := int32(len(a.b))
	if n := len(a.runs); n > 0 {
		if last := &a.runs[n-1]; last.size == 0 && last.from+at-last.at == from {
			return
		}
	}
	a.runs = push(a.runs, run{at, from, 0})
}

// emit marks the next bytes as representing the size input bytes at from.
func (a *aligned) emit(from, size int32) {
	if n := len(a.runs); n > 0 {
		if last := &a.runs[n-1]; last.from == from && last.size == size {
			return
		}
	}
	a.runs = push(a.runs, run{int32(len(a.b)), from, size})
}

// byte appends an ASCII character that came from the input [from,to).
func (a *aligned) byte(c byte, from, to int32) {
	a.one(1, from, to)
	a.b = append(a.b, c)
}

// rune appends a character that came from the input [from,to).
func (a *aligned) rune(r rune, from, to int32) {
	a.one(int32(utf8.RuneLen(r)), from, to)
	a.b = utf8.AppendRune(a.b, r)
}

// one prepares for one character of n bytes.
func (a *aligned) one(n, from, to int32) {
	if n != to-from {
		a.emit(from, to-from)
		return
	}
	if k := len(a.runs); k > 0 && a.runs[k-1].size == n && a.runs[k-1].from == from {
		return // one more character of the same origin
	}
	a.follow(from)
}

// string appends text that came from the input [from,to) as a whole.
func (a *aligned) string(s string, from, to int32) {
	if s == "" {
		return
	}
	a.emit(from, to-from)
	a.b = append(a.b, s...)
}

// flip makes what a step wrote to w.spare the text.
func (w *work) flip() { w.text, w.spare = w.spare, w.text }
