package response

import (
	"bytes"
	"encoding/json"
	"slices"

	"signalbox/internal/openai"
)

// Cut ends a choice of a body at byte At of a text; in the Responses API it ends the whole answer.
// Everything after it is removed: the rest of the text, later texts and output items, and tool
// calls, which in a chat follow all text. Log probabilities up to the cut remain if they spell the
// text token by token.
type Cut struct {
	Delta int // index in Event.Deltas
	At    int
}

// cuts ends choices.
func (e *Event) cuts(list []Cut) {
	var choices map[int]openai.Span
	if len(list) > 0 && e.Shape != Response {
		choices = e.choicesIn()
	}
	for _, c := range list {
		e.cut(c, choices[e.Deltas[c.Delta].Choice])
	}
}

// cut ends a choice, whose position in the data is given.
func (e *Event) cut(c Cut, choice openai.Span) {
	d := &e.Deltas[c.Delta]
	e.fit(d, c.At)
	e.substitute(d, c.At, len(d.Text), nil)
	if e.Shape == Response {
		e.cutOutput(d, c.At)
		return
	}
	for i := range e.Deltas {
		if o := &e.Deltas[i]; i != c.Delta && o.Choice == d.Choice && o.behind(d) {
			e.substitute(o, 0, len(o.Text), nil)
		}
	}
	said := memberIn(e.data, choice, "message")
	if !said.Present() {
		return
	}
	if at := memberIn(e.data, said, "content"); within(*d, at) {
		e.cutList(at, d)
	}
	if at := memberIn(e.data, said, "tool_calls"); at.Present() && !isEmpty(e.data[at.Start:at.End]) {
		e.replace(at, "[]")
	}
	if at := memberIn(e.data, said, "function_call"); at.Present() && !isEmpty(e.data[at.Start:at.End]) {
		e.replace(at, "null")
	}
}

// behind reports whether a chat text follows another one. Reasoning precedes the answer, wherever
// it is in the data.
func (d *Delta) behind(o *Delta) bool {
	switch {
	case d.Kind == Tool || d.Kind == ToolName:
		return false // they are removed with their list
	case (d.Kind == Reasoning) != (o.Kind == Reasoning):
		return o.Kind == Reasoning
	}
	return d.At.Start > o.At.Start
}

// cutOutput removes what follows a byte of a text in the Responses API.
func (e *Event) cutOutput(d *Delta, upTo int) {
	item := e.cutList(e.layout.output, d)
	if !item.Present() {
		return
	}
	for _, name := range [...]string{"summary", "content"} {
		e.cutList(memberIn(e.data, item, name), d)
	}
	if at := memberIn(e.data, item, "status"); at.Present() {
		e.replace(at, `"incomplete"`)
	}
	if at := memberIn(e.data, openai.Span{End: len(e.data)}, "output_text"); at.Present() && !d.twin.Present() {
		e.replace(at, string(appendQuoted(nil, e.sumUpTo(d, upTo))))
	}
}

// sumUpTo returns the answer's text up to byte at of a text.
func (e *Event) sumUpTo(d *Delta, at int) (sum []byte) {
	for i := range e.Deltas {
		o := &e.Deltas[i]
		switch {
		case o.Kind != Text:
		case o.At == d.At:
			return append(sum, o.Text[:min(at, len(o.Text))]...)
		case o.At.Start < d.At.Start:
			sum = append(sum, o.Text...)
		}
	}
	return sum
}

// cutList removes the elements of a list that follow a text, and returns the element that contains
// it. If none does, it changes nothing and returns the zero span.
func (e *Event) cutList(list openai.Span, d *Delta) (in openai.Span) {
	all := elementsIn(e.data, list)
	i := slices.IndexFunc(all, func(at openai.Span) bool { return within(*d, at) })
	if i < 0 {
		return in
	}
	if last := all[len(all)-1]; i < len(all)-1 {
		e.replace(openai.Span{Start: all[i].End, End: last.End}, "")
	}
	return all[i]
}

// fit removes the log probabilities of tokens that end after byte at of a text, or all of them if
// they do not spell it. It also removes the token ids, because it is unknown which belong to the
// text.
func (e *Event) fit(d *Delta, at int) {
	s := e.layout.slots[d.slot]
	if gone, ok := misfit(e.data, s.logprobs, d.Text, at); ok && d.Kind == Text {
		e.replace(gone, "")
		if at := memberIn(e.data, s.logprobs, "refusal"); at.Present() && !isEmpty(e.data[at.Start:at.End]) {
			e.replace(at, "null") // for another text of the choice
		}
		s.logprobs = openai.Span{}
	}
	e.unspell(&s)
}

// misfit returns the range in a log probabilities value with the tokens that end after byte at of a
// text. ok is false if they do not spell the text.
func misfit(data []byte, value openai.Span, text []byte, at int) (gone openai.Span, ok bool) {
	if value.Present() && data[value.Start] == '{' {
		value = memberIn(data, value, "content")
	}
	if !value.Present() || data[value.Start] != '[' {
		return gone, false
	}
	list := elementsIn(data, value)
	gone = openai.Span{Start: value.Start + 1, End: value.End - 1}
	for _, one := range list {
		var token struct {
			Token *string `json:"token"`
			Bytes []int   `json:"bytes"`
		}
		if json.Unmarshal(data[one.Start:one.End], &token) != nil || token.Token == nil {
			return gone, false
		}
		spelled := []byte(*token.Token)
		if len(token.Bytes) > 0 {
			spelled = spelled[:0]
			for _, b := range token.Bytes {
				spelled = append(spelled, byte(b))
			}
		}
		if len(spelled) > at {
			return gone, true
		}
		if !bytes.HasPrefix(text, spelled) {
			return gone, false
		}
		text, at = text[len(spelled):], at-len(spelled)
		gone.Start = one.End
	}
	return openai.Span{Start: gone.Start, End: gone.Start}, true
}

// Choices returns the indexes of the choices in the event, valid until the next read. The Responses
// API has none.
func (e *Event) Choices() []int { return e.layout.choices }
