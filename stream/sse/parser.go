package sse

import (
	"bytes"
	"errors"
	"fmt"
)

// DefaultMaxEventBytes is the default limit for an event: 8 MiB, enough for an image in base64.
const DefaultMaxEventBytes = 8 << 20

// keptBytes is how much of a grown buffer is kept for the next event. A stream of tokens needs far
// less, and hundreds of streams may be open at once.
const keptBytes = 64 << 10

// Kind is the kind of a unit of a stream.
type Kind uint8

const (
	// Message is an event with data, possibly empty: the units that clients see.
	Message Kind = iota
	// Fields is a block without data, such as a lone retry: or event:. Clients process it but
	// report no event.
	Fields
	// Comment is one comment line outside an event, without the blank line that often follows.
	Comment
	// Blank is a blank line that does not end an event.
	Blank
)

// Event is a unit of a stream. Its slices belong to the Parser or to the piece it was fed, and are
// valid until the next call of Feed, Next or End.
type Event struct {
	Kind Kind
	// Cut: the stream ended before the event's blank line. Clients ignore such an event.
	Cut bool
	// Raw is the unit with all its line ends. The Raws of a stream, joined, are the stream without
	// its byte order marks, and without any LF directly after a blank line that consists of a bare
	// CR and follows another bare CR: those two CRs end the event immediately, whatever comes next.
	Raw []byte
	// Name is the value of the last event field; empty means message.
	Name []byte
	// Data is the values of the data fields, joined by LF. It may hold any bytes, in any encoding,
	// but no CR and no LF other than the joints.
	Data []byte
	// At is the offset of Data in Raw, or -1 if Data was joined from several lines or is absent.
	At int

	bareCR bool
	named  bool // see KeepName
	lines  int  // of data
}

// TooLargeError ends the reading of a stream: an event, or a line outside of one, exceeds the
// limit.
type TooLargeError struct {
	Limit int // bytes
}

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("event of more than %d bytes", e.Limit)
}

// ErrUnread ends the reading of a stream: Feed was called before Next had returned everything. It
// is a bug in the caller.
var ErrUnread = errors.New("sse: piece fed before the one before it was read")

// Parser cuts a stream into units. It is for one stream and one goroutine. The zero value is not
// usable.
type Parser struct {
	max int
	err error

	chunk []byte
	pos   int // in chunk: after the last line that was read
	start int // in chunk: start of the part of the unit that is not held
	// in chunk: the first LF at or after pos, valid while it is not below pos; len(chunk) if there
	// is none
	nextLF int
	nextCR int    // likewise
	held   []byte // the beginning of the unit, from earlier pieces
	spent  bool   // held belongs to an event that was returned

	mark   int  // bytes of a byte order mark seen; behindMark once anything else was
	dropLF bool // an LF that comes next belongs to the previous line end
	waits  bool // held ends with the CR of a line to which an LF may belong

	unit  unit
	data  []byte // joined
	event Event  // the event returned last
}

// unit is what is known about the unit being read; offsets are in its Raw.
type unit struct {
	line   int  // start of the current line
	crs    bool // a line ended in a bare CR
	bare   bool // the last line did
	fields bool // there was a line other than a comment
	lines  int  // of data
	data   [2]int
	name   [2]int
}

// NewParser returns a Parser that refuses events of more than maxEventBytes, counting all their
// lines. Values below 1 mean DefaultMaxEventBytes.
func NewParser(maxEventBytes int) *Parser {
	if maxEventBytes <= 0 {
		maxEventBytes = DefaultMaxEventBytes
	}
	return &Parser{max: maxEventBytes}
}

// Reset prepares the parser for another stream; it keeps the limit and the buffers.
func (p *Parser) Reset() {
	*p = Parser{max: p.max, held: p.held[:0], data: p.data[:0]}
}

// Feed gives the parser the next bytes of the stream. The piece must stay unchanged until Next has
// returned false, because events that lie completely in it alias it. The rest is then copied.
func (p *Parser) Feed(piece []byte) {
	if p.pos < len(p.chunk) && p.err == nil {
		p.err = ErrUnread
	}
	p.release()
	p.chunk, p.pos, p.start, p.nextLF, p.nextCR = piece, 0, 0, -1, -1
	p.skipMark()
}

// Next returns the next unit of what was fed, nil when there is none or after an error.
func (p *Parser) Next() *Event {
	p.release()
	for p.err == nil {
		width, ok := p.endLine()
		if !ok || !p.fits(p.pos) {
			return nil
		}
		if e := p.line(width); e != nil {
			return e
		}
	}
	return nil
}

// Err returns why reading ended: a *TooLargeError, ErrUnread, or nil if it has not.
func (p *Parser) Err() error { return p.err }

// End reports the end of the stream. It returns what is left: an event that is complete because its
// last line ended in a bare CR, or a Cut one. Call it once Next has returned false.
func (p *Parser) End() *Event {
	p.release()
	p.chunk, p.pos, p.start = nil, 0, 0
	if p.mark != behindMark {
		p.held = append(p.held, byteOrderMark[:p.mark]...)
	}
	p.mark = behindMark
	if p.err != nil || len(p.held) == 0 {
		return nil
	}
	if p.waits {
		p.waits = false
		if e := p.line(1); e != nil {
			return e
		}
	}
	if rest := p.held[p.unit.line:]; len(rest) > 0 {
		p.field(p.held, rest)
	}
	e := p.end(p.held, p.unit.kind())
	e.Cut = true
	return e
}

// release drops the event that was returned last.
func (p *Parser) release() {
	if !p.spent {
		return
	}
	p.spent = false
	if cap(p.held) > keptBytes {
		p.held = nil
	}
	if cap(p.data) > keptBytes {
		p.data = nil
	}
	p.held = p.held[:0]
}

