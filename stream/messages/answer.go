package messages

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// ErrUnreadable reports an event or a body that is not a readable answer.
var ErrUnreadable = errors.New("an answer that cannot be read")

// Answer is the state of one answer while it is translated. Its fields must be set before the first
// call.
type Answer struct {
	ID       string // of the request; the message's id adds the prefix msg_
	Thinking anthropic.Thinking
	// Prompt is an estimate of the number of tokens in the prompt. The start of a stream reports it
	// if the server reports the usage only at the end. 0: not known.
	Prompt int

	begun   bool
	blocks  int    // number of blocks that were begun
	open    bool   // items[0] is the open block
	items   []item // the open block, and those that wait for its end
	reason  string // of the end; empty until it is known
	stop    []byte // the stop sequence that ended the answer, without quotes
	called  bool   // a tool was called
	refused bool   // some of the text is a refusal
	usage   response.Usage
	told    bool   // the usage was reported
	length  int    // of all text received, in bytes
	summary []byte // the value of x_signalbox
	held    int    // number of bytes in items that wait
	failed  bool
	over    bool
}

// item is a block.
type item struct {
	kind     response.Kind // Text, Reasoning or Tool
	part     int           // of a call
	id, name []byte        // of a call, without quotes
	text     []byte        // text that waits, escaped as in JSON
	started  bool          // content_block_start was sent
}

// Put appends to dst the events that result from a chunk of a chat completion.
func (a *Answer) Put(dst []byte, c *response.Chunk) []byte {
	switch {
	case a.failed, a.over:
		return dst
	case c.Kind != sse.Message:
		return append(dst, c.Raw...)
	case sse.IsDone(c.Data):
		return a.end(dst)
	case len(c.Data) == 0:
		return dst
	}
	e := c.Content()
	switch e.Shape {
	case response.Chat:
		return a.chunk(dst, e)
	case response.Failure:
		return a.error(dst, e)
	case response.Opaque:
		a.failed = !e.Foreign() // anything that is not an answer is not forwarded to the client
	case response.Completion, response.Response:
		a.failed = true
	}
	return dst
}

// Err returns ErrUnreadable once a chunk could not be read. Events appended before may be sent.
func (a *Answer) Err() error {
	if a.failed {
		return ErrUnreadable
	}
	return nil
}

func (a *Answer) chunk(dst []byte, e *response.Event) []byte {
	if e.HasUsage {
		a.usage, a.told = e.Usage, true
	}
	if !a.begun {
		a.begun = true
		dst = a.start(dst, e)
	}
	for i := range e.Calls {
		if k := &e.Calls[i]; k.Choice == 0 && len(k.ID) > 0 {
			dst = a.call(dst, k.Part)
			if to := a.find(k.Part); len(to.id) == 0 {
				to.id = append(to.id, k.ID...)
			}
		}
	}
	for i := range e.Deltas {
		if d := &e.Deltas[i]; d.Choice == 0 && !e.Repeats(i) {
			dst = a.delta(dst, d, e.Data()[d.At.Start:d.At.End])
		}
	}
	if e.Extension.Present() {
		a.summary = append(a.summary[:0], e.Data()[e.Extension.Start:e.Extension.End]...)
	}
	for i := range e.Finishes {
		if f := &e.Finishes[i]; f.Choice == 0 {
			a.finish(f.Reason, e.Stop)
			dst = a.flush(dst)
		}
	}
	if e.Failed {
		dst = a.error(dst, e)
	}
	return dst
}

// finish records why the answer ended, in the terms of the API reference (stop_reason). A guard
// that cuts off an answer reports content_filter, like a server's own filter.
func (a *Answer) finish(reason, stop []byte) {
	switch string(reason) {
	case response.FinishLength:
		a.reason = "max_tokens"
	case response.FinishTools, response.FinishFunction:
		a.reason = "tool_use"
	case "content_filter":
		a.reason = "refusal"
	default:
		switch a.reason = "end_turn"; {
		case a.called: // some servers report stop for a call that tool_choice required
			a.reason = "tool_use"
		case a.refused:
			a.reason = "refusal"
		}
		if len(stop) > 0 {
			a.reason, a.stop = "stop_sequence", append(a.stop[:0], stop...)
		}
	}
}

