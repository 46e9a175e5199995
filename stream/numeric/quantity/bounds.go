package quantity

import (
	_ "embed" // of the phrases
	"slices"
	"strings"
)

//go:embed bounds.txt
var boundLists string

// phrase makes a number a bound.
type phrase struct {
	words []string // before a number the last one first, behind it the first one first
	hedge Hedge
}

// boundsBefore and boundsAfter are the phrases by the word that stands nearest to the number, the
// longest first.
//
//nolint:gochecknoglobals // constant tables
var boundsBefore, boundsAfter = buildBounds()

func buildBounds() (before, after map[string][]phrase) {
	before, after = map[string][]phrase{}, map[string][]phrase{}
	for line := range strings.Lines(boundLists) {
		what, list, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || line[0] == '#' {
			continue
		}
		hedge, table := Least, after
		if strings.HasSuffix(what, "most") {
			hedge = Most
		}
		if strings.HasPrefix(what, "before") {
			table = before
		}
		for text := range strings.SplitSeq(list, ", ") {
			p := phrase{strings.Fields(text), hedge}
			if strings.HasPrefix(what, "before") {
				slices.Reverse(p.words)
			}
			nearest := p.words[0]
			table[nearest] = append(table[nearest], p)
		}
	}
	for _, table := range []map[string][]phrase{before, after} {
		for _, list := range table {
			slices.SortStableFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
		}
	}
	return before, after
}

// boundBefore is the bound that a phrase before the number at token i makes of it, Exact for none.
func (p *parser) boundBefore(i int) Hedge {
	k := i - 1
	for p.money(k) || p.has(k, roleArticle) {
		k--
	}
	if p.sym(k, '.') && p.touches(k) {
		k-- // max. 48
	}
	return p.bound(boundsBefore, k, -1)
}

// boundAfter is the bound that a phrase makes of the number before token j, Exact for none: "48 or
// fewer", "48 students or fewer". One before the next number is of that.
func (p *parser) boundAfter(j int) Hedge {
	for k := j; k <= j+1; k++ {
		if h := p.bound(boundsAfter, k, 1); h != Exact || p.tokText(k) == "" || p.has(k, roleAnd) {
			return h
		}
	}
	return Exact
}

// bound is that of the phrase of the table that begins at token k and goes on in steps of step.
func (p *parser) bound(table map[string][]phrase, k, step int) Hedge {
	for _, ph := range table[p.lower(k)] {
		n := k
		for _, w := range ph.words {
			if p.sym(n, '.') && p.touches(n) {
				n += step // max. of
			}
			if p.lower(n) != w {
				n = k - step
				break
			}
			n += step
		}
		if n == k-step {
			continue
		}
		switch next := p.tok(n); {
		case step > 0 && (next.kind == tokNumber || p.has(n, roleCardinal|roleOf) || p.has(n, roleThan) && !p.word(n, "to")):
			return Exact // 3 adults at least 5 children; or more than
		case step < 0 && len(ph.words) == 1 && next.kind == tokNumber:
			return Exact // 30 min 48 s
		}
		return ph.hedge
	}
	return Exact
}

// lower is the text of the word at token k in lower case, empty when it is none.
func (p *parser) lower(k int) string { return strings.ToLower(p.tokText(k)) }

// ahead reports whether a length of time, of tokens [i, j), bounds what lies before something by
// "up to": what may be cancelled up to 14 days before the arrival may be so at least 14 days before
// it, and what can be booked up to 60 days before a trip at most 60 days before it.
func (p *parser) ahead(i, j int, v *Value) bool {
	if v.Hedge != Most || v.Dim != Duration || !p.aheadOf(j) {
		return false
	}
	switch p.lower(i - 1) {
	case "to", "zu", "hasta", "até", "jusqu'à":
		return true
	}
	return false
}
