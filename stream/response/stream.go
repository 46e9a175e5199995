package response

import (
	"bytes"
	"errors"
	"io"

	"signalbox/internal/openai"
	"signalbox/stream/sse"
)

// ErrNoEnd is the error for a stream that ends without its end mark, even if the connection ended
// normally. The mark is [DONE] or, in the Responses API, the event that says how the response
// ended, or an error. Official SDKs take such a stream for a complete answer.
var ErrNoEnd = errors.New("stream ended without its end mark")

// Chunk is one unit of a stream: an event, a comment or anything else. Its bytes are those
// received, apart from corrections by package sse, until a filter changes its data. Its contents
// are read when the first filter asks for them. A chunk belongs to whoever passed it on, and is
// valid until the next one.
type Chunk struct {
	sse.Event

	// Unsupported is set on the end of a choice if a guard that acts on claims has found the answer
	// unsupported so far.
	Unsupported bool
	// LeftOut is set if a filter has omitted events of the answer before this one.
	LeftOut bool

	own    bool // see Build
	reader *Reader
	read   *Event
	count  int  // of the reader, after it read the data
	again  bool // the data, or their earlier version, have been read
	fresh  bool // see layout
	bufs   [2][]byte
}

// Reset turns the chunk into another unit, whose data is read by reader.
func (c *Chunk) Reset(e sse.Event, reader *Reader) {
	for i := range c.bufs {
		if cap(c.bufs[i]) > keptText {
			c.bufs[i] = nil
		}
	}
	c.Event, c.reader, c.read, c.again, c.own = e, reader, nil, false, false
	c.Unsupported, c.LeftOut = false, false
}

// Build turns the chunk into an event of the proxy. name may be empty and must not contain a line
// break.
func (c *Chunk) Build(name string, data []byte, reader *Reader) {
	c.Reset(sse.Event{}, reader)
	c.own = true
	c.Event, c.bufs[0] = sse.NewEvent(c.bufs[0], name, data)
}

// IsMessage reports whether there is data to read, other than [DONE].
func (c *Chunk) IsMessage() bool {
	return c.Kind == sse.Message && len(c.Data) > 0 && !sse.IsDone(c.Data)
}

// Content returns the contents of a message's data. They are valid until the data is changed or the
// reader reads on.
func (c *Chunk) Content() *Event {
	if c.read != nil && c.count == c.reader.count {
		return c.read
	}
	if c.again {
		c.read = c.reader.readAgain(c.Data, c.fresh)
	} else {
		c.read = c.reader.Read(c.Data)
		c.again, c.fresh = true, c.read.layout.fresh
	}
	c.count = c.reader.count
	return c.read
}

// Reader returns the reader of the chunk's stream.
func (c *Chunk) Reader() *Reader { return c.reader }

// SetData changes the data of a message. data must not be memory of the chunk itself. It is read
// again on demand.
func (c *Chunk) SetData(data []byte) {
	c.bufs[0], c.bufs[1] = c.bufs[1], c.bufs[0]
	c.Event, c.bufs[0] = c.With(c.bufs[0], data)
	c.read = nil
}

// Sink takes the chunks of a stream.
type Sink interface {
	// Put takes the next chunk and does not keep it.
	Put(c *Chunk)
}

// Stream reads one answer as a stream of events, from pieces of any size, and parses each event
// once. It returns only complete events, so that an error event may follow at any time. It is for
// one goroutine, and does not allocate in steady state. Use NewStream to create one.
type Stream struct {
	course

	parser *sse.Parser
	before Reader // for events that the client does not see as received
	reader Reader
	chunk  Chunk
	mended []byte
	edited []byte
	bare   []byte // an event without its log probabilities
	lead   []byte // units before the first message, until it is passed on
}

// course is what is known about one answer so far.
type course struct {
	options StreamOptions

	finished int   // finished choices, if there are several
	first    bool  // the chunk is the first message, not yet passed on
	usage    Usage // usage that the client does not see

	state    sse.State
	begun    bool // an event with data has arrived
	done     bool // the last event has arrived
	closed   bool // [DONE] has arrived after it
	ending   bool // the upstream sends no more; cause says why
	drained  bool // the parser is empty
	ended    bool // nothing more will be returned; err says why
	progress bool // something arrived since Feed
	cause    error
	err      error
}