// delta takes a piece of a text, escaped as in JSON.
func (a *Answer) delta(dst []byte, d *response.Delta, raw []byte) []byte {
	a.length += len(raw)
	switch d.Kind {
	case response.Reasoning:
		if a.Thinking == anthropic.Unseen {
			return dst
		}
		dst = a.become(dst, response.Reasoning)
	case response.Text, response.Refusal:
		a.refused = a.refused || d.Kind == response.Refusal && len(raw) > 0
		dst = a.become(dst, response.Text)
	case response.ToolName:
		dst = a.call(dst, d.Part)
		to := a.find(d.Part)
		to.name = a.hold(to.name, raw)
		return dst
	case response.Tool:
		dst = a.call(dst, d.Part)
		if to := a.find(d.Part); to != &a.items[0] || !a.open {
			to.text = a.hold(to.text, raw)
			return dst
		}
		return a.appendDelta(a.appendStart(dst), raw)
	}
	if last := &a.items[len(a.items)-1]; len(a.items) > 1 {
		last.text = a.hold(last.text, raw)
		return dst
	}
	return a.appendDelta(dst, raw)
}

// Limits for text that waits for the end of a call; no model's answer comes near them.
const (
	maxHeld  = 8 << 20
	maxItems = 1 << 10
)

// hold appends raw to text that waits, within the limits.
func (a *Answer) hold(to, raw []byte) []byte {
	if a.held += len(raw); a.held > maxHeld || len(a.items) > maxItems {
		a.failed = true
		return to
	}
	return append(to, raw...)
}

// become makes the last item a text or a reasoning block: the one that is open, or one that waits
// for the end of a call.
func (a *Answer) become(dst []byte, kind response.Kind) []byte {
	n := len(a.items)
	switch {
	case n > 0 && a.items[n-1].kind == kind:
		return dst
	case n > 0 && a.items[0].kind == response.Tool:
		a.items = append(a.items, item{kind: kind})
		return dst
	}
	dst = a.close(dst)
	a.items, a.open = append(a.items, item{kind: kind}), true
	return a.appendStart(dst)
}

// call makes sure that there is an item for a call.
func (a *Answer) call(dst []byte, part int) []byte {
	a.called = true
	if a.find(part) != nil {
		return dst
	}
	if len(a.items) > 0 && a.items[0].kind != response.Tool {
		dst = a.close(dst)
	}
	a.items, a.open = append(a.items, item{kind: response.Tool, part: part}), true
	return dst
}

func (a *Answer) find(part int) *item {
	for i := range a.items {
		if it := &a.items[i]; it.kind == response.Tool && it.part == part {
			return it
		}
	}
	return nil
}

// flush closes the open block and appends everything that waits.
func (a *Answer) flush(dst []byte) []byte {
	for len(a.items) > 0 {
		a.open = true
		dst = a.appendStart(dst)
		if text := a.items[0].text; len(text) > 0 {
			dst = a.appendDelta(dst, text)
		}
		dst = a.close(dst)
	}
	return dst
}

// close ends the open block and removes it.
func (a *Answer) close(dst []byte) []byte {
	if len(a.items) == 0 {
		return dst
	}
	if a.items[0].kind == response.Reasoning {
		dst = a.appendIndex(append(dst, deltaHead...))
		dst = append(dst, `,"delta":{"type":"signature_delta","signature":"`+signature+"\"}}\n\n"...)
	}
	dst = a.appendIndex(append(dst, stopHead...))
	dst = append(dst, "}\n\n"...)
	a.items = append(a.items[:0], a.items[1:]...)
	a.open = false
	return dst
}

