package response

import (
	"bytes"

	"signalbox/internal/openai"
)

// note records a member of an object after its value has been read. from is the start of its name.
func (s *scanner) note(of, m role, at openai.Span, from int) {
	first := s.b[at.Start]
	if of == topLevel {
		s.e.layout.members++
		s.e.layout.end = at.End
		if s.noteTop(m, at, from) {
			return
		}
	}
	switch {
	case first == 'n' && m != incomplete:
		// null has no meaning, except as a place for the reason of an end.
		return
	case first == '"':
		s.noteString(m, at)
	case first >= '0' && first <= '9':
		s.noteNumber(m, at)
	}
	s.noteOther(of, m, at)
}

// noteTop handles members of the top level. It reports whether nothing more is to be recorded.
func (s *scanner) noteTop(m role, at openai.Span, from int) bool {
	l := &s.e.layout
	given := s.b[at.Start] != 'n'
	switch m { //nolint:exhaustive // the other members say nothing here
	case headMember, objectName:
		l.head = append(l.head, openai.Span{Start: from, End: at.End})
		if m == objectName {
			l.object = at
		}
	case typeName:
		l.typeName = at
	case extension:
		s.e.Extension = at
	case errorValue:
		l.errors = given
	case choices:
		l.hasChoices = s.b[at.Start] == '['
	case output:
		l.hasOutput, l.output = s.b[at.Start] == '[', at
	case response:
		l.response = at
	case itemID:
		l.itemID = at
	case item:
		l.item = at
	case part:
		l.part = at
	case topLogprobs:
		if given {
			l.slots[0].logprobs = at
		}
	case ignored:
		l.odd = l.odd || !isEmpty(s.b[at.Start:at.End])
		l.extra = l.extra || l.odd
	case usage:
		l.usage = openai.Span{Start: from, End: at.End}
		return false
	default:
		return false
	}
	return true
}

// noteString handles strings.
func (s *scanner) noteString(m role, at openai.Span) {
	e := s.e
	switch m { //nolint:exhaustive // the rest is no string that is read, or a text
	case finishReason:
		if at.End-at.Start == len(`""`) { // some servers send it before the end
			return
		}
		e.Finishes = append(e.Finishes, Finish{Choice: s.f.choice, Reason: s.inside(at), at: at})
		return
	case status:
		e.layout.status = at
		return
	case reason:
		e.layout.reason = at
		return
	case partType:
		s.f.typeName = at
		return
	case messageRole:
		e.layout.role, e.Role = true, s.inside(at)
		return
	case callID:
		e.Calls[len(e.Calls)-1].ID = s.inside(at)
		return
	case callType:
		e.Calls[len(e.Calls)-1].Type = s.inside(at)
		return
	case stopReason:
		e.Stop = s.inside(at)
		return
	case completionText:
		e.layout.completion = true
		e.layout.text = e.layout.text || at.End-at.Start > len(`""`)
	default:
	}
	kind, ok := m.kind()
	if s.e.layout.twins = s.e.layout.twins || m == outputText && at.End-at.Start > len(`""`); !ok || at.End-at.Start == len(`""`) {
		return
	}
	e.Deltas = append(e.Deltas, Delta{
		Choice: s.f.choice, Part: s.f.part, Kind: kind, Whole: s.f.whole,
		At:    openai.Span{Start: at.Start + 1, End: at.End - 1},
		field: m, json: m == arguments || m == callArguments || m == topArguments, slot: s.f.slot, escaped: s.escaped, high: s.high,
	})
}

// noteNumber handles numbers that are not negative.
func (s *scanner) noteNumber(m role, at openai.Span) {
	l, u := &s.e.layout, &s.e.Usage
	var to *int
	switch m { //nolint:exhaustive // the rest is no number that is read
	case index:
		if s.f.index = s.integer(at); s.f.index > maxInteger {
			s.f.index = -1
		}
		return
	case outputIndex:
		to = &l.outputIndex
	case contentIndex, summaryIndex:
		to = &l.contentIndex
	case sequence:
		to, l.sequenceAt = &l.sequence, at
	case tokensIn:
		to = &u.Input
	case tokensOut:
		to = &u.Output
	case tokensTotal:
		to = &u.Total
	case cachedTokens:
		to = &u.Cached
		u.Uncached = s.b[at.Start] == '0'
	case reasoningTokens:
		to = &u.Reasoning
	default:
		return
	}
	*to = max(0, s.integer(at))
}

