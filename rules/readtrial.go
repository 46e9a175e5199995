package rules

import (
	"slices"

	"signalbox/rules/internal/syntax"
)

// readMirror reads mirror, which may be absent.
func (c *compiler) readMirror(at syntax.Cursor) *Mirror {
	if at.Node == nil {
		return nil
	}
	m, ok := c.readTrial(at, "share")
	if !ok {
		return nil
	}
	return &Mirror{Model: m.model, Share: m.share}
}

// trial is a model that receives a share of a route's requests.
type trial struct {
	model string
	share float64
}

// readTrial reads {model, KEY}, both required.
func (c *compiler) readTrial(at syntax.Cursor, key string) (t trial, ok bool) {
	mark := at.Mark()
	entries, ok := at.Mapping("{model: NAME, "+key+": NUMBER}", "model", key)
	if !ok {
		return t, false
	}
	var model, share syntax.Cursor
	for _, e := range entries {
		if e.Key == "model" {
			model = e.At
		} else {
			share = e.At
		}
	}
	if model.Node == nil || share.Node == nil {
		at.Lacking(mark, "found no model or no %s, expected {model: NAME, %s: NUMBER}", key, key)
		return t, false
	}
	if s, ok := model.Word("a model name"); ok && model.Known("model", s, c.env.Models) {
		c.use("model", s)
		t.model = s
	}
	if x, ok := share.Share(); ok {
		if t.share = x; x == 0 {
			share.Errorf("found 0, expected a number above 0 and up to 1; leave the key out to turn it off")
		}
	}
	return t, t.model != "" && t.share > 0
}

// warnMirror reports a mirror of the only model that responds: it receives its own requests again,
// and is compared with itself.
func warnMirror(mirror, models syntax.Cursor, a *Action) {
	if a.Mirror == nil || a.Canary != nil || len(a.Models) != 1 || !allRead(models, a) ||
		a.Models[0].Name != a.Mirror.Model {
		return
	}
	mirror.Warnf("model %q is the only one of the route: it gets its own requests again, and its answers "+
		"are compared with themselves", a.Mirror.Model)
}

// readCanary reads canary, which may be absent. Options that would mix the responses of the canary
// with those of the baseline are refused, even if either has other errors: escalate is the place of
// the route's escalate key, valid or not.
func (c *compiler) readCanary(at, escalate syntax.Cursor, a *Action) *Canary {
	if at.Node == nil {
		return nil
	}
	t, ok := c.readTrial(at, "share")
	if escalate.Node != nil {
		at.Errorf("canary and escalate exclude each other: an answer of the canary is not judged, " +
			"so the two could not be compared")
	}
	switch {
	case t.model == "":
	case slices.ContainsFunc(a.Models, func(x Choice) bool { return x.Name == t.model }):
		at.Errorf("model %q is among the models of the route, so its answers could not be told from theirs", t.model)
	case a.Mirror != nil && a.Mirror.Model == t.model:
		at.Errorf("model %q gets copies of the same requests by mirror: a canary answers clients, a mirror nobody", t.model)
	}
	if !ok {
		return nil
	}
	return &Canary{Model: t.model, Share: t.share}
}