// signature is sent in place of Anthropic's signature of thinking blocks, because clients drop
// blocks without one. It is ignored when clients send it back.
const signature = "signalbox"

// The beginnings of block events, up to the index.
const (
	startHead = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"
	deltaHead = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"
	stopHead  = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"
)

func (a *Answer) appendIndex(dst []byte) []byte {
	return strconv.AppendInt(dst, int64(a.blocks-1), 10)
}

// appendStart appends the start of the open block, once.
func (a *Answer) appendStart(dst []byte) []byte {
	it := &a.items[0]
	if it.started {
		return dst
	}
	it.started = true
	a.blocks++
	dst = a.appendIndex(append(dst, startHead...))
	dst = append(dst, `,"content_block":`...)
	switch it.kind { //nolint:exhaustive // the rest is text
	case response.Reasoning:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case response.Tool:
		dst = append(a.appendCall(dst, it), `,"input":{}}`...)
	default:
		dst = append(dst, `{"type":"text","text":""}`...)
	}
	return append(dst, "}\n\n"...)
}

// appendCall appends a block that is a call, up to its input.
func (a *Answer) appendCall(dst []byte, it *item) []byte {
	dst = append(dst, `{"type":"tool_use","id":"`...)
	// without an id a client could not refer to the call in the tool result
	if dst = append(dst, it.id...); len(it.id) == 0 {
		dst = append(append(dst, "toolu_"...), a.ID...)
		dst = strconv.AppendInt(append(dst, '_'), int64(it.part), 10)
	}
	return append(append(append(dst, `","name":"`...), it.name...), '"')
}

// appendDelta appends a piece of the open block's text.
func (a *Answer) appendDelta(dst, raw []byte) []byte {
	kind := a.items[0].kind
	if kind == response.Reasoning && a.Thinking == anthropic.Omitted {
		return dst
	}
	dst = a.appendIndex(append(dst, deltaHead...))
	switch kind { //nolint:exhaustive // the rest is text
	case response.Reasoning:
		dst = append(dst, `,"delta":{"type":"thinking_delta","thinking":"`...)
	case response.Tool:
		dst = append(dst, `,"delta":{"type":"input_json_delta","partial_json":"`...)
	default:
		dst = append(dst, `,"delta":{"type":"text_delta","text":"`...)
	}
	return append(append(dst, raw...), "\"}}\n\n"...)
}

// start appends the first events of a stream. Servers that report the usage at the end have not
// reported any yet. The length of the prompt is then an estimate, and message_delta has the actual
// numbers.
func (a *Answer) start(dst []byte, e *response.Event) []byte {
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = append(a.appendHead(dst, e), `"content":[],"stop_reason":null,"stop_sequence":null,`...)
	told := a.usage
	if told == (response.Usage{}) {
		a.usage.Input = max(a.Prompt, 0)
	}
	dst = append(a.appendUsage(append(dst, `"usage":`...)), "}}\n\n"...)
	a.usage = told
	return append(dst, Ping...)
}

// Ping is an event without content, for clients that wait.
const Ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

// appendHead appends an open message with everything known at its start, and a comma.
func (a *Answer) appendHead(dst []byte, e *response.Event) []byte {
	dst = append(append(dst, `{"id":"msg_`...), a.ID...)
	dst = append(dst, `","type":"message","role":"assistant","model":`...)
	if model := e.Head("model"); len(model) > 0 && model[0] == '"' {
		dst = append(dst, model...)
	} else {
		dst = append(dst, `""`...)
	}
	return append(dst, ',')
}

