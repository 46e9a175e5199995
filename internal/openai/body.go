package openai

import (
	"cmp"
	"slices"

	"signalbox/internal/signal"
)

// The names that ParseBody reads, for the check of case variants.
//
//nolint:gochecknoglobals // constant tables
var (
	bodyNames = []string{
		"model", "stream", "stream_options", "max_tokens", "tools", "signalbox",
		"prompt", "input", "instructions", "messages", "query", "documents",
	}
	itemNames = append([]string{"role", "content"}, itemTexts...)
	// itemTexts are the members that are read including all strings inside.
	itemTexts = []string{"name", "arguments", "output", "input", "tool_calls", "function_call"}
)

// ParseBody reads the body of an endpoint that has no parser of its own and names a model:
// embeddings, rerank, tokenize, speech. The request has no Messages, so a Patch of it may only edit
// fields. Text reports prompt, input and query as text of the user, instructions as text of the
// system, documents as role tool, and items of input or messages by their own role. Prompts given
// as token ids have no text; OpaquePrompt reports them. Errors and the treatment of raw are as for
// ParseChat.
func ParseBody(raw []byte, l Limits) (*Request, error) {
	p := newParser(Other, raw, l)
	defer p.release()
	if err := p.body((*chatParser).bodyField); err != nil {
		return nil, asError(err)
	}
	return p.req, nil
}

// bodyField reads the value of a member of a body that is not a chat completion.
func (p *chatParser) bodyField() (err error) {
	r := p.req
	switch string(p.name) {
	case "model":
		r.Model, err = p.model()
	case "stream":
		r.Stream, err = p.boolOrNull()
	case "stream_options":
		return p.streamOptions()
	case "max_tokens":
		r.MaxTokens, err = p.intOrNull()
	case "tools":
		return p.tools()
	case "signalbox":
		return p.extras()
	case "prompt", "input", "messages":
		return p.input()
	case "query":
		return p.as(roleUser, signal.OriginUser).texts()
	case "documents":
		return p.as(roleTool, signal.OriginData).texts()
	case "instructions":
		return p.as(roleSystem, signal.OriginInstructions).harvest()
	default:
		return p.otherField(bodyNames)
	}
	return err
}

// input reads a text, a list of texts, token ids or items, or null.
func (p *chatParser) input() error {
	switch p.kind() {
	case '"':
		return p.as(roleUser, signal.OriginUser).harvest()
	case 'n':
		return p.skip()
	case '[':
	default:
		return p.mistyped("a string, a list or null")
	}
	return p.elements(func() error {
		switch p.kind() {
		case '"':
			return p.as(roleUser, signal.OriginUser).harvest()
		case '{':
			return p.item()
		default:
			p.req.OpaquePrompt = true
			return p.numbers()
		}
	})
}

// numbers reads a token id or a list of them. Anything else is left for the server to judge.
func (p *chatParser) numbers() error {
	switch p.kind() {
	case '[':
		return p.elements(p.numbers)
	case '0':
		p.req.ids++
	}
	return p.skip()
}

// item reads one item of a list: a message, a tool call, its result, or a content part.
func (p *chatParser) item() error {
	if err := p.countPart(); err != nil {
		return err
	}
	role, implied := "", roleUser
	first := len(p.req.loose)
	p.as(roleUser, signal.OriginUser)
	err := p.members(func() (err error) {
		switch string(p.name) {
		case "role":
			role, err = p.oneRole()
			return err
		case "arguments": // a call
			implied = roleAssistant
		case "output": // the result of a call
			implied = roleTool
		}
		return p.itemField()
	})
	if err != nil {
		return err
	}
	p.keepShort()
	role = cmp.Or(role, implied)
	for i := range p.req.loose[first:] {
		p.req.loose[first+i].role, p.req.loose[first+i].origin = role, originOf(role)
	}
	return nil
}

func (p *chatParser) itemField() error {
	switch name := string(p.name); {
	case name == "content":
		var m Message
		if err := p.content(&m); err != nil {
			return err
		}
		if m.Text != "" {
			p.keep(m.Text)
		}
		return nil
	case slices.Contains(itemTexts, name), isTextField(name):
		return p.harvest()
	case name == mediaID: // in an item that is a content part
		return p.mediaID()
	default:
		return p.other(itemNames)
	}
}
