package kv_test

import (
	"slices"
	"testing"

	"signalbox/internal/simulator/kv"
)

// tokens returns n tokens that no other word gives.
func tokens(word uint32, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = word*1_000_000 + uint32(i)
	}
	return out
}

func TestOnlyFullBlocksHaveNames(t *testing.T) {
	for n, want := range map[int]int{0: 0, 15: 0, 16: 1, 31: 1, 32: 2, 4000: 250} {
		if got := len(kv.AppendChain(nil, kv.Seed{}, tokens(1, n), 16)); got != want {
			t.Errorf("%d tokens have %d names, want %d", n, got, want)
		}
	}
}

func TestNamesDependOnAllThatStandsBefore(t *testing.T) {
	base := kv.AppendChain(nil, kv.Seed{}, tokens(1, 64), 16)
	changed := tokens(1, 64)
	changed[20] = 7
	other := kv.AppendChain(nil, kv.Seed{}, changed, 16)
	if base[0] != other[0] {
		t.Error("a change in the second block changed the first")
	}
	for i := 1; i < 4; i++ {
		if base[i] == other[i] {
			t.Errorf("block %d does not depend on the second", i)
		}
	}
}

func TestSeedsShareNothing(t *testing.T) {
	seeds := []kv.Seed{
		{},
		{Salt: "a"},
		{LoRA: "a"},
		{Effort: "a"},
		{Salt: "a", LoRA: "b"},
		{Salt: "ab"},
		{Salt: "b", LoRA: "a"},
		{Salt: "a", Effort: "high"},
	}
	for i, a := range seeds {
		for j, b := range seeds {
			x, y := kv.AppendChain(nil, a, tokens(1, 48), 16), kv.AppendChain(nil, b, tokens(1, 48), 16)
			if same := slices.ContainsFunc(x, func(h kv.Hash) bool { return slices.Contains(y, h) }); same != (i == j) {
				t.Errorf("%+v and %+v: a shared block is %t", a, b, same)
			}
		}
	}
}
