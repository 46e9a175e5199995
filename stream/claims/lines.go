package claims

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fence is an open code block.
type fence struct {
	open  bool
	form  blockForm
	char  byte // of the fences
	run   int
	last  bool // the current line ends the block
	first bool // the current line begins the block
	begun bool // text precedes it
	bare  bool // it has no label, and only empty lines so far
	left  int  // bytes that a block without fences may still have
	hunk  hunk
	tag   tag
}

// maxPrefix is how many bytes of indentation and marks are read to classify a line.
const maxPrefix = 48

// wrapAt is the length in code points from which a line counts as wrapped by hand, so that its end
// is not a boundary if the next line continues with text.
const wrapAt = 60

// beginLine handles the start of a line. It returns false if more text is needed.
func (s *Splitter) beginLine() bool {
	at := s.pos
	for at < len(s.buf) && at-s.pos < maxPrefix && (s.buf[at] == ' ' || s.buf[at] == '\t' || s.buf[at] == '\r') {
		at++
	}
	if s.fence.open {
		return s.beginCodeLine(at)
	}
	if v := s.beginOther(at); v != no {
		return v == yes
	}
	if s.math == dollarsMath || s.math == bracketMath {
		if at == len(s.buf) && !s.final && at-s.pos < maxPrefix {
			return false // a block may begin after the spaces
		}
		s.plainLine()
		return true
	}
	head := s.lineHead(at)
	mark, v := markOf(head)
	if v == more && !s.final {
		return false
	}
	indent := s.buf[s.pos:at]
	switch {
	case mark.kind == fenceMark:
		s.openFence(mark)
		return true
	case s.open && mark.kind == noMark && s.goesOn(head.text):
		s.layout.line(indent, head, mark)
		s.plainLine()
		return true
	}
	s.endLineClaim()
	s.layout.line(indent, head, mark)
	if mark.kind != tableMark {
		s.table.leave()
	}
	switch mark.kind {
	case headingMark:
		s.kind = Heading
	case itemMark:
		s.kind = Item
	case tableMark:
		s.kind = Cell
		s.table.enter()
	case noMark, quoteMark, ruleMark, fenceMark:
		s.kind = Prose
	}
	s.pos = at + mark.size
	s.lineStart = mark.kind == quoteMark
	s.lineLen = 0
	s.begun = s.begun || len(head.text) > 0 && head.text[0] != '\n'
	return true
}

// beginOther checks whether JSON that is read value by value, or a block without a fence, begins at
// the start of the line.
func (s *Splitter) beginOther(at int) verdict {
	if s.opts.Values && !s.begun {
		if v := s.beginsJSON(at); v == yes {
			s.openJSON(at)
			s.begun = true
			return yes
		} else if v == more {
			return more
		}
	}
	if s.begun {
		if v := s.laterJSON(at); v != no {
			return v
		}
	}
	if !s.opts.Blocks {
		return no
	}
	v := s.beginBlock(at)
	if v == more && s.final {
		return no
	}
	return v
}

// plainLine continues the text of the previous line.
func (s *Splitter) plainLine() {
	s.lineStart, s.lineLen = false, 0
	s.inWord = false
}

// endLineClaim closes the claim of the previous line.
func (s *Splitter) endLineClaim() {
	if s.open {
		s.close(s.end, false)
	}
	s.depth, s.tick = 0, 0
	if s.math == dollarMath || s.math == parenMath {
		s.math = noMath
	}
}

// goesOn reports whether a line without a mark continues the sentence of the previous line.
func (s *Splitter) goesOn(line []byte) bool {
	if s.kind == Heading || s.kind == Cell || len(line) == 0 || line[0] == '\n' {
		return false
	}
	r, _ := utf8.DecodeRune(line)
	return unicode.IsLower(r) || s.lineLen >= wrapAt && (unicode.IsLetter(r) || unicode.IsDigit(r) || opens(r))
}

// lineHead is the start of a line without its indentation.
type lineHead struct {
	text  []byte
	whole bool // no more text is needed to classify it
}

// lineHead returns the start of the line at offset at, up to maxPrefix bytes.
func (s *Splitter) lineHead(at int) lineHead {
	line := s.buf[at:min(at+maxPrefix, len(s.buf))]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		return lineHead{line[:i+1], true}
	}
	return lineHead{line, s.final || len(s.buf)-at > maxPrefix}
}

