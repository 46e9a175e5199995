package quantity

// between is the maximum number of tokens between the two numbers of "from 10 euros in winter to 20
// euros in summer"; our choice.
const between = 8

// paired reports whether the other number of "from ... to" follows from token j on, within the
// clause. Then "from" is not a lower bound.
func (p *parser) paired(j int) bool {
	for k := j; k < j+between; k++ {
		t := p.tok(k)
		if t.kind == tokOpaque ||
			t.kind == tokSymbol && (t.sym == ',' || t.sym == ';' || t.sym == '.' || t.sym == ')' || t.sym == '|') {
			return false
		}
		if p.has(k, roleTo) || p.word(k, "until") || p.word(k, "through") {
			next := k + 1
			for p.money(next) {
				next++
			}
			n := p.tok(next)
			return k == j || n.kind == tokNumber || n.kind == tokWord && n.word.role&roleCardinal != 0
		}
	}
	return false
}

// side returns the side of v, in tokens [i, j), on which the subject lies. It is NoSide for orders
// that forbid something, because the forbidden values are on one side and the allowed ones on the
// other.
func (p *parser) side(i, j int, v *Value) Side {
	if v.Range() || v.Forbids {
		return NoSide
	}
	switch v.Hedge {
	case Over, Least:
		return Upwards
	case Under, Most:
		return Downwards
	case Exact, About, Nearly:
	}
	switch p.tokText(j) {
	case "aufwärts", "upwards", "upward", "onwards":
		return Upwards
	case "and", "or", "und", "oder":
		switch p.tokText(j + 1) {
		case "up", "over", "above", "older", "mehr", "more", "älter", "darüber",
			"later", "newer", "higher", "greater", "neuer", "höher", "später":
			return Upwards
		case "less", "fewer", "under", "below", "younger", "weniger", "jünger", "darunter",
			"earlier", "lower", "früher":
			return Downwards
		}
	}
	if p.romanceSide(j) {
		return Upwards
	}
	k := i - 1
	for p.money(k) || p.has(k, roleArticle) || p.word(k, "einem") || p.word(k, "zu") ||
		p.word(k, "age") || p.word(k, "ages") {
		k--
	}
	switch p.tokText(k) {
	case "to":
		if p.word(k-1, "up") {
			return Downwards
		}
	case "within", "Within":
		return Downwards
	case "ab", "Ab":
		return Upwards
	case "from", "From":
		if !p.paired(j) {
			return Upwards
		}
	case "bis", "Bis":
		if p.tok(k-1).kind != tokNumber && p.tok(k-2).kind != tokNumber {
			return Downwards
		}
	}
	return NoSide
}

// romanceSide reports whether the text from token j on includes larger values: "et versions
// ultérieures", "o superior".
func (p *parser) romanceSide(j int) bool {
	switch p.tokText(j) {
	case "et", "ou", "y", "o", "e":
	default:
		return false
	}
	switch p.tokText(j + 1) {
	case "plus", "ultérieur", "ultérieure", "ultérieurs", "ultérieures", "supérieur", "supérieure", "superior",
		"superiores", "posterior", "posteriores", "más":
		return true
	case "versions", "versiones", "version": //nolint:misspell // Spanish
		switch p.tokText(j + 2) {
		case "ultérieures", "ultérieure", "supérieures", "posteriores", "superiores":
			return true
		}
	}
	return false
}
