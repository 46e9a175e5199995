package decide

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
)

// Order lists the models that a decision leads to and that the caller may use, in the order to try
// them. counted holds the prompt tokens by model, where a server counted them. Order may be called
// again, for example when a soft limit was reached in the meantime. The error is an
// UnknownModelError, ErrNoModelAllowed, or a TooLongError when the prompt fits no model.
func (b *Base) Order(d *Decision, counted map[string]int) ([]*backend.Model, error) {
	wants := d.ChoiceRequest()
	wants.Prompt.Counted = counted
	cs := b.Chooser.Choose(wants)
	b.explore(d, cs)
	cs = b.Arrange(d, cs)
	if len(cs) > 0 {
		b.exploreEffort(d, cs[0].Name)
	}
	models, denied := make([]*backend.Model, 0, len(cs)), false
	for i := range cs {
		switch m, ok := b.ByName[cs[i].Name]; {
		case !ok:
			return nil, &fault.UnknownModelError{Model: cs[i].Name}
		case !d.Who.May(m.Name):
			denied = true
		case !cs[i].Out:
			models = append(models, m)
		}
	}
	switch {
	case len(models) > 0:
		return models, nil
	case denied:
		return nil, fault.ErrNoModelAllowed
	}
	return nil, d.tooLong(&wants.Prompt, cs)
}

// ChoiceRequest returns the input for the choice among models.
func (d *Decision) ChoiceRequest() choose.Request {
	r := choose.Request{Action: d.Action, Set: d.Set, Named: d.Named, Expected: d.expected}
	if d.Request == nil {
		return r
	}
	r.Prompt = d.length()
	r.Limit, _ = d.Request.AnswerLimit()
	return r
}

// cheapen moves the cheapest candidates to the front when a budget of the caller is nearly
// exhausted. It compares the cost of this request; a model without a price costs nothing. This
// overrides conversation stickiness, except that a tool result goes to the model that called the
// tool, and that a request that continues a stored response goes to a model that has it. cs is
// changed in place.
func (b *Base) cheapen(d *Decision, cs []choose.Candidate) {
	t := d.Talk
	of := t != nil && t.before != nil
	if !d.Saving.Cheaper || of && t.tool && t.why == whyTool || d.leavesState() {
		return
	}
	answer := func(*backend.Model) int { return openai.AssumedOutputTokens }
	if d.Request != nil {
		answer = func(m *backend.Model) int { return d.MaxOutputTokens(m.Window) }
	}
	price := func(c *choose.Candidate) float64 {
		switch m := b.ByName[c.Name]; {
		case m == nil, c.Out:
			return math.Inf(1)
		default:
			return m.Price.Of(float64(d.Set.Facts.Tokens), float64(answer(m)))
		}
	}
	slices.SortStableFunc(cs, func(a, b choose.Candidate) int { return cmp.Compare(price(&a), price(&b)) })
	if of && !t.final && len(cs) > 0 && cs[0].Name != t.before.Model {
		t.result, t.why = talkMoved, whyBudget
	}
}

// longestToken is an upper bound for the length of a token in bytes. The longest tokens of GPT-4,
// Llama 3 and Qwen3 are 128 spaces; the rest is a margin for other vocabularies.
const longestToken = 256

// least returns a lower bound for the number of tokens of a text in a message. Each message begins
// with a token of its own. Some templates strip white space at both ends of a text.
func least(text string) int {
	return 1 + len(strings.TrimSpace(text))/longestToken
}

// length returns bounds for the length of a request's prompt, determined without a tokenizer. Each
// of several prompts in one completion request has the whole window to itself.
func (d *Decision) length() (out choose.Prompt) {
	req := d.Request
	if req.API == openai.Completion {
		for i := range req.Messages {
			text := req.Messages[i].Text
			out.Estimate = max(out.Estimate, len(text)/openai.BytesPerToken+openai.BytesPerToken)
			out.Least = max(out.Least, least(text))
		}
		ids := req.TokenIDs / max(1, req.TokenLists) // the longest list has at least the average
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
	if d.Contexts.Named() {
		out.Estimate += d.Contexts.Tokens
		for _, s := range d.Contexts.Snaps {
			out.Least += int(s.Bytes) / longestToken
		}
	}
	return out
}

// Named returns the models that a decision leads to.
func (b *Base) Named(d *Decision) (out []*backend.Model) {
	if len(d.Action.Models) == 0 {
		if m, ok := b.ByName[d.Named]; ok {
			out = append(out, m)
		}
		return out
	}
	for i := range d.Action.Models {
		if m, ok := b.ByName[d.Action.Models[i].Name]; ok {
			out = append(out, m)
		}
	}
	return out
}

// tooLong returns the error for a prompt that fits no candidate, with the figures of the candidate
// with the largest window.
func (d *Decision) tooLong(prompt *choose.Prompt, cs []choose.Candidate) error {
	if d.Request == nil {
		return &fault.TooLongError{}
	}
	out := &fault.TooLongError{Param: d.Request.PromptField()}
	var largest *backend.Model
	for i := range cs {
		m, ok := d.Base.ByName[cs[i].Name]
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
		out.Message += fmt.Sprintf("%d, counted by its tokenizer.", n)
	} else {
		out.Message += fmt.Sprintf("at least %d: a token has at most %d bytes.",
			prompt.Least, longestToken)
	}
	out.Message += " Shorten the prompt or use a model with a larger context window."
	return out
}
