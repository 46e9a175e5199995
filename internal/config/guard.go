package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
	"signalbox/proxy/guardrail"
	"signalbox/rules"
)

// guard checks the section of the guard, and gives its mode a value: observe where the section is
// there, off where it is not.
func (c *checker) guard(catalog *Catalog) {
	g := &c.cfg.Guard
	present := c.root != nil && child(c.root, "guard") != nil
	if g.Mode == "" && present {
		g.Mode = "observe"
	}
	g.Mode = cmp.Or(g.Mode, "off")
	c.word("guard.mode", g.Mode, guardrail.Words("mode"))
	for i, v := range g.ActOn {
		c.word(fmt.Sprintf("guard.act_on[%d]", i), v, guardrail.Words("act_on"))
	}
	c.word("guard.marker_as", g.MarkerAs, guardrail.Words("marker_as"))
	c.word("guard.on_unchecked", g.OnUnchecked, guardrail.Words("on_unchecked"))
	c.word("guard.structured", g.Structured, guardrail.Words("structured"))
	c.section("guard", g.Validate())
	c.outputs(catalog)
	if len(g.Outputs) > 0 && len(g.ActOn) > 0 && !slices.Contains(g.ActOn, "unsupported") {
		c.warn("guard.act_on", "findings of outputs count as unsupported, which is not listed here, so they have no effect")
	}
	c.idleSigns()
	at := c.guardedAt()
	c.cfg.Guarded = at != ""
	if !c.cfg.Guarded || rules.HasErrors(c.problems) {
		return
	}
	if !catalog.Grounding {
		c.warn(at, "no model judges claims, so the guard checks numbers, dates and units alone, and every other claim is unchecked")
	}
	c.idleGuardKeys(catalog)
}

// outputs finds the signals that read answers, and their thresholds.
func (c *checker) outputs(catalog *Catalog) {
	for i := range c.cfg.Guard.Outputs {
		o, path := &c.cfg.Guard.Outputs[i], fmt.Sprintf("guard.outputs[%d]", i)
		at := slices.IndexFunc(catalog.Own, func(x signal.OwnClassifier) bool { return x.Name == o.Classifier })
		if at >= 0 {
			o.Kind = signal.Own + signal.Kind(at)
			c.outputLabels(o, path, &catalog.Own[at])
			continue
		}
		k, _ := signal.ParseKind(o.Classifier)
		if slices.Contains(guardrail.Signals(), k) {
			o.Kind = k
			c.outputSignal(o, path, catalog)
			continue
		}
		known := c.cfg.Classify.Names()
		for _, k := range guardrail.Signals() {
			known = append(known, k.String())
		}
		if o.Classifier != "" {
			c.at(path+".classifier", "%q is neither in classify.classifiers nor a signal that reads responses%s",
				o.Classifier, meant("; ", o.Classifier, known))
		}
	}
}

// outputSignal checks an output that names a signal, and finds its threshold.
func (c *checker) outputSignal(o *guardrail.Output, path string, catalog *Catalog) {
	if !catalog.Signals.Has(o.Kind) {
		c.at(path+".classifier", "nothing computes %s: no model is configured for it in classify.tasks", o.Kind)
		return
	}
	known := catalog.Labels[o.Kind]
	switch o.Kind { //nolint:exhaustive // those of guardrail.Signals
	case signal.Jailbreak, signal.Injection:
		if o.Threshold = threshold(catalog, o.Kind); len(o.Labels) > 0 {
			c.at(path+".labels", "%s has no labels to choose from", o.Kind)
		}
		return
	case signal.PII:
		o.Threshold = threshold(catalog, o.Kind)
	case signal.Keyword:
		known = nil
		for i := range c.cfg.Signals.Keywords {
			known = append(known, c.cfg.Signals.Keywords[i].Name)
		}
		if len(known) == 0 {
			c.at(path+".classifier", "signals.keywords is empty")
			return
		}
	default:
		if len(o.Labels) == 0 {
			c.at(path+".labels", "list what a response must not be")
		}
	}
	for j, l := range o.Labels {
		if len(known) > 0 && !slices.Contains(known, l) {
			near := meant("; ", l, known)
			if o.Kind == signal.Language {
				near = meantLanguage(l, known)
			}
			c.at(fmt.Sprintf("%s.labels[%d]", path, j), "%q is not one of %s%s", l, strings.Join(known, ", "), near)
		}
	}
}

// meantLanguage is meant for a language, whose names are known beside the codes.
func meantLanguage(word string, codes []string) string {
	if code := rules.Language(word, codes); code != "" {
		return fmt.Sprintf("; did you mean %q?", code)
	}
	return ""
}

