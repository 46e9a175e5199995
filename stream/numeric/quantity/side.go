package quantity

// between bounds how many tokens stand between the two numbers of "from 10 euros in winter to 20 euros
// in summer"; our choice.
const between = 8

// paired reports whether what stands from token j on, up to the end of the clause, is the other number
// of "from ... to": then nothing is said of what lies beyond.
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

// side is on which side of v, of tokens [i, j), lies what is spoken of. What an order forbids lies on
// one, and what it allows on the other.
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

// romanceSide reports whether what stands from token j on says that more is meant as well: "et versions
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
