package replay

import (
	"slices"

	"signalbox/proxy/decisionlog"
)

// Change is the kind of change for one request.
type Change string

// The changes.
const (
	Unchanged    Change = "unchanged"
	Route        Change = "route"        // another route matches
	Parameters   Change = "parameters"   // the same route with another model, effort, prompt or limit
	Undetermined Change = "undetermined" // the log lacks data that the new rules need
)

// Compare reports the change for a request, and for Parameters the changed fields: "model" is the
// one tried first, "models" the candidates; the others have the names of the log.
func Compare(before *decisionlog.Entry, now *decisionlog.Redecision) (Change, []string) {
	switch {
	case len(now.Missing) > 0:
		return Undetermined, nil
	case before.Route != now.Route:
		return Route, nil
	}
	a, b, tried := &before.Action, &now.Action, before.Tried()
	var fields []string
	for _, f := range []struct {
		name    string
		differs bool
	}{
		{"outcome", before.Outcome != now.Outcome},
		{"action", a.Verb != b.Verb},
		{"text", a.Text != b.Text},
		{"model", tried != "" && now.Chosen != "" && tried != now.Chosen},
		{"models", !slices.Equal(a.Models, b.Models)},
		{"by", a.By != b.By},
		{"quality_margin", a.Margin != b.Margin},
		{"reasoning", a.Reasoning != b.Reasoning},
		{"override", a.Override != b.Override},
		{"prompt", a.Prompt != b.Prompt || a.Mode != b.Mode || a.Position != b.Position || a.Wording != b.Wording},
		{"max_tokens", a.MaxTokens != b.MaxTokens},
		{"guard", a.Guard != b.Guard},
		{"cache", a.Cache != b.Cache},
		{"windows", a.Windows != b.Windows},
		{"mirror", a.Mirror != b.Mirror},
		{"tools", a.Tools != b.Tools},
		{"tool_results", a.Results != b.Results},
		{"canary", a.Canary != b.Canary},
		{"escalate", a.Escalate != b.Escalate},
		{"redact", a.Redact != b.Redact || !slices.Equal(a.RedactTypes, b.RedactTypes) || !slices.Equal(a.RedactExcept, b.RedactExcept)},
		{"set", a.Set != b.Set},
	} {
		if f.differs {
			fields = append(fields, f.name)
		}
	}
	if len(fields) > 0 {
		return Parameters, fields
	}
	return Unchanged, nil
}
