package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/memory/outcomes"
	"signalbox/memory/outcomes/signs"
	"signalbox/proxy/decide"
	"signalbox/stream/response"
)

// seenTurns is of how many turns the next ones are waited for.
const seenTurns = 10_000

// watchSigns makes outcomes of what a request that was answered says of the answer before, and of
// what its own answer shows.
func (p *Proxy) watchSigns(ctx context.Context, st *State, o *exchange, id string, status int, err error) {
	if st.Outcomes == nil || st.Learning.Learn != decide.LearnAll || o.decision == nil || o.req == nil ||
		err != nil || status != http.StatusOK {
		return
	}
	note := func(of string, sign signs.Sign, score float64) {
		w := st.Learning.Signs.Weights()[sign]
		if of == "" || w == 0 {
			return
		}
		_, err := st.Outcomes.Judge(o.who.Tenant, of, score, w, "", string(sign))
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
		note(of, decide.ByMetadata, 1)
	} else if rating == "down" {
		note(of, decide.ByMetadata, 0)
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
	t := signs.Turn{Tenant: o.who.Tenant, Session: o.Set.Facts.Session, ID: id}
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
