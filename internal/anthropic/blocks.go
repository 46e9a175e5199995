package anthropic

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// piece is a part of a content: a text, or a content part of a chat.
type piece struct {
	text []byte // without quotes, still escaped
	part []byte // JSON; nil for a text
}

// newline separates texts that were blocks.
const newline = `\n`

// appendContent appends the value of a content: one string if all of it is text, which every server
// accepts, else a list of parts.
func appendContent(b []byte, pieces []piece) []byte {
	if !slices.ContainsFunc(pieces, func(p piece) bool { return p.part != nil }) {
		b = append(b, '"')
		for i := range pieces {
			if i > 0 {
				b = append(b, newline...)
			}
			b = append(b, pieces[i].text...)
		}
		return append(b, '"')
	}
	for i := range pieces {
		b = append(b, "[,"[min(i, 1)])
		if p := &pieces[i]; p.part != nil {
			b = append(b, p.part...)
			continue
		}
		b = append(append(append(b, `{"type":"text","text":"`...), pieces[i].text...), `"}`...)
	}
	return append(b, ']')
}

func (t *translator) count() error {
	if t.parts++; t.parts > t.opts.Limits.MaxParts {
		return bad("messages", "holds more than %d blocks", t.opts.Limits.MaxParts)
	}
	return nil
}

// conversation translates system and messages.
func (t *translator) conversation(b *top) error {
	t.member("messages", []byte{'['})
	n := 0
	if b.system != nil {
		t.place = openai.Place{Message: openai.Whole, Block: openai.Whole}
		if err := t.system(b.system, "system"); err != nil {
			return err
		}
	}
	err := elements(b.messages, "messages", func(at string, v []byte) error {
		if n++; n > t.opts.Limits.MaxMessages {
			return bad("messages", "holds more than %d messages", t.opts.Limits.MaxMessages)
		}
		t.place = openai.Place{Message: n - 1, Block: openai.Whole}
		return t.message(v, at)
	})
	if err == nil && n == 0 {
		err = bad("messages", "must not be empty")
	}
	t.out.Chat = append(t.out.Chat, ']')
	return err
}

// open begins a message of the chat.
func (t *translator) open(role string) {
	if last := t.out.Chat[len(t.out.Chat)-1]; last != '[' {
		t.out.Chat = append(t.out.Chat, ',')
	}
	t.out.Chat = append(append(append(t.out.Chat, `{"role":"`...), role...), '"')
	t.out.Places = append(t.out.Places, t.place)
}

// say appends a message that only consists of a content.
func (t *translator) say(role string, content []piece) {
	t.open(role)
	t.out.Chat = appendContent(append(t.out.Chat, `,"content":`...), content)
	t.out.Chat = append(t.out.Chat, '}')
}

// billing begins a system block in which a coding agent sends billing data to Anthropic. It differs
// for every request, so that no two prompts would share a prefix, and it has no meaning for a
// model.
const billing = "x-anthropic-billing-header"

// system translates instructions: a text, or text blocks, which become one message.
func (t *translator) system(v []byte, at string) error {
	var texts []piece
	add := func(text []byte) {
		if bytes.HasPrefix(text, []byte(billing)) {
			t.leaveOut("system.billing_header")
			return
		}
		texts = append(texts, piece{text: text})
	}
	switch v[0] {
	case '"':
		add(v[1 : len(v)-1])
	case '[':
		err := elements(v, at, func(at string, v []byte) error {
			b, err := t.block(v, at)
			switch {
			case err != nil:
				return err
			case b.kind != "text":
				return bad(join(at, "type"), "must be text")
			case len(b.text) > 0:
				add(b.text)
			}
			return nil
		})
		if err != nil {
			return err
		}
	default:
		return bad(at, "must be a string or a list of blocks")
	}
	if len(texts) > 0 {
		t.say("system", texts)
	}
	return nil
}

