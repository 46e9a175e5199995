package response

import (
	"bytes"
	"errors"
	"io"

	"signalbox/internal/openai"
	"signalbox/stream/sse"
)

// ErrNoEnd: a stream that ends without its mark was cut, even when the connection ended in order:
// [DONE], or in the Responses API the event that says how the response ended, or an error. Official
// SDKs take it for a complete answer.
var ErrNoEnd = errors.New("stream ended without its end mark")

// Chunk is one unit of a stream on its way: an event, a comment or what else a stream holds. Its
// bytes are as they came, but for what package sse mends, until a filter changes its data; what
// they say is read when the first filter asks. It belongs to whoever passed it on, and is valid
// until that one's next.
type Chunk struct {
	sse.Event

	// Unsupported: a guard that acts on claims has found the answer unsupported so far. It is set
	// on the end of a choice.
	Unsupported bool
	// LeftOut: a filter has left out events of the answer that came before it.
	LeftOut bool

	own    bool // see Build
	reader *Reader
	read   *Event
	count  int  // of the reader, when it had read the data
	again  bool // the data, or what they were before, have been read
	fresh  bool // see layout
	bufs   [2][]byte
}

// Reset makes the chunk another unit, whose data reader is to read.
func (c *Chunk) Reset(e sse.Event, reader *Reader) {
	for i := range c.bufs {
		if cap(c.bufs[i]) > keptText {
			c.bufs[i] = nil
		}
	}
	c.Event, c.reader, c.read, c.again, c.own = e, reader, nil, false, false
	c.Unsupported, c.LeftOut = false, false
}

// Build makes the chunk an event of our own. An empty name means none; it must not hold a line
// break.
func (c *Chunk) Build(name string, data []byte, reader *Reader) {
	c.Reset(sse.Event{}, reader)
	c.own = true
	c.Event, c.bufs[0] = sse.NewEvent(c.bufs[0], name, data)
}

// IsMessage reports whether there is something to read: data that is not [DONE].
func (c *Chunk) IsMessage() bool {
	return c.Kind == sse.Message && len(c.Data) > 0 && !sse.IsDone(c.Data)
}

// Content returns what the data of a message say. It is valid until the data are changed or the
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

// Reader returns what reads the stream that the chunk is of.
func (c *Chunk) Reader() *Reader { return c.reader }

// SetData changes the data of a message, which must not be its own memory. They are read anew when
// somebody asks.
func (c *Chunk) SetData(data []byte) {
	c.bufs[0], c.bufs[1] = c.bufs[1], c.bufs[0]
	c.Event, c.bufs[0] = c.With(c.bufs[0], data)
	c.read = nil
}

// Sink takes the chunks of a stream.
type Sink interface {
	// Put takes the next one and does not keep it.
	Put(c *Chunk)
}

// Stream reads one answer that comes as a stream of events: in pieces of any size, each parsed
// once. It gives whole events: one that the upstream does not finish is not begun, so that an event
// of an error may follow any time. It is for one goroutine, and in steady state allocates nothing.
// NewStream makes one.
type Stream struct {
	course

	parser *sse.Parser
	before Reader // of what the client does not see as it came
	reader Reader
	chunk  Chunk
	mended []byte
	edited []byte
	bare   []byte // an event without its log probabilities
	lead   []byte // units ahead of the first message, while it is not passed on
}

// course is what is known of one answer so far.
type course struct {
	options StreamOptions

	finished int   // of the choices, where there are several
	first    bool  // the chunk is the first message, and not passed on
	usage    Usage // that the client does not see

	state    sse.State
	begun    bool // an event with data has come
	done     bool // the last event has come
	closed   bool // [DONE] has, behind it
	ending   bool // the upstream sends no more, for the reason cause
	drained  bool // the parser holds nothing more
	ended    bool // nothing more comes, for the reason err
	progress bool // something came since Feed
	cause    error
	err      error
}

// NewStream returns a Stream that Reset makes ready for use.
func NewStream() *Stream { return &Stream{parser: sse.NewParser(0)} }

