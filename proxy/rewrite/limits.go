package rewrite

import (
	"cmp"
	"math"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/lengths"
)

// minCompletion is the minimum room for a response, in tokens, for an automatic limit. With less
// room, the estimated prompt length matters more than the limit, and the upstream, which counts
// exactly, decides better. A number set by a route is a cap and applies in any case.
const minCompletion = 256

// limit sets the route's token limit, unless the client set one, and returns it.
func (rw Change) limit(p *openai.Patch, m *backend.Model, like lengths.Kind) Limit {
	client, own := rw.Request.AnswerLimit()
	l := Limit{}
	if rw.Decision.Action.Limits(client) {
		l = rw.limitOf(m, like)
	}
	if l.Tokens == 0 {
		rw.moveLimit(p, m)
		return Limit{}
	}
	field := cmp.Or(m.TokenField, openai.FieldMaxTokens)
	switch {
	case !own || m.TokenField != "" && !rw.named(m):
	case rw.Request.MaxCompletionTokens != nil:
		field = openai.FieldMaxCompletionTokens
	default:
		field = openai.FieldMaxTokens
	}
	field = rw.limitField(field)
	if twin := twinOf(field); twin != "" && rw.Request.API != openai.Completion {
		p.DeleteField(twin) // two limits would contradict each other
	}
	p.SetField(field, strconv.AppendInt(nil, int64(l.Tokens), 10))
	return l
}

// limitOf returns the route's limit for m, fitted into its window; without tokens if it is
// automatic and there is no room.
func (rw Change) limitOf(m *backend.Model, like lengths.Kind) Limit {
	want := rw.Decision.Action.MaxTokens
	l := Limit{Tokens: want.Limit, Auto: want.Auto}
	if want.Auto {
		l.Tokens = rw.Decision.Base.Chooser.Lengths.Limit(like, &rw.o.Limits)
		if longest := rw.longest(m); longest > 0 {
			l.Tokens, l.Near = rw.Decision.Base.Chooser.Lengths.Above(like, longest, &rw.o.Limits), true
		}
	}
	if m.Window > 0 {
		room := m.Window - rw.promptTokens()
		if rw.Request.HasMedia {
			room -= m.Window / 2 // the size of an image or recording is unknown
		}
		switch {
		case want.Auto && room < minCompletion:
			return Limit{}
		case room >= 1:
			l.Tokens = min(l.Tokens, room)
		}
	}
	return l
}

// longest returns the length that nearly all responses of m to similar requests stay below; 0 if
// outcomes do not say.
func (rw Change) longest(m *backend.Model) float64 {
	e := rw.Decision.ExpectedOf(m.Name)
	if e == nil {
		return 0
	}
	longest, near := e.Longest, e.Near
	for i := range e.AtEfforts {
		if x := &e.AtEfforts[i]; x.Effort == e.Effort {
			longest, near = x.Longest, x.Near
		}
	}
	if near < rw.Decision.Base.Learning.MinNeighbours {
		return 0
	}
	return longest
}

// moveLimit renames a client's limit to the field that the model accepts. A client that asked for
// this very model is expected to know the field. Of two limits the one in the accepted field is
// kept, unless it is below 1 and the other one is not.
func (rw Change) moveLimit(p *openai.Patch, m *backend.Model) {
	if rw.Request.API != openai.Chat || m.TokenField == "" || rw.named(m) {
		return
	}
	own, other := rw.Request.MaxTokens, rw.Request.MaxCompletionTokens
	if m.TokenField == openai.FieldMaxCompletionTokens {
		own, other = other, own
	}
	if other == nil {
		return
	}
	p.DeleteField(twinOf(m.TokenField))
	if own == nil || *own < 1 && *other >= 1 {
		p.SetField(m.TokenField, strconv.AppendInt(nil, *other, 10))
	}
}

// promptTokens returns how much of a window the prompt may take. An upstream refuses a limit that
// does not fit next to the prompt, so there is a margin for the error of the estimate and for what
// it does not cover.
func (rw Change) promptTokens() int {
	n := rw.Decision.Set.Facts.Tokens
	for _, f := range [...]string{"tools", "functions", "response_format", "text"} {
		n += len(rw.Request.Field(f)) / 4
	}
	return int(math.Ceil(choose.Slack * float64(n)))
}

// limitField returns the field for a response limit in this request; in a chat, it is the given
// one.
func (rw Change) limitField(chat string) string {
	switch rw.Request.API {
	case openai.Completion:
		return openai.FieldMaxTokens
	case openai.Response:
		return openai.FieldMaxOutputTokens
	case openai.Chat, openai.Other:
	}
	return chat
}

// twinOf returns the other of the two fields for a response limit; empty for any other field.
func twinOf(field string) string {
	switch field {
	case openai.FieldMaxTokens:
		return openai.FieldMaxCompletionTokens
	case openai.FieldMaxCompletionTokens:
		return openai.FieldMaxTokens
	}
	return ""
}

// kind identifies responses similar to that of model m to this request. effort is a value of the
// dialect.
func (rw Change) kind(m *backend.Model, effort string) lengths.Kind {
	k := lengths.Kind{Model: m.Name, Effort: effort}
	if v := rw.Decision.Set.Value(signal.Domain); v.State == signal.Known {
		k.Domain = v.Label
	}
	if v := rw.Decision.Set.Value(signal.Complexity); v.State == signal.Known {
		k.Complexity = v.Label
	}
	return k
}
