package claims

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Limits on the start of a block in tags, in bytes.
const (
	maxTagName = 32
	maxTagGap  = 64 // white space after a tag whose contents decide whether it is a block
	maxCallee  = 128
	maxTag     = 1 << 10 // an opening tag with its attributes
)

// tagState is what is being read of a block in tags.
type tagState uint8

const (
	tagHead  tagState = iota // an opening tag: the first, or that of a child
	tagsOnly                 // between children, where no text is allowed
	tagChild                 // in a child, or in a block of free text
	tagStray                 // a tag that closes nothing
	tagJSON                  // in a JSON value
)

// word is a short text stored in place.
type word struct {
	bytes [maxTagName]byte
	size  int
}

func (w *word) set(text []byte) { w.size = copy(w.bytes[:], text) }

// tag is a block in tags.
type tag struct {
	name, child word
	body        tagBody
	state       tagState
	size        int  // of the current tag, in runes
	document    bool // it says that it contains text for the reader
	inline      bool // it is within a sentence, which may be about the tag
	json        nesting
}

// tagBody is what a tag contains, by which a block is distinguished from a tag that a text
// mentions.
type tagBody uint8

const (
	children tagBody = iota + 1 // tags or JSON, and no text between them
	// The same, for a tag that names what is called: <invoke name="x">, <function=x>.
	called
	free  // any text, for a tag with attributes
	lines // any text, for a tag that ends its line
)

// tags are the names with which agents write calls and files into the text. Tags that contain text
// for the reader, such as attempt_completion, are not among them.
//
//nolint:gochecknoglobals // constant table
var tags = func() map[string]tagBody {
	m := map[string]tagBody{}
	for _, name := range []string{
		"write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace", "search_replace",
		"edit_file",
		"read_file", "search_files", "list_files", "list_code_definition_names", "codebase_search", "execute_command",
		"read_command_output", "browser_action", "use_mcp_tool", "access_mcp_resource", "fetch_instructions", "switch_mode",
		"update_todo_list", "run_slash_command", "generate_image", "web_fetch", "web_search",
		"load_mcp_documentation", "new_rule",
		"tool_call", "tool_calls", "tool_use", "function_call", "function_calls", "create_file", "str_replace", "delete_file",
	} {
		m[name] = children
	}
	for _, name := range []string{"invoke", "function", "boltArtifact"} {
		m[name] = called
	}
	for _, name := range []string{"antArtifact", "boltAction", "dyad-write", "lov-write"} {
		m[name] = free
	}
	m["code"] = lines // from smolagents
	return m
}()

