package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/classify"
	"signalbox/internal/config"
	"signalbox/internal/signal"
)

// givenAs returns the signal of a task that a classifier on another server gives, and the index of
// that classifier; -1 where none does.
func givenAs(c *config.Classify, t *config.Task) (k signal.Kind, at int) {
	k, _ = signal.ParseKind(t.Name)
	at = slices.IndexFunc(c.Classifiers, func(o config.OwnClassifier) bool {
		return o.Name == t.Classifier && o.Remote()
	})
	if !classify.GivenKinds.Has(k) {
		return k, -1
	}
	return k, at
}

// given returns the signals that classifiers on other servers give. Errors are *config.TaskError,
// joined. What the configuration tells of elsewhere is left out.
func given(c *config.Classify, own []signal.OwnClassifier) (map[signal.Kind]classify.Given, error) {
	var errs []error
	out := make(map[signal.Kind]classify.Given)
	for i := range c.Tasks {
		t := &c.Tasks[i]
		k, at := givenAs(c, t)
		if at < 0 || at >= len(own) {
			continue
		}
		g := classify.Given{Own: at}
		if field, err := defineGiven(&g, k, t, &own[at]); err != nil {
			errs = append(errs, &config.TaskError{Index: i, Field: field, Err: err})
			continue
		}
		out[k] = g
	}
	return out, errors.Join(errs...)
}

// defineGiven sets what a signal takes of a classifier. An error is about a field of the task.
func defineGiven(
	g *classify.Given, k signal.Kind, t *config.Task, own *signal.OwnClassifier,
) (field string, err error) {
	if len(own.Labels) < 2 {
		return "classifier", fmt.Errorf("%q must list its labels (http.labels)", own.Name)
	}
	if k == signal.Domain || k == signal.Complexity {
		return labelsGiven(g, k, t, own)
	}
	labels := strings.Join(own.Labels, ", ")
	g.Positive, g.Threshold = t.Positive, cmp.Or(t.Threshold, defaultMark)
	if g.Positive == "" {
		g.Positive = lookedFor(k, own)
	}
	switch {
	case g.Positive == "":
		return "positive", fmt.Errorf("set the label of %q that indicates %s: one of %s", own.Name, k, labels)
	case !slices.Contains(own.Labels, g.Positive):
		return "positive", fmt.Errorf("%q has no label %q, only %s", own.Name, g.Positive, labels)
	}
	return "", nil
}

// labelsGiven is defineGiven for signals that report the labels of the classifier.
func labelsGiven(
	g *classify.Given, k signal.Kind, t *config.Task, own *signal.OwnClassifier,
) (field string, err error) {
	levels := []string{"low", "medium", "high"}
	strange := func(l string) bool { return !slices.Contains(levels, l) }
	switch g.Labels = own.Labels; {
	case t.Positive != "":
		return "positive", fmt.Errorf("%s reports every label, and looks for none", k)
	case t.Threshold != 0:
		return "threshold", fmt.Errorf("%s has no threshold: its most probable label counts", k)
	case k == signal.Complexity && slices.ContainsFunc(own.Labels, strange):
		return "classifier", fmt.Errorf("the labels of %q (http.labels) have to be of %s",
			own.Name, strings.Join(levels, ", "))
	}
	return "", nil
}

// lookedFor is the label of a classifier that a signal takes where none is named: that which has
// the name of the signal, or else what the classifier is there for; empty when there is no such.
func lookedFor(k signal.Kind, own *signal.OwnClassifier) string {
	for _, l := range own.Labels {
		if strings.EqualFold(l, k.String()) {
			return l
		}
	}
	if found := config.LookedFor(own); len(found) > 0 {
		return found[0]
	}
	return ""
}

// catalogGiven adds the signals that classifiers on other servers give.
func catalogGiven(c *config.Classify, out *config.Catalog) error {
	list, err := given(c, out.Own)
	for k, g := range list {
		out.Signals |= signal.MaskOf(k)
		out.Elsewhere |= signal.MaskOf(k)
		if g.Positive != "" {
			out.Thresholds[k] = g.Threshold
		} else {
			out.Labels[k] = g.Labels
		}
	}
	return err
}
