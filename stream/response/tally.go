package response

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"sync"

	"signalbox/internal/openai"
	"signalbox/stream/sse"
)

// The finish reasons of the API that are distinguished in a Tally.
const (
	FinishStop     = "stop"
	FinishLength   = "length"
	FinishTools    = "tool_calls"
	FinishFunction = "function_call"
	FinishFilter   = "content_filter" // by the server or the guard
	FinishOther    = "other"          // any other
)

// Tally sums up an answer: how it ended, what it used and, for a stream that does not report its
// usage, its approximate length. The zero value is ready for one answer to a chat completion.
type Tally struct {
	API      openai.API // of the request
	Messages bool       // the answer is of Anthropic's Messages API
	Usage    Usage
	Finish   string // one of the finish reasons, or empty before the end
	// Failed is set if the stream contained an error of the server itself, not of the request, or
	// if the body is of no use to any client.
	Failed bool

	begun  bool
	text   int  // in bytes
	unread bool // some text was not counted
}

// Note processes an event of a stream.
func (t *Tally) Note(e *Event) {
	for i := range e.Deltas {
		if d := &e.Deltas[i]; !d.Whole {
			t.begun = true
			t.text += d.At.End - d.At.Start
		}
	}
	t.begun = t.begun || e.Shape != Response && len(e.layout.choices) > 0
	for i := range e.Finishes {
		t.finish(e.Finishes[i].Reason)
	}
	if string(e.Type) == typeFailed || t.API == openai.Response && e.Shape == Failure {
		t.Finish = FinishOther
	}
	t.Failed = t.Failed || e.ownFault()
}

// failure returns what the event says about its error. A failed response also repeats the request,
// whose words are the client's, so only its error member is returned.
func (e *Event) failure() []byte {
	if string(e.Type) != typeFailed || !e.layout.response.Present() {
		return e.data
	}
	at := memberIn(e.data, e.layout.response, "error")
	return e.data[at.Start:at.End]
}

// ownError matches what servers report as their own errors: by a status, as vLLM, SGLang and
// llama.cpp do, or in the words of either API.
var ownError = regexp.MustCompile(
	`"(?:code|status|type)"\s*:\s*(?:"?5\d\d\b|` +
		`"(?:server_error|api_error|overloaded_error|service_unavailable_error|internal_\w*error|InternalServerError)")`)

// ownFault reports whether an event contains an error of the server itself.
func (e *Event) ownFault() bool { return e.Failed && ownError.Match(e.failure()) }

// finish records why an answer ended. A response has a status instead of a reason unless it is
// incomplete, even if it called a tool.
func (t *Tally) finish(reason []byte) {
	switch string(reason) {
	case FinishStop, "completed":
		t.Finish = FinishStop
	case FinishLength, "max_output_tokens":
		t.Finish = FinishLength
	case FinishTools:
		t.Finish = FinishTools
	case FinishFunction:
		t.Finish = FinishFunction
	case FinishFilter:
		t.Finish = FinishFilter
	default:
		if t.Finish = FinishOther; len(reason) == 0 { // a response without either
			t.Finish = FinishStop
		}
	}
}