type markKind uint8

const (
	noMark markKind = iota
	fenceMark
	headingMark
	itemMark
	quoteMark
	tableMark
	ruleMark
)

type mark struct {
	kind markKind
	size int // bytes of the mark and the space after it
	char byte
}

// markOf reads the mark at the start of a line without indentation.
func markOf(h lineHead) (mark, verdict) {
	line, whole := h.text, h.whole
	if len(line) == 0 {
		if whole {
			return mark{}, no
		}
		return mark{}, more
	}
	c := line[0]
	run := 1
	for run < len(line) && line[run] == c {
		run++
	}
	if run == len(line) && !whole && run < maxPrefix && strings.IndexByte("`~#-*+_|>=", c) >= 0 {
		return mark{}, more
	}
	switch c {
	case '`', '~':
		if run >= 3 {
			return mark{kind: fenceMark, size: run, char: c}, yes
		}
	case '#':
		if run <= 6 && run < len(line) && line[run] == ' ' {
			return mark{kind: headingMark, size: run + 1}, yes
		}
	case '>':
		return mark{kind: quoteMark, size: 1}, yes
	case '|':
		return mark{kind: tableMark, size: 1}, yes
	case '-', '*', '+', '_', '=':
		return bullet(h, run)
	}
	if c >= '0' && c <= '9' || c == '(' {
		return numbered(h)
	}
	return symbolBullet(h)
}

// bullet reads "- item", and rules such as ---.
func bullet(h lineHead, run int) (mark, verdict) {
	line, whole := h.text, h.whole
	if run >= 3 {
		rest := bytes.TrimLeft(line[run:], " \r")
		if len(rest) == 0 && whole || len(rest) > 0 && rest[0] == '\n' {
			return mark{kind: ruleMark, size: run}, yes
		}
		if len(rest) == 0 {
			return mark{}, more
		}
	}
	if run == 1 && len(line) > 1 && (line[1] == ' ' || line[1] == '\t') && line[0] != '_' && line[0] != '=' {
		return mark{kind: itemMark, size: 2}, yes
	}
	return mark{}, no
}

// numbered reads 3. and 3) and (3) before a space.
func numbered(h lineHead) (mark, verdict) {
	line, whole := h.text, h.whole
	i := 0
	if line[0] == '(' {
		i++
	}
	digits := i
	for i < len(line) && i-digits < 4 && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	switch {
	case i == len(line) && !whole:
		return mark{}, more
	case i == digits || i == len(line) || line[i] != ')' && (line[i] != '.' || digits > 0) || i-digits > 3:
		return mark{}, no
	case i+1 == len(line) && !whole:
		return mark{}, more
	case i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t'):
		return numberedText(h, i+2)
	}
	return mark{}, no
}

// numberedText distinguishes a list number from a German day (3. Mai) by the word after it.
func numberedText(h lineHead, at int) (mark, verdict) {
	line, whole := h.text, h.whole
	end := at
	for end < len(line) && line[end] != ' ' && line[end] != '\n' && end-at < 16 {
		end++
	}
	if end == len(line) && !whole && end-at < 16 {
		return mark{}, more
	}
	if germanMonths[strings.TrimRight(string(line[at:end]), ".,")] {
		return mark{}, no
	}
	return mark{kind: itemMark, size: at}, yes
}

// symbolBullet reads • and similar bullets.
func symbolBullet(h lineHead) (mark, verdict) {
	line, whole := h.text, h.whole
	if line[0] < utf8.RuneSelf {
		return mark{}, no
	}
	if !whole && !utf8.FullRune(line) {
		return mark{}, more
	}
	r, size := utf8.DecodeRune(line)
	switch r {
	case '•', '‣', '◦', '▪', '·', '–', '—', '●', '○':
	default:
		return mark{}, no
	}
	if len(line) == size && !whole {
		return mark{}, more
	}
	if len(line) > size && line[size] == ' ' {
		return mark{kind: itemMark, size: size + 1}, yes
	}
	return mark{}, no
}

func (s *Splitter) newline() bool {
	s.pos++
	s.inWord = false
	s.lineStart, s.behind = true, false
	s.value.newline()
	if s.table.row {
		s.close(s.end, false)
		s.table.endRow()
		return true
	}
	if s.kind == Heading {
		s.close(s.end, false)
	}
	return true
}

