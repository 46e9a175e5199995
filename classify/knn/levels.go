package knn

import (
	"cmp"
	"slices"
)

// The constants of crowd levels and thresholds; see the package comment.
const (
	crowdSize   = 10  // the fewest scores that make a crowd level
	crowdShare  = 100 // one in how many scores makes it, when that is more
	thresholdAt = 0.4 // where a threshold lies between crowd level and own level
	ownPrior    = 0.5 // own level of an intent of which nothing is known
	priorWeight = 5   // pseudo-examples of ownPrior in the own level of all intents
	poolWeight  = 3   // pseudo-examples of the own level of all intents in that of one
)

const (
	// fullRebuild is up to how many examples an Add computes the levels of all intents anew.
	fullRebuild = 2048
	// levelWork bounds the pairs of examples that are compared for the levels, to some seconds on
	// one core of 2025. Beyond, evenly spaced examples stand for all.
	levelWork = 1 << 22
	// fewestReferences are compared with every example whatever the work.
	fewestReferences = 256
	// growth is by which share, one in so many, an index of more than fullRebuild examples, or an
	// intent of more than fewestReferences there, grows before what was summed over all of its
	// examples is summed anew. An example more among thousands hardly moves it.
	growth = 16
)

// rebuild says what a snapshot was made from.
type rebuild struct {
	prev    *snapshot
	changed int // the only intent that differs
	added   int // how many of its examples, the last ones, are new
}

// outgrown reports whether what was summed over so many examples is to be summed over the n that
// there are now.
func outgrown(summed, n int) bool { return (n-summed)*growth >= summed }

// build computes everything that follows from the examples. from is nil when all of it is new.
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

// scoreOne is score for intent at alone.
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

// all stands for every intent where one could be named.
const all = -1

// leveller collects what crowd and own levels are made of.
type leveller struct {
	*scratch

	s      *snapshot
	only   int         // the intent that is levelled, or all
	size   int         // scores that make a crowd level
	crowds [][]float32 // by intent, the best scores of texts of others, descending
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

// strideOf is one in how many of n examples is compared with all of them.
func strideOf(n int) int { return max(1, n/max(fewestReferences, levelWork/max(n, 1))) }

// levels reports whether the levels of intent i are wanted.
func (l *leveller) levels(i int) bool { return l.only == all || l.only == i }

// add scores a text against the intents. It is example at of intent of, or no example: of is all.
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

// keepBest inserts f into list, descending, of at most size.
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
