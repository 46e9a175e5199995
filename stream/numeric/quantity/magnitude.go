package quantity

// power reads ×10^6, x 10⁶ and e6.
func (p *parser) power(i int) (exp float64, next int, ok bool) {
	t := p.tok(i)
	if t.kind == tokWord && p.touches(i) && (p.word(i, "e") || p.word(i, "E")) {
		return p.exponent(i + 1)
	}
	times := p.sym(i, '×') || p.sym(i, '·') || p.sym(i, '*') || p.word(i, "x")
	if !times || p.tok(i+1).kind != tokNumber || p.tok(i+1).num != 10 {
		return 0, i, false
	}
	if p.sym(i+2, '^') {
		i++
	}
	return p.exponent(i + 2)
}

func (p *parser) exponent(i int) (exp float64, next int, ok bool) {
	sign := 1.0
	if p.sym(i, '⁻') {
		return p.superscript(i+1, -1)
	}
	if p.sym(i, '-') || p.sym(i, '−') {
		sign = -1
		i++
	}
	if p.sym(i, '+') {
		i++
	}
	if t := p.tok(i); t.kind == tokNumber && t.step == 1 && t.num <= 40 {
		return sign * t.num, i + 1, true
	}
	return p.superscript(i, sign)
}

func (p *parser) superscript(i int, sign float64) (exp float64, next int, ok bool) {
	start := i
	for {
		t := p.tok(i)
		d := superscriptDigit(t.sym)
		if t.kind != tokSymbol || d < 0 || exp > 4 {
			return sign * exp, i, i > start
		}
		exp = exp*10 + float64(d)
		i++
	}
}

func superscriptDigit(r rune) int {
	switch {
	case r == '¹':
		return 1
	case r == '²':
		return 2
	case r == '³':
		return 3
	case r == '⁰' || r >= '⁴' && r <= '⁹':
		return int(r - '⁰')
	}
	return -1
}

// magnitudes multiplies v by the magnitudes that follow: thousand, million, k, M.
func (p *parser) magnitudes(v Value, i int) (Value, int) {
	for {
		if p.andMore(i) && p.magnitude(i+1) > 0 {
			i++ // 150多万
		}
		mult := p.magnitude(i)
		if mult == 0 {
			return v, i
		}
		v.Raw, v.Step, v.Place = v.Raw*mult, v.Step*mult, v.Place*mult
		v.RawHi = v.Raw
		v.Scale = max(1, v.Scale) * mult
		v.Alt *= mult
		v.scaled()
		i++
		if p.sym(i, '.') && p.touches(i) && p.money(i+1) && p.abbreviated(i-1) {
			i++ // 845 Tsd. EUR
		}
	}
}

// abbreviated reports whether the magnitude at token i is an abbreviation with a full stop.
func (p *parser) abbreviated(i int) bool {
	switch p.tokText(i) {
	case "Tsd", "tsd", "Mio", "mio", "Mrd", "mrd":
		return true
	}
	return false
}

// andMore reports whether token i means "and a little more" after a number in a script without
// spaces.
func (p *parser) andMore(i int) bool { return p.word(i, "多") || p.word(i, "余") }

func (p *parser) magnitude(i int) float64 {
	t := p.tok(i)
	if t.kind != tokWord {
		return 0
	}
	if p.touches(i) {
		if mult := p.gluedMagnitude(i); mult > 0 {
			return mult
		}
	}
	if t.word.role&roleMagnitude != 0 {
		return t.word.num
	}
	if p.word(i, "兆") && p.tok(i+1).unit.dim.currency() {
		return trillion // elsewhere, as for bits, it is a million
	}
	if p.money(i+1) && p.touches(i+1) && t.end-t.start <= 2 {
		if p.word(i, "T") && p.sym(i+1, '€') {
			return 1e3 // in German balance sheets
		}
		return shortMagnitude(p.text[t.start:t.end]) // M€, Md€
	}
	if p.money(i-2) && (p.word(i, "m") || p.word(i, "M")) {
		return 1e6
	}
	return 0
}

func (p *parser) gluedMagnitude(i int) float64 {
	t := p.tok(i)
	switch p.text[t.start:t.end] {
	case "k", "K":
		return 1e3
	case "M":
		return 1e6
	case "m":
		if p.money(i - 2) {
			return 1e6
		}
	case "B":
		return 1e9
	case "T":
		return 1e12
	}
	return 0
}

// shortMagnitude returns the magnitude between a number and a currency sign, or 0.
func shortMagnitude(s string) float64 {
	switch s {
	case "k", "K":
		return 1e3
	case "M", "m":
		return 1e6
	case "B", "bn", "Md":
		return 1e9
	}
	return 0
}

// money reports whether token i is a currency sign or code.
func (p *parser) money(i int) bool {
	t := p.tok(i)
	return i >= 0 && t.unit.dim.currency() && (t.kind == tokSymbol || p.text[t.start] <= 'Z')
}
