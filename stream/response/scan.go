package response

import (
	"slices"

	"signalbox/internal/openai"
)

// maxDepth is the maximum nesting of JSON that is read. No server uses a tenth of it.
const maxDepth = 64

// Reasons for Event.Why.
const (
	whyNotJSON   = "not JSON"
	whyNotObject = "not an object"
	whyDeep      = "nested too deep"
	whyTwice     = "a member is named twice"
	whyBoth      = "two shapes at once"
	whyUnknown   = "unknown shape"
	whyType      = "unknown type of event with a text"
)

// layout holds the positions of everything except texts in an event. Its slices are reused.
type layout struct {
	head    []openai.Span // top-level members that chunks share, from name to value
	choices []int         // indexes, in order
	slots   []slot
	end     int // in the top-level object: after its last member, or after its opening brace
	members int // of the top level

	object, typeName, status, incomplete, reason openai.Span // values, with quotes
	response, itemID, item, part, output         openai.Span // values
	// usage is the top-level member, from name to value.
	usage                         openai.Span
	errors, hasChoices, hasOutput bool
	// chat, completion and text say what the choices contain; text: a completion's text is not
	// empty.
	chat, completion, text bool
	role                   bool // there is a role
	fresh                  bool // the role is of a choice not read before
	extra                  bool // see Event.Bare
	odd                    bool // see Event.Odd
	twins                  bool // a text may occur twice

	outputIndex, contentIndex, sequence int
	sequenceAt                          openai.Span // position of the number
}

// slot holds the positions of what repeats the text of a choice, or of a part of an output item.
type slot struct{ logprobs, tokens, token openai.Span }

func (l *layout) empty() layout {
	return layout{head: l.head[:0], choices: l.choices[:0], slots: l.slots[:0]}
}

// scanner reads JSON.
type scanner struct {
	e    *Event
	b    []byte
	i    int
	why  string
	name []byte // the last escaped member name, decoded; reused

	escaped, high bool // of the last string

	f frame
}

// frame is what the members of an object have in common.
type frame struct {
	choice, part int // what texts in it belong to
	slot         int
	index        int // of a choice or tool call, -1: none
	typeName     openai.Span
	whole        bool
}

// read fills e from its data.
func (s *scanner) read(e *Event) {
	*s = scanner{e: e, b: e.data, name: s.name}
	e.layout.slots = append(e.layout.slots, slot{})
	switch {
	case s.peek() != '{':
		s.why = whyNotObject
		if !s.value(ignored, 0) || s.peek() != 0 || s.i < len(s.b) {
			s.why = whyNotJSON
		}
	case !s.value(topLevel, 0):
	case s.peek() != 0 || s.i < len(s.b):
		s.why = whyNotJSON
	default:
		s.conclude()
	}
	if s.why != "" {
		e.opaque(s.why)
	}
	s.e, s.b = nil, nil
}

// opaque discards everything that was read.
func (e *Event) opaque(why string) {
	e.Shape, e.Why, e.Type = Opaque, why, nil
	e.Deltas, e.Finishes, e.Calls, e.Failed, e.Role, e.Stop = e.Deltas[:0], e.Finishes[:0], e.Calls[:0], false, nil, nil
	e.Usage, e.HasUsage, e.Extension, e.Unread = Usage{}, false, openai.Span{}, false
	at := e.layout.usage
	if e.layout = e.layout.empty(); why == whyUnknown {
		e.layout.usage = at
	}
}

// fail ends the reading. The first reason counts.
func (s *scanner) fail(why string) bool {
	if s.why == "" {
		s.why = why
	}
	return false
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// value skips a value and reports whether it is valid.
func (s *scanner) value(r role, depth int) bool {
	switch c := s.peek(); {
	case depth > maxDepth:
		return s.fail(whyDeep)
	case c == '{':
		return s.object(r, depth)
	case c == '[':
		return s.list(r, depth)
	case c == '"':
		return s.str()
	case c == 'n':
		return s.literal("null")
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	default:
		return s.number()
	}
}

func (s *scanner) literal(want string) bool {
	if len(s.b)-s.i < len(want) || string(s.b[s.i:s.i+len(want)]) != want {
		return s.fail(whyNotJSON)
	}
	s.i += len(want)
	return true
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// skip skips one of the given bytes, if it is next.
func (s *scanner) skip(one string) bool {
	if s.i < len(s.b) && (s.b[s.i] == one[0] || s.b[s.i] == one[len(one)-1]) {
		s.i++
		return true
	}
	return false
}

func (s *scanner) number() bool {
	s.skip("-")
	if !s.skip("0") && !s.digits() {
		return s.fail(whyNotJSON)
	}
	if s.skip(".") && !s.digits() {
		return s.fail(whyNotJSON)
	}
	if s.skip("eE") {
		s.skip("+-")
		if !s.digits() {
			return s.fail(whyNotJSON)
		}
	}
	return true
}

// str skips a string; s.i must be at its opening quote.
func (s *scanner) str() bool {
	s.escaped, s.high = false, false
	b := s.b
	for i := s.i + 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			return true
		case c == '\\':
			s.escaped = true
			n := escapeLen(b[i:])
			if n == 0 {
				return s.fail(whyNotJSON)
			}
			i += n - 1
		case c < ' ':
			return s.fail(whyNotJSON)
		case c >= 0x80:
			s.high = true
		}
	}
	return s.fail(whyNotJSON)
}

// escapeLen returns the length of the escape at the start of b, or 0 if it is invalid.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		return 0
	}
	const length = len(`\uXXXX`)
	if len(b) < length {
		return 0
	}
	for _, c := range b[2:length] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return 0
		}
	}
	return length
}