// block is one block of a content, with the members of all kinds of blocks; absent members are nil.
type block struct {
	kind                      string
	text, thinking            []byte // without quotes
	source, content           []byte
	id, name, input, toolUse  []byte
	title, context, citations []byte
	isError                   bool
}

// block reads a block. The caller checks that its kind is allowed.
func (t *translator) block(raw []byte, at string) (b block, err error) {
	if err := t.count(); err != nil {
		return b, err
	}
	var names []string
	err = members(raw, at, func(name string, v []byte) (err error) {
		in := join(at, name)
		names = append(names, name)
		switch name {
		case "type":
			b.kind, err = word(v, in)
		case "text":
			b.text, err = text(v, in)
		case "thinking":
			b.thinking, err = text(v, in)
		case "id":
			_, err = text(v, in)
			b.id = v
		case "name":
			_, err = text(v, in)
			b.name = v
		case "tool_use_id":
			_, err = text(v, in)
			b.toolUse = v
		case "is_error":
			b.isError, err = flag(v, in)
		case "source":
			b.source = v
		case "content":
			b.content = v
		case "input":
			b.input = v
		case "title":
			b.title, err = text(v, in)
		case "context":
			b.context, err = text(v, in)
		case "citations":
			b.citations = v
		case "cache_control":
			t.cacheControl(v, "cache_control")
		}
		return err
	})
	if err == nil && b.kind == "" {
		err = bad(join(at, "type"), "is required")
	}
	for _, name := range names {
		if name != "type" && name != "cache_control" && !slices.Contains(membersOf(b.kind), name) {
			t.unknown(b.kind, name)
		}
	}
	return b, err
}

// membersOf returns the members that a kind of block has besides type and cache_control. The
// signature of thinking, and the data that may replace it, only have a meaning for the service that
// created them.
func membersOf(kind string) []string {
	switch kind {
	case "text":
		return []string{"text", "citations"}
	case "image":
		return []string{"source"}
	case "document":
		return []string{"source", "title", "context", "citations"}
	case "search_result":
		return []string{"source", "title", "content", "citations"}
	case "tool_use":
		return []string{"id", "name", "input"}
	case "tool_result":
		return []string{"tool_use_id", "content", "is_error"}
	case "thinking":
		return []string{"thinking", "signature"}
	case "redacted_thinking":
		return []string{"data"}
	}
	return nil
}

