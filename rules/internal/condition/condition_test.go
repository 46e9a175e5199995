package condition

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
	"signalbox/rules/internal/signaltest"
)

func must(l *Leaf, possible bool) *Leaf { //nolint:revive // takes the results of a constructor
	if !possible {
		panic("no value passes " + l.String())
	}
	return l
}

// leafPool is what random conditions draw from: few signals and many tests of each, so that tests
// of one signal meet, contradict and imply each other.
func leafPool() []Node {
	domain := func(in Names, b BestBounds) Node {
		return Best(signal.Domain, in, b, signaltest.Labels()[signal.Domain])
	}
	return []Node{
		Role(OneOf("staff")), Role(OneOf("staff", "admin")), Role(NoneOf("admin")), Tenant(OneOf("acme")), Model(OneOf("auto")),
		must(Tokens(Above(100))), must(Tokens(AtMost(100))), must(Tokens(AtLeast(50).Intersect(Below(200)))), must(ContextTokens(AtLeast(1))),
		Has(signal.HasTools, "tools"), Has(signal.HasTools|signal.HasImages, "tools", "images"), Session(),
		HeaderEquals("X-Team", "ads"), HeaderMatches("X-Team", regexp.MustCompile("^a")),
		Keywords(OneOf("urgent")), Keywords(OneOf("urgent", "internal")), Keywords(NoneOf("internal")),
		Label(signal.Language, OneOf("fr")), Label(signal.Language, NoneOf("fr")),
		Label(signal.Domain, OneOf("math")), Label(signal.Domain, OneOf("math", "law")), Label(signal.Domain, NoneOf("math", "law")),
		domain(OneOf("math"), BestBounds{0.7, 1, -1}), domain(OneOf("math", "law"), BestBounds{0, 0.7, -1}), domain(OneOf("math"), BestBounds{0, 1, -1}),
		domain(NoneOf(), BestBounds{0, 1, 0.3}), domain(OneOf("law"), BestBounds{0, 1, 0.3}), domain(NoneOf("law"), BestBounds{0.55, 1, -1}),
		must(Score(signal.Jailbreak, "", AtLeast(0.6))), must(Score(signal.Jailbreak, "", AtMost(0.9))), must(Score(signal.Jailbreak, "", Range{Lo: 0.2, Hi: 0.6})),
		Entities(0.4), Entities(0.4, "US_SSN"), Entities(0.8, "US_SSN", "PERSON"),
		Label(signal.Complexity, OneOf("high")), Label(signal.Complexity, OneOf("low", "medium")),
		must(Score(signal.FactCheck, "needs", AtLeast(0.5))), must(Score(signal.FactCheck, "needs", AtMost(0.3))),
		Constant(true), Constant(false),
	}
}

func draw(t *rapid.T, pool []Node, depth int) Node {
	members := func() (xs []Node) {
		for range rapid.IntRange(1, 4).Draw(t, "members") {
			xs = append(xs, draw(t, pool, depth-1))
		}
		return xs
	}
	switch op := rapid.IntRange(0, 9).Draw(t, "operator"); {
	case depth <= 0 || op < 4:
		return pool[rapid.IntRange(0, len(pool)-1).Draw(t, "leaf")]
	case op < 6:
		return &Not{draw(t, pool, depth-1)}
	case op < 8:
		return &All{members()}
	default:
		return &Any{members()}
	}
}

// partly makes a request of which some signals are not extracted yet.
func partly(t *rapid.T) *signal.Set {
	set := signaltest.Draw(t)
	signaltest.Hide(set, signal.Mask(rapid.IntRange(0, 1<<signal.NumKinds-1).Draw(t, "hidden")))
	return set
}

// The simplified condition has the value of the original on every settled assignment, unknown
// included, and bounds at least as tight on every partial one.
func TestSimplifyKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := draw(t, leafPool(), 4)
		simple := NewSimplifier(signaltest.Labels()).Simplify(raw)
		set := signaltest.Draw(t)
		if want, got := raw.Eval(set), simple.Eval(set); want != got {
			t.Fatalf("%s is %v, simplified to %s it is %v", raw, want, simple, got)
		}
		set = partly(t)
		if want, got := raw.Eval(set), simple.Eval(set); got.Lo < want.Lo || got.Hi > want.Hi {
			t.Fatalf("%s is within %v, simplified to %s within %v", raw, want, simple, got)
		}
	})
}

// Where every signal is known, two values are enough.
func TestHoldsIsEvalOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := draw(t, leafPool(), 4)
		set := signaltest.Draw(t)
		if KindsOf(n)&^Known(set) != 0 {
			t.Skip("a signal failed")
		}
		if got, want := n.Holds(set), n.Eval(set); of(got) != want {
			t.Fatalf("%s holds: %v, value %v", n, got, want)
		}
	})
}

