package messages

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/anthropic"
	"signalbox/stream/response"
)

// Body translates the body of a chat completion into a message. The error is ErrUnreadable for one
// that cannot be read, or contains no answer.
func (a *Answer) Body(body []byte) ([]byte, error) {
	e := new(response.Reader).ReadBody(body)
	if e.Shape != response.Chat || len(e.Finishes) == 0 {
		return nil, ErrUnreadable
	}
	a.usage = e.Usage
	var thought, said []byte
	for i := range e.Calls {
		if k := &e.Calls[i]; k.Choice == 0 {
			a.call(nil, k.Part)
			a.find(k.Part).id = k.ID
		}
	}
	for i := range e.Deltas {
		d := &e.Deltas[i]
		raw := body[d.At.Start:d.At.End]
		if d.Choice == 0 && !e.Repeats(i) {
			a.length += len(raw)
		}
		switch {
		case d.Choice != 0, e.Repeats(i):
		case d.Kind == response.Reasoning:
			thought = append(thought, raw...)
		case d.Kind.Visible():
			a.refused = a.refused || d.Kind == response.Refusal && len(raw) > 0
			said = append(said, raw...)
		case d.Kind == response.ToolName:
			a.call(nil, d.Part)
			a.find(d.Part).name = raw
		default:
			a.call(nil, d.Part)
			a.find(d.Part).text = d.Text
		}
	}
	for i := range e.Finishes {
		if f := &e.Finishes[i]; f.Choice == 0 {
			a.finish(f.Reason, e.Stop)
		}
	}
	dst := append(a.appendHead(make([]byte, 0, len(body)+256), e), `"content":[`...)
	dst = a.appendBlocks(dst, thought, said)
	dst = append(a.appendEnd(append(dst, "],"...)), `,"usage":`...)
	if !e.HasUsage { // as at the end of a stream: no usage would mean a prompt of length 0
		a.usage.Input, a.usage.Output = max(a.Prompt, 0), response.TokensIn(a.length)
	}
	dst = a.appendUsage(dst)
	if at := e.Extension; at.Present() {
		dst = append(append(dst, `,"x_signalbox":`...), body[at.Start:at.End]...)
	}
	return append(dst, '}'), nil
}

func (a *Answer) appendBlocks(dst, thought, said []byte) []byte {
	first := len(dst)
	next := func() {
		if len(dst) > first {
			dst = append(dst, ',')
		}
	}
	if len(thought) > 0 && a.Thinking != anthropic.Unseen {
		if a.Thinking == anthropic.Omitted {
			thought = nil
		}
		dst = append(append(dst, `{"type":"thinking","thinking":"`...), thought...)
		dst = append(dst, `","signature":"`+signature+`"}`...)
	}
	if len(said) > 0 || len(a.items) == 0 {
		next()
		dst = append(append(append(dst, `{"type":"text","text":"`...), said...), `"}`...)
	}
	for i := range a.items {
		next()
		it := &a.items[i]
		dst = append(a.appendCall(dst, it), `,"input":`...)
		dst = append(appendInput(dst, it.text), '}')
	}
	return dst
}

// appendInput appends the arguments of a call, which a message holds as an object. Anything that is
// not an object, such as truncated arguments, is wrapped as Anthropic advises clients to (docs:
// fine-grained tool streaming).
func appendInput(dst, arguments []byte) []byte {
	arguments = bytes.TrimSpace(arguments)
	switch v := jsontext.Value(arguments); {
	case len(arguments) == 0:
		return append(dst, "{}"...)
	case arguments[0] == '{' && v.IsValid():
		return append(dst, arguments...)
	}
	dst, _ = jsontext.AppendQuote(append(dst, `{"INVALID_JSON":`...), arguments)
	return append(dst, '}')
}
