package proxy

import (
	"encoding/json"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// The efforts that routes and headers speak of.
const (
	effortNone   = "none"
	effortLow    = "low"
	effortMedium = "medium"
	effortHigh   = "high"
)

// reason tells the model how much to think, in its dialect, and returns the effort that the request
// asks for in the end; none also when nobody asked for any.
//
// What a client said wins unless the route overrides it. What a route says reaches a model without a
// dialect as nothing.
func (rw rewriter) reason(p *openai.Patch, m *model) string {
	want := rw.effort()
	if said := rw.clientEffort(m); said != "" && !rw.d.Action.Override {
		return said
	}
	if want == "" {
		return or(rw.clientEffort(m), effortNone)
	}
	switch m.reasoning.Dialect {
	case DialectEffort:
		p.SetField("reasoning_effort", []byte(`"`+want+`"`))
	case DialectKwargs:
		p.SetNested("chat_template_kwargs", m.reasoning.Key, thinks(want))
	default:
		return effortNone
	}
	return want
}

// thinks maps an effort to a dialect that knows on and off only.
func thinks(effort string) []byte {
	if effort == effortMedium || effort == effortHigh {
		return []byte("true")
	}
	return []byte("false")
}

// effort is what the route asks for; empty when it asks for nothing or for what is not known.
func (rw rewriter) effort() string {
	switch rw.d.Action.Reasoning {
	case effortNone, effortLow, effortMedium, effortHigh:
		return rw.d.Action.Reasoning
	case "auto":
		c := &rw.d.set.Values[signal.Complexity]
		if c.State == signal.Known && (c.Label == effortLow || c.Label == effortMedium || c.Label == effortHigh) {
			return c.Label
		}
	}
	return ""
}

// clientEffort is what the client's body says for itself, in either dialect; empty when nothing. The
// two efforts of the API beyond ours count as their neighbours.
func (rw rewriter) clientEffort(m *model) string {
	switch said := rw.req.ReasoningEffort; said {
	case effortNone, effortLow, effortMedium, effortHigh:
		return said
	case "minimal":
		return effortLow
	case "":
	default:
		return effortHigh
	}
	at := rw.req.ChatTemplateKwargs
	if m.reasoning.Dialect != DialectKwargs || !at.Present() {
		return ""
	}
	var kwargs map[string]json.RawMessage
	if err := json.Unmarshal(rw.req.Raw[at.Start:at.End], &kwargs); err != nil {
		return "" // parsed before, so an object
	}
	switch v, ok := kwargs[m.reasoning.Key]; {
	case !ok:
		return ""
	case string(v) == "false":
		return effortNone
	default:
		return effortMedium
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
