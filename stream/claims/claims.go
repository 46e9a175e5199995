// Package claims splits the text of an answer into claims while it streams: sentences and clauses,
// list items, table cells. A claim is the unit that is checked against evidence.
//
// A Splitter accepts text in pieces of any size, and the claims do not depend on where the pieces
// are cut. Claims come in order. Between them there is only white space, mark-up (bullets, heading
// marks, table bars) and isolated punctuation. The text of code blocks is returned line by line as
// claims of kind Code, which contain nothing to check, so that a caller that holds text back can
// release it.
//
// # Blocks and JSON
//
// With Options.Blocks, code also includes what agents write without fences. Such a block ends with
// its end mark, or where the following text cannot belong to it, and after 128 KiB in any case. A
// tag begins one only if it has attributes or contains a tag or JSON, except for <code> at the end
// of a line.
//
// With Options.Values, JSON is split by its values instead. This applies to a text that begins with
// JSON, to JSON blocks, and to an object that begins on its own line or after a colon. Between its
// claims there are member names and values that state nothing.
//
// # Sentence boundaries
//
// The rules of UAX 29 are not followed exactly, for two reasons: rule SB8 may look ahead without
// limit before it decides on a full stop, which a stream cannot wait for, and the rules break after
// abbreviations and initials. The package uses their classes (sentence terminals, closing marks)
// and their order: terminal, closing marks, spaces. A claim without an end is closed after
// Options.MaxWords words. The next one begins Options.Stride words after its start, so that every
// stretch of text is seen with its context.
//
// A Splitter holds no more than a claim of MaxBytes and a few words after it, and starts no
// goroutine.
package claims

import (
	"cmp"
	"errors"
	"fmt"
)

// Kind says what part of the answer a claim is.
type Kind uint8

// The kinds of claims.
const (
	Prose   Kind = iota // a sentence or clause of running text
	Heading             // a line with heading marks
	Item                // a sentence of a list item
	Cell                // a table cell
	Code                // a line of a code block, or a displayed formula: nothing to check
	Value               // a number in JSON, or a string of a few words
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case Heading:
		return "heading"
	case Item:
		return "item"
	case Cell:
		return "cell"
	case Code:
		return "code"
	case Value:
		return "value"
	case Prose:
	}
	return "prose"
}

// Span is a range in the text of the choice.
type Span struct {
	Start, End int // End is exclusive
}

// Frame says in what kind of JSON a claim is.
type Frame uint8

// The frames.
const (
	NoFrame Frame = iota // in text, or in JSON that is the answer or part of its text
	Shown                // in a block after other text: the answer, or code that is shown
	Example              // in such a block that is an example, or is to be written or called
)

// Claim is one finished claim.
type Claim struct {
	Text    string // the bytes of the text at Bytes
	Context string // of a Cell: the heads of its column and its row; otherwise empty
	Bytes   Span   // in bytes from the start of the choice
	// Runes is the range in code points from the start of the choice; an invalid UTF-8 byte counts
	// as one.
	Runes Span
	Kind  Kind
	// Said is the text of a JSON claim without escapes, if Text has some. For a Value it begins
	// with the names of its object and its member, which are Lead bytes long. Otherwise it is
	// empty.
	Said string
	Lead int
	// Place is Inside if nothing may be inserted after the claim, because it ends in a JSON object,
	// directly after one, or in indented code.
	Place  Place
	Frame  Frame
	Window bool // closed by length, not by a boundary; the next claim may overlap
	// Unfinished is set if the end of the text closed the claim, and it does not end like a
	// sentence. It may be complete nevertheless: few list items have a full stop.
	Unfinished bool
}

// Options are the limits of a Splitter. Zero fields take the value of DefaultOptions.
type Options struct {
	// MaxWords closes a claim without a boundary after this many words, in [8, 1000]. A Han or Kana
	// character counts as a word.
	MaxWords int
	// Stride is the number of words between the start of a claim closed by length and the start of
	// the next, in [MaxWords/2, MaxWords]. 0 selects two thirds of MaxWords.
	Stride int
	// MaxBytes closes a claim without words, such as a base64 string. At least 256.
	MaxBytes int
	// Blocks treats as code what programs read from an answer without a fence around it: calls and
	// files in the tags of agents, edits, patches and diffs. It also marks claims that end in a
	// JSON object or in indented code. Use it for texts written by agents.
	Blocks bool
	// Values reads JSON value by value: a text that is JSON, a JSON block (```json), or an object
	// after other text. Each string is split like a text of its own; a number or a string of a few
	// words is a claim of kind Value. No claims are made of member names, of single words that
	// represent a value (true, "refund_policy"), and of members that say how certain an answer is
	// and where it was found (confidence, page).
	Values bool
}

