package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/memory/outcomes"
	"signalbox/memory/outcomes/signs"
	"signalbox/stream/response"
)

// SignOptions is how far each sign of how good an answer was is to be trusted, in [0,1]: it is the
// weight of the outcome that is made of it. 0 turns a sign off. What callers say has the weight 1
// and stands above.
type SignOptions struct {
	// Regenerated: the same messages came again within 30 minutes. The outcome is 0. Default 0.3.
	// Reloadable.
	Regenerated float64 `yaml:"regenerated"`
	// Edited: the last message of the user came again in other words. The outcome is 0. Default
	// 0.15. Reloadable.
	Edited float64 `yaml:"edited"`
	// Continued: another turn followed. The outcome is 1. Default 0.1. Reloadable.
	Continued float64 `yaml:"continued"`
	// ToolCall: the next turn shows that the answer called a tool with arguments that are no JSON.
	// The outcome is 0. Default 0.5. Reloadable.
	ToolCall float64 `yaml:"tool_call"`
	// Length: the answer was cut at its limit. The outcome is 0. Default 0.2. Reloadable.
	Length float64 `yaml:"length"`
	// Guard: the guard of answers found a claim that it acts on. The outcome is 0. Default 0.3.
	// Reloadable.
	Guard float64 `yaml:"guard"`
	// Metadata: a request says of the answer before, or of that which its metadata name under
	// feedback_request_id, what they have under feedback: up or down. The outcome is 1 or 0. Default
	// 1. Reloadable.
	Metadata float64 `yaml:"metadata"`
}

// DefaultSignOptions returns the weights of an empty section. They are judgements, not measured.
func DefaultSignOptions() SignOptions {
	return SignOptions{
		Regenerated: 0.3, Edited: 0.15, Continued: 0.1, ToolCall: 0.5, Length: 0.2, Guard: 0.3, Metadata: 1,
	}
}

// seenTurns is of how many turns the next ones are waited for.
const seenTurns = 10_000

// byMetadata is the source of outcomes that metadata tell.
const byMetadata signs.Sign = "metadata"

func (o *SignOptions) weights() map[signs.Sign]float64 {
	return map[signs.Sign]float64{
		signs.Regenerated: o.Regenerated, signs.Edited: o.Edited, signs.Continued: o.Continued,
		signs.ToolCall: o.ToolCall, signs.Length: o.Length, signs.Guard: o.Guard, byMetadata: o.Metadata,
	}
}

func (o *SignOptions) validate(p *option.Problems) {
	for sign, w := range o.weights() {
		if !(w >= 0 && w <= 1) {
			p.Addf("signs."+string(sign), "%v is not between 0 and 1", w)
		}
	}
}

// watchSigns makes outcomes of what a request that was answered says of the answer before, and of
// what its own answer shows.
func (p *Proxy) watchSigns(ctx context.Context, st *State, o *exchange, id string, status int, err error) {
	if st.outcomes == nil || st.learning.Learn != learnAll || o.decision == nil || o.req == nil ||
		err != nil || status != http.StatusOK {
		return
	}
	note := func(of string, sign signs.Sign, score float64) {
		w := st.learning.Signs.weights()[sign]
		if of == "" || w == 0 {
			return
		}
		_, err := st.outcomes.Judge(o.who.Tenant, of, score, w, "", string(sign))
		if err != nil && !errors.Is(err, outcomes.ErrUnknown) {
			p.tel.Log.LogAttrs(ctx, slog.LevelWarn, "outcome not kept", slog.String("cause", err.Error()))
		}
	}
	before, sign := st.seen.See(turnOf(o, id))
	score := 0.0
	if sign == signs.Continued {
		score = 1
	}
	note(before, sign, score)
	if of, rating := ratedBy(o.req, before); rating == "up" {
		note(of, byMetadata, 1)
	} else if rating == "down" {
		note(of, byMetadata, 0)
	}
	switch {
	case o.guarded.Failed > 0:
		note(id, signs.Guard, 0)
	case o.tally.Finish == response.FinishLength:
		note(id, signs.Length, 0)
	}
}

// turnOf is a request as signs look at it.
func turnOf(o *exchange, id string) signs.Turn {
	t := signs.Turn{Tenant: o.who.Tenant, Session: o.set.Facts.Session, ID: id}
	t.Messages = make([]signs.Message, len(o.req.Messages))
	last := -1
	for i := range o.req.Messages {
		m := &o.req.Messages[i]
		t.Messages[i] = signs.Message{Role: m.Role, Text: m.Text}
		if m.HasImage || m.Text == "" { // what it shows is told by its bytes
			t.Messages[i].Text = m.Text + string(o.req.Raw[m.Span.Start:m.Span.End])
		}
		if m.Role == "assistant" {
			last = i
		}
	}
	if last >= 0 {
		m := o.req.Messages[last].Span
		t.Messages[last].Broken = brokenCall(o.req.Raw[m.Start:m.End])
	}
	return t
}

// brokenCall reports whether a message of a chat, or an item of a response, calls a tool with
// arguments that are no JSON.
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

// ratedBy reads what the metadata of a request say of an answer: of the one before where they name
// none. Other metadata are the client's own.
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