// message translates a turn.
func (t *translator) message(raw []byte, at string) error {
	role, content := "", []byte(nil)
	err := members(raw, at, func(name string, v []byte) (err error) {
		switch name {
		case "role":
			role, err = word(v, join(at, name))
		case "content":
			content = v
		default:
			t.unknown("messages", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	in := join(at, "content")
	switch role {
	case "user", "assistant", "system":
	case "":
		return bad(join(at, "role"), "is required")
	default:
		return bad(join(at, "role"), "must be one of user, assistant, system")
	}
	switch {
	case content == nil:
		return bad(in, "is required")
	case content[0] != '"' && content[0] != '[':
		return bad(in, "must be a string or a list of blocks")
	case role == "system": // between turns: coding agents send reminders to the model there
		return t.system(content, in)
	case content[0] == '"':
		t.say(role, []piece{{text: content[1 : len(content)-1]}})
		return nil
	case role == "user":
		return t.user(content, in)
	}
	return t.assistant(content, in)
}

// user translates a turn of the user. Tool results become messages of their own, which must
// directly follow the calls. Images in results move to the user message after them, because tool
// messages of a chat cannot contain images.
func (t *translator) user(content []byte, at string) error {
	var rest []piece
	results, of := false, 0 // of: the blocks that rest consists of
	blocks, block := 0, openai.Whole
	err := elements(content, at, func(at string, v []byte) error {
		had := len(rest)
		t.place.Block = blocks
		blocks++
		b, err := t.block(v, at)
		switch {
		case err != nil:
			return err
		case b.kind == "tool_result":
			results = true
			var shown []piece
			shown, err = t.result(&b, at)
			rest = append(rest, shown...)
		default:
			rest, err = t.piece(rest, &b, at)
		}
		if len(rest) > had {
			of, block = of+1, t.place.Block
		}
		return err
	})
	if of != 1 {
		block = openai.Whole
	}
	t.place.Block = block
	if err == nil && (len(rest) > 0 || !results) {
		t.say("user", rest)
	}
	return err
}

// result translates a tool result, and returns the images in it.
func (t *translator) result(b *block, at string) (shown []piece, err error) {
	if b.toolUse == nil {
		return nil, bad(join(at, "tool_use_id"), "is required")
	}
	pieces, err := t.inner(b.content, join(at, "content"))
	if err != nil {
		return nil, err
	}
	var texts []piece
	for _, p := range pieces {
		if p.part != nil {
			shown = append(shown, p)
			p = piece{text: []byte("[" + p.medium() + "]")}
		}
		texts = append(texts, p)
	}
	if b.isError { // a chat can express this only in the text
		texts = append([]piece{{text: []byte("Error:")}}, texts...)
	}
	t.open("tool")
	t.out.Chat = append(append(t.out.Chat, `,"tool_call_id":`...), b.toolUse...)
	t.out.Chat = appendContent(append(t.out.Chat, `,"content":`...), texts)
	t.out.Chat = append(t.out.Chat, '}')
	return shown, nil
}

// medium names the kind of a part, for the place where it was.
func (p *piece) medium() string {
	if bytes.HasPrefix(p.part, []byte(fileHead)) {
		return "document"
	}
	return "image"
}

// assistant translates a turn of the model: text, thinking and tool calls.
func (t *translator) assistant(content []byte, at string) error {
	var said, thought []piece
	var calls []byte
	err := elements(content, at, func(at string, v []byte) error {
		b, err := t.block(v, at)
		if err != nil {
			return err
		}
		switch b.kind {
		case "text":
			said, err = t.piece(said, &b, at)
		case "thinking":
			if len(b.thinking) > 0 {
				thought = append(thought, piece{text: b.thinking})
			}
		case "redacted_thinking": // only its creator can read it
			t.leaveOut("redacted_thinking")
		case "tool_use":
			calls, err = appendCall(calls, &b, at)
		default:
			err = bad(join(at, "type"), "%.100q has no counterpart in a chat "+
				"completion; known here are text, thinking and tool_use", b.kind)
		}
		return err
	})
	if err != nil {
		return err
	}
	t.open("assistant")
	t.out.Chat = append(t.out.Chat, `,"content":`...)
	if len(said) == 0 && calls != nil {
		t.out.Chat = append(t.out.Chat, "null"...)
	} else {
		t.out.Chat = appendContent(t.out.Chat, said)
	}
	if len(thought) > 0 {
		t.out.Chat = appendContent(append(t.out.Chat, `,"reasoning_content":`...), thought)
	}
	if calls != nil {
		t.out.Chat = append(append(append(t.out.Chat, `,"tool_calls":[`...), calls...), ']')
	}
	t.out.Chat = append(t.out.Chat, '}')
	return nil
}

func appendCall(calls []byte, b *block, at string) ([]byte, error) {
	switch {
	case b.id == nil:
		return nil, bad(join(at, "id"), "is required")
	case b.name == nil:
		return nil, bad(join(at, "name"), "is required")
	case b.input == nil:
		b.input = []byte("{}")
	case b.input[0] != '{':
		return nil, bad(join(at, "input"), "must be an object")
	}
	if calls != nil {
		calls = append(calls, ',')
	}
	calls = append(append(calls, `{"id":`...), b.id...)
	calls = append(append(calls, `,"type":"function","function":{"name":`...), b.name...)
	calls, err := jsontext.AppendQuote(append(calls, `,"arguments":`...), b.input)
	return append(calls, "}}"...), err
}