// What a proof says is true of every request.
func TestProofsAreSound(t *testing.T) {
	t.Parallel()
	proven, fixed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := NewSimplifier(signaltest.Labels())
		pool := leafPool()
		if rapid.Bool().Draw(t, "one signal") {
			pool = slices.DeleteFunc(pool, func(n Node) bool { return KindsOf(n) != signal.MaskOf(signal.Domain) })
		}
		a, b := s.Simplify(draw(t, pool, 2)), s.Simplify(draw(t, pool, 2))
		implied := Implies(a, b)
		absent := signal.Mask(rapid.IntRange(0, 1<<signal.NumKinds-1).Draw(t, "absent"))
		reach := Reach(a, absent)
		if implied {
			proven++
		}
		if reach != open() {
			fixed++
		}
		for range 10 {
			set := signaltest.Draw(t)
			for _, k := range absent.Kinds() {
				set.Put(k, signal.Value{State: signal.Unknown, Reason: signal.ReasonNoModel})
			}
			va, vb := a.Eval(set).Lo, b.Eval(set).Lo
			if implied && va > vb {
				t.Fatalf("%s is %v and %s, which it implies, is %v", a, va, b, vb)
			}
			if va < reach.Lo || va > reach.Hi {
				t.Fatalf("%s is %v, outside of %v", a, va, reach)
			}
		}
	})
	if proven == 0 || fixed == 0 {
		t.Errorf("proved %d implications and %d bounds", proven, fixed)
	}
}

// A matcher names pending signals exactly while it is open, and none that was extracted.
func TestPendingSignalsAreThoseThatCanStillMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := NewSimplifier(signaltest.Labels()).Matcher(draw(t, leafPool(), 4), OnUnknown(rapid.IntRange(0, 2).Draw(t, "policy")))
		set := partly(t)
		raw, rest := m.Eval(set)
		pending := m.Pending(rest, set)
		if open := !m.OnUnknown.Resolve(raw).Settled(); open != (pending != 0) {
			t.Fatalf("%s is %v and waits for %v", m.When, raw, pending.Kinds())
		}
		if pending&set.Have() != 0 || pending&^m.Kinds != 0 {
			t.Fatalf("%s waits for %v", m.When, pending.Kinds())
		}
		for _, k := range m.Failed(set).Kinds() {
			if set.Value(k).State != signal.Unknown {
				t.Fatalf("%s: %s did not fail", m.When, k)
			}
		}
	})
}

// With the signals and facts that the blockers of a matcher read as they are, no value of the
// others makes it match; one that matches, or may still, has none; and none of them is superfluous.
func TestBlockersAreWhatKeepsAMatcherFromMatching(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := NewSimplifier(signaltest.Labels()).Matcher(draw(t, leafPool(), 3), OnUnknown(rapid.IntRange(0, 2).Draw(t, "policy")))
		set, other := partly(t), signaltest.Draw(t)
		raw, _ := m.Eval(set)
		blockers := m.Blockers(set, raw)
		if _, always := m.When.(Constant); !always && m.rejects(raw) != (len(blockers) > 0) {
			t.Fatalf("%s is %v with blockers %q", m.When, raw, blockers)
		}
		if !m.rejects(raw) {
			return
		}
		var kept []Node
		for _, n := range literals(m.When) {
			if !slices.Contains(blockers, n.String()) {
				continue
			}
			kept = append(kept, n)
			if l, _ := Literal(n); l.ReadsSignal() {
				other.Put(l.Kind, *set.Value(l.Kind))
			} else {
				other.Facts = set.Facts
			}
		}
		if len(kept) != len(blockers) {
			t.Fatalf("%q are not all leaves of %s", blockers, m.When)
		}
		if b, _ := m.Eval(other); !m.rejects(b) {
			t.Fatalf("with %q as they were, %s could still match", blockers, m.When)
		}
		for i := range kept {
			fewer := m.onlyKnown(slices.Delete(slices.Clone(kept), i, i+1))
			rest := NewSimplifier(m.labels).Simplify(substitute(fewer, set, m.OnUnknown))
			if m.rejects(fewer.Eval(set)) || !m.rejects(m.When.Eval(set)) && m.rejects(rest.Eval(set)) {
				t.Fatalf("%s is superfluous among %q in %s", kept[i], blockers, m.When)
			}
		}
	})
}

