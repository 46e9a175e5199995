package redact

import (
	"context"
	"slices"
	"strings"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// use is where a text stands in a request.
type use uint8

const (
	asContract use = 1 << iota // only among the names of tools and what else the application compares
	asText                     // elsewhere
)

// note remembers where a text stands in which something was found.
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

// given reports whether data of a kind is told by its characters. A word of the API contract that
// looks like the name of a person or of a place is a word all the same; an address of mail is none.
func given(kind string) bool {
	switch kind {
	case "EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "NATIONAL_ID", "PHONE_NUMBER", "US_SSN", "US_DRIVER_LICENSE",
		"IP_ADDRESS":
		return true
	}
	return false
}

// keepGiven drops the spans of a word of the contract that are but guesses. Those of several words
// are kept: they are nobody's name by chance, and are replaced where they stand elsewhere.
func (f *found) keepGiven() {
	f.spans = slices.DeleteFunc(f.spans, func(p piece) bool {
		return !given(p.kind) && !strings.ContainsRune(f.text[p.start:p.end], ' ')
	})
	f.replaced = f.replaced || len(f.spans) == 0
}

// contract reports whether a string is a word that the application, the model and the server have
// agreed on, and that means nothing else in its place: the name of a tool, of a property of a schema
// or of metadata, or a value that a schema lists.
func (h *hider) contract(s *str) bool {
	path := s.path
	switch path[0] {
	case "metadata":
		return s.isName
	case "messages", "input":
		const ofItem = 2 // messages, its list
		if len(path) <= ofItem || path[1] != "" {
			return false
		}
		return h.inItem(s, path[ofItem:])
	}
	return describes(path[0]) && agreed(s, path[1:])
}

// inItem is contract for a member of a message or of an item of input.
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

// toolAt reports whether the message at an offset of the body is the result of a tool, or an item of
// input that is no message, such as a call: its name is that of a tool.
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

// agreed reports whether a string in a description of tools or of a schema is a word of the
// contract. path begins below the member that holds the descriptions.
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

// example reports whether a path leads into a default or an example, which is any text. Properties
// may have these names, too.
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

// schema reports whether a member holds a schema: a name in it is a property, or an example of one.
func schema(name string) bool {
	switch name {
	case "parameters", "input_schema", "schema", "properties":
		return true
	}
	return false
}

// apart gives names of members that would become equal placeholders of their own: Berlin and berlin
// are two members, and no body may have the same one twice.
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

// agreement is what is looked up to see that a rewritten request holds no value.
type agreement struct {
	words  map[string]bool // of the contract
	nested map[string]bool // texts that may be JSON themselves
}

// agreementOf reads a rewritten request.
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

// left reports whether a value is left in a text of the rewritten request, or may be, since ctx
// ended. Words of the contract may look like a name, and JSON in a text has numbers.
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

// mentionsGiven is Mentions for data that its characters tell.
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
