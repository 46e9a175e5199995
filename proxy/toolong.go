package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/count"
	"signalbox/proxy/fault"
	"signalbox/proxy/upstream"
)

// outgrown reports whether the server refuses the prompt for its length and the plan has a model
// with a larger window left. It takes the others out of the plan: their servers would refuse it as
// well.
func (p *plan) outgrown(u *upstream.Response) bool {
	window := u.Model.ContextWindow()
	larger := func(m *backend.Model) bool { return m.ContextWindow() > window }
	if window == 0 || !slices.ContainsFunc(p.models, larger) {
		return false
	}
	if r := u.Refusal(); !r.TooLong() {
		return false
	}
	u.Endpoint.Succeeded() // it has answered
	p.models = slices.DeleteFunc(p.models, func(m *backend.Model) bool { return !larger(m) })
	return true
}

// longestToken is the length in bytes that no token of a vocabulary exceeds. The longest of GPT-4,
// Llama 3 and Qwen3 are 128 spaces; the rest is for those that nobody here has seen.
const longestToken = 256

// least is how many tokens a text has at least as a message: each begins with one of its own. Space
// at the ends of a text is taken off by some templates.
func least(text string) int {
	return 1 + len(strings.TrimSpace(text))/longestToken
}

// length is what is known of the length of a request's prompt without a tokenizer. Of several
// prompts of a completion each has the window for itself.
func (d *decision) length() (out choose.Prompt) {
	req := d.request
	if req.API == openai.Completion {
		for i := range req.Messages {
			text := req.Messages[i].Text
			out.Estimate = max(out.Estimate, len(text)/openai.BytesPerToken+openai.BytesPerToken)
			out.Least = max(out.Least, least(text))
		}
		ids := req.TokenIDs / max(1, req.TokenLists) // the longest list has no fewer
		out.Estimate, out.Least = max(out.Estimate, ids), max(out.Least, ids)
	} else {
		out.Estimate = req.EstimateTokens()
		for i := range req.Messages {
			out.Least += least(req.Messages[i].Text)
		}
		if req.Instructions != "" {
			out.Least += least(req.Instructions)
		}
	}
	if d.contexts.Named() {
		out.Estimate += d.contexts.Tokens
		for _, s := range d.contexts.Snaps {
			out.Least += int(s.Bytes) / longestToken
		}
	}
	return out
}

// measureBudget bounds the time in which model servers count the tokens of a prompt that may be too
// long for them.
const measureBudget = time.Second

// measure has the servers of models count the tokens of a prompt of which it is doubted that it
// fits, and returns what was answered in time, by model; nil for nothing. vLLM counts a chat as it
// would answer it, template and tools included.
func (p *Proxy) measure(ctx context.Context, st *State, change *rewriter) map[string]int {
	if !countable(change.req) {
		return nil
	}
	wants := change.d.choiceRequest()
	var out map[string]int
	for _, m := range st.named(change.d) {
		if !change.d.who.May(m.Name) || len(out) == count.MaxModels {
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

// named are the models that a decision leads to.
func (st *State) named(d *decision) (out []*backend.Model) {
	if len(d.Action.Models) == 0 {
		if m, ok := st.byName[d.model]; ok {
			out = append(out, m)
		}
		return out
	}
	for i := range d.Action.Models {
		if m, ok := st.byName[d.Action.Models[i].Name]; ok {
			out = append(out, m)
		}
	}
	return out
}

// measureBy has a server of one model count the prompt as the model would get it.
func (p *Proxy) measureBy(ctx context.Context, change *rewriter, m *backend.Model) (tokens int, ok bool) {
	e := p.counters.Of(m)
	if e == nil {
		return 0, false
	}
	body, _, err := change.payload(ctx, m)
	if err != nil || body.Size() > count.MaxBytes {
		return 0, false // what is wrong is told by the attempt
	}
	ctx, cancel := context.WithTimeout(ctx, measureBudget)
	defer cancel()
	return p.counters.Tokenize(ctx, e, count.Path, body.Reader())
}

// tooLong is the error of a prompt that fits none of the candidates, with figures of the one with
// the largest window.
func (d *decision) tooLong(prompt *choose.Prompt, cs []choose.Candidate) error {
	if d.request == nil {
		return &fault.TooLongError{}
	}
	out := &fault.TooLongError{Param: d.request.PromptField()}
	var largest *backend.Model
	for i := range cs {
		m, ok := d.state.byName[cs[i].Name]
		if ok && (largest == nil || m.Window > largest.Window) {
			largest = m
		}
	}
	if largest == nil {
		return out
	}
	out.Message = fmt.Sprintf("This model's maximum context length is %d tokens, and the prompt has ",
		largest.Window)
	if n, ok := prompt.Counted[largest.Name]; ok && n > largest.Window {
		out.Message += fmt.Sprintf("%d by its tokenizer.", n)
	} else {
		out.Message += fmt.Sprintf("at least %d: no tokenizer has tokens of more than %d bytes.",
			prompt.Least, longestToken)
	}
	out.Message += " Shorten it, or ask for a model with a larger window."
	return out
}
