package response

import (
	"strconv"
)

const (
	typeIncomplete = "response.incomplete"
	typeFailed     = "response.failed"
	typeCompleted  = "response.completed"
)

// DeltaName returns the name of the server-sent event that AppendDelta makes, empty for none.
func (r *Reader) DeltaName() string {
	if r.shape == Response {
		return typeTextDelta
	}
	return ""
}

// FinishName returns the name of the server-sent event that AppendFinish makes, empty for none.
func (r *Reader) FinishName() string {
	if r.shape == Response {
		return typeIncomplete
	}
	return ""
}

// AppendDelta appends the data of an event that brings text, in the shape of the stream so far and
// with what its events share, such as the id and the model. The text goes where like stands: the
// same choice, the same field, the same tool call. A like of only a Choice means the answer's text;
// so does a field that no event can bring by itself. In the Responses API it is always the answer's
// text: it goes to the output item that got text last, so it has to come before that item's
// response.output_text.done, and its sequence number is the next one. Those that follow have theirs
// already: a Numbering mends them.
func (r *Reader) AppendDelta(dst []byte, like Delta, text []byte) []byte {
	if r.shape == Response {
		return r.appendResponseDelta(dst, text)
	}
	dst = r.appendChoice(dst, like.Choice)
	open, end := r.wrap(like.field)
	if like.field == arguments || like.field == toolName {
		index, id := r.told(like.Choice, like.Part)
		dst = strconv.AppendInt(append(dst, `,"delta":{"tool_calls":[{"index":`...), int64(index), 10)
		if len(id) > 0 {
			dst = append(append(append(dst, `,"id":"`...), id...), '"')
		}
	}
	dst = append(appendQuoted(append(dst, open...), text), end...)
	if r.twins && like.Kind == Text && r.shape == Chat {
		dst = appendQuoted(append(dst, `,"text":`...), text)
	}
	return append(dst, `,"logprobs":null,"finish_reason":null}]}`...)
}

// wrap returns what stands around the text of a field in a choice. The index of a tool call comes
// before.
func (r *Reader) wrap(field role) (open, end string) {
	switch {
	case r.shape == Completion:
		return `,"text":`, ``
	case field == refusal:
		return `,"delta":{"refusal":`, `}`
	case field == reasoning:
		return `,"delta":{"reasoning":`, `}`
	case field == reasoningContent:
		return `,"delta":{"reasoning_content":`, `}`
	case field == arguments:
		return `,"function":{"arguments":`, `}}]}`
	case field == toolName:
		return `,"function":{"name":`, `}}]}`
	case field == callArguments:
		return `,"delta":{"function_call":{"arguments":`, `}}`
	}
	return `,"delta":{"content":`, `}`
}

// AppendFinish appends the data of an event that ends a choice for a reason, such as
// content_filter. In the Responses API it ends all of the answer, as response.incomplete, and tells
// the response as it was announced, with the output that Partial.Close returned; nil for none.
func (r *Reader) AppendFinish(dst []byte, choice int, why string, output []byte) []byte {
	if r.shape == Response {
		return r.appendIncomplete(dst, why, output)
	}
	dst = r.appendChoice(dst, choice)
	if r.shape == Completion {
		dst = append(dst, `,"text":""`...)
	} else {
		dst = append(dst, `,"delta":{}`...)
	}
	dst = appendQuoted(append(dst, `,"logprobs":null,"finish_reason":`...), why)
	return append(dst, `}]}`...)
}

// AppendUsage appends the data of an event that tells what all of the answer took. The Responses API
// has none.
func (r *Reader) AppendUsage(dst []byte, u Usage) []byte {
	dst = strconv.AppendInt(append(r.appendHead(dst), `"choices":[],"usage":{"prompt_tokens":`...), int64(u.Input), 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), int64(u.Output), 10)
	return append(strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(u.Input+u.Output), 10), "}}"...)
}

// appendChoice appends a chunk up to the index of its only choice.
func (r *Reader) appendChoice(dst []byte, choice int) []byte {
	return strconv.AppendInt(append(r.appendHead(dst), `"choices":[{"index":`...), int64(max(0, choice)), 10)
}

// appendHead appends a chunk up to its choices.
func (r *Reader) appendHead(dst []byte) []byte {
	dst = append(dst, '{')
	switch {
	case len(r.head) > 0:
		dst = append(dst, r.head...)
	case r.shape == Completion:
		dst = append(dst, `"id":"","object":"text_completion","created":0,"model":"",`...)
	default:
		dst = append(dst, `"id":"","object":"chat.completion.chunk","created":0,"model":"",`...)
	}
	return dst
}

func (r *Reader) appendResponseDelta(dst, text []byte) []byte {
	dst = append(dst, `{"type":"`+typeTextDelta+`","item_id":`...)
	if len(r.item) > 0 {
		dst = append(dst, r.item...)
	} else {
		dst = append(dst, `""`...)
	}
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(r.output), 10)
	dst = strconv.AppendInt(append(dst, `,"content_index":`...), int64(r.part), 10)
	dst = appendQuoted(append(dst, `,"delta":`...), text)
	dst = append(dst, `,"logprobs":[]`...)
	if r.sequence >= 0 {
		dst = strconv.AppendInt(append(dst, `,"sequence_number":`...), int64(r.sequence)+1, 10)
	}
	return append(dst, '}')
}

func (r *Reader) appendIncomplete(dst []byte, why string, list []byte) []byte {
	dst = append(dst, `{"type":"`+typeIncomplete+`"`...)
	if r.sequence >= 0 {
		dst = strconv.AppendInt(append(dst, `,"sequence_number":`...), int64(r.sequence)+1, 10)
	}
	dst = append(dst, `,"response":`...)
	var s scanner
	var e Event
	e.data = r.response
	if len(r.response) > 0 {
		s.read(&e)
	}
	if e.Shape != Response {
		if len(list) == 0 {
			list = []byte("[]")
		}
		dst = append(append(dst, `{"id":"","object":"response","status":"incomplete","output":`...), list...)
		return append(appendDetails(append(dst, `,"incomplete_details":`...), why), "}}"...)
	}
	return append(e.Append(dst, Rewrite{Finish: why, Output: list}), '}')
}
