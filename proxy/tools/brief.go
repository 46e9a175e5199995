package tools

import (
	"bytes"
	"encoding/json"
	"unicode"
)

// maxDepth is the depth to which a schema is read; anything deeper is left unchanged.
const maxDepth = 16

// member is one member of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of an object in their order; false for other values.
func members(raw []byte) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []member
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return nil, false
		}
		out = append(out, member{name, value})
	}
	return out, true
}

// object builds an object from members; those for which f returns nil are omitted.
func object(list []member, f func(m member) json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	for _, m := range list {
		value := f(m)
		if value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(m.key) // strings can always be marshalled
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}')
}

// brief returns a tool with an empty description and a schema without descriptions; anything that
// is not a tool is unchanged. The description is kept as an empty one, since some chat templates
// insert it unconditionally and fail if it is missing.
func brief(raw json.RawMessage) json.RawMessage {
	list, ok := members(raw)
	if !ok {
		return compact(raw)
	}
	return object(list, func(m member) json.RawMessage {
		if f, ok := members(m.value); ok && m.key == "function" {
			return object(f, briefMember)
		}
		return briefMember(m)
	})
}

// briefMember returns the brief value of a member of a function.
func briefMember(m member) json.RawMessage {
	switch m.key {
	case "description":
		return json.RawMessage(`""`)
	case "parameters", "input_schema":
		return schema(m.value, 0)
	}
	return compact(m.value)
}

// schema returns a schema without its explanations.
func schema(raw json.RawMessage, depth int) json.RawMessage {
	list, ok := members(raw)
	if !ok || depth == maxDepth {
		return schemas(raw, depth)
	}
	return object(list, func(m member) json.RawMessage {
		switch m.key {
		case "description", "title", "example", "examples", "default", "$comment":
			return nil
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			named, ok := members(m.value)
			if !ok {
				return compact(m.value)
			}
			return object(named, func(m member) json.RawMessage { return schema(m.value, depth+1) })
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
			"additionalProperties", "unevaluatedProperties", "propertyNames",
			"allOf", "anyOf", "oneOf", "not", "if", "then", "else":
			return schema(m.value, depth+1)
		}
		return compact(m.value)
	})
}

// schemas returns the brief schemas of a list; any other value is unchanged.
func schemas(raw json.RawMessage, depth int) json.RawMessage {
	var list []json.RawMessage
	if depth == maxDepth || json.Unmarshal(raw, &list) != nil || list == nil {
		return compact(raw)
	}
	for i := range list {
		list[i] = schema(list[i], depth+1)
	}
	return append(append([]byte{'['}, bytes.Join(raws(list), []byte{','})...), ']')
}

func raws(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid JSON
	return b.Bytes()
}

// cost estimates the tokens of a JSON text without its white space: words of up to seven letters
// are one token, and so are three digits or two other characters.
func cost(raw []byte) int {
	n, run, class := 0, 0, 0
	each := [...]int{1, 7, 3, 2} // runes per token, by class
	end := func() { n += (run + each[class] - 1) / each[class] }
	for _, r := range string(raw) {
		next := 3
		switch {
		case unicode.IsSpace(r):
			next = 0
		case unicode.IsLetter(r):
			next = 1
		case unicode.IsDigit(r):
			next = 2
		case r == '_':
			next = 0
		}
		if next != class {
			if class != 0 {
				end()
			}
			run, class = 0, next
		}
		run++
	}
	if class != 0 {
		end()
	}
	return n
}
