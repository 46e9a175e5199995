package rules

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"signalbox/internal/signal"
)

// With the signals and facts that the blockers of a route read as they are, no value of the others
// makes the route take the request; a route that was taken, or may still be, has none; and none of
// them is superfluous.
func TestBlockersAreWhatKeptARouteFromBeingTaken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := compileDrawn(t, drawConfig(t, leafTexts(), 4, 3))
		set := drawSet(t)
		hide(set, signal.Mask(rapid.IntRange(0, 1<<signal.NumKinds-1).Draw(t, "hidden")))
		other := drawSet(t)
		for i, trace := range p.Trace(set) {
			r := &p.routes[i]
			raw, _ := r.weigh(set)
			blocked := trace.Value != "not_reached" && r.onUnknown.resolve(raw).hi == no
			if _, always := r.when.(constant); !always && blocked != (len(trace.Blockers) > 0) {
				t.Fatalf("%s is %s with blockers %q: %v", r.name, trace.Value, trace.Blockers, r.when)
			}
			if !blocked {
				continue
			}
			kept := keepBlockers(t, r, trace.Blockers, set, other)
			if b, _ := r.weigh(kept); r.onUnknown.resolve(b).hi != no {
				t.Fatalf("with %q as they were, %v could still take the request", trace.Blockers, r.when)
			}
			checkNecessary(t, r, trace.Blockers, set)
		}
	})
}

// keepBlockers returns other with what the blockers read taken from set.
func keepBlockers(t *rapid.T, r *route, blockers []string, set, other *signal.Set) *signal.Set {
	out := *other
	found := 0
	literals(r.when, func(n node) {
		if !slices.Contains(blockers, n.String()) {
			return
		}
		found++
		if l, _ := literal(n); l.kind < signal.NumKinds {
			out.Values[l.kind] = set.Values[l.kind]
		} else {
			out.Facts = set.Facts
		}
	})
	if found != len(blockers) {
		t.Fatalf("%q are not all leaves of %v", blockers, r.when)
	}
	return &out
}

// checkNecessary opens one blocker after the other, and all that does not block.
func checkNecessary(t *rapid.T, r *route, blockers []string, set *signal.Set) {
	p := pruner{set: set, policy: r.onUnknown}
	var all []node
	literals(r.when, func(n node) {
		if slices.Contains(blockers, n.String()) {
			all = append(all, n)
		}
	})
	for i := range all {
		fewer := slices.Delete(slices.Clone(all), i, i+1)
		rest := newSimplifier(r.labels).simplify(substitute(p.with(r.when, fewer), set, r.onUnknown))
		if p.blocked(p.with(r.when, fewer).eval(set)) || !p.blocked(r.when.eval(set)) && p.blocked(rest.eval(set)) {
			t.Fatalf("%v is superfluous among %q in %v", all[i], blockers, r.when)
		}
	}
}
