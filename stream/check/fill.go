package check

import (
	"slices"
	"strings"

	"signalbox/stream/evidence"
)

// fill adds windows of the evidence to premises until there are k, so that claims in other words
// than the evidence are read as well. Windows at the start of their source come first; equals are
// ordered by text, so that the order of facts has no effect. Added windows have score 0. fill scans
// all of the evidence, which takes well under a millisecond for 64 KiB, but only for claims that
// share words with fewer than k of its sentences.
func fill(e *evidence.Evidence, premises []evidence.Premise, k int) []evidence.Premise {
	for len(premises) < k {
		p, ok := opening(e, premises)
		if !ok {
			break
		}
		premises = append(premises, p)
	}
	return premises
}

// opening returns the window nearest to the start of its source that is not among the premises.
func opening(e *evidence.Evidence, premises []evidence.Premise) (best evidence.Premise, ok bool) {
	source, first, place := -1, 0, 0
	for i := range e.Len() {
		p := e.Premise(i)
		if p.Source != source {
			source, first = p.Source, i
		}
		if ok && (i-first > place || i-first == place && p.Text >= best.Text) || holds(premises, p.Text) {
			continue
		}
		best, place, ok = p, i-first, true
	}
	return best, ok
}

func holds(premises []evidence.Premise, text string) bool {
	return slices.ContainsFunc(premises, func(p evidence.Premise) bool { return strings.Contains(p.Text, text) })
}