// threshold is the probability from which a yes-or-no signal counts as yes.
func threshold(catalog *Catalog, k signal.Kind) float64 {
	return cmp.Or(catalog.Thresholds[k], defaultThreshold)
}

// outputLabels finds what an answer must not be, and from which probability on it is.
func (c *checker) outputLabels(o *guardrail.Output, path string, own *signal.OwnClassifier) {
	if len(o.Labels) == 0 {
		if o.Labels = LookedFor(own); len(o.Labels) == 0 {
			c.at(path+".labels", "list what a response must not be: any of %s", strings.Join(own.Labels, ", "))
		}
	}
	o.Least = make(map[string]float64, len(o.Labels))
	for j, l := range o.Labels {
		k := slices.Index(own.Labels, l)
		if k < 0 && len(own.Labels) > 0 {
			c.at(fmt.Sprintf("%s.labels[%d]", path, j), "%q is not one of %s", l, strings.Join(own.Labels, ", "))
		}
		if k >= 0 && k < len(own.Thresholds) {
			o.Least[l] = own.Thresholds[k]
		}
	}
}

// LookedFor returns the label that a classifier is there for: of two the one with a threshold, of a
// guard model unsafe; nil when there is no such.
func LookedFor(own *signal.OwnClassifier) []string {
	if slices.Contains(own.Labels, "unsafe") {
		return []string{"unsafe"}
	}
	if len(own.Labels) == 2 && own.Thresholds[0] == 0 && own.Thresholds[1] > 0 {
		return own.Labels[1:]
	}
	return nil
}

// idleGuardKeys warns of keys of the section that nothing comes of.
func (c *checker) idleGuardKeys(catalog *Catalog) {
	g := &c.cfg.Guard
	if g.OnUnchecked == "block" && !catalog.Grounding && len(g.Outputs) == 0 {
		c.warn("guard.on_unchecked", "no model judges claims, so no check can be late: block only stops responses that cannot be read, and claims that numbers cannot decide pass")
	}
	if g.Failures > 0 && len(g.Outputs) == 0 && !countsFailures(g.Mode) &&
		!slices.ContainsFunc(c.modesOf("guard"), countsFailures) {
		c.warn("guard.failures", "only terminate and hold count failures, and no route uses either")
	}
}

// countsFailures reports whether a mode counts failed claims.
func countsFailures(mode string) bool { return mode == "terminate" || mode == "hold" }

// word reports a word that a key does not know, where it is nearly one that it does.
func (c *checker) word(path, word string, known []string) {
	if best := Nearest(word, known); best != "" && !slices.Contains(known, word) {
		c.at(path, "%q is not one of %s; did you mean %q?", word, strings.Join(known, ", "), best)
	}
}

// guardedAt returns the place that turns the guard on, empty when none does.
func (c *checker) guardedAt() string {
	if c.cfg.Guard.Mode != "off" {
		return "guard"
	}
	if asksForGuard(&c.cfg.Default) {
		return "default.guard"
	}
	for i, route := range c.cfg.Routes.Content {
		if use := child(route, "use"); use != nil && asksForGuard(use) {
			return fmt.Sprintf("routes[%d].use.guard", i)
		}
	}
	return ""
}

// idleSigns warns of routes that escalate for what the guard finds, where it is off unless a client
// asks for it.
func (c *checker) idleSigns() {
	if c.cfg.Program == nil || c.cfg.Guard.Mode != "off" {
		return
	}
	actions := c.cfg.Program.Actions()
	for i, a := range actions {
		if a.Guard != "" || a.Escalate == nil || !slices.Contains(a.Escalate.When, rules.SignGuard) {
			continue
		}
		path := "default"
		if i < len(actions)-1 {
			path = fmt.Sprintf("routes[%d].use", i)
		}
		c.warn(path+".escalate.when", "the guard is off, so nothing is escalated for it unless a client asks for "+
			"the guard: set guard.mode, or guard beside escalate")
	}
}

// asksForGuard reports whether an action turns the guard on.
func asksForGuard(use *yaml.Node) bool {
	n := child(use, "guard")
	return n != nil && !isNull(n) && n.Value != "off"
}

// warn reports what is allowed and worth a thought.
func (c *checker) warn(path, format string, args ...any) {
	at := c.place(path)
	c.problems = append(c.problems, rules.Problem{Line: at.Line, Col: at.Column, Path: path, Msg: fmt.Sprintf(format, args...), Warning: true})
}
