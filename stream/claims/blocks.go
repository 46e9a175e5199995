package claims

import (
	"bytes"
	"unicode"
)

// blockForm says how a code block is recognised.
type blockForm uint8

const (
	fenced  blockForm = iota // by Markdown fences
	edited                   // by the lines around an edit: <<<<<<< SEARCH, >>>>>>> REPLACE
	patched                  // by the lines of a patch: *** Begin Patch, *** End Patch
	diffed                   // by the signs of a diff at the start of its lines
	tagged                   // by tags in which agents write calls and files
)

// maxBlock is the maximum size, in bytes, of a block without a fence, whose end may be missing.
const maxBlock = 128 << 10

// maxHeader is the maximum length, in bytes, of the line before the one that identifies a diff.
const maxHeader = 256

// Place says where in an answer the text so far ends.
type Place uint8

// The places.
const (
	Free   Place = iota // in text
	Within              // in inline code, a formula, or the possible start of a code block
	Behind              // on the line that ended a code block
	// Inside is in a code block, in indented code or a JSON object, or directly after such an object.
	Inside
)

// Place returns where the text so far ends.
func (s *Splitter) Place() Place {
	switch {
	case s.fence.open && !s.fence.last:
		return Inside
	case s.fence.open || s.behind:
		return Behind
	case s.formed():
		return Inside
	case s.final:
		return Free
	case s.tick > 0 || s.math != noMath:
		return Within
	case s.pos < len(s.buf) && (s.lineStart || bytes.IndexByte([]byte("<`{["), s.buf[s.pos]) >= 0):
		return Within
	}
	return Free
}

// openBlock begins a code block. The text that opens it belongs to the block.
func (s *Splitter) openBlock(f fence) {
	s.endLineClaim()
	s.table.leave()
	f.open, f.left = true, maxBlock
	s.begun = true
	s.fence = f
	s.lineStart = false
	s.math = noMath
	s.value, s.layout = value{}, layout{}
}

// endBlock ends a code block. The following text is read as from the start of a line.
func (s *Splitter) endBlock() {
	if s.open {
		s.close(s.end, false)
	}
	s.fence = fence{}
	s.kind = Prose
	s.lineStart = true
}

// beginBlock checks whether a block begins on the current line, whose text starts at offset at.
func (s *Splitter) beginBlock(at int) verdict {
	var f fence
	v := no
	switch c := s.peekByte(at); {
	case c == '<':
		if f, v = s.tagAt(at); v != no {
			break
		}
		fallthrough
	case c == '-':
		f = fence{form: edited}
		if v = frame(s.lineHead(at), c, "SEARCH"); v == no && at == s.pos {
			f = fence{form: diffed}
			v = s.files(at)
		}
	case at > s.pos:
	case c == '*':
		f = fence{form: patched}
		v = lineOf(s.lineHead(at), "*** Begin Patch")
	case c == 'd':
		f = fence{form: diffed}
		v = begins(s.lineHead(at), "diff --git ")
	case c == '@':
		f = fence{form: diffed}
		_, v = hunkOf(s.lineHead(at))
	}
	if v == yes {
		s.openBlock(f)
		if f.form != tagged {
			return s.beginBlockLine(at)
		}
	}
	return v
}

// peekByte returns the byte at offset at, or 0 if it has not arrived.
func (s *Splitter) peekByte(at int) byte {
	if at < len(s.buf) {
		return s.buf[at]
	}
	return 0
}

// beginBlockLine decides whether the current line belongs to the open block, and ends the block if
// not. It returns more if that is not known yet, and otherwise yes.
func (s *Splitter) beginBlockLine(at int) verdict {
	v := yes
	switch s.fence.form {
	case edited:
		v = s.beginEditLine(at)
	case patched:
		v = s.beginPatchLine()
	case diffed:
		v = s.beginDiffLine()
	case tagged:
		if s.fence.tag.inline {
			v = s.paragraphGoesOn(at)
		}
	case fenced:
	}
	switch {
	case v == more && !s.final:
		return more
	case v == no:
		s.endBlock()
	default:
		s.lineStart = false
	}
	return yes
}

// paragraphGoesOn reports whether the line with text at an offset is not empty.
func (s *Splitter) paragraphGoesOn(at int) verdict {
	switch s.peekByte(at) {
	case '\n':
		return no
	case 0:
		return more
	}
	return yes
}

func (s *Splitter) beginEditLine(at int) verdict {
	if at == len(s.buf) {
		return more
	}
	c := s.buf[at]
	if c != '>' && c != '+' {
		return yes
	}
	v := frame(s.lineHead(at), c, "REPLACE")
	if s.fence.last = v == yes; v == more {
		return more
	}
	return yes
}

// frame recognises a line that frames an edit: five to nine times the sign, a space and the word.
func frame(h lineHead, sign byte, word string) verdict {
	run := 0
	for run < len(h.text) && run < 10 && h.text[run] == sign {
		run++
	}
	if run == len(h.text) && run < 10 && !h.whole {
		return more
	}
	if run < 5 || run > 9 || h.text[min(run, len(h.text)-1)] != ' ' {
		return no
	}
	h.text = h.text[run+1:]
	return lineOf(h, word)
}

// begins reports whether a line begins with a text.
func begins(h lineHead, text string) verdict {
	n := min(len(h.text), len(text))
	switch {
	case string(h.text[:n]) != text[:n]:
		return no
	case n < len(text) && !h.whole:
		return more
	case n < len(text):
		return no
	}
	return yes
}

// lineOf reports whether a line consists of a text, followed only by white space or a > that some
// models add.
func lineOf(h lineHead, text string) verdict {
	if v := begins(h, text); v != yes {
		return v
	}
	rest := bytes.TrimPrefix(h.text[len(text):], []byte(">"))
	switch {
	case len(bytes.TrimSpace(rest)) > 0:
		return no
	case !h.whole:
		return more
	}
	return yes
}

