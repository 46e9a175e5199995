package eval

import (
	"cmp"
	"slices"
)

// Entities is the result for personal data, by one method of comparison.
type Entities struct {
	MicroF1  float64          `json:"micro_f1"`
	MacroF1  float64          `json:"macro_f1"` // over the types that occur in the data
	PerClass map[string]Class `json:"per_class"`
}

// scoreEntities compares the entities found with those in the data: exactly, and by overlap, which
// means the same type and at least one shared code point, matched one to one. Types that are not
// listed are ignored on both sides.
func scoreEntities(examples []Example, answers []Answer, types []string) *Report {
	r := &Report{Task: PII, N: len(examples)}
	exact, overlap := tallies{}, tallies{}
	for i := range examples {
		if !answers[i].Known {
			r.Unknown++
		}
		want, got := ofTypes(examples[i].Entities, types), ofTypes(answers[i].Entities, types)
		exact.add(want, got, func(a, b Entity) bool { return a == b })
		overlap.add(want, got, func(a, b Entity) bool { return a.Type == b.Type && a.Start < b.End && b.Start < a.End })
	}
	r.Exact, r.Overlap = exact.entities(), overlap.entities()
	r.LatencyMS = latency(answers)
	return r
}

// ofTypes returns the entities of the given types, without duplicates, ordered by their ends.
func ofTypes(list []Entity, types []string) []Entity {
	var out []Entity
	for _, e := range list {
		if slices.Contains(types, e.Type) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Type, b.Type))
	})
	return slices.Compact(out)
}

// tally counts the entities of one type.
type tally struct{ right, wanted, found int }

type tallies map[string]tally

// add matches wanted and found entities one to one. Both are ordered by their ends, so taking the
// first match leaves the most options for the following ones.
func (t tallies) add(want, got []Entity, same func(a, b Entity) bool) {
	used := make([]bool, len(got))
	for _, w := range want {
		c := t[w.Type]
		c.wanted++
		for i, g := range got {
			if !used[i] && same(w, g) {
				used[i] = true
				c.right++
				break
			}
		}
		t[w.Type] = c
	}
	for _, g := range got {
		c := t[g.Type]
		c.found++
		t[g.Type] = c
	}
}

func (t tallies) entities() *Entities {
	e := &Entities{PerClass: map[string]Class{}}
	var all tally
	sum, classes := 0.0, 0
	for name, c := range t {
		k := c.class()
		e.PerClass[name] = k
		all.right, all.wanted, all.found = all.right+c.right, all.wanted+c.wanted, all.found+c.found
		if c.wanted > 0 {
			sum += k.F1
			classes++
		}
	}
	e.MicroF1 = all.class().F1
	if classes > 0 {
		e.MacroF1 = sum / float64(classes)
	}
	return e
}

func (t tally) class() Class {
	return newClass(ratio(t.right, t.found), ratio(t.right, t.wanted), t.wanted)
}

func newClass(precision, recall float64, support int) Class {
	c := Class{Precision: precision, Recall: recall, Support: support}
	if precision+recall > 0 {
		c.F1 = 2 * precision * recall / (precision + recall)
	}
	return c
}