func TestSimplifiedConditionsReadAsExpected(t *testing.T) {
	t.Parallel()
	math, law := Label(signal.Domain, OneOf("math")), Label(signal.Domain, OneOf("law"))
	urgent := Keywords(OneOf("urgent"))
	for name, c := range map[string]struct {
		n    Node
		want string
	}{
		"a double negation falls away":               {&Not{&Not{math}}, "domain is math"},
		"a negated label is a leaf":                  {&Not{math}, "domain is not math"},
		"labels unite":                               {&Any{[]Node{math, law}}, "domain in [law, math]"},
		"labels that exclude each other":             {&All{[]Node{math, law}}, "no domain"},
		"a signal with its negation":                 {&Any{[]Node{urgent, &Not{urgent}}}, "any keyword"},
		"ranges intersect":                           {&All{[]Node{must(Tokens(Above(1))), must(Tokens(AtMost(9)))}}, "tokens > 1 <= 9"},
		"ranges that do not touch stay apart":        {&Any{[]Node{must(Tokens(Below(1))), must(Tokens(Above(9)))}}, "any: [tokens < 1, tokens > 9]"},
		"the negation of a bounded range stays":      {&Not{must(Tokens(Above(1).Intersect(Below(9))))}, "not tokens > 1 < 9"},
		"a member that another contains is absorbed": {&All{[]Node{urgent, &Any{[]Node{math, urgent}}}}, "keyword is urgent"},
		"operators of one sort are flattened":        {&All{[]Node{urgent, &All{[]Node{math, Session()}}}}, "all: [keyword is urgent, domain is math, session is present]"},
		"constants are folded":                       {&Any{[]Node{Constant(false), &All{[]Node{math, Constant(true)}}}}, "domain is math"},
		"every label is any label":                   {Label(signal.Complexity, OneOf("low", "medium", "high")), "any complexity"},
		"a name that reads as something else":        {Tenant(OneOf("a b")), `tenant is "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, NewSimplifier(signaltest.Labels()).Simplify(c.n).String()); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesAreASetAlgebra(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "c"}
	drawNames := func(t *rapid.T) Names {
		in := rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "names")
		if rapid.Bool().Draw(t, "except") {
			return NoneOf(in...)
		}
		return OneOf(in...)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNames(t), drawNames(t)
		within := true
		for _, w := range append(words, "another") {
			if a.has(w) == a.complement().has(w) {
				t.Fatalf("%v and its complement agree on %s", a, w)
			}
			if got := a.join(b, disjunction).has(w); got != (a.has(w) || b.has(w)) {
				t.Fatalf("%v or %v: %s is %v", a, b, w, got)
			}
			if got := a.join(b, conjunction).has(w); got != (a.has(w) && b.has(w)) {
				t.Fatalf("%v and %v: %s is %v", a, b, w, got)
			}
			within = within && (!a.has(w) || b.has(w))
		}
		if a.within(b) && !within {
			t.Fatalf("%v is not within %v", a, b)
		}
	})
}

func TestRangesAreASetAlgebra(t *testing.T) {
	t.Parallel()
	drawRange := func(t *rapid.T) Range {
		lo := rapid.IntRange(-1, 4).Draw(t, "lo")
		r := Range{float64(lo), float64(lo + rapid.IntRange(1, 3).Draw(t, "width")), rapid.Bool().Draw(t, "lo open"), rapid.Bool().Draw(t, "hi open")}
		switch rapid.IntRange(0, 3).Draw(t, "sides") {
		case 0:
			r.Lo, r.LoOpen = Unbounded().Lo, false
		case 1:
			r.Hi, r.HiOpen = Unbounded().Hi, false
		}
		return r
	}
	has := func(r Range, x float64) bool {
		return (x > r.Lo || x == r.Lo && !r.LoOpen) && (x < r.Hi || x == r.Hi && !r.HiOpen)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRange(t), drawRange(t)
		union, united := a.unite(b)
		outside, hasOutside := a.complement()
		within := true
		for x := -2.0; x <= 8; x += 0.25 {
			if got := has(a.Intersect(b), x); got != (has(a, x) && has(b, x)) {
				t.Fatalf("%v and %v: %v is %v", a, b, x, got)
			}
			if united && has(union, x) != (has(a, x) || has(b, x)) {
				t.Fatalf("%v or %v: %v is %v", a, b, x, has(union, x))
			}
			if hasOutside && has(outside, x) == has(a, x) {
				t.Fatalf("%v and its complement %v agree on %v", a, outside, x)
			}
			within = within && (!has(a, x) || has(b, x))
		}
		if a.within(b) != within {
			t.Fatalf("%v within %v: %v", a, b, a.within(b))
		}
	})
}

func TestATestOfANumberSaysWhetherAnyPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func() (*Leaf, bool)
		want bool
	}{
		"a score of one":                {func() (*Leaf, bool) { return Score(signal.Jailbreak, "", AtLeast(1)) }, true},
		"a score above one":             {func() (*Leaf, bool) { return Score(signal.Jailbreak, "", Above(1)) }, false},
		"a negative score":              {func() (*Leaf, bool) { return Score(signal.Jailbreak, "", Below(0)) }, false},
		"bounds in the wrong order":     {func() (*Leaf, bool) { return Score(signal.Jailbreak, "", Range{Lo: 0.8, Hi: 0.2}) }, false},
		"no tokens at all":              {func() (*Leaf, bool) { return Tokens(AtMost(0)) }, true},
		"one whole number between both": {func() (*Leaf, bool) { return Tokens(Above(4).Intersect(Below(6))) }, true},
		"none between neighbours":       {func() (*Leaf, bool) { return Tokens(Above(5).Intersect(Below(6))) }, false},
		"a length of contexts":          {func() (*Leaf, bool) { return ContextTokens(Below(0)) }, false},
	} {
		if l, got := c.make(); got != c.want {
			t.Errorf("%s: %s can pass: %v", name, l, got)
		}
	}
}
