package quantity

import (
	_ "embed" // of the phrases
	"slices"
	"strings"
)

//go:embed bounds.txt
var boundLists string

// phrase is a phrase that makes a number a bound.
type phrase struct {
	words []string // nearest to the number first
	hedge Hedge
}

// boundsBefore and boundsAfter map the word nearest to the number to its phrases, the longest
// first.
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

// boundBefore returns the bound from a phrase before the number at token i, or Exact.
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

// boundAfter returns the bound from a phrase after the number that ends before token j, or Exact:
// "48 or fewer", "48 students or fewer". A phrase directly before another number belongs to that
// number.
func (p *parser) boundAfter(j int) Hedge {
	for k := j; k <= j+1; k++ {
		if h := p.bound(boundsAfter, k, 1); h != Exact || p.tokText(k) == "" || p.has(k, roleAnd) {
			return h
		}
	}
	return Exact
}

// bound returns the bound of the phrase in table that begins at token k and continues in steps of
// step.
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
			return Exact // "3 adults at least 5 children"; "or more than"
		case step < 0 && len(ph.words) == 1 && next.kind == tokNumber:
			return Exact // 30 min 48 s
		}
		return ph.hedge
	}
	return Exact
}

// lower returns the word at token k in lower case, or "" if it is not a word.
func (p *parser) lower(k int) string { return strings.ToLower(p.tokText(k)) }

// ahead reports whether the length of time in tokens [i, j) uses "up to" for a time before
// something, which is ambiguous: "may be cancelled up to 14 days before arrival" means at least 14
// days before it, "may be booked up to 60 days before a trip" at most 60 days.
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
