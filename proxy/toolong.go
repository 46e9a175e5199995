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

// outgrown reports whether the server refuses the prompt for its length and the plan has a model
// with a larger window left. It takes the others out of the plan: their servers would refuse it as
// well.
func outgrown(p *placement.Plan, u *upstream.Response) bool {
	window := u.Model.ContextWindow()
	larger := func(m *backend.Model) bool { return m.ContextWindow() > window }
	if window == 0 || !slices.ContainsFunc(p.Models, larger) {
		return false
	}
	if r := u.Refusal(); !r.TooLong() {
		return false
	}
	u.Endpoint.Succeeded() // it has answered
	p.Models = slices.DeleteFunc(p.Models, func(m *backend.Model) bool { return !larger(m) })
	return true
}

// measureBudget bounds the time in which model servers count the tokens of a prompt that may be too
// long for them.
const measureBudget = time.Second

// measure has the servers of models count the tokens of a prompt of which it is doubted that it
// fits, and returns what was answered in time, by model; nil for nothing. vLLM counts a chat as it
// would answer it, template and tools included.
func (p *Proxy) measure(ctx context.Context, st *State, change *rewrite.Change) map[string]int {
	if !countable(change.Request) {
		return nil
	}
	wants := change.Decision.ChoiceRequest()
	var out map[string]int
	for _, m := range st.Named(change.Decision) {
		if !change.Decision.Who.May(m.Name) || len(out) == count.MaxModels {
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

// countable reports whether /tokenize of vLLM takes the request: a chat of text, or one prompt that
// is text.
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

// measureBy has a server of one model count the prompt as the model would get it.
func (p *Proxy) measureBy(ctx context.Context, change *rewrite.Change, m *backend.Model) (tokens int, ok bool) {
	e := p.counters.Of(m)
	if e == nil {
		return 0, false
	}
	body, _, err := change.Payload(ctx, m)
	if err != nil || body.Size() > count.MaxBytes {
		return 0, false // what is wrong is told by the attempt
	}
	ctx, cancel := context.WithTimeout(ctx, measureBudget)
	defer cancel()
	return p.counters.Tokenize(ctx, e, count.Path, body.Reader())
}
