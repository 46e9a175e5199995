package response

import (
	"bytes"
	"slices"

	"signalbox/internal/openai"
)

// Shape is the API that an event belongs to.
type Shape uint8

const (
	// Opaque is what cannot be read; see Event.Why.
	Opaque Shape = iota
	// Chat is a chat completion or a chunk of one.
	Chat
	// Completion is a completion other than chat, or a chunk of one.
	Completion
	// Response is an event or a body of the Responses API.
	Response
	// Failure is an error and nothing else.
	Failure
)

// String returns the name in lower case.
func (s Shape) String() string {
	names := [...]string{Opaque: "opaque", Chat: "chat", Completion: "completion", Response: "response", Failure: "failure"}
	if int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Kind is what a text means to the client.
type Kind uint8

const (
	// Text is the answer.
	Text Kind = iota
	// Refusal is what the model says instead of an answer; clients show it as one.
	Refusal
	// Reasoning is the thinking before the answer, and its summary.
	Reasoning
	// Tool is the arguments of a tool call, usually JSON inside the string.
	Tool
	// ToolName is the name of the tool that is called.
	ToolName
)

// Visible reports whether clients show the text as the answer.
func (k Kind) Visible() bool { return k == Text || k == Refusal }

// String returns the name in lower case.
func (k Kind) String() string {
	names := [...]string{Text: "text", Refusal: "refusal", Reasoning: "reasoning", Tool: "tool", ToolName: "tool name"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Delta is one text that is not empty.
type Delta struct {
	// Choice is the index of the choice, or of the output item in the Responses API.
	Choice int
	// Part is the number of the tool call for Tool and ToolName: its index, or another number if
	// the server uses the index for another call too. Otherwise it is the index of the content
	// part, or 0 if the content is one string.
	Part int
	Kind Kind
	// Whole is set if the text is the complete value of its field and not an addition. In a stream
	// such a text repeats earlier deltas.
	Whole bool
	// Text is the unescaped text, always valid UTF-8: a lone surrogate and each invalid byte become
	// U+FFFD.
	Text []byte
	// At is the position of the text in the data, without the quotes.
	At openai.Span

	field   role
	json    bool
	slot    int
	call    int         // in Event.Calls, from 1; 0: none
	twin    openai.Span // position of a copy of the text, without the quotes
	spelled bool        // the bytes of the copy are not Text
	escaped bool        // the bytes at At are not Text
	high    bool        // there are non-ASCII bytes
}

// Finish is the end of a choice.
type Finish struct {
	// Choice is the index of the choice, or Everything in the Responses API.
	Choice int
	// Reason is the value in the JSON: stop, length, tool_calls, content_filter and others. In the
	// Responses API it is the reason of an incomplete response, otherwise the status.
	Reason []byte
	at     openai.Span // of the value, with quotes
}

// Call is a tool call in a chat, or a piece of one.
type Call struct {
	Choice, Part int    // as in the deltas of its name and arguments
	ID, Type     []byte // as in the JSON, without the quotes; nil if missing

	named bool // it has a name
}

// Everything is the Choice of what ends the whole answer.
const Everything = -1

// Usage is the cost of an answer in tokens. Missing values are 0.
type Usage struct {
	Input, Output, Total int
	Cached               int // part of Input
	Reasoning            int // part of Output
	// Uncached is set if the server reported that nothing of Input was cached, in contrast to no
	// report.
	Uncached bool
}

// JSON reports whether the text itself is JSON: the arguments of a function.
func (d *Delta) JSON() bool { return d.json }

// Like returns what the delta has in common with other deltas of its text, for comparisons and for
// AppendDelta.
func (d *Delta) Like() Delta {
	return Delta{Choice: d.Choice, Part: d.Part, Kind: d.Kind, field: d.field, json: d.json}
}

// Same reports whether two deltas are pieces of one text.
func (d *Delta) Same(o *Delta) bool {
	return d.Choice == o.Choice && d.Part == o.Part && d.Kind == o.Kind && d.field == o.field && d.json == o.json
}

// Twin returns the position of a copy of the same text in the data, without the quotes, or the zero
// span.
func (d *Delta) Twin() openai.Span { return d.twin }

// Event is the content of one event of a stream, or of a body. It and all its slices belong to the
// Reader and to the data. They are valid until the next Read or ReadBody, as long as the data is
// unchanged.
type Event struct {
	Shape Shape
	// Why says what is wrong with an Opaque event, for logs.
	Why string
	// Type is the type of an event of the Responses API, such as response.output_text.delta.
	Type []byte
	// Deltas are in the order of the data.
	Deltas   []Delta
	Finishes []Finish
	Calls    []Call
	// Role is the role of a message; empty if missing.
	Role []byte
	// Stop is the text at which a choice stopped, as in the JSON without the quotes. It is nil with
	// most servers, which do not report it.
	Stop []byte
	// Failed is set if the event contains an error, alone or with an answer.
	Failed bool
	Usage  Usage
	// HasUsage is set if there is a usage other than null.
	HasUsage bool
	// Unread is set if the client receives content that is not a readable text: speech, or a text
	// of the whole answer that differs from the answer's parts.
	Unread bool
	// Extension is the position of the value of a member x_signalbox sent by the server, or zero.
	// No server has a reason to send one.
	Extension openai.Span

	data   []byte
	layout layout
	text   []byte // unescaped
	edits  []edit
	patch  []byte // replacement text of the edits
}

// Data returns the data that was read.
func (e *Event) Data() []byte { return e.data }

// Head returns the JSON value of a top-level member that the chunks of a stream share, such as id
// or model, or nil.
func (e *Event) Head(name string) []byte {
	for _, at := range e.layout.head {
		quoted, value, _ := bytes.Cut(e.data[at.Start:at.End], []byte(":"))
		quoted = bytes.TrimSpace(quoted)
		if string(quoted[1:len(quoted)-1]) == name {
			return bytes.TrimSpace(value)
		}
	}
	return nil
}

// Bare reports whether the event contains only texts, so that without them it can be omitted
// without loss: no end, no usage, no role of a new choice, no tool call, nothing unknown.
func (e *Event) Bare() bool {
	if len(e.Deltas) == 0 || e.layout.extra || e.HasUsage || len(e.Finishes) > 0 || e.Failed {
		return false
	}
	for i := range e.Deltas {
		if e.Deltas[i].Whole || !e.Deltas[i].Kind.Visible() && e.Deltas[i].Kind != Reasoning {
			return false
		}
	}
	return true
}

// Reader reads the events of one answer. The zero value is ready for use. Not safe for concurrent
// use.
type Reader struct {
	known

	event   Event
	scan    scanner
	pattern pattern

	calls    []knownCall
	ids      []byte // of calls
	head     []byte // members that the chunks share, as "id":"...", with a comma after each
	choices  []choiceState
	response []byte // of response.created, for the final event
	item     []byte // item_id of the last text, with quotes
}

// known is what a Reader knows about an answer, besides its buffers.
type known struct {
	shape    Shape // of the last event that was not opaque
	twins    bool  // its choices contain their text twice, as text and as a delta
	over     bool  // the last event of the Responses API was read
	overflow bool  // a choice beyond maxChoices was read

	count    int // of events read
	output   int // output_index of the last text
	part     int // content_index of the last text
	sequence int // the last sequence_number, -1: none
}

// Limits on what a Reader keeps.
const (
	maxChoices  = 1 << 10
	maxHead     = 4 << 10
	maxItemID   = 1 << 10
	maxResponse = 64 << 10
	keptText    = 64 << 10
)

type choiceState uint8

const (
	unseen choiceState = iota
	open
	finished
)

// Read reads the data of one event of a stream. It never fails: what it does not understand is
// Opaque.
func (r *Reader) Read(data []byte) *Event {
	r.count++
	if r.follow(data) {
		return &r.event
	}
	e := r.read(data)
	r.numberCalls(e)
	if e.Shape != Opaque {
		r.remember(e)
	}
	return e
}

// readAgain reads the changed data of the last event.
func (r *Reader) readAgain(data []byte, fresh bool) *Event { //nolint:revive // a fact about the event
	e := r.Read(data)
	if fresh && e.Shape != Opaque {
		e.layout.fresh, e.layout.extra = true, true
		r.pattern.before = r.pattern.before[:0]
	}
	return e
}

// reset forgets the answer and keeps memory.
func (r *Reader) reset() {
	if r.count == 0 {
		return
	}
	r.known = known{}
	r.event.reset(nil)
	r.pattern.before = r.pattern.before[:0]
	r.head, r.choices, r.response, r.item = r.head[:0], r.choices[:0], r.response[:0], r.item[:0]
	r.calls, r.ids = r.calls[:0], r.ids[:0]
}

// last reports whether the event is the last of a stream of the Responses API. It depends on the
// type in the data, because clients read only that, and not on the name of the event.
func (e *Event) last() bool {
	switch string(e.Type) {
	case typeCompleted, typeIncomplete, typeFailed:
		return true
	}
	return false
}

// Odd reports whether the event contains more than texts, function calls, ends and usage.
func (e *Event) Odd() bool {
	return e.layout.odd || e.Unread || e.Failed || e.Extension.Present() || e.Spelled()
}

// Foreign reports whether an Opaque event is JSON of a kind that answers do not have.
func (e *Event) Foreign() bool { return e.Why == whyUnknown }

// Ends reports whether the event ends a choice or, in the Responses API, an output item or a part
// of one.
func (e *Event) Ends(choice int) bool {
	if e.Shape == Response {
		return len(e.Finishes) > 0 || e.layout.outputIndex == choice && bytes.HasSuffix(e.Type, []byte(".done"))
	}
	return slices.ContainsFunc(e.Finishes, func(f Finish) bool { return f.Choice == choice })
}

// GoesOn reports whether a text may continue in the next event, and whether an event with more of
// it can be built.
func (d *Delta) GoesOn() bool {
	switch d.field { //nolint:exhaustive // no event of our own brings the rest
	case content, completionText, refusal, reasoning, reasoningContent, arguments, input, toolName, callArguments,
		topDelta, partText, thinking, thinkingText:
		return !d.Whole
	}
	return false
}

// around extends the range of a top-level member by the comma before it or, for the first member,
// by the comma after it.
func (e *Event) around(at openai.Span) (from, to int) {
	const blanks = " \t\r\n"
	if before := bytes.TrimRight(e.data[:at.Start], blanks); before[len(before)-1] == ',' {
		return len(before) - 1, at.End
	}
	if behind := bytes.TrimLeft(e.data[at.End:], blanks); behind[0] == ',' {
		return at.Start, len(e.data) - len(behind) + 1
	}
	return at.Start, at.End
}

// ReadBody reads an answer that is not a stream. All its texts are Whole.
func (r *Reader) ReadBody(body []byte) *Event {
	r.count++
	e := r.read(body)
	e.placeCalls()
	r.pattern.before = r.pattern.before[:0]
	for i := range e.Deltas {
		e.Deltas[i].Whole = true
	}
	if e.Shape != Opaque {
		r.remember(e)
	}
	return e
}

// Shape returns the shape of the stream so far, or Opaque before anything was read.
func (r *Reader) Shape() Shape { return r.shape }

// Complete reports whether the answer has ended: at least one choice was begun, and each has a
// finish reason. In the Responses API the last event decides.
func (r *Reader) Complete() bool {
	if r.over {
		return true
	}
	ended := false
	for _, c := range r.choices {
		if c == open {
			return false
		}
		ended = ended || c == finished
	}
	return ended && !r.overflow
}

// Begun appends the indexes of the choices read so far to dst, in ascending order, and returns it.
// The Responses API has none, because it ends as a whole.
func (r *Reader) Begun(dst []int) []int {
	for i, c := range r.choices {
		if c != unseen {
			dst = append(dst, i)
		}
	}
	return dst
}

func (r *Reader) read(data []byte) *Event {
	e := &r.event
	e.reset(data)
	*e = Event{
		data: data, Deltas: e.Deltas[:0], Finishes: e.Finishes[:0], Calls: e.Calls[:0], text: e.text, edits: e.edits, patch: e.patch, layout: e.layout.empty(),
	}
	r.scan.read(e)
	e.layout.fresh = e.layout.role && !r.seen(e.layout.choices)
	e.layout.extra = e.layout.extra || e.layout.fresh
	for i := range e.Deltas {
		e.unescape(&e.Deltas[i])
	}
	if e.layout.twins {
		e.pair()
	}
	r.keepPattern(e)
	return e
}

// unescape sets the Text of a delta.
func (e *Event) unescape(d *Delta) {
	inside := e.data[d.At.Start:d.At.End]
	if d.Text = inside; !d.escaped && (!d.high || isUTF8(inside)) {
		return
	}
	d.escaped = true
	from := len(e.text)
	e.text = appendText(slices.Grow(e.text, len(inside)), inside)
	d.Text = e.text[from:len(e.text):len(e.text)]
}

// remember records what later chunks have to match, and which choices are open.
func (r *Reader) remember(e *Event) {
	l := &e.layout
	if e.Shape == Failure {
		return
	}
	r.shape = e.Shape
	if e.Shape == Response {
		r.rememberResponse(e)
		return
	}
	r.head = r.head[:0]
	for _, m := range l.head {
		if len(r.head)+m.End-m.Start < maxHead {
			r.head = append(append(r.head, e.data[m.Start:m.End]...), ',')
		}
	}
	r.twins = r.twins || l.chat && l.completion
	for _, c := range l.choices {
		r.see(c, open)
	}
	for i := range e.Finishes {
		r.see(e.Finishes[i].Choice, finished)
	}
}

// seen reports whether all of the choices have been read before.
func (r *Reader) seen(choices []int) bool {
	for _, c := range choices {
		if c < 0 || c >= len(r.choices) || r.choices[c] == unseen {
			return false
		}
	}
	return true
}

// see sets the state of a choice. A finished choice does not open again.
func (r *Reader) see(choice int, state choiceState) {
	if choice < 0 || choice >= maxChoices {
		r.overflow = true
		return
	}
	for len(r.choices) <= choice {
		r.choices = append(r.choices, unseen)
	}
	r.choices[choice] = max(r.choices[choice], state)
}

func (r *Reader) rememberResponse(e *Event) {
	l := &e.layout
	r.over = r.over || len(e.Finishes) > 0
	r.sequence = -1
	if l.sequenceAt.Present() {
		r.sequence = l.sequence
	}
	switch string(e.Type) {
	case "response.created", "response.in_progress":
		if at := l.response; at.End-at.Start <= maxResponse {
			r.response = append(r.response[:0], e.data[at.Start:at.End]...)
		}
	case typeTextDelta:
		r.output, r.part = l.outputIndex, l.contentIndex
		if at := l.itemID; at.End-at.Start <= maxItemID {
			r.item = append(r.item[:0], e.data[at.Start:at.End]...)
		}
	}
}

// typeTextDelta is the type of the event with text in the Responses API.
const typeTextDelta = "response.output_text.delta"
