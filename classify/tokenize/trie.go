package tokenize

import (
	"cmp"
	"slices"
	"strings"
)

// trie maps strings to non-negative numbers and finds the keys that are prefixes of a text.
// Nodes are numbered breadth first, so the children of a node are neighbours: children of n are
// first[n] to first[n+1], sorted by label. Node 0 is the root.
type trie struct {
	root  [256]int32 // child of the root by label, 0 when there is none
	label []byte
	first []int32
	value []int32 // -1 when no key ends here
}

type entry struct {
	key   string
	value int32
}

// newTrie builds a trie. Of equal keys the first wins; empty keys are ignored.
func newTrie(entries []entry) *trie {
	type placed struct {
		entry

		at int // makes the order of equal keys that of entries
	}
	order := make([]placed, len(entries))
	for i, e := range entries {
		order[i] = placed{e, i}
	}
	slices.SortFunc(order, func(a, b placed) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	sorted := make([]entry, len(order))
	for i := range order {
		sorted[i] = order[i].entry
	}
	sorted = slices.CompactFunc(sorted, func(a, b entry) bool { return a.key == b.key })
	sorted = slices.DeleteFunc(sorted, func(e entry) bool { return e.key == "" })
	t := &trie{label: []byte{0}, value: []int32{-1}}
	// pending[n] is the range of sorted whose keys pass through node n, at depth depth[n].
	pending, depth := []span{{0, len(sorted)}}, []int{0}
	for n := 0; n < len(t.label); n++ {
		t.first = append(t.first, int32(len(t.label)))
		d, r := depth[n], pending[n]
		if r.from < r.to && len(sorted[r.from].key) == d && n > 0 {
			t.value[n] = sorted[r.from].value
			r.from++
		}
		for r.from < r.to {
			c := sorted[r.from].key[d]
			to, _ := slices.BinarySearchFunc(sorted[r.from:r.to], c, func(e entry, c byte) int {
				return cmp.Compare(int(e.key[d]), int(c)+1)
			})
			if n == 0 {
				t.root[c] = int32(len(t.label))
			}
			t.label, t.value = append(t.label, c), append(t.value, -1)
			pending, depth = append(pending, span{r.from, r.from + to}), append(depth, d+1)
			r.from += to
		}
	}
	t.first = append(t.first, int32(len(t.label)))
	return t
}

// child returns the node that label c leads to from node n, or 0.
func (t *trie) child(n int32, c byte) int32 {
	if n == 0 {
		return t.root[c]
	}
	lo, hi := t.first[n], t.first[n+1]
	for hi-lo > 8 {
		mid := (lo + hi) / 2
		if t.label[mid] <= c {
			lo = mid
		} else {
			hi = mid
		}
	}
	for ; lo < hi; lo++ {
		if t.label[lo] == c {
			return lo
		}
	}
	return 0
}

// longest returns the value and length of the longest key that is a prefix of s starting at node n,
// or -1 and 0.
func (t *trie) longest(n int32, s []byte) (value int32, length int) {
	value = -1
	for i, c := range s {
		if n = t.child(n, c); n == 0 {
			break
		}
		if v := t.value[n]; v >= 0 {
			value, length = v, i+1
		}
	}
	return value, length
}

// find returns the node that key leads to, or -1.
func (t *trie) find(key string) int32 {
	n := int32(0)
	for i := range len(key) {
		if n = t.child(n, key[i]); n == 0 {
			return -1
		}
	}
	return n
}
