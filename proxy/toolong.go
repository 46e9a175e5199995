package proxy

import (
	"context"
	"slices"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/count"
	"signalbox/proxy/placement"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
)

// outgrown reports whether the server refused the prompt because of its length and the plan has a
// model with a larger window left. It removes the models with windows that are no larger, since
// their servers would refuse the prompt as well.
func outgrown(p *placement.Plan, u *upstream.Response) bool {
	window := u.Model.ContextWindow()
	larger := func(m *backend.Model) bool { return m.ContextWindow() > window }
	if window == 0 || !slices.ContainsFunc(p.Models, larger) {
		return false
	}
	if r := u.Refusal(); !r.TooLong() {
		return false
	}
	u.Endpoint.Succeeded() // the server answered, so it is healthy
	p.Models = slices.DeleteFunc(p.Models, func(m *backend.Model) bool { return !larger(m) })
	return true
}

// measureBudget limits the time that model servers have, together, to count the tokens of a prompt
// that may be too long for them.
const measureBudget = time.Second

// measure asks servers to count the tokens of a prompt that may not fit, and returns the counts
// that arrived in time, by model; nil if there are none. vLLM counts a chat as it would run it,
// with template and tools.
func (p *Proxy) measure(ctx context.Context, st *State, change *rewrite.Change) map[string]int {
	if !countable(change.Request) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, measureBudget)
	defer cancel()
	wants := change.Decision.ChoiceRequest()
	var out map[string]int
	for _, m := range st.Named(change.Decision) {
		if !change.Decision.Who.May(m.Name) || len(out) == count.MaxModels || ctx.Err() != nil {
			continue
		}
		if !wants.Doubted(m.Window) || wants.Prompt.Least > m.Window {
			continue
		}
		if n, ok := p.measureBy(ctx, change, m); ok {
			if out == nil {
				out = make(map[string]int)
			}
			out[m.Name] = n
		}
	}
	return out
}

// countable reports whether vLLM's /tokenize accepts the request: a text-only chat, or a single
// text prompt.
func countable(req *openai.Request) bool {
	switch req.API {
	case openai.Chat:
		return !req.HasMedia
	case openai.Completion:
		return len(req.Messages) == 1 && req.TokenLists == 0 && req.TokenIDs == 0
	case openai.Response, openai.Other:
	}
	return false
}

// measureBy asks a server of model m to count the prompt as that model would receive it.
func (p *Proxy) measureBy(ctx context.Context, change *rewrite.Change, m *backend.Model) (tokens int, ok bool) {
	e := p.counters.Of(m)
	if e == nil {
		return 0, false
	}
	body, _, err := change.Payload(ctx, m)
	if err != nil || body.Size() > count.MaxBytes {
		return 0, false // the attempt will report the error
	}
	return p.counters.Tokenize(ctx, e, count.Path, body.Reader())
}
