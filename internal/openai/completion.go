package openai

import (
	"cmp"
	"slices"

	"signalbox/internal/signal"
)

// The names that ParseCompletion reads, for the check of case variants.
//
//nolint:gochecknoglobals // constant table
var completionNames = []string{
	"model", "prompt", "prompt_embeds", "suffix", "echo", "n", "best_of", "max_tokens", "stream",
	"stream_options", "response_format", "structured_outputs", "guided_json", "guided_regex",
	"guided_choice", "guided_grammar", "signalbox",
}

// ParseCompletion reads the body of a (non-chat) completion. Each prompt is a message of role user
// whose content is the prompt itself. Prompts given as token ids or embeddings cannot be read;
// OpaquePrompt reports them. The suffix is a text of the user outside of messages. A Patch may edit
// fields and the texts of messages, but cannot insert messages. Errors and the treatment of raw are
// as for ParseChat.
func ParseCompletion(raw []byte, l Limits) (*Request, error) {
	p := newParser(Completion, raw, l)
	defer p.release()
	err := p.body((*chatParser).completionField)
	if err == nil && !p.req.OpaquePrompt && p.req.Field("prompt") == nil {
		err = invalidAt("prompt", "is required")
	}
	if err != nil {
		return nil, asError(err)
	}
	return p.req, nil
}

func (p *chatParser) completionField() (err error) {
	r := p.req
	switch string(p.name) {
	case "model":
		r.Model, err = p.model()
	case "prompt":
		return p.prompts()
	case "prompt_embeds": // vLLM: vectors instead of a prompt
		r.OpaquePrompt = r.OpaquePrompt || p.kind() != 'n'
		return p.skip()
	case "suffix":
		return p.suffix()
	case "echo":
		r.Echo, err = p.boolOrNull()
	case "n", "best_of":
		_, err = p.intOrNull()
	case "max_tokens":
		r.MaxTokens, err = p.intOrNull()
	case "stream":
		r.Stream, err = p.boolOrNull()
	case "stream_options":
		return p.streamOptions()
	case "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice",
		"guided_grammar":
		return p.as(roleTool, signal.OriginInstructions).anything()
	case "signalbox":
		return p.extras()
	default:
		return p.otherField(completionNames)
	}
	return err
}

// suffix reads the text that follows the completion.
func (p *chatParser) suffix() error {
	text, err := p.strOrNull()
	if err == nil && text != "" {
		p.as(roleUser, signal.OriginUser).keep(text)
	}
	return err
}

// promptForms lists the forms of a prompt, for errors.
const promptForms = "a string, a list of strings, a list of token ids, a list of such lists, or null"

// prompts reads the prompt in any of its forms. All elements of a list must have the same kind.
func (p *chatParser) prompts() error {
	switch p.kind() {
	case '"':
		return p.onePrompt()
	case 'n':
		return p.skip()
	case '[':
	default:
		return p.mistyped(promptForms)
	}
	var first byte // the kind of the first element
	err := p.elements(func() error {
		kind := p.kind()
		first = cmp.Or(first, kind)
		if kind != first {
			return p.mistyped("of the kind of the first element")
		}
		return p.promptElement(kind)
	})
	if err == nil && first == 0 {
		err = p.invalid("must not be empty")
	}
	return err
}

func (p *chatParser) promptElement(kind byte) error {
	switch kind {
	case '"':
		return p.onePrompt()
	case '0':
		return p.tokenID()
	case '[':
		return p.tokenIDs()
	default:
		return p.mistyped("a string, a token id or a list of token ids")
	}
}

func (p *chatParser) tokenIDs() error {
	p.req.OpaquePrompt = true
	p.req.TokenLists++
	return p.elements(func() error {
		if p.kind() != '0' {
			return p.mistyped("a token id")
		}
		return p.tokenID()
	})
}

func (p *chatParser) tokenID() error {
	p.req.OpaquePrompt = true
	p.req.TokenIDs++
	return p.skip()
}

// onePrompt reads a string that is a whole message of the user.
func (p *chatParser) onePrompt() error {
	if err := p.countMessage(); err != nil {
		return err
	}
	at := Span{Start: p.start()}
	text, err := p.str()
	at.End = p.end()
	p.req.Messages = append(p.req.Messages, Message{Role: roleUser, Text: text, Span: at, Content: at})
	return err
}

// countMessage returns an error if the limit of messages is exceeded. If there are many messages,
// it allocates room for the rest: as many as the rest of the body holds if they have the average
// size so far.
func (p *chatParser) countMessage() error {
	n := len(p.req.Messages)
	if n >= p.limits.MaxMessages {
		return invalidAt(p.req.API.list(), "holds more than %d messages", p.limits.MaxMessages)
	}
	if n >= manyMessages && n == cap(p.req.Messages) {
		read := p.end()
		rest := (len(p.raw) - read) / (read/n + 1)
		p.req.Messages = slices.Grow(p.req.Messages, min(rest+rest/8+1, p.limits.MaxMessages-n))
	}
	return nil
}

// manyMessages is the number of messages needed to estimate their average size.
const manyMessages = 64
