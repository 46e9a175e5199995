package quantity

import "math"

// spelled reads a number in words: two hundred and thirty-four thousand; treinta y cinco;
// quatre-vingt-dix.
func (p *parser) spelled(i int) (v Value, next int, ok bool) {
	var total, part, last float64
	j, seen := i, false
	if n := p.beside(i); n > 0 {
		return inOneWord(n), i + 1, true
	}
	if p.has(i, roleArticle) && !p.has(i, roleCardinal) {
		if !p.has(i+1, roleMagnitude) {
			return v, i, false
		}
		j, part = i+1, 1
	} else if !p.has(i, roleCardinal) && !p.bareMagnitude(i) {
		return v, i, false
	}
	for {
		t := p.tok(j)
		switch {
		case t.kind != tokWord:
			return p.spelledEnd(total+part, j, seen)
		case t.word.role&roleCardinal != 0 && (fits(t.word.num, last, seen) || p.arabicTens(t, last)):
			if score := t.word.num == 20 && part == 4 && p.sym(j-1, '-'); score {
				part = 80
			} else {
				part += t.word.num
			}
			last = t.word.num
		case t.word.role&roleMagnitude != 0 && t.word.num == 100:
			part = max(part, 1) * 100
			last = 100
		case t.word.role&roleMagnitude != 0 && !(seen && t.word.num == 12):
			total += max(part, 1) * t.word.num
			part, last = 0, 1000
		default:
			return p.spelledEnd(total+part, j, seen)
		}
		seen = true
		j = p.joint(j+1, last)
	}
}

// inOneWord returns a number written in one word, such as one and a half.
func inOneWord(n float64) Value {
	if n != math.Trunc(n) {
		return plainValue(n, 0.5)
	}
	return plainValue(n, 1)
}

// bareMagnitude reports whether token i is a magnitude without a number before it, such as hundert,
// mil, cent or mille. English says "a hundred".
func (p *parser) bareMagnitude(i int) bool {
	t := p.tok(i)
	if t.word.role&roleMagnitude == 0 || t.word.num > 1000 {
		return false
	}
	switch p.text[t.start:t.end] {
	case "hundert", "tausend", "cent", "cien", "ciento", "cem", "cento", "mil", "mille":
		return p.tok(i-1).kind != tokNumber
	}
	return false
}

// fits reports whether cardinal n can follow last within one number.
func fits(n, last float64, seen bool) bool {
	switch {
	case !seen:
		return true
	case last >= 1000:
		return n < 1000 && n > 0
	case last >= 100:
		return n < 100 && n > 0
	case last == 60 || last == 80 || last == 20:
		return n > 0 && n < 20
	case last >= 20:
		return n > 0 && n < 10
	case last == 4:
		return n == 20
	}
	return false
}

// joint skips a hyphen or "and" inside a number.
func (p *parser) joint(j int, last float64) int {
	if p.sym(j, '-') && p.touches(j) == p.touches(j+1) && p.has(j+1, roleCardinal|roleMagnitude) {
		return j + 1
	}
	portuguese := p.word(j, "e")
	if (portuguese || p.has(j, roleAnd)) && p.has(j+1, roleCardinal) && last >= 20 {
		next := p.tok(j + 1).word.num
		english := p.word(j, "and")
		if portuguese && last >= 100 && next < last {
			return j + 1
		}
		if english && last >= 100 && next < 100 || !english && next < 20 {
			return j + 1
		}
	}
	return j
}

func (p *parser) spelledEnd(n float64, j int, seen bool) (Value, int, bool) {
	v := plainValue(n, 1)
	if p.sym(j-1, '-') {
		j--
	}
	return v, j, seen
}
