package affinity

import (
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func seq(from, n uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = from + uint64(i)
	}
	return out
}

func TestBasisOnlyGetsBetterUntilItExpires(t *testing.T) {
	tb := newTable(10)
	blocks := seq(1, 3)
	for _, c := range []struct {
		touch        Basis
		now, expires uint32
		at           uint32
		n            int
		want         Basis
	}{
		{Speculative, 0, 20, 19, 3, Speculative},
		{Predicted, 1, 100, 50, 3, Predicted},
		{Speculative, 60, 70, 99, 3, Predicted},
		{Confirmed, 60, 90, 99, 3, Confirmed},
		{Unknown, 99, 0, 100, 0, Unknown},
		{Speculative, 100, 120, 110, 3, Speculative},
	} {
		tb.touch(0, blocks, c.touch, c.now, c.expires)
		if n, basis, _ := tb.match(0, blocks, c.at); n != c.n || basis != c.want {
			t.Errorf("after %v until %d: at %d %d blocks, %v; want %d, %v", c.touch, c.expires, c.at, n, basis, c.n, c.want)
		}
	}
}

func TestAChainLongerThanTheTableKeepsItsBeginning(t *testing.T) {
	tb := newTable(4)
	tb.touch(0, seq(1, 10), Predicted, 0, 10)
	if n, _, _ := tb.match(0, seq(1, 10), 1); n != 4 {
		t.Errorf("%d blocks in a table of 4", n)
	}
}

// A table must contain the same blocks as a simple list in order of use. A server that had less of
// a prompt than expected leaves a gap, which the next measurement fills although it adds nothing
// about the prompt's end.
func TestAHoleInWhatIsMeasuredIsFilled(t *testing.T) {
	tb := newTable(100)
	blocks, whole := seq(1, 20), 20*BlockBytes+100
	measure := func() {
		tb.touch(0, blocks, Confirmed, 0, 100)
		tb.measured(0, blocks, whole, 1529)
	}
	measure()
	_, _, want := tb.match(0, blocks[:8], 1)
	tb.cut(0, blocks[5:10])
	measure()
	if n, _, got := tb.match(0, blocks[:8], 1); n != 8 || got == 0 || got < want-8 || got > want+8 {
		t.Errorf("%d blocks have %d tokens, want about %d", n, got, want)
	}
}

func TestTableAgreesWithANaiveOne(t *testing.T) {
	type entry struct {
		block   uint64
		expires uint32
	}
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 30).Draw(t, "capacity")
		fast := newTable(capacity)
		var slow []entry // the newest last
		now := uint32(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += rapid.Uint32Range(0, 5).Draw(t, "pause")
			class := Class(rapid.Uint64Range(0, 1).Draw(t, "class"))
			blocks := seq(100*rapid.Uint64Range(1, 4).Draw(t, "chain"), rapid.Uint64Range(1, 12).Draw(t, "length"))
			if rapid.IntRange(0, 5).Draw(t, "op") == 0 {
				blocks = blocks[rapid.IntRange(0, len(blocks)-1).Draw(t, "from"):]
				fast.cut(class, blocks)
				slow = slices.DeleteFunc(slow, func(e entry) bool {
					return slices.ContainsFunc(blocks, func(b uint64) bool { return class.block(b) == e.block })
				})
			} else {
				expires := now + rapid.Uint32Range(1, 40).Draw(t, "valid")
				fast.touch(class, blocks, Predicted, now, expires)
				for _, b := range slices.Backward(blocks[:min(len(blocks), capacity)]) {
					e := entry{class.block(b), expires}
					if i := slices.IndexFunc(slow, func(x entry) bool { return x.block == e.block }); i >= 0 {
						e.expires = max(e.expires, slow[i].expires)
						slow = slices.Delete(slow, i, i+1)
					}
					slow = append(slow, e)
					slow = slow[max(0, len(slow)-capacity):]
				}
			}
			if fast.len() != len(slow) {
				t.Fatalf("%d blocks, want %d", fast.len(), len(slow))
			}
			at := fast.oldest
			for _, e := range slow {
				if at == none || fast.slots[at].block != e.block {
					t.Fatalf("block %d is not next in the order of use", e.block)
				}
				at = fast.slots[at].newer
			}
			if at != none {
				t.Fatal("the order of use goes on")
			}
			for c := range uint64(2) {
				for chain := range uint64(5) {
					for i := range uint64(12) {
						one := seq(100*chain+i, 1)
						n, _, _ := fast.match(Class(c), one, now)
						want := 0
						if slices.ContainsFunc(slow, func(e entry) bool { return e.block == Class(c).block(one[0]) && e.expires > now }) {
							want = 1
						}
						if n != want {
							t.Fatalf("class %d block %d is there: %d, want %d", c, one[0], n, want)
						}
					}
				}
			}
		}
	})
}

func TestMatchIsTheBeginningThatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.Uint64Range(1, 700).Draw(t, "length"), rapid.Uint64Range(0, 700).Draw(t, "there")
		tb := newTable(1000)
		tb.touch(7, seq(1, m), Predicted, 0, 10)
		if got, _, _ := tb.match(7, seq(1, n), 1); got != int(min(n, m)) {
			t.Fatalf("%d of %d blocks match, want %d", got, n, min(n, m))
		}
	})
}

func TestSpeedIsTheSlope(t *testing.T) {
	for _, c := range []struct {
		name   string
		sample func(i int) (tokens, seconds float64)
		want   float64
	}{
		{"prompts of many lengths and an overhead", func(i int) (float64, float64) { n := float64(i%7) * 1000; return n, 0.05 + n*2e-4 }, 2e-4},
		{"prompts of one length", func(int) (float64, float64) { return 4000, 0.4 }, 1e-4},
		{"nonsense stays in range", func(i int) (float64, float64) { return float64(i % 5), 1000 }, 60e-6 * speedRange},
	} {
		var s speed
		s.start(60e-6)
		for i := range 40 {
			s.learn(c.sample(i))
		}
		if got := s.perToken(); got < 0.99*c.want && c.name[0] == 'p' || got > 1.01*c.want {
			t.Errorf("%s: %g seconds a token, want %g", c.name, got, c.want)
		}
	}
}

func TestRendezvous(t *testing.T) {
	group := func(weights ...float64) []endpoint {
		out := make([]endpoint, len(weights))
		for i, w := range weights {
			out[i] = endpoint{Endpoint: Endpoint{Weight: w}, hash: sum(0, string(rune('a'+i)))}
		}
		return out
	}
	home := func(key uint64, e []endpoint) int {
		var order ranking
		rank(&order, key, e)
		return int(order[0])
	}
	const keys = 20000
	t.Run("homes follow weights", func(t *testing.T) {
		counts := make([]int, 3)
		for key := range uint64(keys) {
			counts[home(key, group(1, 2, 5))]++
		}
		for i, share := range []float64{1. / 8, 2. / 8, 5. / 8} {
			if got := float64(counts[i]) / keys; got < share-0.015 || got > share+0.015 {
				t.Errorf("endpoint %d is home of %.3f of the keys, want %.3f", i, got, share)
			}
		}
	})
	t.Run("only keys of an endpoint that goes move", func(t *testing.T) {
		for key := range uint64(keys) {
			if before, after := home(key, group(1, 1, 1, 1)), home(key, group(1, 1, 1)); before != 3 && before != after {
				t.Fatalf("key %d moved from %d to %d", key, before, after)
			}
		}
	})
	t.Run("an order names everyone once", func(t *testing.T) {
		var order ranking
		rank(&order, 5, group(1, 1, 1, 1, 1))
		got := slices.Clone(order[:5])
		slices.Sort(got)
		if !slices.Equal(got, []uint8{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order[:5])
		}
	})
}

func BenchmarkMatchPointer(b *testing.B) {
	tb := newTable(1 << 20)
	for i := range uint64(1700) {
		tb.touch(0, seq(1000*i, 600), Predicted, 0, 10)
	}
	blocks := seq(1000*800, 600)
	b.ReportAllocs()
	for b.Loop() {
		if n, _, _ := tb.match(0, blocks, 1); n != 600 {
			b.Fatal(n)
		}
	}
}

func BenchmarkTouch600Blocks(b *testing.B) {
	tb := newTable(1 << 20)
	for i := range uint64(100) {
		tb.touch(0, seq(1000*i, 600), Predicted, 0, 10)
	}
	blocks := seq(1000*80, 600)
	b.ReportAllocs()
	for b.Loop() {
		tb.touch(0, blocks, Predicted, 0, 10)
	}
}

func BenchmarkBytesABlock(b *testing.B) {
	const n = 1 << 20
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		tb := newTable(n)
		for i := range uint64(n / 512) {
			tb.touch(0, seq(1000*i, 512), Predicted, 0, 10)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/block")
		runtime.KeepAlive(tb)
	}
}
