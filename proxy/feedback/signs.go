package feedback

import (
	"bytes"
	"encoding/json"

	"signalbox/internal/openai"
	"signalbox/memory/outcomes/signs"
	"signalbox/proxy/decide"
)

// Answered is an answered request, as needed to find signs.
type Answered struct {
	Tenant, Session string
	ID              string // x-request-id
	Request         *openai.Request
	Failed          bool // the guard found a failed claim that it acts on
	Cut             bool // the response was cut at a limit other than the client's
}

// Judgement is the rating of a response by a sign.
type Judgement struct {
	Of    string // x-request-id of the response
	Sign  signs.Sign
	Score float64 // 1 for good, 0 for bad
}

// BySigns returns the ratings that a request implies for the previous response, and those of its
// own response. It adds the request to seen.
func BySigns(seen *signs.Watch, a *Answered) []Judgement {
	before, sign := seen.See(a.turn())
	score := 0.0
	if sign == signs.Continued {
		score = 1
	}
	out := []Judgement{{before, sign, score}}
	if of, rating := ratedBy(a.Request, before); rating == "up" {
		out = append(out, Judgement{of, decide.ByMetadata, 1})
	} else if rating == "down" {
		out = append(out, Judgement{of, decide.ByMetadata, 0})
	}
	switch {
	case a.Failed:
		out = append(out, Judgement{a.ID, signs.Guard, 0})
	case a.Cut:
		out = append(out, Judgement{a.ID, signs.Length, 0})
	}
	return out
}

// turn returns a request in the form needed to find signs.
func (a *Answered) turn() signs.Turn {
	t := signs.Turn{Tenant: a.Tenant, Session: a.Session, ID: a.ID}
	t.Messages = make([]signs.Message, len(a.Request.Messages))
	last := -1
	for i := range a.Request.Messages {
		m := &a.Request.Messages[i]
		t.Messages[i] = signs.Message{Role: m.Role, Text: m.Text}
		if m.HasImage || m.Text == "" { // identify an image by its bytes
			t.Messages[i].Text = m.Text + string(a.Request.Raw[m.Span.Start:m.Span.End])
		}
		if m.Role == "assistant" {
			last = i
		}
	}
	if last >= 0 {
		m := a.Request.Messages[last].Span
		t.Messages[last].Broken = brokenCall(a.Request.Raw[m.Start:m.End])
	}
	return t
}

// brokenCall reports whether a chat message, or a response item, calls a tool with arguments that
// are not JSON.
func brokenCall(message []byte) bool {
	if !bytes.Contains(message, []byte(`"arguments"`)) {
		return false
	}
	type call struct {
		Arguments string `json:"arguments"`
	}
	var m struct {
		call

		Type  string `json:"type"`
		Calls []struct {
			Function call `json:"function"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(message, &m) != nil {
		return false
	}
	if m.Type == "function_call" && m.Arguments != "" && !json.Valid([]byte(m.Arguments)) {
		return true
	}
	for _, c := range m.Calls {
		if a := c.Function.Arguments; a != "" && !json.Valid([]byte(a)) {
			return true
		}
	}
	return false
}

// ratedBy reads a rating in the metadata of a request, by default for the previous response. Other
// metadata belong to the client.
func ratedBy(req *openai.Request, before string) (of, rating string) {
	var m struct {
		Feedback string `json:"feedback"`
		Of       string `json:"feedback_request_id"`
	}
	if b := req.Field("metadata"); len(b) == 0 || json.Unmarshal(b, &m) != nil {
		return "", ""
	}
	if m.Of != "" {
		before = m.Of
	}
	return before, m.Feedback
}
