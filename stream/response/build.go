package response

import (
	"strconv"
)

const (
	typeIncomplete = "response.incomplete"
	typeFailed     = "response.failed"
	typeCompleted  = "response.completed"
)

// DeltaName returns the name of the server-sent event that AppendDelta creates, or "" if it has
// none.
func (r *Reader) DeltaName() string {
	if r.shape == Response {
		return typeTextDelta
	}
	return ""
}

// FinishName returns the name of the server-sent event that AppendFinish creates, or "" if it has
// none.
func (r *Reader) FinishName() string {
	if r.shape == Response {
		return typeIncomplete
	}
	return ""
}

// AppendDelta appends the data of an event with text to dst. The event has the shape of the stream
// so far and the members that its events share, such as the id and the model. The text belongs to
// the same choice, field and tool call as like. If like has only a Choice, or a field for which no
// separate event is possible, the text belongs to the answer.
//
// In the Responses API the text always belongs to the answer, in the output item that received text
// last. The event must therefore precede that item's response.output_text.done. It has the next
// sequence number; a Numbering corrects those of the following events.
func (r *Reader) AppendDelta(dst []byte, like Delta, text []byte) []byte {
	if r.shape == Response {
		return r.appendResponseDelta(dst, text)
	}
	dst = r.appendChoice(dst, like.Choice)
	open, end := r.wrap(like.field)
	if like.field == arguments || like.field == input || like.field == toolName {
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

// wrap returns the JSON around the text of a field in a choice. The index of a tool call comes
// before.
func (r *Reader) wrap(field role) (open, end string) {
	switch {
	case r.shape == Completion:
		return `,"text":`, ``
	case field == refusal:
		return `,"delta":{"refusal":`, `}`
	case field == partText:
		return `,"delta":{"content":[{"type":"text","text":`, `}]}`
	case field == thinking:
		return `,"delta":{"content":[{"type":"thinking","thinking":`, `}]}`
	case field == thinkingText:
		return `,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":`, `}]}]}`
	case field == reasoning:
		return `,"delta":{"reasoning":`, `}`
	case field == reasoningContent:
		return `,"delta":{"reasoning_content":`, `}`
	case field == arguments:
		return `,"function":{"arguments":`, `}}]}`
	case field == input:
		return `,"custom":{"input":`, `}}]}`
	case field == toolName:
		return `,"function":{"name":`, `}}]}`
	case field == callArguments:
		return `,"delta":{"function_call":{"arguments":`, `}}`
	}
	return `,"delta":{"content":`, `}`
}

// AppendFinish appends the data of an event that ends a choice, with a reason such as
// content_filter. In the Responses API it ends the whole answer as response.incomplete and contains
// the response as announced, with the output returned by Partial.Close, which may be nil.
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

// AppendUsage appends the data of an event with the usage of the whole answer. The Responses API
// has no such event.
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
