package check

import (
	"errors"
	"fmt"
	"math"
)

// leaf marks a node without children in the feature list of a tree.
const leaf = -1

// node is one node of a tree: a test with two children, or a leaf with a value.
type node struct {
	feature     int32 // index into Features, or leaf
	left, right int32 // indices into forest.nodes
	value       float64
}

// forest is a sum of regression trees, the result of gradient boosting: Friedman, "Greedy function
// approximation: a gradient boosting machine", Annals of Statistics 29 (2001). A test goes left if
// its feature is at most its value. Immutable.
type forest struct {
	base  float64
	roots []int32
	nodes []node
}

// sum returns from plus the value of the forest for the features x. It does not allocate.
func (f *forest) sum(from float64, x []float64) float64 {
	total := from + f.base
	for _, at := range f.roots {
		for f.nodes[at].feature != leaf {
			n := &f.nodes[at]
			if x[n.feature] <= n.value {
				at = n.left
			} else {
				at = n.right
			}
		}
		total += f.nodes[at].value
	}
	return total
}

// Limits of a forest: it is read with the model, and run for every claim.
const (
	maxTrees = 2000
	maxNodes = 1023 // per tree
)

// grow builds a forest. The features of the trees are indices into names, which maps them to
// indices into Features.
func grow(base float64, trees []treeData, names []int32) (forest, error) {
	f := forest{base: base}
	if !finite(base) {
		return f, errors.New("base must be finite")
	}
	if len(trees) > maxTrees {
		return f, fmt.Errorf("%d trees: more than %d", len(trees), maxTrees)
	}
	for i := range trees {
		if err := f.add(&trees[i], names); err != nil {
			return f, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return f, nil
}

// add appends a tree. Its features are indices into names, as in grow.
func (f *forest) add(t *treeData, names []int32) error {
	n := len(t.Feature)
	switch {
	case n == 0 || n > maxNodes:
		return fmt.Errorf("%d nodes: not in [1, %d]", n, maxNodes)
	case len(t.Threshold) != n || len(t.Left) != n || len(t.Right) != n || len(t.Value) != n:
		return errors.New("arrays of different lengths")
	}
	root := int32(len(f.nodes))
	parents := make([]bool, n)
	for i := range n {
		at := node{feature: leaf, value: t.Value[i]}
		if t.Feature[i] != leaf {
			if err := t.inner(i, len(names), parents); err != nil {
				return fmt.Errorf("node %d: %w", i, err)
			}
			at = node{feature: names[t.Feature[i]], value: t.Threshold[i], left: root + t.Left[i], right: root + t.Right[i]}
		}
		if !finite(at.value) {
			return fmt.Errorf("node %d: value is not finite", i)
		}
		f.nodes = append(f.nodes, at)
	}
	for i := 1; i < n; i++ {
		if !parents[i] {
			return fmt.Errorf("node %d: no parent", i)
		}
	}
	f.roots = append(f.roots, root)
	return nil
}

// inner validates node i, a test. Children must come after their parent and have only one, so that
// there is no cycle.
func (t *treeData) inner(i, features int, parents []bool) error {
	if t.Feature[i] < 0 || int(t.Feature[i]) >= features {
		return fmt.Errorf("feature %d: not in [0, %d)", t.Feature[i], features)
	}
	for _, child := range [...]int32{t.Left[i], t.Right[i]} {
		if int(child) <= i || int(child) >= len(t.Feature) {
			return fmt.Errorf("child %d: not in (%d, %d)", child, i, len(t.Feature))
		}
		if parents[child] {
			return fmt.Errorf("child %d: has two parents", child)
		}
		parents[child] = true
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
