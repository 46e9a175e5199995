package escalate

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSteps limits the work of one comparison, in values compared with schemas, since a client's
// schema may refer to itself. Anything beyond is accepted.
const maxSteps = 20_000

// schema is the supported part of a JSON Schema (draft 2020-12): types, enumerations, members,
// items, bounds, combinations and internal references. Other keywords, such as pattern and format,
// are ignored.
type schema struct {
	root  any
	steps int // remaining steps
}

// fits reports whether a text is JSON that a schema accepts. A nil schema accepts all JSON.
func fits(text string, root any) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	s := schema{root: root, steps: maxSteps}
	return s.accepts(root, v)
}

// accepts reports whether a value matches a schema; true if that cannot be determined.
func (s *schema) accepts(at, v any) bool {
	if s.steps--; s.steps < 0 {
		return true
	}
	switch rule := at.(type) {
	case bool:
		return rule
	case map[string]any:
		return s.ofType(rule["type"], v) && s.oneOf(rule, v) && s.bounded(rule, v) && s.combined(rule, v) &&
			s.inside(rule, v)
	}
	return true
}

// inside checks the members and items of a value.
func (s *schema) inside(rule map[string]any, v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return s.members(rule, x)
	case []any:
		return s.items(rule, x)
	}
	return true
}

// ofType checks the keyword type: a name or a list of names.
func (s *schema) ofType(want, v any) bool {
	switch w := want.(type) {
	case string:
		return isType(w, v)
	case []any:
		return len(w) == 0 || slices.ContainsFunc(w, func(one any) bool { return s.ofType(one, v) })
	}
	return true
}

func isType(name string, v any) bool {
	switch x := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && x == math.Trunc(x)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// oneOf checks enum and const.
func (s *schema) oneOf(rule map[string]any, v any) bool {
	if list, ok := rule["enum"].([]any); ok {
		s.steps -= len(list)
		return slices.ContainsFunc(list, func(x any) bool { return reflect.DeepEqual(x, v) })
	}
	x, ok := rule["const"]
	return !ok || reflect.DeepEqual(x, v)
}

// bounded checks the bounds of numbers, lengths and counts.
func (*schema) bounded(rule map[string]any, v any) bool {
	within := func(x float64, least, most string) bool {
		low, hasLow := rule[least].(float64)
		high, hasHigh := rule[most].(float64)
		return (!hasLow || x >= low) && (!hasHigh || x <= high)
	}
	switch x := v.(type) {
	case float64:
		above, hasAbove := rule["exclusiveMinimum"].(float64)
		below, hasBelow := rule["exclusiveMaximum"].(float64)
		return within(x, "minimum", "maximum") && (!hasAbove || x > above) && (!hasBelow || x < below)
	case string:
		return within(float64(utf8.RuneCountInString(x)), "minLength", "maxLength")
	case []any:
		return within(float64(len(x)), "minItems", "maxItems")
	case map[string]any:
		return within(float64(len(x)), "minProperties", "maxProperties")
	}
	return true
}

// combined checks references and combinations of schemas.
func (s *schema) combined(rule map[string]any, v any) bool {
	if to, ok := rule["$ref"].(string); ok {
		if at, found := s.refer(to); found && !s.accepts(at, v) {
			return false
		}
	}
	of := func(key string) (fit, all int) {
		list, _ := rule[key].([]any)
		for _, at := range list {
			if s.accepts(at, v) {
				fit++
			}
		}
		return fit, len(list)
	}
	if fit, all := of("allOf"); fit < all {
		return false
	}
	if fit, all := of("anyOf"); all > 0 && fit == 0 {
		return false
	}
	fit, all := of("oneOf")
	return all == 0 || fit == 1 || s.steps < 0
}

// refer resolves a reference within the schema (RFC 6901).
func (s *schema) refer(to string) (at any, ok bool) {
	path, ok := strings.CutPrefix(to, "#")
	if at = s.root; !ok || path == "" {
		return at, ok
	}
	steps := strings.Split(strings.TrimPrefix(path, "/"), "/")
	s.steps -= len(steps)
	for _, step := range steps {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch x := at.(type) {
		case map[string]any:
			at, ok = x[step]
		case []any:
			i, err := strconv.Atoi(step)
			if ok = err == nil && i >= 0 && i < len(x); ok {
				at = x[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return at, true
}

// members checks the members of an object.
func (s *schema) members(rule, v map[string]any) bool {
	required, _ := rule["required"].([]any)
	for _, name := range required {
		s.steps--
		if key, ok := name.(string); ok {
			if _, there := v[key]; !there {
				return false
			}
		}
	}
	known, _ := rule["properties"].(map[string]any)
	rest, limited := rule["additionalProperties"]
	if rule["patternProperties"] != nil {
		limited = false
	}
	for name, x := range v {
		at, ok := known[name]
		if !ok && limited {
			at, ok = rest, true
		}
		if ok && !s.accepts(at, x) {
			return false
		}
	}
	return true
}

// items checks the items of a list.
func (s *schema) items(rule map[string]any, v []any) bool {
	first, _ := rule["prefixItems"].([]any)
	rest, limited := rule["items"]
	for i, x := range v {
		switch {
		case i < len(first):
			if !s.accepts(first[i], x) {
				return false
			}
		case limited && !s.accepts(rest, x):
			return false
		}
	}
	return true
}
