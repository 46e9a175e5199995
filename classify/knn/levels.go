package knn

import (
	"cmp"
	"slices"
)

// The constants of crowd levels and thresholds; see the package comment.
const (
	crowdSize   = 10  // minimum number of scores for a crowd level
	crowdShare  = 100 // one in this many scores is used, if that is more
	thresholdAt = 0.4 // position of a threshold between crowd level and own level
	ownPrior    = 0.5 // own level of an intent without data
	priorWeight = 5   // pseudo-examples of ownPrior in the mean own level of all intents
	poolWeight  = 3   // pseudo-examples of that mean in the own level of one intent
)

const (
	// fullRebuild is the number of examples up to which an Add recomputes the levels of all
	// intents.
	fullRebuild = 2048
	// levelWork limits the number of pairs of examples compared for the levels, to some seconds on
	// one core of 2025. Beyond it, evenly spaced examples represent all.
	levelWork = 1 << 22
	// fewestReferences is the minimum number of examples compared with every example, regardless of
	// levelWork.
	fewestReferences = 256
	// growth is the inverse of the share by which an index of more than fullRebuild examples, or an
	// intent with more than fewestReferences in it, must grow before sums over all of its examples
	// are recomputed. One more example among thousands hardly changes them.
	growth = 16
)

// rebuild describes the changes since the previous snapshot.
type rebuild struct {
	prev    *snapshot
	changed int // the only intent that changed
	added   int // number of its last examples that are new
}

// outgrown reports whether sums over summed examples have to be recomputed for n examples.
func outgrown(summed, n int) bool { return (n-summed)*growth >= summed }

// build computes everything derived from the examples. from is nil if everything is new.
func (s *snapshot) build(from *rebuild) {
	s.lay()
	s.stats = make([]stats, len(s.intents))
	n := s.first[len(s.first)-1]
	if from == nil || n <= fullRebuild {
		s.level(all)
	} else {
		copy(s.stats, from.prev.stats)
		at := from.changed
		have := s.stats[at].levelled
		if have < fewestReferences || outgrown(have, len(s.intents[at].examples)) {
			s.level(at)
		}
	}
	s.thresholds()
	if from == nil || from.prev.normal == nil || outgrown(from.prev.normal.examples, n) {
		s.weights = s.regress()
	} else {
		s.weights = s.regressOn(from)
	}
}

// scoreOne is score for a single intent.
func (s *snapshot) scoreOne(at int, e *example, b *scratch, scores []float32) {
	from, to := s.first[at], s.first[at+1]
	b.sims = slices.Grow(b.sims[:0], to)[:to]
	s.centre(e.seen(), b)
	b.lexical = slices.Grow(b.lexical[:0], to-from)[:to-from]
	clear(b.lexical)
	s.lexical.addBetween(b.lexical, e.grams, from, to)
	for row := from; row < to; row++ {
		b.sims[row] = s.similarity(row, b, b.lexical[row-from])
	}
	scores[at] = s.vote(b.sims[from:to], -1, b)
}

// all represents every intent where an index is expected.
const all = -1

// leveller collects the scores for crowd levels and own levels.
type leveller struct {
	*scratch

	s      *snapshot
	only   int         // the intent whose levels are computed, or all
	size   int         // number of scores in a crowd level
	crowds [][]float32 // by intent, the best scores of other intents' texts, descending
	scores []float32   // of one text, by intent
}

// level sets crowd and own level of an intent, or of all.
func (s *snapshot) level(only int) {
	n := s.first[len(s.first)-1]
	stride, own := strideOf(n), 0
	l := &leveller{
		scratch: new(scratch), s: s, only: only, size: max(crowdSize, (n/stride+len(s.background))/crowdShare),
		crowds: make([][]float32, len(s.intents)), scores: make([]float32, len(s.intents)),
	}
	if only != all {
		s.stats[only] = stats{}
		own = strideOf(len(s.intents[only].examples))
	}
	for i := range s.intents {
		for j, e := range s.intents[i].examples {
			if row := s.first[i] + j; row%stride == 0 || i == only && j%own == 0 {
				l.add(e, i, j)
			}
		}
	}
	for _, list := range [][]*example{s.background, s.abroad} {
		for _, e := range list {
			l.add(e, all, 0)
		}
	}
	for i, crowd := range l.crowds {
		if !l.levels(i) {
			continue
		}
		sum := 0.0
		for _, f := range crowd {
			sum += float64(f)
		}
		s.stats[i].crowd = sum / float64(len(crowd))
		s.stats[i].levelled = len(s.intents[i].examples)
	}
}

// strideOf returns s, where one in s of n examples is compared with all of them.
func strideOf(n int) int { return max(1, n/max(fewestReferences, levelWork/max(n, 1))) }

// levels reports whether the levels of intent i are computed.
func (l *leveller) levels(i int) bool { return l.only == all || l.only == i }

// add scores a text against the intents. It is example at of intent of; of is all for a text that
// is not an example.
func (l *leveller) add(e *example, of, at int) {
	s := l.s
	if l.only == all {
		s.score(e.seen(), e.grams, l.scratch, l.scores)
	} else {
		s.scoreOne(l.only, e, l.scratch, l.scores)
	}
	for i := range l.crowds {
		if i != of && l.levels(i) {
			l.crowds[i] = keepBest(l.crowds[i], l.scores[i], l.size)
		}
	}
	if of == all || !l.levels(of) || len(s.intents[of].examples) == 1 {
		return
	}
	s.stats[of].own += float64(s.vote(l.sims[s.first[of]:s.first[of+1]], at, l.scratch))
	s.stats[of].ownCount++
}

// keepBest inserts f into the descending list, which is limited to size.
func keepBest(list []float32, f float32, size int) []float32 {
	at, _ := slices.BinarySearchFunc(list, f, func(have, want float32) int { return cmp.Compare(want, have) })
	if at == size {
		return list
	}
	if len(list) == size {
		list = list[:size-1]
	}
	return slices.Insert(list, at, f)
}

// thresholds sets the threshold of every intent from the levels.
func (s *snapshot) thresholds() {
	sum, n := ownPrior*priorWeight, float64(priorWeight)
	for i := range s.stats {
		sum += s.stats[i].own
		n += float64(s.stats[i].ownCount)
	}
	pool := sum / n
	for i := range s.stats {
		st := &s.stats[i]
		if fixed := s.intents[i].fixed; fixed != Auto {
			st.threshold = float64(fixed)
			continue
		}
		own := (st.own + poolWeight*pool) / (float64(st.ownCount) + poolWeight)
		st.threshold = min(max(st.crowd+thresholdAt*(own-st.crowd), 0), 1)
	}
}
