package kv_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"signalbox/internal/simulator/kv"
)

func chain(word uint32, blocks int) []kv.Hash {
	return kv.AppendChain(nil, kv.Seed{}, tokens(word, blocks), 1)
}

// use takes a chain, computes and releases it.
func use(t *testing.T, c *kv.Cache, names []kv.Hash) {
	t.Helper()
	l, ok := c.Take(names, len(names), len(names))
	if !ok {
		t.Fatalf("no room for %d blocks", len(names))
	}
	c.Compute(l, len(names))
	c.Release(l)
}

func TestTheTailOfAChainIsGivenUpFirst(t *testing.T) {
	c := kv.NewCache(10)
	a, b := chain(1, 6), chain(2, 4)
	use(t, c, a)
	use(t, c, b)
	use(t, c, chain(3, 2))
	if got := c.Match(a); got != 4 {
		t.Errorf("after two more blocks %d of 6 are left of the oldest chain, want 4", got)
	}
	if got := c.Match(b); got != 4 {
		t.Errorf("%d of 4 are left of the younger chain, want all", got)
	}
}

func TestUseMakesYoung(t *testing.T) {
	c := kv.NewCache(8)
	a, b := chain(1, 4), chain(2, 4)
	use(t, c, a)
	use(t, c, b)
	use(t, c, a)
	use(t, c, chain(3, 4))
	if c.Match(a) != 4 || c.Match(b) != 0 {
		t.Errorf("left of the chain used last %d, of the other %d; want 4 and 0", c.Match(a), c.Match(b))
	}
}

func TestBlocksInUseStay(t *testing.T) {
	c := kv.NewCache(4)
	a := chain(1, 3)
	held, _ := c.Take(a, 3, 3)
	c.Compute(held, 3)
	if _, ok := c.Take(chain(2, 2), 2, 2); ok {
		t.Error("two blocks were taken where one was idle")
	}
	if c.Match(a) != 3 {
		t.Error("a block in use was given up")
	}
	if c.Reset() {
		t.Error("a cache in use was reset")
	}
}

func TestHitsAreNotGivenUpForTheRestOfTheSameRequest(t *testing.T) {
	c := kv.NewCache(4)
	a := chain(1, 4)
	use(t, c, a[:2])
	l, ok := c.Take(a, 4, 4)
	if !ok || l.Hits() != 2 {
		t.Fatalf("took %t with %d hits, want 2", ok, l.Hits())
	}
}

func TestBlocksThatAreBeingComputedAreNotFound(t *testing.T) {
	c := kv.NewCache(8)
	a := chain(1, 4)
	l, _ := c.Take(a, 4, 4)
	for n := range 5 {
		c.Compute(l, n)
		if got := c.Match(a); got != n {
			t.Errorf("with %d blocks computed %d are found", n, got)
		}
	}
}

// naive is the cache again, as slow as it can be and with nothing shared: what is idle is one list,
// the next to be given up first, and blocks are looked for by walking.
type naive struct {
	idle []*naiveBlock
	all  []*naiveBlock
}

type naiveBlock struct {
	name  kv.Hash
	named bool
	users int
}

func newNaive(n int) *naive {
	c := &naive{}
	for range n {
		b := &naiveBlock{}
		c.all, c.idle = append(c.all, b), append(c.idle, b)
	}
	return c
}

func (c *naive) find(name kv.Hash) *naiveBlock {
	for _, b := range c.all {
		if b.named && b.name == name {
			return b
		}
	}
	return nil
}

func (c *naive) match(names []kv.Hash) int {
	for i, h := range names {
		if c.find(h) == nil {
			return i
		}
	}
	return len(names)
}

type naiveLease struct {
	names  []kv.Hash
	blocks []*naiveBlock
	done   int // blocks that were computed: what was there twice then never gets a name
}

func (c *naive) take(names []kv.Hash, reuse, total int) (*naiveLease, int, bool) {
	hits := c.match(names[:min(reuse, len(names), total)])
	rest := slices.Clone(c.idle)
	l := &naiveLease{names: names, done: hits}
	for _, h := range names[:hits] {
		b := c.find(h)
		rest = slices.DeleteFunc(rest, func(x *naiveBlock) bool { return x == b })
		l.blocks = append(l.blocks, b)
	}
	if len(rest) < total-hits {
		return nil, 0, false
	}
	for _, b := range rest[:total-hits] {
		b.named = false
		l.blocks = append(l.blocks, b)
	}
	c.idle = rest[total-hits:]
	for _, b := range l.blocks {
		b.users++
	}
	return l, hits, true
}

func (c *naive) compute(l *naiveLease, n int) {
	for ; l.done < min(n, len(l.names), len(l.blocks)); l.done++ {
		if c.find(l.names[l.done]) == nil {
			l.blocks[l.done].name, l.blocks[l.done].named = l.names[l.done], true
		}
	}
}

func (c *naive) release(l *naiveLease) {
	for _, b := range slices.Backward(l.blocks) {
		b.users--
		switch {
		case b.users > 0:
		case b.named:
			c.idle = append(c.idle, b)
		default:
			c.idle = slices.Insert(c.idle, 0, b)
		}
	}
}

func TestCacheAgreesWithANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(4, 24).Draw(t, "size")
		fast, slow := kv.NewCache(size), newNaive(size)
		// Chains that share beginnings: a few stems, each with a few branches.
		var chains [][]kv.Hash
		for stem := range uint32(3) {
			for branch := range uint32(3) {
				all := append(tokens(stem+1, int(2+stem)), tokens(100+branch, 4)...)
				chains = append(chains, kv.AppendChain(nil, kv.Seed{}, all, 1))
			}
		}
		type pair struct {
			fast *kv.Lease
			slow *naiveLease
			n    int
		}
		var held []pair
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case op <= 1:
				names := rapid.SampledFrom(chains).Draw(t, "chain")
				names = names[:rapid.IntRange(1, len(names)).Draw(t, "length")]
				reuse, total := rapid.IntRange(0, len(names)).Draw(t, "reuse"), len(names)+rapid.IntRange(0, 1).Draw(t, "partial")
				a, ok := fast.Take(names, reuse, total)
				b, hits, want := slow.take(names, reuse, total)
				if ok != want {
					t.Fatalf("take is %t, want %t", ok, want)
				}
				if ok && a.Hits() != hits {
					t.Fatalf("%d hits, want %d", a.Hits(), hits)
				}
				if ok {
					held = append(held, pair{a, b, hits})
				}
			case len(held) == 0:
			case op == 2:
				i := rapid.IntRange(0, len(held)-1).Draw(t, "lease")
				held[i].n += rapid.IntRange(0, 3).Draw(t, "computed")
				fast.Compute(held[i].fast, held[i].n)
				slow.compute(held[i].slow, held[i].n)
			default:
				i := rapid.IntRange(0, len(held)-1).Draw(t, "lease")
				fast.Release(held[i].fast)
				slow.release(held[i].slow)
				held = slices.Delete(held, i, i+1)
			}
			for i, names := range chains {
				if got, want := fast.Match(names), slow.match(names); got != want {
					t.Fatalf("%d blocks of chain %d are there, want %d", got, i, want)
				}
			}
			if got, want := size-fast.InUse(), len(slow.idle); got != want {
				t.Fatalf("%d blocks are idle, want %d", got, want)
			}
		}
	})
}

func BenchmarkTakeAndRelease(b *testing.B) {
	c := kv.NewCache(16384)
	a := chain(1, 256)
	b.ReportAllocs()
	for b.Loop() {
		l, _ := c.Take(a, 255, 256)
		c.Compute(l, 256)
		c.Release(l)
	}
}