// StreamOptions say what is known of a stream before it comes.
type StreamOptions struct {
	API     openai.API
	Choices int  // that were asked for
	Quiet   bool // the proxy asked for the usage and the client did not: the client does not see it
	Alive   bool // comments are progress
	// Unweighed: the proxy asked for log probabilities and the client did not: the client does not
	// see them.
	Unweighed bool
	// Messages: the stream is one of Anthropic's Messages API, of which the end alone is known
	// here.
	Messages bool
}

// Reset prepares the stream for another answer; it keeps buffers.
func (s *Stream) Reset(o StreamOptions) {
	o.Choices = max(o.Choices, 1)
	s.course = course{options: o}
	s.parser.Reset()
	s.reader.reset()
	s.before.reset()
	s.mended, s.edited, s.bare, s.lead = s.mended[:0], s.edited[:0], s.bare[:0], s.lead[:0]
}

// Feed takes a piece of the stream, which has to stay unchanged until Next has returned nil.
func (s *Stream) Feed(piece []byte) {
	s.progress = false
	s.parser.Feed(piece)
}

// End tells that no more pieces come, and why: io.EOF for the end of the body. Next then gives what
// is left.
func (s *Stream) End(cause error) { s.ending, s.cause = true, cause }

// Peek reads ahead to the first message and reports whether it, or the end of the stream, has come.
// Next gives what was read.
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

// Ahead is how many bytes Peek has read ahead of the first message.
func (s *Stream) Ahead() int { return len(s.lead) }

// FailsFirst reports that the first message, which Peek has read, tells of an error of the server's
// own.
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

// Next returns the next unit for the client, nil when there is none in what was fed. It is valid
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

// take makes a chunk of a unit, nil for one that stays here. Behind the last event of a response a
// [DONE] may follow, which some servers send and their clients may wait for; nothing else does.
func (s *Stream) take(e *sse.Event) *Chunk {
	if s.closed || s.done && (s.options.API != openai.Response || !sse.IsDone(e.Data)) {
		return nil
	}
	if s.done {
		s.closed = true
		return s.give(e)
	}
	if s.state == sse.Running && s.reader.Shape() != Opaque {
		s.state = sse.Finished // once somebody reads the events, complete knows which choices have ended
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
			s.state = sse.Failed // whatever it is called
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

// dropUsage takes out what only the proxy has asked for: of most events the member usage where it is
// null, as OpenAI's servers have it, and, reporting true, the whole event that tells the usage
// beside no choice.
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
	return false // what a server tells unasked
}

// dropLogprobs takes log probabilities out.
func (s *Stream) dropLogprobs(c *Chunk) {
	if e := c.Content(); e.Shape != Opaque {
		for range e.Logprobs {
			s.bare = e.Append(s.bare[:0], Rewrite{Unweighed: true})
			c.SetData(s.bare)
			return
		}
	}
}

// last gives what is left at the end, and settles how the stream ended.
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
		s.done = true // the server has said why, and more may have come behind it
	case s.options.API != openai.Response && s.state == sse.Finished && s.complete():
		s.done = true
		return s.giveDone()
	default:
		s.err = ErrNoEnd
	}
	return nil
}

// complete reports whether each choice that has begun, as far as anybody has read them, and each
// that was asked for has ended.
func (s *Stream) complete() bool {
	return (s.options.Choices == 1 || s.finished >= s.options.Choices) &&
		(s.reader.Shape() == Opaque || s.reader.Complete())
}

// Begun reports whether an event with data has come.
func (s *Stream) Begun() bool { return s.begun }

// Done reports whether the answer has come to its end, which may be an error that the server tells.
func (s *Stream) Done() bool { return s.done }

// Ended reports whether nothing more comes, and why: nil for a stream that is complete.
func (s *Stream) Ended() (ended bool, err error) { return s.ended, s.err }

// NextNumber is the sequence_number that an event behind those that were read would have.
func (s *Stream) NextNumber() int { return s.reader.sequence + 1 }

// Failed reports whether the upstream has told of an error in the stream itself.
func (s *Stream) Failed() bool { return s.state == sse.Failed }

// Progress reports whether what was fed last, as far as Next has given it, is progress: comments
// are where they are said to be, blank lines never.
func (s *Stream) Progress() bool { return s.progress }

// HiddenUsage is the usage that the client has not seen, zero without one.
func (s *Stream) HiddenUsage() Usage { return s.usage }
