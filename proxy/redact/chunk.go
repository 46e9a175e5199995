package redact

import (
	"bytes"
	"slices"
)

// fieldKind is a text of a chunk that goes on in the next one.
type fieldKind uint8

const (
	otherField  fieldKind = iota // ends with its chunk
	nestedField                  // the same, and is JSON itself
	contentField
	refusalField
	reasoningField
	reasoningContentField
	textField // of a completion that is no chat
	argumentsField
	nameField
	callArgumentsField // of the older function_call
	// The deltas of the Responses API, by the type of the event.
	responseText
	responseRefusal
	responseReasoning
	responseSummary
	responseArguments
	responseInput // of a custom tool, or code
	fieldKinds
)

// deltaOf returns what the member delta is in an event of the Responses API, otherField for any other.
func deltaOf(eventType []byte) fieldKind {
	switch string(eventType) {
	case "response.output_text.delta":
		return responseText
	case "response.refusal.delta":
		return responseRefusal
	case "response.reasoning_text.delta":
		return responseReasoning
	case "response.reasoning_summary_text.delta":
		return responseSummary
	case "response.function_call_arguments.delta", "response.mcp_call_arguments.delta":
		return responseArguments
	case "response.custom_tool_call_input.delta", "response.code_interpreter_call_code.delta":
		return responseInput
	}
	return otherField
}

// wraps are what surrounds the text of a field in a choice, by kind. The index of a tool call comes
// between the two halves of argumentsField and nameField.
//
//nolint:gochecknoglobals // constant table
var wraps = [fieldKinds][2]string{
	contentField:          {`"delta":{"content":"`, `"}`},
	refusalField:          {`"delta":{"refusal":"`, `"}`},
	reasoningField:        {`"delta":{"reasoning":"`, `"}`},
	reasoningContentField: {`"delta":{"reasoning_content":"`, `"}`},
	textField:             {`"text":"`, `"`},
	argumentsField:        {`,"function":{"arguments":"`, `"}}]}`},
	nameField:             {`,"function":{"name":"`, `"}}]}`},
	callArgumentsField:    {`"delta":{"function_call":{"arguments":"`, `"}}`},
}

// fieldKey names a field of a stream. In the Responses API the choice is the output item, and tool the
// part of its content.
type fieldKey struct {
	choice, tool int
	kind         fieldKind
}

// nested reports whether the text of the field is JSON itself.
func (k fieldKey) nested() bool {
	switch k.kind { //nolint:exhaustive // the rest is plain text
	case nestedField, argumentsField, callArgumentsField, responseArguments:
		return true
	}
	return false
}

// answer reports whether the text is what the model says, which is JSON when the request asks for that.
func (k fieldKey) answer() bool {
	return k.kind == contentField || k.kind == textField || k.kind == responseText
}

// goesOn reports whether the next chunk may go on with the text.
func (k fieldKey) goesOn() bool { return k.kind > nestedField }

// framed reports whether an event that brings the text looks like the one before and not like a chunk.
func (k fieldKey) framed() bool { return k.kind >= responseText }

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
	kind     []byte   // the type of an event of the Responses API
	item     int      // output_index
	part     int      // content_index or summary_index
	v        *Vault
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
	c.b, c.i, c.kind, c.item, c.part = data, 0, nil, 0, 0
	c.value(top, fieldKey{}, 0)
	c.settle()
	slices.Sort(c.finished)
	c.finished = slices.Compact(c.finished)
	c.b = nil
}

// settle tells the deltas of the Responses API, and the item that an event of it ends. The last event of
// all ends every item.
func (c *chunk) settle() {
	item := everyChoice
	for i := range c.fields {
		if f := &c.fields[i]; f.key.kind == responseText {
			f.key = fieldKey{c.item, c.part, deltaOf(c.kind)}
		}
	}
	switch {
	case bytes.HasSuffix(c.kind, []byte(".done")):
		item = c.item
	case bytes.Equal(c.kind, []byte("response.completed")), bytes.Equal(c.kind, []byte("response.incomplete")), bytes.Equal(c.kind, []byte("response.failed")):
	default:
		return
	}
	c.finished = append(c.finished, item)
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
	if f.bracket || f.key.goesOn() && f.end > f.start {
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
		if value >= '0' && value <= '9' && c.indexes(at, name, &index) {
			continue
		}
		var next place
		next, key.kind = c.step(at, name)
		mark := c.i
		c.value(next, key, depth+1)
		c.i = max(c.i, mark+1) // a byte that begins no value
		finished = finished || at == choice && string(name) == "finish_reason" && value == '"'
		if at == top {
			c.noteTop(name, from, mark)
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

// noteTop takes note of a member of the top level that was read: its name begins at from, its value at mark.
func (c *chunk) noteTop(name []byte, from, mark int) {
	if c.b[mark] == '"' && string(name) == "type" {
		c.kind = bytes.Trim(c.b[mark:c.i], `"`)
	}
	if repeats(name) {
		c.members = append(c.members, [2]int{from, c.i})
	}
}

// indexes reads the number that a member gives, if that says where texts belong, and reports whether it
// does: index that of a choice or tool call, others that of a delta of the Responses API.
func (c *chunk) indexes(at place, name []byte, index *int) bool {
	switch {
	case string(name) == "index":
		*index = c.integer()
	case at == top && string(name) == "output_index":
		c.item = c.integer()
	case at == top && (string(name) == "content_index" || string(name) == "summary_index"):
		c.part = c.integer()
	default:
		return false
	}
	return true
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

// step is the function step, and tells what is JSON itself.
func (c *chunk) step(at place, name []byte) (place, fieldKind) {
	next, kind := step(at, name)
	if kind == otherField && c.v.nested(name) {
		kind = nestedField
	}
	return next, kind
}

// step says what the value of a member is, by where the object stands.
func step(at place, name []byte) (place, fieldKind) {
	switch at {
	case top:
		switch string(name) {
		case "choices":
			return choices, otherField
		case "delta":
			return elsewhere, responseText // settle knows which
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
