package decide

import "signalbox/internal/openai"

// MaxOutputTokens returns the maximum number of tokens in the response of a model, over all its
// choices. It uses the limit and the number of choices that will be sent to the model, whether the
// client or the route sets them. Without a limit, or with an automatic one, each choice counts as
// openai.AssumedOutputTokens. window is the model's context window, 0 if unknown; no choice is
// longer than that.
func (d *Decision) MaxOutputTokens(window int) int {
	limit := d.answerLimit()
	if window > 0 {
		limit = min(limit, int64(window))
	}
	return d.Request.OutputTokens(limit, d.member)
}

// Answers returns the number of choices requested for the response, at least 1.
func (d *Decision) Answers() int { return d.Request.Answers(d.member) }

// answerLimit returns the token limit of one choice.
func (d *Decision) answerLimit() int64 {
	limit, ok := d.Request.AnswerLimit()
	if d.Action.Limits(limit) {
		limit, ok = int64(d.Action.MaxTokens.Limit), !d.Action.MaxTokens.Auto
	}
	if !ok {
		limit = openai.AssumedOutputTokens
	}
	set := int64(0)
	for _, f := range d.Action.Body {
		if !d.isLimit(f.Name) {
			continue
		}
		n := int64(openai.Number(f.JSON))
		if n < 1 { // no limit, as with null, except for one that the client sets in the other field
			n = max(limit, openai.AssumedOutputTokens)
		}
		set = max(set, n)
	}
	if set > 0 {
		limit = set
	}
	return limit
}

// isLimit reports whether a field that a route sets is a limit on response tokens. Both names used
// in chats are translated for the other APIs.
func (d *Decision) isLimit(name string) bool {
	switch name {
	case openai.FieldMaxTokens, openai.FieldMaxCompletionTokens:
		return true
	case openai.FieldMaxOutputTokens:
		return d.Request.API == openai.Response
	}
	return false
}

// member returns a member of the body as it will be sent to the model, from the route or from the
// client.
func (d *Decision) member(name string) []byte {
	for _, f := range d.Action.Body {
		if f.Name == name {
			return f.JSON
		}
	}
	return d.Request.Field(name)
}