func nameByte(c byte) bool {
	return letter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' || c == ':' || c == '.'
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// nameAt returns the length of the name at offset at, or more if it may continue. A name that is
// too long does not count.
func (s *Splitter) nameAt(at int) (int, verdict) {
	n := 0
	for at+n < len(s.buf) && n <= maxTagName && nameByte(s.buf[at+n]) {
		n++
	}
	switch {
	case n > maxTagName, n > 0 && !letter(s.buf[at]):
		return 0, no
	case at+n == len(s.buf) && !s.final:
		return 0, more
	case n == 0:
		return 0, no
	}
	return n, yes
}

// tagAt reads a tag that begins a block at offset at.
func (s *Splitter) tagAt(at int) (fence, verdict) {
	n, v := s.nameAt(at + 1)
	if v != yes {
		return fence{}, v
	}
	name := s.buf[at+1 : at+1+n]
	f := fence{form: tagged}
	f.tag.body = tags[string(name[bytes.LastIndexByte(name, ':')+1:])]
	f.tag.name.set(name)
	at += 1 + n
	switch c := s.peekByte(at); {
	case f.tag.body == 0:
		return fence{}, no
	case c == '=' && f.tag.body == called:
		return f, s.callee(at + 1)
	case c == ' ' && f.tag.body != lines:
		return f, s.attribute(at + 1)
	case c == '>' && f.tag.body == children:
		return f, s.holds(at + 1)
	case c == '>' && f.tag.body == lines:
		return f, lineOf(s.lineHead(at+1), "")
	}
	return fence{}, no
}

// callee reports whether the name of what is called and the end of the tag are at offset at.
func (s *Splitter) callee(at int) verdict {
	n := at
	for n < len(s.buf) && n-at < maxCallee && nameByte(s.buf[n]) {
		n++
	}
	switch {
	case n == len(s.buf) && !s.final:
		return more
	case n > at && s.peekByte(n) == '>':
		return yes
	}
	return no
}

// attribute reports whether a name, an equals sign and a quotation mark are at offset at.
func (s *Splitter) attribute(at int) verdict {
	n, v := s.nameAt(at)
	if v != yes {
		return v
	}
	at += n
	switch c := s.peekByte(at + 1); {
	case s.peekByte(at) != '=':
		return no
	case c == '"' || c == '\'':
		return yes
	case at+1 == len(s.buf) && !s.final:
		return more
	}
	return no
}

// holds reports whether a tag or JSON is at offset at, after white space.
func (s *Splitter) holds(at int) verdict {
	for from := at; at < len(s.buf); at++ {
		switch c := s.buf[at]; {
		case c == '<' && at+1 < len(s.buf):
			if c = s.buf[at+1]; letter(c) || c == '/' {
				return yes
			}
			return no
		case c == '<':
		case c == '{' || c == '[':
			return yes
		case c != ' ' && c != '\t' && c != '\r' && c != '\n', at-from >= maxTagGap:
			return no
		}
	}
	if s.final {
		return no
	}
	return more
}

// beginTag checks whether a block begins within a line.
func (s *Splitter) beginTag() verdict {
	if s.tick > 0 || s.math != noMath || s.table.row {
		return no
	}
	f, v := s.tagAt(s.pos)
	switch {
	case v == yes:
		f.tag.inline = f.tag.body == lines && s.open && !ended(s.buf[s.start:s.end])
		s.openBlock(f)
	case v == more && s.final:
		return no
	}
	return v
}

// ended reports whether a text ends like a sentence, or with a colon.
func ended(text []byte) bool {
	r, _ := utf8.DecodeLastRune(text)
	return unicode.Is(unicode.STerm, r) || r == ':' || r == '：'
}

// closingTag returns the length of the tag at pos that closes name.
func (s *Splitter) closingTag(name *word) (int, verdict) {
	n := name.size + 3
	if name.size == 0 {
		return 0, no
	}
	text := s.buf[s.pos:]
	for i := range min(n, len(text)) {
		want := byte('>')
		switch {
		case i < 2:
			want = "</"[i]
		case i < n-1:
			want = name.bytes[i-2]
		}
		if text[i] != want {
			return 0, no
		}
	}
	switch {
	case len(text) >= n:
		return n, yes
	case s.final:
		return 0, no
	}
	return 0, more
}

// closeTag ends the block after n more bytes, which belong to it.
func (s *Splitter) closeTag(n int) {
	if !s.open {
		s.begin()
	}
	s.pos += n
	s.end = s.pos
	s.endBlock()
	s.behind = true
}

// tagRune handles the next rune of a block in tags. It returns yes if the rune belongs to the
// block, and no if the following text must be read again.
func (s *Splitter) tagRune(r rune) verdict {
	t := &s.fence.tag
	if r == '<' && t.state != tagHead {
		switch n, v := s.closingTag(&t.name); v {
		case yes:
			s.closeTag(n)
			return no
		case more:
			return more
		case no:
		}
	}
	switch t.state {
	case tagHead:
		return s.headRune(r)
	case tagsOnly:
		return s.betweenRune(r)
	case tagStray:
		if t.size++; t.size > 2*maxTagName {
			s.endBlock()
			return no
		}
		if r == '>' {
			t.state = tagsOnly
		}
	case tagChild:
		if r == '<' {
			_, v := s.closingTag(&t.child)
			if v == yes {
				t.state, t.child, t.size = tagStray, word{}, 0
			}
			if v == more {
				return more
			}
		}
	case tagJSON:
		if t.json.next(r); t.json.depth == 0 {
			t.state = tagsOnly
		}
	}
	return yes
}

// headRune reads an opening tag. A document is text for the reader, so its tag ends the block. A
// tag whose end is missing is not a tag.
func (s *Splitter) headRune(r rune) verdict {
	t := &s.fence.tag
	if t.size++; t.size > maxTag {
		s.endBlock()
		return no
	}
	if (r == '>' || r == '\n') && t.child.size == 0 && s.open {
		t.document = t.document || bytes.Contains(s.buf[s.start:s.pos], []byte("text/markdown"))
	}
	if r != '>' {
		return yes
	}
	empty := s.pos > 0 && s.buf[s.pos-1] == '/'
	switch {
	case t.child.size == 0 && empty:
		s.closeTag(1)
		return no
	case t.child.size > 0 && empty:
		t.state, t.child = tagsOnly, word{}
	case t.child.size > 0:
		t.state = tagChild
	case t.body == children || t.body == called:
		t.state = tagsOnly
	case t.document:
		s.closeTag(1)
		return no
	default:
		t.state = tagChild
	}
	return yes
}

// betweenRune reads the gap between the children of a block. Text there ends the block, because its
// end tag is missing.
func (s *Splitter) betweenRune(r rune) verdict {
	t := &s.fence.tag
	switch {
	case r == '<':
		return s.childTag()
	case r == '{' || r == '[':
		t.state, t.json = tagJSON, nesting{depth: 1}
	case unicode.IsSpace(r) || r == '}' || r == ']' || r == ',':
	default:
		s.endBlock()
		return no
	}
	return yes
}

// childTag reads the tag at pos between the children of a block.
func (s *Splitter) childTag() verdict {
	t := &s.fence.tag
	if s.pos+1 == len(s.buf) && !s.final {
		return more
	}
	if s.peekByte(s.pos+1) == '/' {
		t.state, t.size = tagStray, 0
		return yes
	}
	n, v := s.nameAt(s.pos + 1)
	switch v {
	case yes:
		t.child.set(s.buf[s.pos+1 : s.pos+1+n])
		t.state, t.size = tagHead, 0
	case no:
		s.endBlock()
	case more:
	}
	return v
}