// NoteMessage processes an event of a stream of Anthropic's Messages API.
func (t *Tally) NoteMessage(c *Chunk) {
	switch {
	case c.Kind != sse.Message:
	case isMessage(c.Name, c.Data, "content_block_delta"):
		t.begun = true
		const around = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`
		t.text += max(0, len(c.Data)-len(around))
	case isMessage(c.Name, c.Data, "error"):
		t.Failed = t.Failed || ownError.Match(c.Data)
	case isMessage(c.Name, c.Data, "message_start"), isMessage(c.Name, c.Data, "message_delta"):
		t.noteEnd(c.Data)
	}
}

// messageUsage is the usage of a message, which counts cached tokens separately.
type messageUsage struct {
	Input   *int `json:"input_tokens"`
	Output  *int `json:"output_tokens"`
	Read    int  `json:"cache_read_input_tokens"`
	Created int  `json:"cache_creation_input_tokens"`
}

// noteEnd reads the usage and the stop reason. The last values reported count.
func (t *Tally) noteEnd(data []byte) {
	var e struct {
		Message struct {
			Usage messageUsage `json:"usage"`
		} `json:"message"`
		Delta struct {
			Reason string `json:"stop_reason"`
		} `json:"delta"`
		Usage messageUsage `json:"usage"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	t.take(e.Message.Usage)
	t.take(e.Usage)
	t.stop(e.Delta.Reason)
}

func (t *Tally) take(u messageUsage) {
	if u.Input != nil {
		t.Usage.Input = max(0, *u.Input) + max(0, u.Read) + max(0, u.Created)
		t.Usage.Cached = max(0, u.Read)
	}
	if u.Output != nil {
		t.Usage.Output = max(0, *u.Output)
	}
}

// stop records why a message ended, if it says so.
func (t *Tally) stop(reason string) {
	switch reason {
	case "":
	case "end_turn", "stop_sequence":
		t.Finish = FinishStop
	case "max_tokens":
		t.Finish = FinishLength
	case "tool_use":
		t.Finish = FinishTools
	case "refusal":
		t.Finish = FinishFilter
	default:
		t.Finish = FinishOther
	}
}

// isMessage reports whether an event of the Messages API has a type. The type is the name of the
// event or, without one, the first member of its data, as with every known server.
func isMessage(name, data []byte, kind string) bool {
	if len(name) > 0 {
		return string(name) == kind
	}
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	return ok && bytes.HasPrefix(rest, []byte(kind)) && bytes.HasPrefix(rest[len(kind):], []byte(`"`))
}

// Began reports whether a stream has brought anything of the answer.
func (t *Tally) Began() bool { return t.begun }

// bytesPerToken is the assumed number of text bytes per token if only the text is known: typical
// for English with byte-pair vocabularies, and close to a character for CJK in UTF-8.
const bytesPerToken = 4

// Length estimates the length in tokens of a stream that did not report it, from its text. The
// number of events is no measure: an event may contain several tokens, if a server falls behind,
// uses speculative decoding or is configured to (vLLM: stream_interval), or a part of one, if a
// server sends characters.
func (t *Tally) Length() int64 { return int64(TokensIn(t.text)) }

// TokensIn estimates the number of tokens in a text of the given size in bytes.
func TokensIn(size int) int { return (size + bytesPerToken - 1) / bytesPerToken }

// Taken returns the usage of the answer, or an estimate if it was not reported. prompt is the
// length of the prompt in tokens; the answer counts up to where it was cut. Some servers report
// only the prompt before a stream, and the Messages API one token of the answer with it.
func (t *Tally) Taken(prompt int) Usage {
	u := t.Usage
	if u.Input+u.Output == 0 {
		u = Usage{Input: prompt}
	}
	if t.Partial() {
		u.Output = max(u.Output, int(min(max(t.Length(), 0), math.MaxInt32)))
	}
	return u
}

// Partial reports whether the reported usage is incomplete: nothing, only the prompt, or the start
// of a message that never ended.
func (t *Tally) Partial() bool { return t.Usage.Output == 0 || t.Messages && t.Finish == "" }

// TailSize is how many bytes at the end of a body are searched if it arrived in several pieces.
const TailSize = 1 << 10

// Begin records usage that precedes the data of an answer that is not a stream, as llama.cpp sends
// it for embeddings. first is the first of several pieces. What Body finds takes precedence.
func (t *Tally) Begin(first []byte) {
	// Until Body has seen the end, for which a client may not wait.
	t.unread = t.API != openai.Other
	i := bytes.Index(first, []byte(usageName))
	if i < 0 || t.Messages || depth(first[:i]) != 1 {
		return
	}
	e := bodies.Get().(*Event) //nolint:errcheck,forcetypeassert // only events are in it
	defer bodies.Put(e)
	e.readAt(first, i, usageName, usage)
	t.Usage = e.Usage
}

// Body processes the end of an answer that is not a stream. Parts of it may have been passed on
// before all of it had arrived: before is the end of the part passed on before last. Members are
// found by name; inside a text the quotes around a name would be escaped.
func (t *Tally) Body(before, last []byte) {
	whole := len(before) == 0
	if len(last) < TailSize && !whole {
		last = append(bytes.Clone(before), last...)
	}
	t.unread = false
	e := bodies.Get().(*Event) //nolint:errcheck,forcetypeassert // only events are in it
	defer bodies.Put(e)
	u, at := e.readUsage(last)
	switch {
	case t.Messages:
		t.message(e, last, at)
		return
	case u != (Usage{}):
		t.Usage = u
	case t.Usage == (Usage{}) && t.API != openai.Other:
		t.unread = !whole || !t.count(last)
	}
	if t.API != openai.Response {
		e.readMember(last, `"finish_reason"`, finishReason)
		for i := range e.Finishes {
			t.finish(e.Finishes[i].Reason)
		}
		return
	}
	if !bytes.Contains(last, []byte(`"status"`)) {
		return
	}
	e.readMember(last, `"incomplete_details"`, incomplete)
	l := &e.layout
	switch {
	case !l.incomplete.Present() || last[l.incomplete.Start] != '{':
		t.Finish = FinishStop
	case string(last[l.reason.Start:l.reason.End]) == `"max_output_tokens"`:
		t.Finish = FinishLength
	case string(last[l.reason.Start:l.reason.End]) == `"content_filter"`:
		t.Finish = FinishFilter
	default:
		t.Finish = FinishOther
	}
}

// message processes the end of a message, whose usage is at the given position.
func (t *Tally) message(e *Event, last []byte, at openai.Span) {
	var u messageUsage
	t.unread = json.Unmarshal(last[at.Start:at.End], &u) != nil
	t.take(u)
	e.readMember(last, `"stop_reason"`, finishReason)
	for i := range e.Finishes {
		t.stop(string(e.Finishes[i].Reason))
	}
}

// count counts the text of a whole body, and reports whether it can be read.
func (t *Tally) count(body []byte) bool {
	e := new(Reader).ReadBody(body)
	for i := range e.Deltas {
		t.text += e.Deltas[i].At.End - e.Deltas[i].At.Start
	}
	return e.Shape != Opaque
}

// Unread reports whether an answer that is not a stream has reported no usage and its text was not
// counted.
func (t *Tally) Unread() bool { return t.unread && t.Usage == (Usage{}) }

var bodies = sync.Pool{New: func() any { return new(Event) }} //nolint:gochecknoglobals // buffers, no state

// lastIndex is bytes.LastIndex, but faster if name is in the last TailSize bytes, which it searches
// forwards.
func lastIndex(b, name []byte) int {
	from := max(0, len(b)-TailSize)
	last := -1
	for at := from; ; at = last + 1 {
		i := bytes.Index(b[at:], name)
		if i < 0 {
			break
		}
		last = at + i
	}
	if last < 0 {
		return bytes.LastIndex(b[:min(len(b), from+len(name)-1)], name)
	}
	return last
}

// usageName is the name of the usage. usageTries is how many members of that name are examined,
// because a response may repeat members that the client named so.
const (
	usageName  = `"usage"`
	usageTries = 16
)

// readUsage reads the usage in b, the end of a body, and its position: the last one that is a
// top-level member of the body, otherwise the last one anywhere.
func (e *Event) readUsage(b []byte) (u Usage, at openai.Span) {
	for i, n := len(b), 0; n < usageTries; n++ {
		if i = lastIndex(b[:i], []byte(usageName)); i < 0 {
			break
		}
		found := e.readAt(b, i, usageName, usage)
		switch {
		case e.Usage == (Usage{}):
		case depth(b[found.End:]) == -1:
			return e.Usage, found
		case u == (Usage{}):
			u, at = e.Usage, found
		}
	}
	return u, at
}

// depth returns how many objects and lists a part of a body opens and does not close. It is
// negative for those that it closes and does not open.
func depth(part []byte) (n int) {
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '{', '[':
			n++
		case '}', ']':
			n--
		case '"':
			i += 1 + max(0, stringEnd(part[i+1:]))
		}
	}
	return n
}

// readMember reads the last member of a name in b, a part of a body, with the given role.
func (e *Event) readMember(b []byte, name string, as role) {
	*e = Event{data: b, Finishes: e.Finishes[:0]}
	if i := lastIndex(b, []byte(name)); i >= 0 {
		e.readAt(b, i, name, as)
	}
}

// readAt reads the member whose name begins at i, and returns the position of its value.
func (e *Event) readAt(b []byte, i int, name string, as role) (at openai.Span) {
	*e = Event{data: b, Finishes: e.Finishes[:0]}
	s := scanner{e: e, b: b, i: i + len(name)}
	if s.peek() != ':' {
		return at
	}
	s.i++
	s.peek()
	if from := s.i; s.value(as, 0) {
		at = openai.Span{Start: from, End: s.i}
		s.note(ignored, as, at, i)
	}
	return at
}
