package origin

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxTagName is the maximum length of the name of a tag, in bytes.
	maxTagName = 48
	// maxTag is the maximum length of a tag with its attributes, in bytes.
	maxTag = 512
	// maxOpen is the maximum number of open tags with different names; further ones are text.
	maxOpen = 256
	// minQuotation is the length in bytes from which a quotation counts as material and not as
	// words of the user.
	minQuotation = 200
)

// ownTags are tags whose text is what the user has to say, not what it is about: also what a coding
// agent puts beside the prompt, such as the rules of the user's project.
//
//nolint:gochecknoglobals // constant table
var ownTags = map[string]bool{
	"assistant": true, "constraints": true, "format": true, "goal": true, "guidelines": true,
	"human": true, "instruction": true, "instructions": true, "objective": true, "output": true,
	"output_format": true, "persona": true, "policy": true, "prompt": true, "query": true,
	"question": true, "request": true, "requirements": true, "role": true, "rule": true,
	"rules": true, "steps": true, "system": true, "system-reminder": true, "system_prompt": true,
	"system_reminder": true, "task": true, "tasks": true, "thinking": true, "user": true,
	"user_instructions": true, "user_query": true,
}

// markers are the characters with which marks begin.
const markers = "<\"\u201c\u00ab\u201e\u300c\u201d\u00bb\u300d"

// opened is an open tag.
type opened struct {
	from  int // start of its text
	depth int // number of open tags with this name
}

// quotation is an open quotation.
type quotation struct {
	from  int // its start; -1 if there is none
	close string
}

// marks finds marked text within lines: text between tags, triple quotes and quotation marks.
func (s *splitter) marks() {
	s.look, s.line, s.gap = 0, last{}, last{}
	tags := make(map[string]opened)
	triple, straight, curly := -1, -1, quotation{from: -1}
	for i := 0; i < len(s.text) && !s.ended(i); {
		next := strings.IndexAny(s.text[i:min(i+lookBytes, len(s.text))], markers)
		if next < 0 {
			i = min(i+lookBytes, len(s.text))
			for i < len(s.text) && !utf8.RuneStart(s.text[i]) {
				i++
			}
			continue
		}
		i += next
		rest := s.text[i:]
		switch {
		case rest[0] == '<':
			i += s.tag(tags, i)
		case strings.HasPrefix(rest, `"""`):
			if triple >= 0 {
				s.data, triple = append(s.data, span{triple, i}), -1
			} else {
				triple = i + len(`"""`)
			}
			i += len(`"""`)
		case rest[0] == '"':
			straight = s.straight(straight, i)
			i++
		default:
			_, n := utf8.DecodeRuneInString(rest)
			s.curly(&curly, i, rest[:n])
			i += n
		}
	}
}

// tag processes a possible tag at byte i, which is <, and returns the number of bytes read.
func (s *splitter) tag(tags map[string]opened, i int) int {
	rest := s.text[i+1 : min(len(s.text), i+maxTag)]
	ends := strings.HasPrefix(rest, "/")
	rest = strings.TrimPrefix(rest, "/")
	n := 0
	for n < len(rest) && n <= maxTagName && inName(rest[n], n) {
		n++
	}
	if n == 0 || n > maxTagName {
		return 1
	}
	after := strings.IndexAny(rest[n:], "<>")
	if after < 0 || rest[n+after] == '<' {
		return 1
	}
	if after > 0 && !ends && strings.IndexByte(" \n\t/", rest[n]) < 0 {
		return 1
	}
	name := strings.ToLower(rest[:n])
	size := 1 + n + after + 1
	if ends {
		size++
	}
	open, ok := tags[name]
	switch {
	case ownTags[name] || !ends && after > 0 && rest[n+after-1] == '/':
	case !ends && ok:
		open.depth++
		tags[name] = open
	case !ends && len(tags) < maxOpen:
		tags[name] = opened{i + size, 1}
	case !ends:
	case ok && open.depth > 1:
		open.depth--
		tags[name] = open
	case ok:
		delete(tags, name)
		lines := s.line.since(s.text, "\n", open.from, i)
		if lines || materials[strings.ReplaceAll(name, "_", " ")] && i-open.from >= minLabelled {
			s.data = append(s.data, span{open.from, i})
		}
	}
	return size
}

// inName reports whether c can be byte n of a tag name.
func inName(c byte, n int) bool {
	if n > 0 && (c >= '0' && c <= '9' || strings.IndexByte("_-.:", c) >= 0) {
		return true
	}
	return c|0x20 >= 'a' && c|0x20 <= 'z'
}

// straight processes a quotation mark at byte i that both opens and closes. from, and the result,
// is the start of the open quotation, -1 for none. No quotation extends beyond an empty line,
// because a stray mark would otherwise pair with one of the next paragraph.
func (s *splitter) straight(from, i int) int {
	before, after := byte(' '), byte(' ')
	if i > 0 {
		before = s.text[i-1]
	}
	if i+1 < len(s.text) {
		after = s.text[i+1]
	}
	opens := strings.IndexByte(" \t\n(:[", before) >= 0 && strings.IndexByte(" \t\r\n", after) < 0
	closes := strings.IndexByte(" \t\n", before) < 0 &&
		strings.IndexByte(" \t\r\n.,;:!?)]", after) >= 0
	switch {
	case opens:
		return i + 1
	case closes && from >= 0:
		if i-from > minQuotation && !s.gap.since(s.text, "\n\n", from, i) {
			s.data = append(s.data, span{from, i})
		}
		return -1
	}
	return from
}

// curly processes a quotation mark at byte i that shows whether it opens or closes.
func (s *splitter) curly(q *quotation, i int, mark string) {
	if q.from >= 0 && mark == q.close {
		if i-q.from > minQuotation {
			s.data = append(s.data, span{q.from, i})
		}
		q.from = -1
		return
	}
	switch mark {
	case "\u201c":
		q.close = "\u201d"
	case "\u201e":
		q.close = "\u201c"
	case "\u00ab":
		q.close = "\u00bb"
	case "\u300c":
		q.close = "\u300d"
	default:
		return
	}
	q.from = i + len(mark)
}