// noteOther handles values of any type.
func (s *scanner) noteOther(of, m role, at openai.Span) {
	l := &s.e.layout
	first := s.b[at.Start]
	switch m { //nolint:exhaustive // the rest has a type of its own
	case usage:
		s.e.HasUsage = s.e.HasUsage || first == '{'
	case incomplete:
		l.incomplete = at
	case logprobs:
		l.slots[s.f.slot].logprobs = at
	case tokenIDs:
		l.slots[s.f.slot].tokens = at
	case tokenID:
		l.slots[s.f.slot].token = at
	case audio:
		filled := !isEmpty(s.b[at.Start:at.End])
		s.e.Unread = s.e.Unread || filled
		l.extra = l.extra || filled
	case toolCalls, functionCall:
		filled := !isEmpty(s.b[at.Start:at.End])
		l.extra = l.extra || filled
		l.odd = l.odd || m == functionCall && filled
	case ignored, stopReason:
		if of == choice || of == delta || of == message {
			l.odd = l.odd || !isEmpty(s.b[at.Start:at.End])
			l.extra = l.extra || l.odd
		}
	default:
	}
}

// conclude determines the shape after everything has been read.
func (s *scanner) conclude() {
	e, l := s.e, &s.e.layout
	eventType := s.inside(l.typeName)
	isEvent := bytes.HasPrefix(eventType, []byte("response."))
	object := string(s.inside(l.object))
	e.Failed = l.errors || object == "error" || string(eventType) == "error"
	switch {
	case l.hasChoices && (isEvent || l.hasOutput):
		s.fail(whyBoth)
	case l.hasChoices:
		e.Shape = Chat
		if !l.chat && (l.completion || object == "text_completion") {
			e.Shape = Completion
		}
		l.twins = l.chat && l.text
		s.dropTop()
	case isEvent:
		e.Shape, e.Type = Response, eventType
		s.settleEvent(eventType)
	case l.hasOutput, object == "response":
		e.Shape = Response
		s.dropTop()
		s.settleStatus()
	case e.Failed:
		e.Shape = Failure
		e.Deltas = e.Deltas[:0]
	default:
		s.fail(whyUnknown)
	}
}

// dropTop drops the strings that are texts only in an event of the Responses API.
func (s *scanner) dropTop() {
	kept := s.e.Deltas[:0]
	for _, d := range s.e.Deltas {
		if !d.field.top() {
			kept = append(kept, d)
		}
	}
	s.e.Deltas = kept
}

// settleEvent applies what the type of an event of the Responses API implies.
func (s *scanner) settleEvent(eventType []byte) {
	e, l := s.e, &s.e.layout
	kind, field := textOf(eventType[len("response."):])
	l.extra = l.extra || field != topDelta
	kept := e.Deltas[:0]
	for _, d := range e.Deltas {
		switch {
		case d.field.top() && d.field != field:
			if field == ignored && d.field <= topText {
				s.fail(whyType)
				return
			}
			continue
		case d.field.top():
			d.Kind, d.Whole = kind, field != topDelta
			d.json = d.json || kind == Tool && bytes.Contains(eventType, []byte("arguments"))
			d.Choice, d.Part = l.outputIndex, l.contentIndex
		case within(d, l.response):
		default: // in an item or a part
			d.Choice, d.Whole = l.outputIndex, true
			if d.slot == 0 {
				d.Part = l.contentIndex
			}
		}
		kept = append(kept, d)
	}
	e.Deltas = kept
	switch string(eventType) {
	case typeCompleted, typeIncomplete, typeFailed:
		s.settleStatus()
		e.Failed = e.Failed || string(eventType) == typeFailed
	}
}

func within(d Delta, at openai.Span) bool {
	return d.At.Start > at.Start && d.At.End < at.End
}

// settleStatus adds the end of a response.
func (s *scanner) settleStatus() {
	l := &s.e.layout
	why := s.inside(l.reason)
	if len(why) == 0 {
		why = s.inside(l.status)
	}
	s.e.Finishes = append(s.e.Finishes, Finish{Choice: Everything, Reason: why, at: l.status})
}

// textOf returns the kind of an event's text in the Responses API, and which member contains it, or
// ignored. The name is the type without "response.".
func textOf(name []byte) (Kind, role) {
	what, ok := bytes.CutSuffix(name, []byte(".delta"))
	if !ok {
		if what, ok = bytes.CutSuffix(name, []byte(".done")); !ok {
			return 0, ignored
		}
	}
	field := topDelta
	done := len(what)+len(".done") == len(name)
	whole := func(r role) role {
		if done {
			return r
		}
		return field
	}
	switch string(what) {
	case "output_text":
		return Text, whole(topText)
	case "refusal":
		return Refusal, whole(topRefusal)
	case "reasoning_text", "reasoning_summary_text", "reasoning", "reasoning_summary":
		return Reasoning, whole(topText)
	case "function_call_arguments", "mcp_call_arguments", "mcp_call.arguments":
		return Tool, whole(topArguments)
	case "custom_tool_call_input":
		return Tool, whole(topInput)
	case "code_interpreter_call_code", "code_interpreter_call.code":
		return Tool, whole(topCode)
	}
	return 0, ignored
}