// openFence begins a code block; its first line is a claim of kind Code.
func (s *Splitter) openFence(m mark) {
	s.endLineClaim()
	s.table.leave()
	s.fence = fence{open: true, char: m.char, run: m.size, first: true, begun: s.begun}
	s.json.fenced = false
	s.begun = true
	s.lineStart = false
	s.math = noMath
	s.value, s.layout = value{}, layout{}
}

// beginCodeLine checks whether a line closes the block. It returns false if more text is needed.
func (s *Splitter) beginCodeLine(at int) bool {
	if s.fence.form != fenced {
		return s.beginBlockLine(at) == yes
	}
	if v := s.beginFencedJSON(at); v != no {
		return v == yes
	}
	n := at
	for n < len(s.buf) && s.buf[n] == s.fence.char && n-at < maxPrefix {
		n++
	}
	tail := s.buf[n:min(n+maxPrefix, len(s.buf))]
	rest := bytes.IndexByte(tail, '\n')
	if n == len(s.buf) && !s.final {
		return false
	}
	if n-at < s.fence.run {
		s.lineStart = false
		return true
	}
	if rest >= 0 {
		tail = tail[:rest]
	}
	blank := len(bytes.TrimSpace(tail)) == 0
	if rest < 0 && blank && !s.final && len(tail) < maxPrefix {
		return false
	}
	s.lineStart = false
	if blank {
		s.open, s.start = true, at
		s.pos = n
		s.end = n
		s.close(n, false)
		s.fence = fence{}
		s.json.fenced = false
		s.kind = Prose
		s.behind = true
	}
	return true
}

// codeRune handles the text of a code block, where each line is a claim.
func (s *Splitter) codeRune(r rune, size int) bool {
	if s.fence.form != fenced {
		if v := s.blockRune(r, size); v != yes {
			return v == no
		}
	}
	if r == '\n' {
		holds := s.opts.Values && s.labelled()
		s.fence.first = false
		if s.open {
			s.close(s.end, false)
		}
		s.pos += size
		s.lineStart = true
		if holds {
			s.openFenced(s.pos)
		}
		return true
	}
	if !s.open && !unicode.IsSpace(r) {
		s.begin()
	}
	s.pos += size
	if !unicode.IsSpace(r) {
		s.end = s.pos
	}
	if s.open && s.pos-s.start >= s.opts.MaxBytes {
		s.close(s.pos, true)
	}
	return true
}

// Limits on what is kept of a table to give its cells context.
const (
	maxColumns = 16
	maxHead    = 64 // bytes of a head
)

// table is what is known of the table that is being read.
type table struct {
	row   bool // inside a row
	lines int
	col   int
	first string   // first cell of the row
	heads []string // cells of the first row
}

func (t *table) enter() {
	t.row, t.col, t.first = true, 0, ""
}

func (t *table) endRow() {
	t.row = false
	t.lines++
}

func (t *table) leave() {
	t.row, t.lines, t.heads = false, 0, t.heads[:0]
}

// context records what later cells need of this one, and returns the heads of its row and column.
func (t *table) context(text string) string {
	head := text
	if len(head) > maxHead {
		head = strings.ToValidUTF8(head[:maxHead], "")
	}
	if t.lines == 0 {
		for len(t.heads) < t.col && len(t.heads) < maxColumns {
			t.heads = append(t.heads, "")
		}
		if len(t.heads) == t.col && t.col < maxColumns {
			t.heads = append(t.heads, head)
		}
		return ""
	}
	column := ""
	if t.col < len(t.heads) {
		column = t.heads[t.col]
	}
	if t.col == 0 {
		t.first = head
		return column
	}
	if t.first == "" || column == "" {
		return t.first + column
	}
	return t.first + ", " + column
}

// bar ends a table cell. Delimiter rows (|---|) contain no claim.
func (s *Splitter) bar(size int) {
	if s.open {
		if s.delimiterCell() {
			s.open = false
		}
		s.close(s.end, false)
	}
	s.pos += size
	s.table.col++
	s.start, s.end = s.pos, s.pos
}

func (s *Splitter) delimiterCell() bool {
	return len(bytes.Trim(s.buf[s.start:s.end], "-: ")) == 0
}
