package condition

import (
	"math"

	"signalbox/internal/signal"
)

// certain is the range of a test whose signal is known of a part of the request only: what was
// found there is there, and the rest may hold as much, or more.
func certain(test predicate, set *signal.Set) Bounds {
	found := test.holds(set)
	switch t := test.(type) {
	case *entities:
		if found {
			return Exactly(True)
		}
	case *keywords:
		if found != t.in.except { // a set that counts has matched
			return of(found)
		}
	case *interval:
		if t.subject != ofScore {
			break
		}
		switch above := math.IsInf(t.in.Hi, 1) || t.in.Hi > 1 || t.in.Hi == 1 && !t.in.HiOpen; {
		case found && above:
			return Exactly(True)
		case !found && single(t.score(set.Value(t.kind))) >= single(t.in.Hi): // the score only grows
			return Exactly(False)
		}
	}
	return Exactly(Unknown)
}
