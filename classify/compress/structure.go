package compress

import (
	"strings"
	"unicode/utf8"
)

// Stage 1, structure: lines are classified by their appearance, runs of similar lines are blocks,
// and blocks are cut into pieces.

// shape is the appearance of a line. It determines where pieces may end.
type shape uint8

const (
	prose  shape = iota // full stops end sentences
	quoted              // prose after a ">"
	code
	record // JSON and the like
	table
	logged // starts with a time
)

// sentences reports whether a full stop ends a piece. In the other shapes only the end of the line
// does, or size.
func (s shape) sentences() bool { return s == prose || s == quoted }

// Line and piece lengths, in bytes.
const (
	shortLine   = 32 // a shorter line shares its piece with the next of its block
	joinedLines = 96 // maximum total length of such lines
	stub        = 8  // too short to be a piece: joins the next line in any case
	wrapped     = 50 // minimum length of a line that was wrapped to fit a page
	titleLine   = 80 // maximum length of a heading
	probe       = 160
	encodedRun  = 64       // minimum length of letters and digits that may be encoded data
	longestRun  = 64 << 10 // maximum length examined as a whole

	shortSentence = 16 // shorter sentences join the next
	tabWidth      = 4
)

// splitter cuts f.text into f.pieces.
type splitter struct {
	*funnel

	blank  bool // the previous line was empty
	fenced bool // between lines of ```
	begun  bool
	last   shape
}

// split is stage 1. It reports whether it was completed.
func (f *funnel) split() bool {
	s := splitter{funnel: f}
	for at := 0; at < len(f.text); {
		if f.ended() {
			return false
		}
		end := len(f.text)
		if n := strings.IndexByte(f.text[at:], '\n'); n >= 0 {
			end = at + n
		}
		if !s.line(at, end) {
			return false
		}
		at = end + 1
	}
	return true
}

// line cuts the line text[from:to]. It reports whether it was completed.
func (s *splitter) line(from, to int) bool {
	begin := from
	from, to = trim(s.text, from, to)
	indent := (from - begin) + tabWidth*strings.Count(s.text[begin:from], "\t")
	if from == to {
		s.blank = true
		return true
	}
	line := s.text[from:to]
	if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		s.fenced = !s.fenced
		s.blank = true
		return true
	}
	sh := code
	if !s.fenced {
		sh = lineShape(line, indent)
	}
	apart := !s.begun || s.blank || sh != s.last
	var first marks
	if apart {
		first = leads
	}
	if sh == prose && s.isHeading(line, apart) {
		first |= heading
	}
	if s.joins(line, indent, sh, apart) {
		p := &s.pieces[len(s.pieces)-1]
		from, first = p.start, p.marks
		s.pieces = s.pieces[:len(s.pieces)-1]
	}
	s.blank, s.begun, s.last = first&heading != 0, true, sh
	return s.cut(from, to, sh, first)
}

// trim moves from and to inwards past white space and control characters.
func trim(text string, from, to int) (start, end int) {
	for from < to && text[from] <= ' ' {
		from++
	}
	for to > from && text[to-1] <= ' ' {
		to--
	}
	return from, to
}

// joins reports whether line continues the last piece: both are short, or it is the rest of a
// sentence that was wrapped to fit a page.
func (s *splitter) joins(line string, indent int, sh shape, apart bool) bool {
	if len(s.pieces) == 0 {
		return false
	}
	p := &s.pieces[len(s.pieces)-1]
	if p.marks&encoded != 0 {
		return false
	}
	size := p.end - p.start
	switch {
	case size < stub || !s.blank && len(line) < stub:
		return true
	case apart || p.marks&heading != 0:
		return false
	case size < shortLine && len(line) < shortLine:
		return size+len(line) < joinedLines
	case !sh.sentences() || indent > 0 || size+len(line) > s.longest:
		return false
	default:
		return size >= wrapped && isLower(line[0]) && endsInside(s.text[p.start:p.end])
	}
}