// DefaultOptions returns 48 words, which with two premises fit the 96 tokens that a checker reads
// at once, a stride of 32 words, and 2 KiB.
func DefaultOptions() Options { return Options{MaxWords: 48, Stride: 32, MaxBytes: 2 << 10} }

// Validate returns an error for every field out of range.
func (o Options) Validate() error {
	var errs []error
	if o.MaxWords != 0 && (o.MaxWords < 8 || o.MaxWords > 1000) {
		errs = append(errs, fmt.Errorf("max words %d: not in [8, 1000]", o.MaxWords))
	}
	w := o.withDefaults()
	if w.Stride < w.MaxWords/2 || w.Stride > w.MaxWords {
		errs = append(errs, fmt.Errorf("stride %d: not in [%d, %d]", w.Stride, w.MaxWords/2, w.MaxWords))
	}
	if w.MaxBytes < 256 {
		errs = append(errs, fmt.Errorf("max bytes %d: less than 256", w.MaxBytes))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.MaxWords = cmp.Or(o.MaxWords, d.MaxWords)
	o.Stride = cmp.Or(o.Stride, (2*o.MaxWords+2)/3)
	o.MaxBytes = cmp.Or(o.MaxBytes, d.MaxBytes)
	return o
}

// feedPiece is how many bytes of a delta are processed at once, so that the buffer stays small for
// deltas of any size.
const feedPiece = 1 << 10

// Splitter splits the text of one choice. Not safe for concurrent use.
type Splitter struct {
	opts Options
	out  []Claim

	buf      []byte // text from the start of the open claim, or of the gap before it
	base     int    // bytes of the choice before buf
	baseRune int    // code points of the choice before buf
	pos      int    // bytes of buf that are processed
	final    bool   // no more text will arrive

	open    bool // buf[start:] belongs to a claim
	start   int
	end     int // after the last non-space byte of the open claim
	words   int
	inWord  bool
	mark    int // start of the next claim if this one is closed by length
	markOK  bool
	lineLen int // code points of the claim on this line

	kind      Kind
	lineStart bool
	fence     fence
	value     value
	json      members
	begun     bool   // a line with text has begun
	intro     string // the last text claim, which may introduce a block
	layout    layout
	behind    bool // a code block ended on this line, and no text has followed
	math      mathKind
	tick      int // length of the backtick run that opened inline code, or 0
	depth     int // open brackets
	table     table
}

// New returns a Splitter for one choice, or an error if the options are invalid.
func New(o Options) (*Splitter, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("claim splitter: %w", err)
	}
	s := &Splitter{opts: o.withDefaults()}
	s.Reset()
	return s, nil
}

// Reset prepares the splitter for another choice. Buffers are reused.
func (s *Splitter) Reset() {
	json := members{text: s.json.text, levels: s.json.levels[:0], escapes: s.json.escapes[:0]}
	*s = Splitter{
		opts: s.opts, out: s.out[:0], buf: s.buf[:0], lineStart: true, table: table{heads: s.table.heads[:0]},
		json: json,
	}
}

// Continue prepares the splitter for text that continues another text.
func (s *Splitter) Continue() {
	s.Reset()
	s.begun = true
}

// Feed processes the next piece of text and returns the claims that it finished, in order. The
// slice is valid until the next call; its strings remain valid. Pieces may be cut anywhere, even
// inside a character.
func (s *Splitter) Feed(delta string) []Claim { return feed(s, delta) }

// FeedBytes is Feed for text in bytes, which it does not keep.
func (s *Splitter) FeedBytes(delta []byte) []Claim { return feed(s, delta) }

func feed[text ~string | ~[]byte](s *Splitter, delta text) []Claim {
	s.out = s.out[:0]
	for len(delta) > feedPiece {
		s.buf = append(s.buf, delta[:feedPiece]...)
		s.judge()
		delta = delta[feedPiece:]
	}
	s.buf = append(s.buf, delta...)
	s.judge()
	return s.out
}

// Flush processes the end of the text and returns the claims that were still open. After Flush, the
// splitter accepts text only after Reset or Continue.
func (s *Splitter) Flush() []Claim {
	s.out = s.out[:0]
	s.final = true
	s.judge()
	if s.json.open && s.json.token == stringToken {
		s.endString()
	}
	if s.open {
		before := len(s.out)
		stopped := s.stopped()
		if s.close(s.end, false); len(s.out) > before {
			s.out[before].Unfinished = !stopped
		}
	}
	return s.out
}

// Pending returns the number of bytes that belong to no finished claim yet.
func (s *Splitter) Pending() int { return len(s.buf) }

// judge finishes the claims that the text so far allows.
func (s *Splitter) judge() {
	s.scan()
	s.compact()
}
