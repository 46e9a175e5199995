// Package claims cuts the text of an answer into claims while it streams: sentences and clauses,
// list items, table cells. A claim is the unit that is checked against evidence.
//
// A Splitter takes text in pieces of any size. Where the pieces are cut changes nothing: the claims
// of a text are the same for every way to feed it. Claims come in order, and between them lies only
// white space, mark-up (bullets, heading marks, table bars) and punctuation that stands alone. Text
// of code blocks is handed out line by line as claims of kind Code, which carry nothing to check;
// the caller that holds text back can let it go. With Options.Blocks code is also what agents write
// without fences. Such a block ends with its end mark, or where what comes cannot belong to it, and
// after 128 KiB in any case; a tag begins one only with attributes or with a tag or JSON in it, but
// for <code> at the end of a line.
//
// With Options.Values JSON is cut by its values instead where a text begins so, in blocks that are
// of JSON, and where an object begins in a line of its own or behind a colon; between its claims lie
// names of members and values that state nothing.
//
// The sentence rules of UAX 29 are not followed to the letter, for two reasons: its rule SB8 may
// look ahead without bound before it decides about a full stop, which a stream cannot wait for, and
// it breaks after abbreviations and initials. Taken from it are the classes (sentence terminals,
// closing marks) and the order: terminal, closing marks, spaces. A claim that runs on without an
// end is closed after Options.MaxWords words; the next one begins Options.Stride words after its
// start, so that every stretch of text is seen with what stands around it.
//
// A Splitter holds no more than a claim of MaxBytes and a few words after it, and starts no
// goroutine.
package claims

import (
	"cmp"
	"errors"
	"fmt"
)

// Kind tells where in the answer a claim stands.
type Kind uint8

// The kinds of a claim.
const (
	Prose   Kind = iota // a sentence or clause of running text
	Heading             // a line with heading marks
	Item                // a sentence of a list item
	Cell                // a table cell
	Code                // a line of a code block, or a formula set apart: nothing to check
	Value               // a number of JSON, or a string of a few words
)

// String is the name of the kind.
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

// Span is a place in the text of the choice.
type Span struct {
	Start, End int // End is the place after the last
}

// Frame tells in what kind of JSON a claim stands.
type Frame uint8

// The frames.
const (
	NoFrame Frame = iota // in text, or in JSON that is the answer or a part of its text
	Shown                // in a block behind other text: it may be the answer, or code that is shown
	Example              // in such a block that is shown as an example, to be written or to be called
)

// Claim is one finished claim.
type Claim struct {
	Text    string // the bytes of the text at Bytes
	Context string // of a Cell: the head of its column and of its row; else empty
	Bytes   Span   // in bytes from the start of the choice
	Runes   Span   // in code points from the start of the choice; a byte that is no UTF-8 counts as one
	Kind    Kind
	// Said is what a claim of JSON reads like where Text has escapes, and of a Value what its
	// object and its member are called before it, in Lead bytes; else empty.
	Said string
	Lead int
	// Place: Inside where nothing may be put behind the claim, which ends in a JSON object, or
	// right behind one, or in indented code.
	Place  Place
	Frame  Frame
	Window bool // closed by length, not by a boundary; the next claim may begin before this one ends
	// Unfinished: the end of the text closed it and not a boundary, and it does not end like a
	// sentence. It may be whole nonetheless: few items of lists have a full stop.
	Unfinished bool
}

// Options are the limits of a Splitter. Zero fields take the value of DefaultOptions.
type Options struct {
	// MaxWords closes a claim that has no boundary for so many words; a Han or Kana character
	// counts as a word. [8, 1000].
	MaxWords int
	// Stride is the number of words between the start of a claim closed by length and the start of
	// the next, [MaxWords/2, MaxWords].
	Stride int
	// MaxBytes closes a claim without words (a base64 string). At least 256.
	MaxBytes int
	// Blocks takes for code what programs read out of an answer without a fence around it: calls
	// and files in the tags of agents, edits, patches and diffs; and tells of claims that end in a
	// JSON object or in indented code. For texts that agents write.
	Blocks bool
	// Values reads a text that is JSON, or holds a block of it (```json) or an object behind other
	// text, value by value: each string is a text of its own, a number or a string of a few words a
	// claim of kind Value. Names of members are no claims, nor are words that stand
	// for a value (true, "refund_policy"), nor values of members that tell how sure an answer is
	// and where it was found (confidence, page).
	Values bool
}

// DefaultOptions are 48 words, which with two premises fit the 96 tokens that a checker reads at
// once, a stride of 32 words and 2 KiB.
func DefaultOptions() Options { return Options{MaxWords: 48, Stride: 32, MaxBytes: 2 << 10} }

// Validate reports every field out of its range.
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

// feedPiece is how much of a delta is taken in at once, so that the buffer stays small for a delta
// of any size.
const feedPiece = 1 << 10

// Splitter cuts the text of one choice. Not safe for concurrent use.
type Splitter struct {
	opts Options
	out  []Claim

	buf      []byte // text from the start of the open claim, or of the gap before it
	base     int    // bytes of the choice before buf
	baseRune int    // code points of the choice before buf
	pos      int    // bytes of buf that are judged
	final    bool   // no more text will come

	open    bool // buf[start:] belongs to a claim
	start   int
	end     int // after the last byte of the open claim that is no space
	words   int
	inWord  bool
	mark    int // where the next claim begins if this one is closed by length
	markOK  bool
	lineLen int // code points of the claim on this line

	kind      Kind
	lineStart bool
	fence     fence
	value     value
	json      members
	begun     bool   // a line with text has begun
	intro     string // the last claim that is text, which may say what a block behind it is
	layout    layout
	behind    bool // a block of code ended in this line, and no text has followed
	math      mathKind
	tick      int // length of the run of backticks that opened inline code, or 0
	depth     int // open brackets
	table     table
}

// New returns a Splitter for one choice. It fails when the options do not hold.
func New(o Options) (*Splitter, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("claim splitter: %w", err)
	}
	s := &Splitter{opts: o.withDefaults()}
	s.Reset()
	return s, nil
}

// Reset makes the splitter ready for another choice; buffers are kept.
func (s *Splitter) Reset() {
	json := members{text: s.json.text, levels: s.json.levels[:0], escapes: s.json.escapes[:0]}
	*s = Splitter{
		opts: s.opts, out: s.out[:0], buf: s.buf[:0], lineStart: true, table: table{heads: s.table.heads[:0]},
		json: json,
	}
}

// Continue makes the splitter ready for text that follows on a text behind its end.
func (s *Splitter) Continue() {
	s.Reset()
	s.begun = true
}

// Feed takes the next piece of text and returns the claims that it finished, in order. The slice is
// valid until the next call; the strings in it stay. Pieces may be cut anywhere, also inside a
// character.
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

// Flush tells that no text follows and returns the claims that were still open. After it the
// splitter takes text again only after Reset.
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

// Pending is the number of bytes taken in that belong to no finished claim yet.
func (s *Splitter) Pending() int { return len(s.buf) }

// judge finishes the claims that the text so far can tell.
func (s *Splitter) judge() {
	s.scan()
	s.compact()
}
