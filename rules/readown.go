package rules

import (
	"slices"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/syntax"
)

// readClassifier reads classifier: {name, label, min_score, max_score}. Without a bound, a label
// applies from the classifier's threshold for it; for labels that exclude each other the test holds
// if the most probable one is listed.
func (c *compiler) readClassifier(at syntax.Cursor) condition.Node {
	const expected = "{name, label, min_score, max_score}"
	mark := at.Mark()
	entries, ok := at.Mapping(expected, "name", "label", "min_score", "max_score")
	if !ok {
		return nil
	}
	kind, own := signal.NumKinds, (*signal.OwnClassifier)(nil)
	for _, e := range entries {
		if e.Key == "name" {
			kind, own = c.classifier(e.At)
		}
	}
	in := condition.Unbounded()
	var labels []string
	for _, e := range entries {
		switch e.Key {
		case "label":
			labels = e.At.Words("label", func(at syntax.Cursor, word string) {
				if own != nil && len(own.Labels) > 0 {
					at.Known("label", word, own.Labels)
				}
			})
		case "min_score", "max_score":
			x, isShare := e.At.Share()
			ok = ok && isShare
			if e.Key == "min_score" {
				in.Lo = x
			} else {
				in.Hi = x
			}
		}
	}
	if own == nil || len(labels) == 0 || !ok {
		at.Lacking(mark, "expected a name and a label, as in {name: toxicity, label: toxic}")
		return nil
	}
	test := func(in condition.Range) (*condition.Leaf, bool) {
		return condition.Own(kind, own.Name, labels, bounds(own, labels, in)), in.Lo <= in.Hi
	}
	return inRange(at, in, test)
}

// classifier reads the name of one of the configuration's classifiers; nil if there is none.
func (c *compiler) classifier(at syntax.Cursor) (signal.Kind, *signal.OwnClassifier) {
	name, ok := at.Word("the name of a classifier")
	if !ok {
		return signal.NumKinds, nil
	}
	known := make([]string, 0, len(c.env.Classifiers))
	for i := range c.env.Classifiers {
		known = append(known, c.env.Classifiers[i].Name)
	}
	if !at.Known("classifier", name, known) {
		return signal.NumKinds, nil
	}
	c.use("classifier", name)
	i := slices.Index(known, name)
	kind := signal.Own + signal.Kind(i)
	if !c.env.Signals.Has(kind) {
		at.Warnf("classifier %q needs signal embedding, which no model provides, so this is unknown "+
			"for every request", name)
	}
	return kind, &c.env.Classifiers[i]
}

// bounds returns the range of a test, or, if none is given, the thresholds of its labels.
func bounds(own *signal.OwnClassifier, labels []string, in condition.Range) condition.OwnBounds {
	out := condition.OwnBounds{Most: 1}
	if in.Hi < 1 {
		out.Most = in.Hi
	}
	if in == condition.Unbounded() && !own.Independent() {
		return out
	}
	out.Least = make(map[string]float64, len(labels))
	for _, l := range labels {
		switch i := slices.Index(own.Labels, l); {
		case in != condition.Unbounded():
			out.Least[l] = max(in.Lo, 0)
		case i >= 0 && i < len(own.Thresholds):
			out.Least[l] = own.Thresholds[i]
		}
	}
	return out
}