// endsInside reports whether text ends like a line that continues on the next: with a letter or a
// comma.
func endsInside(text string) bool {
	c := text[len(text)-1]
	return c == ',' || isLower(c) || c >= utf8.RuneSelf
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// lineShape returns the shape of a line outside of a fence, from its first bytes and its last.
func lineShape(line string, indent int) shape {
	first, last := line[0], line[len(line)-1]
	head := line[:min(len(line), probe)]
	switch {
	case first == '>':
		return quoted
	case first == '|' || strings.Count(head, " | ") >= 2 || strings.Count(head, "\t") >= 2:
		return table
	case first == '{' || (first == '[' || first == '"') && strings.Contains(head, "\":"):
		return record
	case timed(head):
		return logged
	case last == '{' || last == '}' || last == ';' || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*"):
		return code
	case indent >= 2 && strings.ContainsAny(head, "={}()[];"), strings.HasPrefix(line, "#include"):
		return code
	default:
		return prose
	}
}

// timed reports whether a line starts with a time or a date, possibly after a bracket or a word:
// most of six digits, and two of the separators of times, in its first bytes.
func timed(head string) bool {
	digits, separators := 0, 0
	for i := range min(len(head), 26) {
		switch c := head[i]; {
		case isDigit(c):
			digits++
		case (c == ':' || c == '-' || c == '/' || c == '.') && i > 0 && isDigit(head[i-1]):
			separators++
		}
	}
	return digits >= 6 && separators >= 2
}

// isHeading reports whether a line of prose is a heading: marked as one, or short, separate and
// without punctuation at its end.
func (*splitter) isHeading(line string, apart bool) bool {
	if len(line) > titleLine {
		return false
	}
	if strings.HasPrefix(line, "#") {
		rest := strings.TrimLeft(line, "#")
		return rest != "" && rest[0] == ' '
	}
	c := line[len(line)-1]
	return apart && strings.Count(line, " ") < 10 && (isLower(c) || isUpper(c) || isDigit(c) || c == ':')
}

// strength is how suitable a position is for a cut.
type strength uint8

const (
	anywhere strength = iota
	space
	clause   // after a comma, a semicolon
	member   // after a member of a list or object
	sentence // after a full stop
)

// cut appends the pieces of text[from:to]: it cuts at the ends of sentences if the shape has them,
// around encoded data, and at the best position in their second half if they exceed f.longest. A
// line that is only slightly longer is not cut, because little would remain. It reports whether it
// was completed.
func (s *splitter) cut(from, to int, sh shape, first marks) bool {
	c := cutting{sh: sh, first: first, start: from, at: from, to: to}
	for c.at < to {
		if s.ended() {
			return false
		}
		if edges[s.text[c.at]] == inRun {
			s.run(&c)
		} else {
			s.pass(&c)
		}
		if !s.shorten(&c) {
			return false
		}
	}
	s.add(c.start, to, c.first)
	return true
}

// cutting is the state of cutting a line.
type cutting struct {
	sh     shape
	first  marks // of the next piece
	start  int   // of the next piece
	at, to int   // the next position to read, and the end of the line
	best   strength
	bestAt int // the best position for a cut so far, if best is set
}

// run reads a run of letters and digits. Encoded data becomes a piece of its own.
func (s *splitter) run(c *cutting) {
	end := runEnd(s.text, c.at, min(c.to, c.at+longestRun))
	if isEncoded(s.text[c.at:end]) {
		c.first = s.add(c.start, c.at, c.first)
		c.first = s.add(c.at, end, c.first|encoded)
		c.start, c.best = end, anywhere
	}
	c.at = end
}

// pass reads a character between runs.
func (s *splitter) pass(c *cutting) {
	var g strength
	g, c.at = s.edge(c.at, c.to)
	switch {
	case g == sentence && c.sh.sentences() && c.at-c.start >= shortSentence:
		c.first = s.add(c.start, c.at, c.first)
		c.start, c.best = c.at, anywhere
	case g > anywhere && g >= c.best && c.at-c.start > s.longest/2 && c.at-c.start <= s.longest:
		c.best, c.bestAt = g, c.at
	}
}

// shorten adds pieces until the unprocessed text is not longer than a piece may be. It reports
// whether it was completed.
func (s *splitter) shorten(c *cutting) bool {
	for c.at-c.start > s.longest && c.to-c.start > s.longest+s.longest/4 {
		if s.ended() {
			return false
		}
		if c.best == anywhere {
			c.bestAt = wholeRune(s.text, c.start, c.start+s.longest)
		}
		c.first = s.add(c.start, c.bestAt, c.first) | goes
		c.start, c.best = c.bestAt, anywhere
	}
	return true
}

// add appends the piece text[from:to] without the white space at its ends, if anything is left, and
// returns the marks for the next piece of the line.
func (s *splitter) add(from, to int, m marks) marks {
	from, to = trim(s.text, from, to)
	if from == to {
		return m &^ encoded
	}
	s.pieces = append(s.pieces, piece{start: from, end: to, marks: m})
	return 0
}

// edgeClass is what a byte may be the end of.
type edgeClass uint8

const (
	inside edgeClass = iota
	inRun            // letters, digits and the two other characters of base64
	blank            // white space
	stop             // . ! ?
	comma            // , ; : |
	wide             // first byte of a character beyond ASCII that may end a sentence
)

//nolint:gochecknoglobals // constant table
var edges = func() (t [256]edgeClass) {
	for c := range t {
		switch b := byte(c); {
		case b <= ' ':
			t[c] = blank
		case isLower(b), isUpper(b), isDigit(b), b == '+', b == '/':
			t[c] = inRun
		case b == '.', b == '!', b == '?':
			t[c] = stop
		case b == ',', b == ';', b == ':', b == '|':
			t[c] = comma
		case b == 0xD8 || b == 0xDB || b == 0xE0 || b == 0xE1 || b == 0xE3 || b == 0xEF:
			t[c] = wide
		}
	}
	return t
}()

// edge returns the strength of a cut after the character at text[at], and its position.
func (s *splitter) edge(at, to int) (g strength, next int) {
	switch edges[s.text[at]] {
	case blank:
		return space, at + 1
	case stop:
		next = closers(s.text, at+1, to)
		if endsSentence(s.text, at, next, to) {
			return sentence, next
		}
		return anywhere, at + 1
	case comma:
		if s.text[at] == ',' && at > 0 && strings.IndexByte("\"}]", s.text[at-1]) >= 0 {
			return member, at + 1
		}
		return clause, at + 1
	case wide:
		r, n := utf8.DecodeRuneInString(s.text[at:to])
		if wideStop(r) {
			return sentence, closers(s.text, at+n, to)
		}
		if r == '\u3001' || r == '\uff0c' || r == '\u3000' {
			return clause, at + n
		}
		return anywhere, at + n
	case inside, inRun:
	}
	return anywhere, at + 1
}

// wideStop reports whether r ends a sentence without a space after it: the full stops, question and
// exclamation marks of Chinese and Japanese, Arabic, Urdu, Devanagari, Ethiopic, Khmer and Burmese.
func wideStop(r rune) bool {
	switch r {
	case '\u3002', '\uff01', '\uff1f', '\uff0e', '\uff61', '\uff1b', '\u061f', '\u06d4', '\u0964', '\u0965', '\u1362', '\u1367', '\u17d4', '\u104b':
		return true
	}
	return false
}

// endsSentence reports whether the mark text[at], with closing brackets up to next, ends a
// sentence: white space follows and then no lower-case letter, and it is not preceded by a single
// capital letter, which would be an initial.
func endsSentence(text string, at, next, to int) bool {
	if next >= to {
		return true
	}
	if text[next] > ' ' {
		return false
	}
	if text[at] == '.' && at >= 2 && isUpper(text[at-1]) && text[at-2] <= ' ' {
		return false
	}
	for next < to && text[next] <= ' ' {
		next++
	}
	return next == to || !isLower(text[next])
}

// closers returns the end of the closing quotes, brackets and repeated marks from at on.
func closers(text string, at, to int) int {
	for at < to {
		switch text[at] {
		case '.', '!', '?', '"', '\'', ')', ']', '*', '_':
			at++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[at:to])
		if r != '\u201d' && r != '\u2019' && r != '\u00bb' && r != '\u300d' && r != '\u300f' && r != '\uff09' && !wideStop(r) {
			break
		}
		at += n
	}
	return at
}

// runEnd returns the end of the letters and digits from at on.
func runEnd(text string, at, to int) int {
	for at < to && edges[text[at]] == inRun {
		at++
	}
	return at
}

// isEncoded reports whether a run of letters and digits is data rather than a word or a path: it is
// long, and at least a sixteenth of it are digits. In random base64 ten of sixty-four characters
// are.
func isEncoded(run string) bool {
	if len(run) < encodedRun {
		return false
	}
	digits := 0
	for i := range len(run) {
		if isDigit(run[i]) {
			digits++
		}
	}
	return digits*16 >= len(run)
}

// wholeRune moves at back to the start of a character, but not as far as start.
func wholeRune(text string, start, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for i := at; i > start && i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at
}
