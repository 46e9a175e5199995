package rules

import "strings"

// TraceNode is a part of a route's condition in a trace: an operator or a leaf.
type TraceNode struct {
	Op      string       `json:"op,omitempty"` // all or any; empty for a leaf
	Value   string       `json:"value"`        // "true", "false", "unknown" or "skipped"
	Members []*TraceNode `json:"members,omitempty"`
	Visit   *Visit       `json:"leaf,omitempty"` // nil for an operator
}

// Tree returns the visits in the structure of the simplified condition; nil for a route without a
// condition. Its visits are those of Path.
func (t *RouteTrace) Tree() *TraceNode {
	root := &TraceNode{}
	for i := range t.Path {
		v := &t.Path[i]
		at, ops := root, strings.Split(v.Group, "/")
		for depth, place := range v.at {
			at.Op = ops[depth]
			for len(at.Members) <= place {
				at.Members = append(at.Members, &TraceNode{})
			}
			at = at.Members[place]
		}
		at.Visit, at.Value = v, v.Value
	}
	if root.Op == "" && root.Visit == nil {
		return nil
	}
	root.judge()
	return root
}

// judge computes the values of operators: a settling member determines it, else an unknown member
// leaves it unknown.
func (n *TraceNode) judge() {
	if n.Visit != nil {
		return
	}
	settles, others := "false", "true"
	if n.Op == "any" {
		settles, others = others, settles
	}
	met := make(map[string]bool)
	for _, m := range n.Members {
		m.judge()
		met[m.Value] = true
	}
	switch {
	case met[settles]:
		n.Value = settles
	case met["unknown"]:
		n.Value = "unknown"
	case met[others]:
		n.Value = others
	default:
		n.Value = "skipped"
	}
}