const (
	byteOrderMark = "\xef\xbb\xbf"
	behindMark    = -1
)

// skipMark skips a byte order mark at the start of the stream, which may arrive in pieces, and
// further ones directly after it: once the first is removed, a client would take the next one for a
// mark.
func (p *Parser) skipMark() {
	for p.mark != behindMark && p.pos < len(p.chunk) {
		if p.chunk[p.pos] != byteOrderMark[p.mark] {
			p.held = append(p.held, byteOrderMark[:p.mark]...)
			p.mark = behindMark
			break
		}
		p.mark = (p.mark + 1) % len(byteOrderMark)
		p.pos++
	}
	p.start = p.pos // bytes that only looked like a mark are held now
}

// endLine moves pos past the end of the current line and returns the length of the line end in
// bytes. If this piece has no line end, it holds the piece back and reports false.
func (p *Parser) endLine() (width int, ok bool) {
	if p.pos < len(p.chunk) && p.dropLF {
		p.dropLF = false
		if p.chunk[p.pos] == '\n' {
			p.pos++
			p.start = p.pos
		}
	}
	if p.waits {
		if p.pos == len(p.chunk) {
			return 0, false
		}
		p.waits = false
		if p.chunk[p.pos] != '\n' {
			return 1, true
		}
		p.pos++
		return 2, true
	}
	at := p.lineBreak()
	switch {
	case at == len(p.chunk):
		p.hold()
		return 0, false
	case p.chunk[at] == '\n':
		p.pos = at + 1
		return 1, true
	case p.unit.bare && len(p.held)+at-p.start == p.unit.line: // a blank line after a bare CR
		p.dropLF = true
		p.pos = at + 1
		return 1, true
	case at+1 == len(p.chunk):
		p.hold()
		p.waits = p.err == nil
		return 0, false
	}
	p.pos = at + 1
	if p.chunk[p.pos] != '\n' {
		return 1, true
	}
	p.pos++
	return 2, true
}

// lineBreak returns the offset of the first CR or LF at or after pos, or len(chunk). Each byte is
// examined at most twice, whatever the line ends.
func (p *Parser) lineBreak() int {
	if p.nextLF < p.pos {
		p.nextLF = index(p.chunk, p.pos, len(p.chunk), '\n')
	}
	if p.nextCR < p.pos {
		// A CR after the next LF is not needed yet; the search continues from there.
		p.nextCR = index(p.chunk, p.pos, p.nextLF, '\r')
		if p.nextCR == p.nextLF {
			p.nextCR = -1
			return p.nextLF
		}
	}
	return min(p.nextLF, p.nextCR)
}

// index returns the offset of the first c in b[from:to], to without one.
func index(b []byte, from, to int, c byte) int {
	if i := bytes.IndexByte(b[from:to], c); i >= 0 {
		return from + i
	}
	return to
}

// hold keeps the rest of the piece until the next one.
func (p *Parser) hold() {
	p.pos = len(p.chunk)
	if !p.fits(p.pos) {
		return
	}
	p.held = append(p.held, p.chunk[p.start:]...)
	p.start = p.pos
}

// fits reports whether the unit up to pos of the piece is within the limit; if not, it ends the
// reading.
func (p *Parser) fits(pos int) bool {
	if len(p.held)+pos-p.start > p.max {
		p.err = &TooLargeError{Limit: p.max}
		p.held = nil
		return false
	}
	return true
}

// line processes the line before pos, whose last width bytes are its line end. It returns the unit
// that the line completes, or nil.
func (p *Parser) line(width int) *Event {
	raw := p.chunk[p.start:p.pos]
	if len(p.held) > 0 {
		p.held = append(p.held, raw...)
		p.start = p.pos
		raw = p.held
	}
	u := &p.unit
	line := raw[u.line : len(raw)-width]
	u.bare = raw[len(raw)-1] == '\r'
	u.crs = u.crs || u.bare
	switch {
	case len(line) == 0 && u.line == 0:
		return p.end(raw, Blank)
	case len(line) == 0:
		return p.end(raw, u.kind())
	case line[0] == ':' && u.line == 0:
		return p.end(raw, Comment)
	}
	p.field(raw, line)
	u.line = len(raw)
	return nil
}

// field records a line that is not blank, at u.line to the end of raw.
func (p *Parser) field(raw, line []byte) {
	u := &p.unit
	if line[0] == ':' {
		return
	}
	u.fields = true
	name, skip := line, len(line)
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, skip = line[:i], i+1
		if skip < len(line) && line[skip] == ' ' {
			skip++
		}
	}
	value := [2]int{u.line + skip, u.line + len(line)}
	switch string(name) {
	case "data":
		u.lines++
		if u.lines == 1 {
			u.data = value
			return
		}
		if u.lines == 2 {
			p.data = append(p.data[:0], raw[u.data[0]:u.data[1]]...)
		}
		p.data = append(append(p.data, '\n'), raw[value[0]:value[1]]...)
	case "event":
		u.name = value
	}
}

func (u *unit) kind() Kind {
	switch {
	case u.lines > 0:
		return Message
	case u.fields:
		return Fields
	}
	return Comment
}

// end returns the unit in raw and begins the next one.
func (p *Parser) end(raw []byte, kind Kind) *Event {
	u, e := &p.unit, &p.event
	*e = Event{Kind: kind, Raw: raw, At: -1, bareCR: u.crs, lines: u.lines}
	switch {
	case u.lines == 1:
		e.Data, e.At = raw[u.data[0]:u.data[1]], u.data[0]
	case u.lines > 1:
		e.Data = p.data
	}
	e.Name = raw[u.name[0]:u.name[1]]
	*u = unit{}
	p.start, p.spent = p.pos, true
	return e
}
