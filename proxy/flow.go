package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"signalbox/internal/openai"
	"signalbox/proxy/answer"
	"signalbox/stream/sse"
)

// flow is a stream of events on its way. It is fed what the upstream sends and gives whole events, as they came but for the
// closed list of package sse: an event that the upstream does not finish is not begun, so that an error event may follow any
// time. It belongs to one attempt and allocates nothing for a chunk.
type flow struct {
	parser  *sse.Parser
	out     sse.Writer
	api     openai.API
	choices int   // that have to finish before a stream without [DONE] is complete
	begun   bool  // an event with data has come
	done    bool  // the last event has come
	ended   bool  // nothing more comes, for the reason err
	err     error // nil for a stream that is complete
	quiet   bool  // the proxy asked for the usage, and the client did not: the client does not see it
	usage   answer.Usage
	edited  []byte // an event without it; reused
}

var flows = sync.Pool{New: func() any { return &flow{parser: sse.NewParser(0)} }} //nolint:gochecknoglobals // buffers, no state

// takeFlow returns an empty flow, which release gives back.
func takeFlow(api openai.API, choices int) *flow {
	f := flows.Get().(*flow) //nolint:errcheck,forcetypeassert // only flows are in it
	f.parser.Reset()
	f.out.Reset()
	*f = flow{parser: f.parser, out: f.out, api: api, choices: max(choices, 1), edited: f.edited}
	return f
}

// release gives the flow back. What take returned must not be used afterwards.
func (f *flow) release() {
	if f != nil {
		flows.Put(f)
	}
}

// feed takes a piece of the stream and reports whether an event of it is progress: comments are when alive says so, blank
// lines never.
func (f *flow) feed(piece []byte, alive bool) (progress bool) {
	f.parser.Feed(piece)
	for {
		e, ok := f.parser.Next()
		if !ok {
			break
		}
		progress = progress || e.Kind == sse.Message || e.Kind == sse.Fields || e.Kind == sse.Comment && alive
		f.pass(e)
	}
	if err := f.parser.Err(); err != nil {
		f.end(err)
	}
	return progress
}

// pass takes one unit. Behind the last event of a response a [DONE] may follow, which some servers send and their clients may
// wait for; nothing else does.
func (f *flow) pass(e sse.Event) {
	if f.done {
		if f.api == openai.Response && sse.IsDone(e.Data) {
			f.out.Pass(e)
		}
		return
	}
	if !f.quiet || e.Kind != sse.Message || !f.hush(e) {
		f.out.Pass(e)
	}
	if e.Kind != sse.Message {
		return
	}
	f.begun = true
	if f.api == openai.Response {
		f.done = answer.IsLast(e.Data)
		return
	}
	f.done = sse.IsDone(e.Data)
	if f.choices > 1 {
		f.choices -= min(answer.Finishes(e.Data), f.choices-1)
	}
}

// hush passes an event on without what only the proxy has asked for: the event that tells the usage beside no choice stays here,
// and of others the member usage where it is null, as OpenAI's servers have it. It reports false for an event that has neither.
func (f *flow) hush(e sse.Event) bool {
	if !bytes.Contains(e.Data, usageName) {
		return false
	}
	value, from, to, ok := answer.Member(e.Data, string(usageName))
	switch {
	case !ok:
		return false
	case string(value) == "null":
		f.edited = append(append(f.edited[:0], e.Data[:from]...), e.Data[to:]...)
		f.out.Replace(e, f.edited)
		return true
	}
	choices, _, _, ok := answer.Member(e.Data, `"choices"`)
	if !ok || len(choices) < 2 || choices[0] != '[' || len(bytes.TrimSpace(choices[1:len(choices)-1])) > 0 {
		return false // what a server tells unasked
	}
	t := answer.Tally{API: f.api}
	t.FindUsage(e.Data)
	f.usage = t.Usage
	f.out.Drop(e)
	return true
}

var usageName = []byte(`"usage"`) //nolint:gochecknoglobals // constant

// end tells that the upstream sends no more, and why: io.EOF for the end of its body.
func (f *flow) end(err error) {
	if f.ended {
		return
	}
	f.ended = true
	if e, ok := f.parser.End(); ok {
		if !e.Cut {
			f.pass(e)
		} else if !f.done && sse.IsDone(e.Data) && f.api != openai.Response {
			f.out.Pass(e)
			f.done = true
		}
	}
	switch {
	case f.done:
	case !errors.Is(err, io.EOF):
		f.err = err
	case f.api != openai.Response && f.choices == 1 && f.out.State() == sse.Finished:
		f.out.InsertDone()
		f.done = true
	default:
		f.err = errNoEnd
	}
}

// take returns what is to be sent now, empty when there is nothing. It is valid until the next call of feed or end.
func (f *flow) take() []byte { return f.out.Take() }

// finished reports whether the end of a choice, or of the answer, has come.
func (f *flow) finished() bool { return f.done || f.out.State() != sse.Running }

// failed reports whether the upstream has told of an error in the stream itself.
func (f *flow) failed() bool { return f.out.State() == sse.Failed }
