package redact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// inside is the contents of a string, or a number, in a text that is JSON.
type inside struct {
	start, end int
	isName     bool // of a member
	isNumber   bool
}

// valuesOf returns the strings and numbers of a text that consists of JSON objects or lists; ok is
// false for any other text. A lone number is text.
func valuesOf(text string) (out []inside, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewBufferString(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		kind, depth := dec.PeekKind(), dec.StackDepth()
		if depth == 0 && kind != '{' && kind != '[' {
			_, err := dec.ReadToken()
			return out, errors.Is(err, io.EOF) && dec.InputOffset() > 0
		}
		if kind != '"' && kind != '0' {
			if _, err := dec.ReadToken(); err != nil {
				return nil, false
			}
			continue
		}
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		end := int(dec.InputOffset())
		if kind == '0' {
			out = append(out, inside{start: end - len(quoted), end: end, isNumber: true})
			continue
		}
		around, n := dec.StackIndex(depth)
		out = append(out, inside{start: end - len(quoted) + 1, end: end - 1, isName: around == '{' && n%2 == 1})
	}
}

// isResult reports whether a message is a tool result.
func isResult(m *openai.Message) bool {
	return m.Content.Present() && (m.Role == "tool" || m.Role == "function")
}

// isData reports whether a message is a tool result that is entirely JSON.
func (h *hider) isData(m *openai.Message) bool {
	if !isResult(m) {
		return false
	}
	is, known := h.results[m.Text]
	if !known {
		_, is = valuesOf(m.Text)
		h.results[m.Text] = is
	}
	return is
}

// isNested reports whether a string may contain JSON: call arguments, a tool result, or a part of
// one. Strings must be passed in their order.
func (h *hider) isNested(s *str) bool {
	if s.isName {
		return false
	}
	if s.name == argumentsName {
		return true
	}
	m := h.messageAt(s.start + 1) // an offset inside the content, even if the string is all of it
	return m != nil && (s.part || h.req.Raw[m.Content.Start] == '"') && h.isData(m)
}

// within returns the parts of pieces that lie in the strings and numbers of a text, if it is JSON;
// its punctuation has no room for a placeholder. A piece over several values becomes one piece in
// each, except in member names between them.
func (h *hider) within(ctx context.Context, text string, pieces []piece) []piece {
	list, ok := valuesOf(text)
	if !ok {
		return pieces
	}
	f := found{text: text, spans: pieces}
	f.unescape()
	var out []piece
	for _, p := range f.spans {
		for len(list) > 0 && list[0].end <= p.start {
			list = list[1:]
		}
		for _, in := range list {
			if in.start >= p.end {
				break
			}
			switch {
			case in.isName && p.start < in.start && in.end < p.end:
				out = h.mentionedIn(ctx, text[in.start:in.end], in.start, out)
			case in.start < in.end:
				out = append(out, h.cut(text, p, in))
			}
		}
	}
	return out
}

// cut returns the part of a piece inside a string of the text, or the whole number that it touches,
// which is replaced by a string.
func (h *hider) cut(text string, p piece, in inside) piece {
	if in.isNumber {
		if p.start != in.start || p.end != in.end {
			p.secret = h.keeper.intern(cmp.Or(p.kind, p.secret.kind), text[in.start:in.end])
		}
		p.start, p.end, p.inQuotes = in.start, in.end, true
		return p
	}
	if in.start <= p.start && p.end <= in.end {
		return p
	}
	p.start, p.end = max(p.start, in.start), min(p.end, in.end)
	value := text[p.start:p.end]
	if plain, ok := unquote(value); ok {
		value = plain
	}
	p.secret = h.keeper.intern(cmp.Or(p.kind, p.secret.kind), value)
	return p
}

// says reports whether a text of the rewritten request contains a value where a placeholder could
// be, or may contain one because ctx ended. In JSON these places are its strings and numbers.
func (h *hider) says(ctx context.Context, text string, to agreement) bool {
	v := h.keeper.vault
	if !v.Mentions(ctx, text) {
		return false
	}
	if !to.nested[text] {
		return true
	}
	list, ok := valuesOf(text)
	for _, in := range list {
		if v.Mentions(ctx, text[in.start:in.end]) {
			return true
		}
	}
	return !ok || ctx.Err() != nil
}
