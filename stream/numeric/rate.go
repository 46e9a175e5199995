package numeric

import (
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// ratesOf notes of each value of the reading what its clause tells of the length of time that it is
// for ("monthly fee", "price per month") and of what it is for each of ("per key").
func (r *reading) ratesOf(text string) {
	r.each = append(r.each[:0], make([]uint64, len(r.values))...)
	tells := false
	r.lengths = r.lengths[:0]
	for i, w := range r.words {
		s := r.periodAt(text, i)
		r.lengths = append(r.lengths, s)
		tells = tells || s != 0 || w.Has(words.Stop) && isPer(text[w.Start:w.End])
	}
	if !tells {
		return
	}
	for i := range r.values {
		r.rate(text, i)
	}
}

// periodAt is the length of time that word i tells amounts are for, by itself or behind "per".
func (r *reading) periodAt(text string, i int) float64 {
	w := &r.words[i]
	if w.Has(words.Number) || w.End-w.Start > 24 {
		return 0
	}
	var form [32]byte
	lower := appendLower(form[:0], text[w.Start:w.End])
	if s := quantity.PeriodOf(string(lower)); s != 0 {
		return s
	}
	if i > 0 && isPer(text[r.words[i-1].Start:r.words[i-1].End]) {
		return quantity.LengthOf(string(lower))
	}
	return 0
}

func isPer(word string) bool {
	switch word {
	case "per", "Per", "pro", "Pro", "par", "por", "je":
		return true
	}
	return false
}

// rate notes what value i is for.
func (r *reading) rate(text string, i int) {
	v := &r.values[i]
	if v.Kind != quantity.Count || v.Dim == quantity.Duration {
		return
	}
	from, to := r.clauseAround(v.Start)
	told, found := 0.0, true
	for k, w := range r.words {
		if w.Start < from || w.Start >= to || w.Start < v.End && v.Start < w.End {
			continue
		}
		if s := r.lengths[k]; s != 0 {
			found = found && (told == 0 || told == s)
			told = s
		} else if w.Start >= v.End && r.each[i] == 0 && k > 0 && isPer(text[r.words[k-1].Start:r.words[k-1].End]) {
			r.each[i] = w.Hash
		}
	}
	if v.Period == 0 && found && told != 0 {
		v.Period = told
	}
}
