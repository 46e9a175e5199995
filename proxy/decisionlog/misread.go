package decisionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Misread explains, in terms of the log, why err occurred when the JSON of a line was parsed. The
// result wraps ErrNotADecision.
func Misread(err error) error {
	var (
		kind   *json.UnmarshalTypeError
		value  *jsonv2.SemanticError
		syntax *json.SyntaxError
		torn   *jsontext.SyntacticError
	)
	why := "a value in it cannot be read"
	switch {
	case errors.As(err, &kind):
		what, _, _ := strings.Cut(kind.Value, " ") // the number may follow
		why = misplaced(kind.Field, what)
	case errors.As(err, &value) && kinds[byte(value.JSONKind)] != "":
		at := strings.TrimPrefix(string(value.JSONPointer), "/")
		why = misplaced(strings.ReplaceAll(at, "/", "."), kinds[byte(value.JSONKind)])
	case errors.As(err, &syntax):
		why = syntax.Error()
	case errors.As(err, &torn):
		why = strings.TrimPrefix(torn.Error(), "jsontext: ")
	}
	return fmt.Errorf("%w: %s", ErrNotADecision, why)
}

// misplaced says that a field, or without one the line, has a value of the wrong type.
func misplaced(field, what string) string {
	if field == "" {
		return "it is a JSON " + what + " and no object"
	}
	return field + " cannot be read from such a JSON " + what
}

//nolint:gochecknoglobals // constant table
var kinds = map[byte]string{
	'n': "null", 't': "bool", 'f': "bool", '"': "string", '0': "number", '[': "array", '{': "object",
}
