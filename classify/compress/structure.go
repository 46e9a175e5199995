package compress

import (
	"strings"
	"unicode/utf8"
)

// Stage 1, structure: lines are told apart by what they look like, runs of like lines are blocks,
// and blocks are cut into pieces.

// shape is what a line looks like. It decides where pieces may end.
type shape uint8

const (
	prose  shape = iota // ends sentences with full stops
	quoted              // prose after a ">"
	code
	record // JSON and the like
	table
	logged // starts with a time
)

// sentences reports whether a full stop ends a piece. In the other shapes only a line does, or
// size.
func (s shape) sentences() bool { return s == prose || s == quoted }

// Line and piece lengths, in bytes.
const (
	shortLine   = 32 // a line that shares its piece with the next of its block
	joinedLines = 96 // the most that such lines make together
	stub        = 8  // too short to stand alone: joins the next line whatever that is
	wrapped     = 50 // the least length of a line that was broken to fit a page
	titleLine   = 80 // the longest heading
	probe       = 160
	encodedRun  = 64       // the shortest run of letters and digits that may be encoded data
	longestRun  = 64 << 10 // the longest one that is looked at as a whole

	shortSentence = 16 // shorter ones join the next
	tabWidth      = 4
)

// splitter cuts f.text into f.pieces.
type splitter struct {
	*funnel

	blank  bool // an empty line was before this one
	fenced bool // between lines of ```
	begun  bool
	last   shape
}

// split is stage 1. It reports whether it came to its end.
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

// line cuts the line text[from:to]. It reports whether it came to its end.
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
// sentence that was broken to fit a page.
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

// endsInside reports whether text ends as a line does that goes on in the next: with a letter or a
// comma.
func endsInside(text string) bool {
	c := text[len(text)-1]
	return c == ',' || isLower(c) || c >= utf8.RuneSelf
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// lineShape tells what a line outside of a fence is, from its first bytes and its last.
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

// isHeading reports whether a line of prose names what follows: marked so, or short, apart and
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

// strength says how good a place is to cut at.
type strength uint8

const (
	anywhere strength = iota
	space
	clause   // after a comma, a semicolon
	member   // after a member of a list or object
	sentence // after a full stop
)

// cut appends the pieces of text[from:to]: at the ends of sentences where the shape has them,
// around encoded data, and at the best place in their second half where they grow longer than
// f.longest. A line that is only a little longer is not cut: little would be left. It reports
// whether it came to its end.
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

// cutting is where the cutting of a line stands.
type cutting struct {
	sh     shape
	first  marks // of the next piece
	start  int   // of the next piece
	at, to int   // what is read next, and the end of the line
	best   strength
	bestAt int // the best place for a cut so far, where best is one
}

// run reads a run of letters and digits. Encoded data is a piece of its own.
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

// shorten adds pieces until what was read since is no longer than a piece may be. It reports
// whether it came to its end.
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

// add appends the piece text[from:to] less the white space at its ends, if anything is left, and
// returns the marks for the next piece of the line.
func (s *splitter) add(from, to int, m marks) marks {
	from, to = trim(s.text, from, to)
	if from == to {
		return m &^ encoded
	}
	s.pieces = append(s.pieces, piece{start: from, end: to, marks: m})
	return 0
}

// edgeClass says what a byte may be the end of.
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

// edge says how good a cut is after the character at text[at], and where that is.
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
// sentence: white space follows and then nothing in small letters; and it does not stand after a
// single capital letter, which would be a name cut short.
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

// closers returns where the closing quotes, brackets and repeated marks from at on end.
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

// runEnd returns where the letters and digits from at on end.
func runEnd(text string, at, to int) int {
	for at < to && edges[text[at]] == inRun {
		at++
	}
	return at
}

// isEncoded reports whether a run of letters and digits is data rather than a word or a path: long,
// and a sixteenth of it digits. Of random base64 ten characters in sixty-four are.
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

// wholeRune moves at back to the start of a character, but not to start.
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
