package app

import (
	"context"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/classify"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/proxy/decisionlog"
)

// Redecide decides a logged request by the rules of this configuration; see proxy.Proxy.Redecide.
func (a *App) Redecide(ctx context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error) {
	return a.proxy.Redecide(ctx, l)
}

// identify distinguishes the definitions behind a configuration's signals from those of another:
// the model of a signal and how it is read, its examples, and the words of a keyword set.
// Thresholds are not included: rules apply them to the logged probabilities.
func identify(cfg *config.Config) (decisionlog.Identity, error) {
	id := decisionlog.Identity{
		Config: cfg.Fingerprint, Provided: cfg.Catalog.Signals, Windows: cfg.Classify.Windows,
		Definitions: make(map[signal.Kind]string), Keywords: make(map[string]string, len(cfg.Signals.Keywords)),
		HeaderWords: make(map[string][]string), HeaderPatterns: make(map[string]bool),
		Origins: cfg.Classify.Origins(), Reads: cfg.Reads(),
	}
	for i := range cfg.Signals.Keywords {
		set := &cfg.Signals.Keywords[i]
		id.Keywords[set.Name] = decisionlog.Fingerprint(fmt.Appendf(nil, "%+v", *set))
	}
	placed, err := place(&cfg.Classify)
	if err != nil {
		return id, fmt.Errorf("tell the models of the configuration apart: %w", err)
	}
	define(placed, &cfg.Classify, id.Definitions)
	if slices.ContainsFunc(cfg.Classify.Tasks, func(t config.Task) bool { return t.Model == classify.PatternsModel }) {
		id.Definitions[signal.PII] = classify.PatternsModel
	}
	if len(cfg.Signals.Intents) > 0 {
		id.Definitions[signal.Intent] = decisionlog.Fingerprint(fmt.Appendf(nil, "%s %+v %v",
			id.Definitions[signal.Embedding], cfg.Signals.Intents, cfg.Signals.IntentMargin))
	}
	id.Names = cfg.Classify.Names()
	defineOwn(&cfg.Classify, id.Definitions)
	headerTests(&cfg.Routes, &id)
	headerTests(&cfg.Conditions, &id)
	return id, nil
}

// define determines the models of the signals. Placements for other languages come last.
func define(placed []placement, c *config.Classify, out map[signal.Kind]string) {
	for i := range placed {
		p := &placed[i]
		mark := decisionlog.Fingerprint([]byte(p.definition(c)))
		for _, k := range p.signals.Kinds() {
			if first := out[k]; p.foreign {
				out[k] = decisionlog.Fingerprint([]byte(first + " " + mark))
			} else {
				out[k] = mark
			}
		}
	}
}

// definition describes the model of a placement and how it is read, identically on every machine.
func (p *placement) definition(c *config.Classify) string {
	m := &p.bundle.Manifest
	text := fmt.Sprintf("%s %s %s%s", p.model, m.Name, m.Version, p.graphs())
	if len(p.entries) > 0 && !shared(c, p.model) {
		text += " " + describe(openOptions(&c.Tasks[p.entries[0]]))
	}
	return text
}

// headerTests collects what the conditions under n compare headers with. The tree was checked by
// rules; here only `header: {name, equals}` and `header: {name, matches}` matter.
func headerTests(n *yaml.Node, id *decisionlog.Identity) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "header" && c.Kind == yaml.MappingNode {
			headerTest(c, id)
		}
		headerTests(c, id)
	}
}

func headerTest(n *yaml.Node, id *decisionlog.Identity) {
	var name, equals string
	var compared, matched bool
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case "name":
			name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(n.Content[i+1].Value))
		case "equals":
			equals, compared = n.Content[i+1].Value, true
		case "matches":
			matched = true
		}
	}
	switch {
	case matched:
		id.HeaderPatterns[name] = true
	case compared && !slices.Contains(id.HeaderWords[name], equals):
		id.HeaderWords[name] = append(id.HeaderWords[name], equals)
	}
}
