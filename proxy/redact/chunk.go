package redact

import (
	"bytes"
	"slices"
)

// fieldKind is a text of a chunk that goes on in the next one.
type fieldKind uint8

const (
	otherField fieldKind = iota // ends with its chunk
	contentField
	refusalField
	reasoningField
	reasoningContentField
	textField // of a completion that is no chat
	argumentsField
	nameField
	callArgumentsField // of the older function_call
)

// wraps are what surrounds the text of a field in a choice, by kind. The index of a tool call comes
// between the two halves of argumentsField and nameField.
//
//nolint:gochecknoglobals // constant table
var wraps = [...][2]string{
	contentField:          {`"delta":{"content":"`, `"}`},
	refusalField:          {`"delta":{"refusal":"`, `"}`},
	reasoningField:        {`"delta":{"reasoning":"`, `"}`},
	reasoningContentField: {`"delta":{"reasoning_content":"`, `"}`},
	textField:             {`"text":"`, `"`},
	argumentsField:        {`,"function":{"arguments":"`, `"}}]}`},
	nameField:             {`,"function":{"name":"`, `"}}]}`},
	callArgumentsField:    {`"delta":{"function_call":{"arguments":"`, `"}}`},
}

// fieldKey names a field of a stream.
type fieldKey struct {
	choice, tool int
	kind         fieldKind
}

// nested reports whether the text of the field is JSON itself.
func (k fieldKey) nested() bool { return k.kind == argumentsField || k.kind == callArgumentsField }

// field is a text of a chunk: the inside of the JSON string [start, end) of its data.
type field struct {
	key        fieldKey
	start, end int
	bracket    bool // it holds a [
}

// chunk is the layout of one chunk. It is reused.
type chunk struct {
	fields   []field
	finished []int    // choices that end with it, sorted, each once
	members  [][2]int // of the top level, those that every chunk repeats: from name to value
	b        []byte
	i        int
}

// place is where in a chunk the reader is.
type place uint8

const (
	elsewhere place = iota
	top
	choices
	choice
	delta
	toolCalls
	toolCall
	function
	functionCall
)

// read finds the texts of data. What is no valid JSON ends the reading where it goes wrong: it is not
// for us to judge, and the client will.
func (c *chunk) read(data []byte) {
	c.fields, c.finished, c.members = c.fields[:0], c.finished[:0], c.members[:0]
	c.b, c.i = data, 0
	c.value(top, fieldKey{}, 0)
	slices.Sort(c.finished)
	c.finished = slices.Compact(c.finished)
	c.b = nil
}

// maxDepth bounds the nesting that is followed.
const maxDepth = 64

// peek skips white space and returns the next byte, 0 at the end.
func (c *chunk) peek() byte {
	for c.i < len(c.b) {
		switch b := c.b[c.i]; b {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return b
		}
	}
	return 0
}

// str passes over a string and returns the range of its inside.
func (c *chunk) str() (start, end int) {
	c.i++
	start = c.i
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case '\\':
			c.i++
		case '"':
			c.i++
			return start, c.i - 1
		}
		c.i++
	}
	c.i = len(c.b)
	return start, c.i
}

// value passes over a value, and takes note of what it holds.
func (c *chunk) value(at place, key fieldKey, depth int) {
	switch b := c.peek(); {
	case depth > maxDepth:
		c.i = len(c.b)
	case b == '{':
		c.object(at, key, depth)
	case b == '[':
		c.list(at, key, depth)
	case b == '"':
		start, end := c.str()
		c.note(field{key: key, start: start, end: end})
	default:
		c.scalar()
	}
}

func (c *chunk) scalar() (start, end int) {
	start = c.i
	for c.i < len(c.b) && c.b[c.i] != ',' && c.b[c.i] != '}' && c.b[c.i] != ']' {
		c.i++
	}
	return start, c.i
}

