package decide

import "signalbox/internal/openai"

// MaxOutputTokens is the most tokens that the response of a model may have, over all its answers,
// by the limit and the numbers of answers that the model will be sent: those of the client, or of
// the route. Where neither names a limit, or it is automatic, each answer counts as
// openai.AssumedOutputTokens. None is longer than window, which is 0 where it is not known.
func (d *Decision) MaxOutputTokens(window int) int {
	limit := d.answerLimit()
	if window > 0 {
		limit = min(limit, int64(window))
	}
	return d.Request.OutputTokens(limit, d.member)
}

// Answers is how many answers are made for the response, at least 1.
func (d *Decision) Answers() int { return d.Request.Answers(d.member) }

// answerLimit is the limit of one answer.
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
		if n < 1 { // none, as null, but for a limit that the client has in the other field
			n = max(limit, openai.AssumedOutputTokens)
		}
		set = max(set, n)
	}
	if set > 0 {
		limit = set
	}
	return limit
}

// isLimit reports whether a field that a route sets limits the answer. Both names of chats are
// translated for the other APIs.
func (d *Decision) isLimit(name string) bool {
	switch name {
	case openai.FieldMaxTokens, openai.FieldMaxCompletionTokens:
		return true
	case openai.FieldMaxOutputTokens:
		return d.Request.API == openai.Response
	}
	return false
}

// member is a member of the body that the model will be sent: of the route, or of the client.
func (d *Decision) member(name string) []byte {
	for _, f := range d.Action.Body {
		if f.Name == name {
			return f.JSON
		}
	}
	return d.Request.Field(name)
}
