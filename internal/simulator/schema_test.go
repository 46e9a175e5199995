package simulator

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzSchema checks that any schema ends in a JSON value or an error, soon.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"anyOf":[{"$ref":"#"},{"allOf":[{"$ref":"#/anyOf/1"}]}]}`,
		`{"type":"array","items":{"type":"number","multipleOf":0.1,"minimum":1e308},"minItems":3}`,
		`{"pattern":"(a{1000}){1000}"}`,
		`{"pattern":"[^a]\\b$x?","minLength":70000}`,
		`{"enum":[{"a":[]},[]]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		for _, required := range []bool{true, false} {
			text, err := makeValue([]byte(schema), required)
			if err == nil && !jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true)) {
				t.Errorf("%q is no JSON", text)
			}
		}
	})
}