// appendUsage appends what is known of the usage. The API counts cached tokens separately.
func (a *Answer) appendUsage(dst []byte) []byte {
	u := &a.usage
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), int64(max(u.Input-u.Cached, 0)), 10)
	if u.Cached > 0 || u.Uncached {
		dst = append(dst, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...)
		dst = strconv.AppendInt(dst, int64(u.Cached), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"output_tokens":`...), int64(u.Output), 10)
	return append(dst, '}')
}

// appendTotal appends the usage at the end of a stream. If the server reported none, for example
// after a guard cut off its answer, the estimate of the prompt is used together with an estimate of
// the text.
func (a *Answer) appendTotal(dst []byte) []byte {
	if a.usage != (response.Usage{}) {
		return a.appendUsage(dst)
	}
	tokens := 0
	if !a.told {
		tokens = response.TokensIn(a.length)
	}
	return append(strconv.AppendInt(append(dst, `{"output_tokens":`...), int64(tokens), 10), '}')
}

// appendEnd appends the reason for the end of the answer, as two members.
func (a *Answer) appendEnd(dst []byte) []byte {
	reason := cmp.Or(a.reason, "end_turn")
	dst = append(append(append(dst, `"stop_reason":"`...), reason...), `","stop_sequence":`...)
	if a.stop == nil {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '"'), a.stop...), '"')
}

// end appends the last events. An answer without any text gets an empty block, because clients
// access the first block.
func (a *Answer) end(dst []byte) []byte {
	a.over = true
	if !a.begun {
		a.failed = true
		return dst
	}
	if dst = a.flush(dst); a.blocks == 0 {
		dst = a.flush(a.become(dst, response.Text))
	}
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	dst = append(a.appendEnd(dst), `},"usage":`...)
	dst = a.appendTotal(dst)
	if len(a.summary) > 0 {
		dst = append(append(dst, `,"x_signalbox":`...), a.summary...)
	}
	return append(dst, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// error appends an error that the upstream sent in the stream.
func (a *Answer) error(dst []byte, e *response.Event) []byte {
	a.over = true
	return anthropic.AppendStreamError(dst, errorIn(e.Data(), http.StatusBadGateway), a.ID)
}

// errorIn reads the error of a server's response. A code that is an HTTP status takes precedence
// over status.
func errorIn(data []byte, status int) *openai.Error {
	out := &openai.Error{Status: status, Message: "the model server reports an error"}
	var said struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(data, &said) != nil || said.Error == nil {
		said.Error = data
	}
	if text := detailIn(said.Detail); text != "" {
		out.Message = text
	}
	var in struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
	}
	_ = json.Unmarshal(said.Error, &in.Message) // an error that is a string
	_ = json.Unmarshal(said.Error, &in)
	if in.Message != "" {
		out.Message = in.Message
	}
	if code, ok := in.Code.(float64); ok && code >= 400 && code < 600 {
		out.Status = int(code)
	}
	return out
}

// Limits for the text of a detail, which may be as long as the request.
const (
	maxDetail = 1 << 10 // bytes
	maxFields = 16
)

// detailIn reads the error detail of FastAPI: a text, or the list of invalid fields; empty for
// anything else. The values of fields are left out, because they are the prompt.
func detailIn(detail []byte) string {
	var text string
	if json.Unmarshal(detail, &text) != nil {
		var fields []struct {
			Loc []any  `json:"loc"`
			Msg string `json:"msg"`
		}
		_ = json.Unmarshal(detail, &fields)
		var said []string
		for i := range fields[:min(len(fields), maxFields)] {
			if fields[i].Msg == "" {
				continue
			}
			place := strings.Trim(strings.ReplaceAll(fmt.Sprint(fields[i].Loc), " ", "."), "[]")
			said = append(said, strings.TrimPrefix(place+": "+fields[i].Msg, ": "))
		}
		text = strings.Join(said, "; ")
	}
	if len(text) > maxDetail {
		return strings.ToValidUTF8(text[:maxDetail], "") + "..."
	}
	return text
}

// Error translates the body of an error that a server returned with a status.
func (a *Answer) Error(body []byte, status int) []byte {
	e := errorIn(body, status)
	e.Status = status
	return anthropic.AppendError(nil, e, a.ID)
}
