package redact

import (
	"context"
	"slices"
	"strings"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// use is the set of places where a text occurs in a request.
type use uint8

const (
	asContract use = 1 << iota // only in tool names and other strings that the application compares
	asText                     // in any other place
)

// note records where a text occurs in which something was found.
func (h *hider) note(s *str) {
	if h.texts[string(s.text)] == nil {
		return
	}
	if h.contract(s) {
		h.agreed[string(s.text)] |= asContract
	} else {
		h.agreed[string(s.text)] |= asText
	}
}

// given reports whether data of a kind is recognised by its characters alone. A word of the API
// contract that resembles the name of a person or place is still just a word; one that is an email
// address is not.
func given(kind string) bool {
	switch kind {
	case "EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "NATIONAL_ID", "PHONE_NUMBER", "US_SSN", "US_DRIVER_LICENSE",
		"IP_ADDRESS":
		return true
	}
	return false
}

// keepGiven drops spans of a contract word that are only guesses. Spans of several words stay: they
// do not match a name by chance, and are replaced where they occur elsewhere.
func (f *found) keepGiven() {
	f.spans = slices.DeleteFunc(f.spans, func(p piece) bool {
		return !given(p.kind) && !strings.ContainsRune(f.text[p.start:p.end], ' ')
	})
	f.replaced = f.replaced || len(f.spans) == 0
}

// contract reports whether a string is part of the contract between application, model and server
// and means nothing else in its place: the name of a tool, of a schema property or of a metadata
// member, or an enum value of a schema.
func (h *hider) contract(s *str) bool {
	path := s.path
	switch path[0] {
	case "metadata":
		return s.isName
	case "messages", "input":
		const ofItem = 2 // path depth: messages, its list
		if len(path) <= ofItem || path[1] != "" {
			return false
		}
		return h.inItem(s, path[ofItem:])
	}
	return describes(path[0]) && agreed(s, path[1:])
}

// inItem is contract for a member of a message or of an input item.
func (h *hider) inItem(s *str, path []string) bool {
	switch {
	case path[0] == "tools":
		return agreed(s, path[1:])
	case s.isName || s.free:
		return false
	case path[0] == "tool_calls", path[0] == "function_call":
		return s.name == "name"
	case path[0] == "name" && len(path) == 1:
		return h.toolAt(s.start)
	}
	return path[0] == "server_label"
}

// toolAt reports whether the message at an offset of the body is a tool result, or an input item
// other than a message, such as a call. Its name is then that of a tool.
func (h *hider) toolAt(offset int) bool {
	list := h.req.Messages
	at, _ := slices.BinarySearchFunc(list, offset, func(m openai.Message, offset int) int {
		if m.Span.End <= offset {
			return -1
		}
		return 1
	})
	if at == len(list) || list[at].Span.Start > offset {
		return h.req.API == openai.Response
	}
	switch list[at].Role {
	case "system", "developer", "user":
		return false
	case "assistant":
		return h.req.API == openai.Response
	}
	return true
}

// describes reports whether a field of the body holds tools or schemas.
func describes(field string) bool {
	switch field {
	case "tools", "functions", "tool_choice", "function_call",
		"response_format", "text", "guided_json", "structured_outputs":
		return true
	}
	return false
}

// agreed reports whether a string in a tool description or schema is a contract word. path begins
// below the member that holds the descriptions.
func agreed(s *str, path []string) bool {
	if example(path) {
		return false
	}
	if s.isName {
		return true
	}
	switch s.name {
	case "name", "server_label", "allowed_tools", "tool_names":
		return !slices.ContainsFunc(path, schema)
	case "enum", "const", "required", "dependentRequired", "$ref", "$id", "$anchor", "$dynamicRef":
		return true
	}
	return slices.Contains(path, "dependentRequired")
}

// example reports whether a path leads into a default or an example, which may be any text.
// Properties may have these names, too.
func example(path []string) bool {
	for i, name := range path[:max(0, len(path)-1)] {
		switch name {
		case "default", "example", "examples":
			if i == 0 || path[i-1] != "properties" {
				return true
			}
		}
	}
	return false
}

// schema reports whether a member holds a schema. A name in it is a property, or part of an
// example.
func schema(name string) bool {
	switch name {
	case "parameters", "input_schema", "schema", "properties":
		return true
	}
	return false
}

// apart gives placeholders of their own to member names that would otherwise become equal: Berlin
// and berlin are two members, and a JSON object must not have a name twice.
func (h *hider) apart(s *str, pieces []piece) {
	if len(pieces) == 0 {
		return
	}
	place := strings.Join(s.path[:len(s.path)-1], "\x00") + "\x00\x00"
	became := func() string { return place + string(rewriteString(h.req.Raw[s.start:s.end], pieces)) }
	name := string(s.text)
	if other, ok := h.renamed[became()]; ok && other != name {
		for i := range pieces {
			p := &pieces[i]
			p.secret = h.keeper.internAs(p.secret.kind, "", name[p.start:p.end])
		}
	}
	h.renamed[became()] = name
}

// agreement is what the check for remaining values in a rewritten request needs.
type agreement struct {
	words  map[string]bool // contract words
	nested map[string]bool // texts that may contain JSON
}

// agreementOf collects the agreement of a rewritten request.
func agreementOf(ctx context.Context, out *openai.Request) (agreement, error) {
	to := agreement{words: make(map[string]bool), nested: make(map[string]bool)}
	for i := range out.Messages {
		if m := &out.Messages[i]; isResult(m) {
			to.nested[m.Text] = true
		}
	}
	after := hider{req: out}
	err := walk(ctx, out.Raw, func(s *str) {
		if after.contract(s) {
			to.words[string(s.text)] = true
		}
		if s.name == argumentsName && !s.isName {
			to.nested[string(s.text)] = true
		}
	})
	return to, err
}

// left reports whether a value remains in a text of the rewritten request, or may remain because
// ctx ended. Contract words may resemble names, and JSON in a text contains numbers.
func (h *hider) left(ctx context.Context, s *signal.Segment, to agreement) bool {
	v := h.keeper.vault
	if to.words[s.Text] && !v.mentionsGiven(ctx, s.Text) {
		return ctx.Err() != nil
	}
	if len(to.words)+len(to.nested) == 0 || !s.List {
		return h.says(ctx, s.Text, to)
	}
	for line := range strings.SplitSeq(s.Text, "\n") {
		if to.words[line] && !v.mentionsGiven(ctx, line) {
			continue
		}
		if h.says(ctx, line, to) {
			return true
		}
	}
	return false
}

// mentionsGiven is Mentions for data recognised by its characters alone.
func (v *Vault) mentionsGiven(ctx context.Context, text string) bool {
	for from := 0; ; {
		_, end, s := v.mentions.find(ctx, text, from)
		if s == nil {
			return ctx.Err() != nil
		}
		if given(s.kind) {
			return true
		}
		from = end
	}
}