// NewStream returns a Stream; Reset makes it ready for use.
func NewStream() *Stream { return &Stream{parser: sse.NewParser(0)} }

// StreamOptions describe a stream before it arrives.
type StreamOptions struct {
	API     openai.API
	Choices int  // number requested
	Quiet   bool // only the proxy requested the usage: hide it from the client
	Alive   bool // comments count as progress
	// Unweighed is set if only the proxy requested log probabilities. They are hidden from the
	// client.
	Unweighed bool
	// Messages is set for a stream of Anthropic's Messages API, of which only the end is recognised
	// here.
	Messages bool
}

// Reset prepares the stream for another answer and keeps its buffers.
func (s *Stream) Reset(o StreamOptions) {
	o.Choices = max(o.Choices, 1)
	s.course = course{options: o}
	s.parser.Reset()
	s.reader.reset()
	s.before.reset()
	s.mended, s.edited, s.bare, s.lead = s.mended[:0], s.edited[:0], s.bare[:0], s.lead[:0]
}

// Feed takes a piece of the stream. It must remain unchanged until Next has returned nil.
func (s *Stream) Feed(piece []byte) {
	s.progress = false
	s.parser.Feed(piece)
}

// End says that no more pieces will come, and why: io.EOF for the end of the body. Next then
// returns what is left.
func (s *Stream) End(cause error) { s.ending, s.cause = true, cause }

// Peek reads ahead to the first message and reports whether it, or the end of the stream, has
// arrived. Next returns what was read.
func (s *Stream) Peek() bool {
	for !s.first {
		c := s.next()
		switch {
		case c == nil:
			return s.ended
		case c.Kind == sse.Message:
			s.first = true
		default:
			s.lead = append(s.lead, c.Raw...)
		}
	}
	return true
}

// Ahead returns how many bytes Peek has read before the first message.
func (s *Stream) Ahead() int { return len(s.lead) }

// FailsFirst reports whether the first message, read by Peek, is an error of the server itself.
func (s *Stream) FailsFirst() bool {
	c := &s.chunk
	switch {
	case !s.first:
		return false
	case s.options.Messages:
		return isMessage(c.Name, c.Data, "error") && ownError.Match(c.Data)
	}
	return c.IsMessage() && c.Content().ownFault()
}

// Next returns the next unit for the client, or nil if what was fed contains none. It is valid
// until the next call.
func (s *Stream) Next() *Chunk {
	switch {
	case len(s.lead) > 0:
		lead := Chunk{Event: sse.Event{Kind: sse.Comment, Raw: s.lead, At: -1}}
		s.lead = nil
		return &lead
	case s.first:
		s.first = false
		return &s.chunk
	}
	return s.next()
}

func (s *Stream) next() *Chunk {
	for !s.drained {
		e := s.parser.Next()
		if e == nil {
			break
		}
		s.progress = s.progress || e.Kind == sse.Message || e.Kind == sse.Fields ||
			e.Kind == sse.Comment && s.options.Alive
		if c := s.take(e); c != nil {
			return c
		}
	}
	if err := s.parser.Err(); err != nil && !s.ending {
		s.End(err)
	}
	if s.ending && !s.ended {
		return s.last()
	}
	return nil
}

// take turns a unit into a chunk, or returns nil for one that is not passed on. After the last
// event of a response only a [DONE] is passed on, which some servers send and their clients may
// wait for.
func (s *Stream) take(e *sse.Event) *Chunk {
	if s.closed || s.done && (s.options.API != openai.Response || !sse.IsDone(e.Data)) {
		return nil
	}
	if s.done {
		s.closed = true
		return s.give(e)
	}
	if s.state == sse.Running && s.reader.Shape() != Opaque {
		// Once events are read, complete knows which choices have ended.
		s.state = sse.Finished
	}
	s.state = s.state.After(e.Name, e.Data)
	c := s.give(e)
	if e.Kind != sse.Message {
		return c
	}
	s.begun = true
	if s.options.Unweighed && !s.options.Messages && bytes.Contains(e.Data, []byte(`"logprobs"`)) {
		s.dropLogprobs(c)
	}
	switch {
	case s.options.Messages:
		s.done = isMessage(e.Name, e.Data, "message_stop")
	case sse.IsDone(e.Data):
		s.done = s.options.API != openai.Response
		s.closed = true
	case len(e.Data) == 0:
	case s.options.Quiet && bytes.Contains(e.Data, []byte(`"usage"`)) && s.dropUsage(c):
		return nil
	case s.options.API == openai.Response:
		e := c.Content()
		if s.done = e.last() || e.Shape == Opaque && s.state == sse.Done; e.Shape == Failure {
			s.state = sse.Failed // whatever its name
		}
	case s.options.Choices > 1:
		s.finished += len(c.Content().Finishes)
	}
	return c
}

