package prefix

import (
	"fmt"
	"slices"

	"signalbox/memory/ledger"
)

// chat inserts contexts before the messages.
func chat(r Request, domain []byte) (Body, error) {
	list, ok := field(r.Body, "messages")
	if !ok || r.Body[list.start] != '[' {
		return nil, fmt.Errorf("%w: it has no messages", ErrUnsupported)
	}
	all := elements(r.Body, list)
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: it has no messages", ErrUnsupported)
	}
	b := chatBuilder{role: r.Role}
	tail := len(r.Contexts) // start of the texts after which only system text follows
	for tail > 0 && r.Contexts[tail-1].Kind == ledger.Text {
		tail--
	}
	b.contexts(r.Contexts[:tail])
	own := leader(r.Body, all[0], r.Role)
	rest := all[0].start
	if tail < len(r.Contexts) || len(domain) > 0 {
		b.lead(r.Body, r.Contexts[tail:], domain, own)
		if own.form != apart {
			rest = all[0].end
		}
	}
	if rest == all[0].start {
		b.w.str(",")
	}
	return insert(r.Body, []insertion{{span{all[0].start, rest}, b.w.parts}}), nil
}

// form is how the caller's leading system message can share a message with contexts.
type form uint8

const (
	apart  form = iota // it cannot: it stays a separate message
	text               // its content is a string
	listed             // its content is a list of parts
)

// own is the caller's leading system message.
type own struct {
	form    form
	content span // between the quotes or brackets
}

// leader examines the first message. A message with members other than role and content stays
// separate, and so does one of the developer, which templates treat differently from the system's.
func leader(body []byte, message span, role Role) own {
	var who string
	var content span
	extra := false
	for name, at := range members(body, message) {
		switch name {
		case "role":
			who = string(body[at.start:at.end])
		case "content":
			content = at
		default:
			extra = true
		}
	}
	if extra || content.end == 0 || (who != `"system"` && (role != User || who != `"developer"`)) {
		return own{}
	}
	inside := span{content.start + 1, content.end - 1}
	switch body[content.start] {
	case '"':
		return own{text, inside}
	case '[':
		return own{listed, inside}
	}
	return own{}
}

// chatBuilder writes messages.
type chatBuilder struct {
	w     writer
	role  Role
	began bool // a message was written
}

func (b *chatBuilder) comma() {
	if b.began {
		b.w.str(",")
	}
	b.began = true
}

// contexts writes contexts, consecutive texts as one message.
func (b *chatBuilder) contexts(contexts []Context) {
	for i := 0; i < len(contexts); {
		b.comma()
		if contexts[i].Kind != ledger.Text {
			b.w.context(contexts[i])
			i++
			continue
		}
		end := i
		for end < len(contexts) && contexts[end].Kind == ledger.Text {
			end++
		}
		b.w.str(`{"role":"` + b.role.String() + `","content":"`)
		b.w.texts(contexts[i:end], nil, "")
		b.w.str(`"}`)
		i = end
	}
}

// lead writes the message that contains texts, the domain prompt and the caller's system text.
func (b *chatBuilder) lead(body []byte, texts []Context, domain []byte, o own) {
	b.comma()
	inside := body[o.content.start:o.content.end]
	b.w.str(`{"role":"` + b.role.String() + `","content":`)
	switch {
	case o.form == listed && !blank(inside):
		b.w.str(`[{"type":"text","text":"`)
		b.w.texts(texts, domain, separator)
		b.w.str(`"},`)
		b.w.raw(inside)
		b.w.str("]}")
	case o.form == text && len(inside) > 0:
		b.w.str(`"`)
		b.w.texts(texts, domain, separator)
		b.w.raw(inside)
		b.w.str(`"}`)
	default:
		b.w.str(`"`)
		b.w.texts(texts, domain, "")
		b.w.str(`"}`)
	}
}

// blank reports whether there is only white space between the brackets of a list.
func blank(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != ' ' && c != '\t' && c != '\n' && c != '\r' })
}
