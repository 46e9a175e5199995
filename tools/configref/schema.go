package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"reflect"
	"regexp"
	"strings"
)

// rulesSchema describes conditions and actions, which are read word by word and have no types.
//
//go:embed rules.schema.json
var rulesSchema []byte

// object is a schema, or a part of one.
type object map[string]any

// schema writes the JSON Schema of the configuration. It describes the form of values; `signalbox
// check` verifies ranges, names and dependencies between keys. Draft 7 is the version that editors
// support best.
func (g *generator) schema(file string) error {
	var rules map[string]object
	if err := json.Unmarshal(rulesSchema, &rules); err != nil {
		return fmt.Errorf("rules.schema.json: %w", err)
	}
	definitions := object{}
	for name, d := range rules {
		definitions[name] = d
	}
	root, err := g.define(definitions, "", "Config")
	if err != nil {
		return err
	}
	delete(definitions, "Config")
	maps.Copy(root, object{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "Configuration of signalbox",
		"required": []string{"models", "default"}, "definitions": definitions,
	})
	root["type"] = "object"
	b, err := json.MarshalIndent(root, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o600)
}

// isRequired matches the sentence that marks a required key.
var isRequired = regexp.MustCompile(`Required[.,]|\bAt least one\.`)

// define adds a struct and those below it to the definitions.
func (g *generator) define(definitions object, qualifier, name string) (object, error) {
	st, ok := g.types[join(qualifier, name)]
	if !ok {
		return nil, fmt.Errorf("type %s not found", join(qualifier, name))
	}
	properties := object{}
	out := object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties}
	definitions[join(qualifier, name)] = out
	var required []string
	for _, f := range g.fields(st, qualifier) {
		key := yamlKey(f.Field)
		if key == "" {
			continue
		}
		s, err := g.value(definitions, f.Type, f.qualifier)
		if err != nil {
			return nil, err
		}
		text := meaning(f.Field)
		properties[key] = describe(annotate(s, f.Field), key, text)
		if isRequired.MatchString(text) {
			required = append(required, key)
		}
	}
	if required != nil {
		out["required"] = required
	}
	return out, nil
}

// Notations of scalars in package option.
const (
	duration = `^([+-]?0|([+-]|[0-9]{1,6}d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|[0-9]{1,6}d)$`
	size     = `^ *[0-9]+ *([KMG]i?B|B)? *$`
	secret   = `^(\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+)$`
)

// value returns the schema of a type.
func (g *generator) value(definitions object, t ast.Expr, qualifier string) (object, error) {
	switch t := t.(type) {
	case *ast.StarExpr:
		return g.value(definitions, t.X, qualifier)
	case *ast.ArrayType:
		item, err := g.value(definitions, t.Elt, qualifier)
		if err != nil {
			return nil, err
		}
		list := object{"type": []string{"array", "null"}, "items": item}
		if id, ok := t.Elt.(*ast.Ident); ok && id.Name == "string" {
			return object{"anyOf": []any{list, object{"type": "string"}}}, nil // a single word is accepted for a list of one
		}
		return list, nil
	case *ast.MapType:
		item, err := g.value(definitions, t.Value, qualifier)
		return object{"type": []string{"object", "null"}, "additionalProperties": item}, err
	case *ast.InterfaceType:
		return object{}, nil
	}
	text, q, name := typeName(t, qualifier)
	switch text {
	case "text":
		return object{"type": []string{"string", "number", "null"}}, nil // a name may be 7 or 4.1
	case "true or false":
		return object{"type": []string{"boolean", "null"}}, nil
	case "whole number":
		return object{"type": []string{"integer", "null"}}, nil
	case "number":
		return object{"type": []string{"number", "null"}}, nil
	case "duration":
		return object{"type": []string{"string", "integer", "null"}, "pattern": duration, "maximum": 0, "minimum": 0}, nil
	case "size":
		return object{"type": []string{"string", "integer", "null"}, "pattern": size, "minimum": 0}, nil
	case "see rules.md":
		return object{}, nil // depends on the key: see describe
	}
	full := join(q, name)
	if _, isStruct := g.types[full]; isStruct {
		if definitions[full] == nil {
			if _, err := g.define(definitions, q, name); err != nil {
				return nil, err
			}
		}
		return object{"$ref": "#/definitions/" + full}, nil
	}
	if strings.HasSuffix(g.plain[full], "or a word") {
		return object{"type": []string{"number", "string", "null"}}, nil
	}
	return object{}, nil
}

// annotate adds the constraints in the tags of a field.
func annotate(s object, f *ast.Field) object {
	tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
	switch {
	case tag.Get("secret") == "true":
		return object{"type": "string", "pattern": secret}
	case tag.Get("zero") != "":
		s["minimum"] = 1
		return s
	case tag.Get("words") == "":
		return s
	}
	words := []any{}
	for _, w := range strings.Fields(tag.Get("words")) {
		words = append(words, w)
	}
	one := object{"enum": append([]any{nil}, words...)}
	if list, ok := s["anyOf"].([]any); ok {
		array := maps.Clone(list[0].(object))
		array["items"] = object{"enum": words}
		return object{"anyOf": []any{array, one}}
	}
	return one
}

var linked = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// describe adds the text of a comment, and refers keys of rules to their definitions.
func describe(s object, key, text string) object {
	if len(s) == 0 {
		switch key {
		case "conditions", "routes", "default":
			s = object{"$ref": "#/definitions/rules." + key}
		}
	}
	text = linked.ReplaceAllString(strings.ReplaceAll(text, "\\|", "|"), "$1")
	if _, isRef := s["$ref"]; isRef { // next to a reference, draft 7 ignores other keywords
		return object{"allOf": []any{s}, "description": text}
	}
	s["description"] = text
	return s
}