func (s *Stream) give(e *sse.Event) *Chunk {
	c := &s.chunk
	c.Reset(*e, &s.reader)
	if s.options.API == openai.Response || s.options.Messages {
		sse.KeepName(&c.Event)
	}
	if c.Flawed() {
		c.Event, s.mended = c.Mended(s.mended)
	}
	return c
}

func (s *Stream) giveDone() *Chunk {
	e := sse.DoneEvent()
	return s.give(&e)
}

// dropUsage removes what only the proxy requested: the member usage if it is null, as in most
// events of OpenAI's servers. For the event with the usage and no choice it returns true, and the
// whole event is dropped.
func (s *Stream) dropUsage(c *Chunk) bool {
	e := s.before.Read(c.Data)
	at := e.layout.usage
	switch {
	case !at.Present():
	case !e.HasUsage && e.data[at.End-1] == 'l': // null
		from, to := e.around(at)
		s.edited = append(append(s.edited[:0], e.data[:from]...), e.data[to:]...)
		c.SetData(s.edited)
	case e.HasUsage && e.layout.hasChoices && len(e.layout.choices) == 0:
		s.usage = e.Usage
		return true
	}
	return false // usage that the server sends without a request
}

// dropLogprobs removes log probabilities.
func (s *Stream) dropLogprobs(c *Chunk) {
	if e := c.Content(); e.Shape != Opaque {
		for range e.Logprobs {
			s.bare = e.Append(s.bare[:0], Rewrite{Unweighed: true})
			c.SetData(s.bare)
			return
		}
	}
}

// last returns what is left at the end, and determines how the stream ended.
func (s *Stream) last() *Chunk {
	if !s.drained {
		s.drained = true
		e := s.parser.End()
		switch {
		case e == nil:
		case !e.Cut:
			if c := s.take(e); c != nil {
				return c
			}
		case !s.done && sse.IsDone(e.Data) && s.options.API != openai.Response:
			s.done, s.ended = true, true
			return s.giveDone()
		}
	}
	s.ended = true
	switch {
	case s.done:
	case !errors.Is(s.cause, io.EOF):
		s.err = s.cause
	case s.options.API == openai.Response && s.state == sse.Failed:
		s.done = true // the server has given the reason, and more may have followed
	case s.options.API != openai.Response && s.state == sse.Finished && s.complete():
		s.done = true
		return s.giveDone()
	default:
		s.err = ErrNoEnd
	}
	return nil
}

// complete reports whether each choice that was requested, and each that has begun as far as events
// were read, has ended.
func (s *Stream) complete() bool {
	return (s.options.Choices == 1 || s.finished >= s.options.Choices) &&
		(s.reader.Shape() == Opaque || s.reader.Complete())
}

// Begun reports whether an event with data has arrived.
func (s *Stream) Begun() bool { return s.begun }

// Done reports whether the answer has ended, possibly with an error sent by the server.
func (s *Stream) Done() bool { return s.done }

// Ended reports whether nothing more will be returned, and why: err is nil for a complete stream.
func (s *Stream) Ended() (ended bool, err error) { return s.ended, s.err }

// NextNumber returns the sequence_number for an event after those that were read.
func (s *Stream) NextNumber() int { return s.reader.sequence + 1 }

// Failed reports whether the upstream has sent an error in the stream itself.
func (s *Stream) Failed() bool { return s.state == sse.Failed }

// Progress reports whether the last piece fed is progress, as far as Next has returned it. Comments
// count if StreamOptions.Alive is set, blank lines never.
func (s *Stream) Progress() bool { return s.progress }

// HiddenUsage returns the usage that the client has not seen, or the zero value.
func (s *Stream) HiddenUsage() Usage { return s.usage }
