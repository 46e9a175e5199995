package redact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// argumentsName is the member with the arguments of a call, which are JSON in a string.
const argumentsName = "arguments"

// str is a string in a body.
type str struct {
	start, end int    // offsets in the body, including the quotes
	text       []byte // decoded; valid during the call
	name       string // name of the nearest member around it
	field      string // top-level field that contains it
	part       bool   // it is text in the content list of a message
	isName     bool   // it is the name of a member, the last one in path
	// names of the members that contain it, "" for each list; valid during the call
	path []string
	free bool // inside a member with arbitrary JSON, whose names mean nothing here
}

// asksJSON reports whether the string requests JSON as the content of the response: response_format
// of the API, text.format of the Responses API, or guided_json of vLLM.
func (s *str) asksJSON() bool {
	if s.isName {
		return false
	}
	switch s.field {
	case "response_format", "text":
		return s.name == "type" && bytes.HasPrefix(s.text, []byte("json"))
	}
	return s.field == "guided_json"
}

// structuredJSON reports whether vLLM's structured_outputs requests content in JSON.
func structuredJSON(req *openai.Request) bool {
	asked := req.Field("structured_outputs")
	schema := openai.Member(asked, "json")
	return len(schema) > 0 && schema[0] != 'n' || string(openai.Member(asked, "json_object")) == "true"
}

// walk calls visit for every string in a body, including member names, until ctx ends.
func walk(ctx context.Context, raw []byte, visit func(*str)) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	var buf []byte
	names := make([]string, 1, 16) // by depth, the current member
	path := make([]string, 1, 16)  // the same, but empty for a list
	for ctx.Err() == nil {
		tok := dec.PeekKind()
		depth := dec.StackDepth()
		names, path = slices.Grow(names, 1)[:depth+1], slices.Grow(path, 1)[:depth+1]
		if tok != '"' {
			if _, err := dec.ReadToken(); err != nil {
				if depth == 0 && errors.Is(err, io.EOF) {
					return nil
				}
				return fmt.Errorf("%w: the body does not parse", ErrIncomplete)
			}
			if d := dec.StackDepth(); d > depth {
				names, path = append(names, names[depth]), append(path, "")
			}
			continue
		}
		quoted, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("%w: the body does not parse", ErrIncomplete)
		}
		buf, _ = jsontext.AppendUnquote(buf[:0], quoted) // the decoder has validated it
		kind, n := dec.StackIndex(depth)
		isName := kind == '{' && n%2 == 1
		if isName {
			names[depth] = string(buf)
			path[depth] = names[depth]
		}
		end := int(dec.InputOffset())
		s := str{
			start: end - len(quoted), end: end, text: buf,
			name: names[depth], field: names[min(1, depth)],
			part: !isName && isPart(names, depth, kind), isName: isName, path: path[min(1, depth):],
			free: isFree(names[:depth]),
		}
		visit(&s)
	}
	return ended(ctx)
}

// isFree reports whether one of the members contains the client's own JSON; members[d] is the one
// at depth d. The top-level fields input and reasoning are excluded, since they are those of the
// Responses API.
func isFree(members []string) bool {
	for depth, name := range members {
		if depth <= 2 && (name == "input" || name == "reasoning") {
			continue // a list repeats the member around it
		}
		switch name {
		case argumentsName,
			"input",
			"documents",
			"prediction",
			"chat_template_kwargs",
			"refusal",
			"reasoning",
			"reasoning_content",
			"thinking",
			"metadata":
			return true
		}
	}
	return false
}

// isPart reports whether a string is text in a content list: an element of messages[i].content (or
// of input[i].content or input[i].output in the Responses API), or its text member. names[d] is the
// member at depth d; a list repeats the one around it.
func isPart(names []string, depth int, kind jsontext.Kind) bool {
	const list = 4 // {"messages":[{"content":[
	if depth < list || names[1] != "messages" && names[1] != "input" || names[3] != "content" && names[3] != "output" {
		return false
	}
	if depth == list {
		return kind == '['
	}
	switch names[depth] {
	case "text", "refusal", "thinking", "reasoning":
		return depth == list+1 && kind == '{'
	}
	return false
}

// rewriteString replaces pieces of the text of a JSON string, which is given with its quotes. The
// rest keeps its spelling.
func rewriteString(quoted []byte, pieces []piece) []byte {
	out := make([]byte, 0, len(quoted)+16*len(pieces))
	at := 0 // offset in the decoded text
	for i := 0; i < len(quoted); {
		if i == 0 || i == len(quoted)-1 {
			out = append(out, quoted[i])
			i++
			continue
		}
		size, decoded := unit(quoted[i:])
		for len(pieces) > 0 && pieces[0].end <= at {
			pieces = pieces[1:]
		}
		switch {
		case len(pieces) == 0 || at < pieces[0].start:
			out = append(out, quoted[i:i+size]...)
		case at == pieces[0].start && pieces[0].inQuotes:
			out = append(append(append(out, `\"`...), pieces[0].placeholder...), `\"`...)
		case at == pieces[0].start:
			out = append(out, pieces[0].placeholder...)
		}
		i, at = i+size, at+decoded
	}
	return out
}

// unit returns the length of the first character in the contents of a JSON string, as spelled and
// as decoded.
func unit(b []byte) (size, decoded int) {
	switch {
	case b[0] != '\\':
		return 1, 1
	case b[1] != 'u':
		return 2, 1
	}
	r := hex4(b[2:6])
	if r >= 0xD800 && r < 0xDC00 { // a surrogate pair: the parser accepts no other kind
		return 12, 4
	}
	return 6, utf8.RuneLen(r)
}

func hex4(b []byte) (r rune) {
	for _, c := range b {
		switch {
		case c <= '9':
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}

// splice applies edits, which must be in order.
func splice(raw []byte, edits []edit) []byte {
	out := make([]byte, 0, len(raw)+16*len(edits))
	pos := 0
	for _, e := range edits {
		out = append(append(out, raw[pos:e.start]...), e.text...)
		pos = e.end
	}
	return append(out, raw[pos:]...)
}
