package condition

import (
	"slices"

	"signalbox/internal/signal"
)

// own tests the result of one of the configuration's own classifiers for some labels. Their
// probabilities need not add up to 1: several labels may apply at once.
type own struct {
	kind     signal.Kind
	name     string
	labels   []string  // sorted, distinct
	least    []float64 // parallel to labels: the probability from which the label applies
	most     float64   // 1 for no upper bound
	fallback bool      // without bounds: tests whether the predicted label is one of labels
}

// OwnBounds limit the probability of the most probable of some labels.
type OwnBounds struct {
	Least map[string]float64 // by label; nil if the predicted label decides
	Most  float64            // in [0,1]
}

// Own tests a classifier of the configuration, of kind k: at least one of the labels must reach its
// minimum probability and none may exceed bounds.Most. With bounds.Least nil and bounds.Most 1, the
// predicted label must be one of the labels.
func Own(k signal.Kind, name string, labels []string, bounds OwnBounds) *Leaf {
	t := &own{kind: k, name: name, labels: distinct(labels), most: bounds.Most}
	t.fallback = bounds.Least == nil && bounds.Most >= 1
	for _, l := range t.labels {
		t.least = append(t.least, bounds.Least[l])
	}
	return newLeaf(k, t)
}

func (t *own) holds(set *signal.Set) bool {
	v := set.Value(t.kind)
	if t.fallback {
		return slices.Contains(t.labels, v.Label)
	}
	reached := false
	for i, l := range t.labels {
		p, ok := v.Prob(l)
		if !ok && v.Label == l {
			p = v.Score
		}
		reached = reached || single(p) >= single(t.least[i])
		if single(p) > single(t.most) {
			return false
		}
	}
	return reached
}

func (t *own) text() string {
	out := "classifier " + t.name + Names{list: t.labels}.String()
	if t.fallback {
		return out
	}
	if low := slices.Min(t.least); low > 0 || t.most >= 1 {
		if slices.Max(t.least) == low {
			out += " score >= " + number(low)
		} else {
			for i, l := range t.labels {
				out += " " + l + " >= " + number(t.least[i])
			}
		}
	}
	if t.most < 1 {
		out += " score <= " + number(t.most)
	}
	return out
}

func (t *own) implies(other predicate) bool {
	o, ok := other.(*own)
	if !ok || o.kind != t.kind || t.fallback || o.fallback || o.most < 1 {
		return false
	}
	for i, l := range t.labels { // a label that reaches its bound here also reaches that of o
		at := slices.Index(o.labels, l)
		if at < 0 || t.least[i] < o.least[at] {
			return false
		}
	}
	return true
}

// compared returns the greatest probability among the labels and the bound of that label.
func (t *own) compared(v *signal.Value) (score float64, threshold *float64) {
	best := 0
	for i, l := range t.labels {
		p, ok := v.Prob(l)
		if !ok && v.Label == l {
			p = v.Score
		}
		if p > score {
			score, best = p, i
		}
	}
	if t.fallback {
		return score, nil
	}
	if t.most < 1 && t.least[best] == 0 {
		return score, &t.most
	}
	return score, &t.least[best]
}