// list skips a list; s.i must be at its bracket.
func (s *scanner) list(r role, depth int) bool {
	s.i++
	if s.peek() == ']' {
		s.i++
		return true
	}
	next, f := element(r), s.f
	for n := 0; ; n++ {
		s.enter(next, n)
		ok := s.value(next, depth+1)
		s.f = f
		if !ok {
			return false
		}
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			return true
		default:
			return s.fail(whyNotJSON)
		}
	}
}

// object skips an object and records its members; s.i must be at its brace.
func (s *scanner) object(r role, depth int) bool {
	s.i++
	f := s.f
	if r == delta || r == message {
		s.f.whole = r == message
		s.e.layout.chat = true
	}
	deltas, finishes, calls := len(s.e.Deltas), len(s.e.Finishes), len(s.e.Calls)
	var seen uint64
	for n := 0; ; n++ {
		if s.peek() == '}' && n == 0 {
			break
		}
		m, from, start, ok := s.member(r, &seen)
		if !ok || !s.value(m, depth+1) {
			return s.fail(whyNotJSON)
		}
		s.note(r, m, openai.Span{Start: start, End: s.i}, from)
		if c := s.peek(); c == '}' {
			break
		} else if c != ',' {
			return s.fail(whyNotJSON)
		}
		s.i++
	}
	s.i++
	s.leave(r, deltas, finishes, calls)
	s.f.choice, s.f.part, s.f.whole = f.choice, f.part, f.whole
	return true
}

// member reads a name and its colon. It returns the role of the value, and where the name and the
// value begin.
func (s *scanner) member(of role, seen *uint64) (m role, from, start int, ok bool) {
	if s.peek() != '"' {
		return 0, 0, 0, s.fail(whyNotJSON)
	}
	from = s.i
	if !s.str() {
		return 0, 0, 0, false
	}
	name := s.b[from+1 : s.i-1]
	if s.escaped {
		s.name = appendText(s.name[:0], name)
		name = s.name
	}
	m = member(of, name)
	if !m.repeated() {
		if *seen&(1<<m) != 0 {
			return 0, 0, 0, s.fail(whyTwice)
		}
		*seen |= 1 << m
	}
	if s.peek() != ':' {
		return 0, 0, 0, s.fail(whyNotJSON)
	}
	s.i++
	s.peek()
	return m, from, s.i, true
}

// enter prepares for element n of a list.
func (s *scanner) enter(r role, n int) {
	l := &s.e.layout
	switch r { //nolint:exhaustive // the rest shares what is around it
	case choice:
		s.f.choice, s.f.index = n, -1
		s.f.slot = len(l.slots)
		l.slots = append(l.slots, slot{})
	case toolCall:
		s.f.part, s.f.index = n, -1
		s.e.Calls = append(s.e.Calls, Call{Choice: s.f.choice, Part: n})
	case item:
		s.f.choice, s.f.whole = n, true
	case contentPart, summaryPart:
		s.f.part, s.f.typeName = n, openai.Span{}
		// A part of an output item has logprobs of its own.
		if s.f.slot == 0 {
			s.f.slot = len(l.slots)
			l.slots = append(l.slots, slot{})
		}
	default:
	}
}

// leave completes what was read in an object with members that may follow the texts.
func (s *scanner) leave(r role, deltas, finishes, calls int) {
	e := s.e
	switch r { //nolint:exhaustive // the rest has nothing to settle
	case choice:
		if s.f.index >= 0 {
			s.reindex(deltas, finishes, calls)
		}
		e.layout.choices = append(e.layout.choices, s.f.choice)
	case toolCall:
		n := len(e.Calls)
		e.Calls[n-1].named = slices.ContainsFunc(e.Deltas[deltas:], func(d Delta) bool { return d.Kind == ToolName })
		for i := deltas; i < len(e.Deltas); i++ {
			e.Deltas[i].call = n
		}
		if s.f.index >= 0 {
			e.renumber(n-1, s.f.index)
		}
	case part, contentPart, summaryPart:
		if r == summaryPart || s.isReasoning() {
			for i := deltas; i < len(e.Deltas); i++ {
				e.Deltas[i].Kind = Reasoning
			}
		}
	default:
	}
}

// reindex assigns the choice's own index to what was read in it.
func (s *scanner) reindex(deltas, finishes, calls int) {
	e := s.e
	s.f.choice = s.f.index
	for i := deltas; i < len(e.Deltas); i++ {
		e.Deltas[i].Choice = s.f.index
	}
	for i := finishes; i < len(e.Finishes); i++ {
		e.Finishes[i].Choice = s.f.index
	}
	for i := calls; i < len(e.Calls); i++ {
		e.Calls[i].Choice = s.f.index
	}
}

// isReasoning reports whether the part that was read is reasoning.
func (s *scanner) isReasoning() bool {
	switch string(s.inside(s.f.typeName)) {
	case "reasoning_text", "summary_text", "thinking", "reasoning":
		return true
	}
	return false
}

// inside returns a string without its quotes, or nil for a zero span.
func (s *scanner) inside(at openai.Span) []byte {
	if at.End-at.Start < 2 {
		return nil
	}
	return s.b[at.Start+1 : at.End-1]
}

// maxInteger exceeds every number that is read.
const maxInteger = 1 << 40

// integer reads a number without a fraction. It returns -1 for anything else, and some number above
// maxInteger for larger ones.
func (s *scanner) integer(at openai.Span) int {
	n := 0
	for _, c := range s.b[at.Start:at.End] {
		if c < '0' || c > '9' {
			return -1
		}
		if n > maxInteger {
			return n
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// isEmpty reports whether a value is null or empty.
func isEmpty(value []byte) bool {
	switch string(value) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}
