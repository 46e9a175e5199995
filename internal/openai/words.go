package openai

import (
	_ "embed" // of the words
	"strings"
)

// IsWord reports whether s is a word of the API, of JSON Schema (2020-12) or of chat templates,
// such as name, type, properties, string or auto. The list is closed and contains only words that
// have no meaning by themselves. As names and as short strings they are not read, so that a tool
// without names of its own costs nothing.
func IsWord(s []byte) bool {
	_, ok := words[string(s)]
	return ok
}

// closedWords are the keywords and types of JSON Schema, drafts 4 to 2020-12, its formats, and the
// addresses of its drafts; then names and values of the APIs that are read where they are something
// else.
//
//go:embed words.txt
var closedWords string

// isField reports whether the API defines a name as a member of chat bodies, of the object
// signalbox or of messages.
func isField(name string) bool {
	switch name {
	case "signalbox", "context", "session", "facts", "explain", "guard", "save_context",
		"id", "version", "lease", "source", "kind", "ttl",
		"budget_tokens", "display", "input_schema", "media_type", "output_config", "output_format",
		"tool_use_id", "citations":
		return true
	}
	return IsWord([]byte(name))
}

//nolint:gochecknoglobals // constant table
var words = func() map[string]struct{} {
	m := make(map[string]struct{})
	for _, names := range [][]string{
		chatNames, messageNames, partNames, toolCallNames, functionNames, streamOptionsNames,
		completionNames, bodyNames, itemNames, responseNames, responseItemNames, reasoningNames,
		promptNames, strings.Fields(closedWords),
	} {
		for _, w := range names {
			m[w] = struct{}{}
		}
	}
	for i := range exemptions {
		m[exemptions[i].name] = struct{}{}
	}
	return m
}()