// note adds a text: any of a field that goes on, others when they may hold a placeholder.
func (c *chunk) note(f field) {
	f.bracket = bytes.IndexByte(c.b[f.start:f.end], '[') >= 0
	if f.bracket || f.key.kind != otherField && f.end > f.start {
		c.fields = append(c.fields, f)
	}
}

func (c *chunk) list(at place, key fieldKey, depth int) {
	c.i++
	next := elsewhere
	if at == choices {
		next = choice
	}
	if at == toolCalls {
		next = toolCall
	}
	for n := 0; ; n++ {
		switch c.peek() {
		case ',':
			c.i++
			continue
		case ']':
			c.i++
			return
		case 0:
			return
		}
		before := c.i
		if next == choice {
			key.choice = n
		}
		if next == toolCall {
			key.tool = n
		}
		c.value(next, key, depth+1)
		if c.i == before { // a byte that begins no value
			c.i++
		}
	}
}

func (c *chunk) object(at place, key fieldKey, depth int) {
	c.i++
	first, finished := len(c.fields), false
	index := -1
	for {
		b := c.peek()
		if b == ',' {
			c.i++
			continue
		}
		if b != '"' {
			if b == '}' {
				c.i++
			} else {
				c.i = len(c.b)
			}
			break
		}
		from := c.i
		start, end := c.str()
		name := c.b[start:end]
		if c.peek() == ':' {
			c.i++
		}
		value := c.peek()
		if string(name) == "index" && value >= '0' && value <= '9' {
			index = c.integer()
			continue
		}
		var next place
		next, key.kind = step(at, name)
		mark := c.i
		c.value(next, key, depth+1)
		c.i = max(c.i, mark+1) // a byte that begins no value
		finished = finished || at == choice && string(name) == "finish_reason" && value == '"'
		if at == top && repeats(name) {
			c.members = append(c.members, [2]int{from, c.i})
		}
	}
	c.close(at, first, index, key, finished)
}

// close gives the fields of a choice or tool call their index, which may stand behind them.
func (c *chunk) close(at place, first, index int, key fieldKey, finished bool) { //nolint:revive // a fact about the choice
	for i := first; i < len(c.fields) && index >= 0; i++ {
		if at == choice {
			c.fields[i].key.choice = index
		}
		if at == toolCall {
			c.fields[i].key.tool = index
		}
	}
	if finished {
		if index < 0 {
			index = key.choice
		}
		c.finished = append(c.finished, index)
	}
}

// integer reads a small number.
func (c *chunk) integer() int {
	start, end := c.scalar()
	n := 0
	for _, b := range c.b[start:end] {
		if b < '0' || b > '9' || n > 1<<20 {
			break
		}
		n = n*10 + int(b-'0')
	}
	return n
}

// repeats reports whether a member of the top level belongs to every chunk.
func repeats(name []byte) bool {
	switch string(name) {
	case "id", "object", "created", "model", "system_fingerprint":
		return true
	}
	return false
}

// step says what the value of a member is, by where the object stands.
func step(at place, name []byte) (place, fieldKind) {
	switch at {
	case top:
		if string(name) == "choices" {
			return choices, otherField
		}
	case choice:
		switch string(name) {
		case "delta":
			return delta, otherField
		case "text":
			return elsewhere, textField
		}
	case delta:
		switch string(name) {
		case "content":
			return elsewhere, contentField
		case "refusal":
			return elsewhere, refusalField
		case "reasoning":
			return elsewhere, reasoningField
		case "reasoning_content":
			return elsewhere, reasoningContentField
		case "tool_calls":
			return toolCalls, otherField
		case "function_call":
			return functionCall, otherField
		}
	case toolCall:
		if string(name) == "function" {
			return function, otherField
		}
	case function:
		switch string(name) {
		case argumentsName:
			return elsewhere, argumentsField
		case "name":
			return elsewhere, nameField
		}
	case functionCall:
		if string(name) == argumentsName {
			return elsewhere, callArgumentsField
		}
	case elsewhere, choices, toolCalls:
	}
	return elsewhere, otherField
}
