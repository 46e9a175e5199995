package openai

import (
	"errors"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FieldOf returns the field at which parsing a body failed, such as facts[1].text; empty for the
// body itself. No member of the body may be named with a number.
func FieldOf(err error) string {
	var at jsontext.Pointer
	var semantic *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		at = semantic.JSONPointer
	case errors.As(err, &syntax):
		at = syntax.JSONPointer
	}
	path := strings.ReplaceAll(strings.TrimPrefix(string(at), "/"), "/", ".")
	return listIndex.ReplaceAllString(path, "[$1]")
}

// listIndex matches the list indices in a path with dots.
var listIndex = regexp.MustCompile(`\.(\d+)`)