// beginPatchLine decides whether a line belongs to a patch, by its first character.
func (s *Splitter) beginPatchLine() verdict {
	switch s.buf[s.pos] {
	case ' ', '\t', '+', '-', '@', '\\', '\n', '\r':
		return yes
	case '*':
		h := s.lineHead(s.pos)
		v := lineOf(h, "*** End Patch")
		if s.fence.last = v == yes; v == no {
			v = begins(h, "*** ")
		}
		return v
	}
	return no
}

// hunk is the remainder of the diff hunk that is being read.
type hunk struct {
	open     bool
	counted  bool
	old, now int  // lines still to come, according to its header
	blank    bool // the previous line was empty
}

// over reports whether all lines announced by the hunk's header have arrived.
func (h *hunk) over() bool { return h.counted && h.old <= 0 && h.now <= 0 }

// headers are the beginnings of lines before the hunks of a diff.
//
//nolint:gochecknoglobals // constant table
var headers = [...]string{
	"diff --git ", "--- ", "+++ ", "index ", "old mode ", "new mode ", "new file mode ", "deleted file mode ",
	"similarity index ", "dissimilarity index ", "rename from ", "rename to ", "copy from ", "copy to ",
	"Binary files ",
}

// beginDiffLine decides whether a line belongs to a diff. After a complete hunk and an empty line,
// plus and minus signs are list marks again.
func (s *Splitter) beginDiffLine() verdict {
	f, h := &s.fence, s.lineHead(s.pos)
	c := h.text[0]
	if c == '@' {
		next, v := hunkOf(h)
		if v == yes {
			f.hunk = next
		}
		return v
	}
	if !f.hunk.open {
		return header(h)
	}
	blank := f.hunk.blank
	f.hunk.blank = c == '\n' || c == '\r'
	switch {
	case f.hunk.blank, c == ' ', c == '\t':
		if !f.hunk.blank && blank && f.hunk.over() {
			return no
		}
		f.hunk.old, f.hunk.now = f.hunk.old-1, f.hunk.now-1
		return yes
	case c == '\\':
		return yes
	case c == '-' || c == '+':
		if blank && f.hunk.over() {
			return no
		}
		if c == '-' {
			f.hunk.old--
		} else {
			f.hunk.now--
		}
		return yes
	}
	v := header(h)
	if v == yes {
		f.hunk = hunk{}
	}
	if v == more {
		f.hunk.blank = blank
	}
	return v
}

// header reports whether a line is a diff header.
func header(h lineHead) verdict {
	v := no
	for _, text := range headers {
		switch begins(h, text) {
		case yes:
			return yes
		case more:
			v = more
		case no:
		}
	}
	return v
}

// hunkOf reads a hunk header: @@ -1,2 +3,4 @@.
func hunkOf(h lineHead) (hunk, verdict) {
	out := hunk{open: true, counted: true}
	at := 0
	for part, sign := range [...]string{"@@ -", " +", " @@"} {
		if v := begins(lineHead{h.text[at:], h.whole}, sign); v != yes {
			return hunk{}, v
		}
		if at += len(sign); part == 2 {
			break
		}
		n, size, v := rangeOf(h, at)
		if v != yes {
			return hunk{}, v
		}
		if at += size; part == 0 {
			out.old = n
		} else {
			out.now = n
		}
	}
	return out, yes
}

// rangeOf reads 1,2 or 1 at offset at. It returns the number of lines and the length of the text.
func rangeOf(h lineHead, at int) (n, size int, v verdict) {
	n, first := 1, at
	for range 2 {
		digits := at
		value := 0
		for at < len(h.text) && at-digits < 7 && h.text[at] >= '0' && h.text[at] <= '9' {
			value = value*10 + int(h.text[at]-'0')
			at++
		}
		switch {
		case at == len(h.text) && !h.whole:
			return 0, 0, more
		case at == digits:
			return 0, 0, no
		}
		if digits > first {
			return value, at - first, yes
		}
		if at == len(h.text) || h.text[at] != ',' {
			return n, at - first, yes
		}
		at++
	}
	return n, at - first, yes
}

// files recognises two lines that name the files of a diff: --- a/x and +++ b/x.
func (s *Splitter) files(at int) verdict {
	if v := begins(s.lineHead(at), "--- "); v != yes {
		return v
	}
	text := s.buf[at:]
	end := bytes.IndexByte(text[:min(len(text), maxHeader)], '\n')
	switch {
	case end < 0 && len(text) < maxHeader && !s.final:
		return more
	case end < 0:
		return no
	}
	return begins(lineHead{text[end+1:], s.final}, "+++ ")
}

// blockRune handles the next rune of a block without a fence. It returns yes if the rune belongs to
// the block, and no if the following text must be read again.
func (s *Splitter) blockRune(r rune, size int) verdict {
	switch {
	case s.fence.left <= 0:
		s.endBlock()
		return no
	case s.fence.form == tagged:
		if v := s.tagRune(r); v != yes {
			return v
		}
	case r == '\n' && s.fence.last:
		s.endBlock()
		s.lineStart = false // the line break belongs to the text
		return no
	}
	s.fence.left -= size
	return yes
}

// beginForm checks whether a block for programs begins within a line. A JSON object is noted, but
// counts as text.
func (s *Splitter) beginForm(r rune) verdict {
	if r == '<' {
		return s.beginTag()
	}
	if s.beginValue() == more {
		return more
	}
	return no
}

// heed tracks the next rune of text after a block, or in or after a JSON object.
func (s *Splitter) heed(r rune) {
	s.behind = s.behind && unicode.IsSpace(r)
	s.value.follow(r)
}
