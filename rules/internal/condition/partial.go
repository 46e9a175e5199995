package condition

import (
	"math"

	"signalbox/internal/signal"
)

// certain returns the bounds of a test whose signal covers only a part of the request: its findings
// are valid, and the rest may add to them.
func certain(test predicate, set *signal.Set) Bounds {
	found := test.holds(set)
	switch t := test.(type) {
	case *entities:
		if found {
			return Exactly(True)
		}
	case *keywords:
		if found != t.in.except { // one of the sets that count has matched
			return of(found)
		}
	case *interval:
		if t.subject != ofScore {
			break
		}
		switch above := math.IsInf(t.in.Hi, 1) || t.in.Hi > 1 || t.in.Hi == 1 && !t.in.HiOpen; {
		case found && above:
			return Exactly(True)
		// the score can only grow
		case !found && single(t.score(set.Value(t.kind))) >= single(t.in.Hi):
			return Exactly(False)
		}
	}
	return Exactly(Unknown)
}
