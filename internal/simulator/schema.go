package simulator

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of a value generated from a schema.
const (
	maxSchemaNodes = 20_000 // values at all depths; beyond, the schema is rejected
	maxSchemaDepth = 32     // recursion caused by the schema
	fullDepth      = 4      // up to this depth, optional members and items are generated too
	maxFillChars   = 1 << 16
)

// errUnsatisfiable: no value was found for a schema.
var errUnsatisfiable = errors.New("no value fits the schema, or it is too large")

// node is a JSON value whose members keep their order.
type node struct {
	kind    jsontext.Kind // '{', '[', '"', '0', 't', 'f' or 'n'
	text    string        // of a string
	raw     jsontext.Value
	members []member
	items   []*node
}

type member struct {
	name  string
	value *node
}

// parseNode reads a JSON value. Of equal names the first applies.
func parseNode(raw []byte) (*node, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	n, err := readNode(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errUnsatisfiable
	}
	return n, nil
}

func readNode(dec *jsontext.Decoder, depth int) (*node, error) {
	if depth > 2*maxSchemaDepth {
		return nil, errUnsatisfiable
	}
	n := &node{kind: dec.PeekKind()}
	if n.kind == '{' || n.kind == '[' {
		return n, n.readInside(dec, depth)
	}
	v, err := dec.ReadValue()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the field
	}
	n.raw = v.Clone()
	if n.kind == '"' {
		b, _ := jsontext.AppendUnquote(nil, v) // the decoder has validated it
		n.text = string(b)
	}
	return n, nil
}

// readInside reads the content of an object or a list, including its brackets.
func (n *node) readInside(dec *jsontext.Decoder, depth int) error {
	if _, err := dec.ReadToken(); err != nil {
		return err //nolint:wrapcheck // the caller names the field
	}
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		name := ""
		if n.kind == '{' {
			tok, err := dec.ReadToken()
			if err != nil {
				return err //nolint:wrapcheck // the caller names the field
			}
			name = tok.String()
		}
		v, err := readNode(dec, depth+1)
		if err != nil {
			return err
		}
		if n.kind == '{' {
			n.members = append(n.members, member{name, v})
		} else {
			n.items = append(n.items, v)
		}
	}
	_, err := dec.ReadToken()
	return err //nolint:wrapcheck // the caller names the field
}

// get returns a member, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

func (n *node) number(name string) (f float64, ok bool) {
	v := n.get(name)
	if v == nil || v.kind != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil
}

// count returns a member that is a count, else fallback.
func (n *node) count(name string, fallback int) int {
	if f, ok := n.number(name); ok && f >= 0 {
		return int(min(f, math.MaxInt32))
	}
	return fallback
}

// appendTo appends a value as it was read.
func (n *node) appendTo(dst []byte) []byte {
	switch n.kind { //nolint:exhaustive // the others hold no values
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(appendQuoted(dst, m.name), ": "...)
			dst = m.value.appendTo(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, v := range n.items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = v.appendTo(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

// maker generates a value that is valid by a JSON schema. It supports type, enum, const, $ref
// within the schema, allOf, anyOf, oneOf, properties, required, additionalProperties, items,
// prefixItems, minItems, maxItems, uniqueItems, the limits of numbers and strings, multipleOf,
// pattern and the common formats. It does not support not, if, dependentSchemas, patternProperties,
// contains and minProperties.
type maker struct {
	root     *node
	nodes    int
	required bool // optional members are left out
}

// makeValue returns a value by a schema, or errUnsatisfiable. required leaves out optional members.
func makeValue(schema []byte, required bool) (string, error) {
	root, err := parseNode(schema)
	if err != nil {
		return "", err
	}
	if root.kind != '{' {
		return "", errUnsatisfiable
	}
	m := &maker{root: root, required: required}
	out, ok := m.value(nil, root, 0, 0)
	if !ok {
		return "", errUnsatisfiable
	}
	return string(out), nil
}

// value appends a value by a schema. nth distinguishes values that must differ.
func (m *maker) value(dst []byte, s *node, depth, nth int) (out []byte, ok bool) {
	m.nodes++
	if m.nodes > maxSchemaNodes || depth > maxSchemaDepth {
		return dst, false
	}
	switch s.kind { //nolint:exhaustive // nothing else is a schema, or fits anything
	case 't': // anything is valid
		return append(dst, `"simulated"`...), true
	case '{':
	default:
		return dst, false
	}
	if ref := s.get("$ref"); ref != nil {
		target := m.resolve(ref.text)
		if target == nil {
			return dst, false
		}
		return m.value(dst, merge(without(s, "$ref"), target), depth+1, nth)
	}
	for _, name := range [...]string{"allOf", "anyOf", "oneOf"} {
		if list := s.get(name); list != nil && len(list.items) > 0 {
			return m.composed(dst, s, name, list.items, depth, nth)
		}
	}
	if v := s.get("const"); v != nil {
		return v.appendTo(dst), true
	}
	if list := s.get("enum"); list != nil {
		if len(list.items) == 0 {
			return dst, false
		}
		return list.items[nth%len(list.items)].appendTo(dst), true
	}
	return m.typed(dst, s, depth, nth)
}

// composed appends a value by a schema that combines other schemas.
func (m *maker) composed(
	dst []byte, s *node, name string, list []*node, depth, nth int,
) (out []byte, ok bool) {
	rest := without(s, name)
	if name == "allOf" {
		for _, part := range list {
			if ref := part.get("$ref"); ref != nil {
				target := m.resolve(ref.text)
				if target == nil {
					return dst, false
				}
				part = merge(without(part, "$ref"), target)
			}
			rest = merge(rest, part)
		}
		return m.value(dst, rest, depth+1, nth)
	}
	if depth >= fullDepth { // terminating alternatives first, for recursive schemas
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b *node) int { return weight(a) - weight(b) })
	}
	for _, part := range list {
		start := len(dst)
		if out, ok = m.value(dst, merge(rest, part), depth+1, nth); ok {
			return out, true
		}
		dst = dst[:start]
	}
	return dst, false
}

// weight measures how deep a schema may lead.
func weight(s *node) int {
	switch typeOf(s) {
	case "object", "array":
		return 2
	case "null":
		return 0
	}
	if s.get("$ref") != nil {
		return 2
	}
	return 1
}

// typed appends a value by the type of a schema.
func (m *maker) typed(dst []byte, s *node, depth, nth int) (out []byte, ok bool) {
	switch typeOf(s) {
	case "object":
		return m.object(dst, s, depth)
	case "array":
		return m.array(dst, s, depth)
	case "string":
		return appendString(dst, s, nth)
	case "integer":
		return appendNumber(dst, s, true, nth)
	case "number":
		return appendNumber(dst, s, false, nth)
	case "boolean":
		return strconv.AppendBool(dst, nth%2 == 1), true
	case "null":
		return append(dst, "null"...), true
	case "":
		if depth == 0 {
			return m.object(dst, s, depth)
		}
		return appendString(dst, s, nth)
	}
	return dst, false
}

// typeOf returns the type of a schema: of several the first that is not null, or the one that its
// other keywords imply; empty if it accepts any.
func typeOf(s *node) string {
	t := s.get("type")
	if t != nil && t.kind == '[' {
		for _, one := range t.items {
			if one.text != "null" {
				return one.text
			}
		}
		return "null"
	}
	if t != nil {
		return t.text
	}
	for _, m := range s.members {
		switch m.name {
		case "properties", "required", "additionalProperties":
			return "object"
		case "items", "prefixItems", "minItems", "maxItems", "uniqueItems":
			return "array"
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			return "number"
		case "pattern", "format", "minLength", "maxLength":
			return "string"
		}
	}
	return ""
}

// object appends an object: its properties in order, then other required members.
func (m *maker) object(dst []byte, s *node, depth int) (out []byte, ok bool) {
	var required []string
	if list := s.get("required"); list != nil {
		for _, n := range list.items {
			required = append(required, n.text)
		}
	}
	var all []member
	properties := s.get("properties")
	if properties != nil {
		for _, p := range properties.members {
			if !m.required && depth < fullDepth || slices.Contains(required, p.name) {
				all = append(all, p)
			}
		}
	}
	other := s.get("additionalProperties")
	if other == nil {
		other = &node{kind: 't'}
	}
	for i, name := range required {
		if properties.get(name) == nil && !slices.Contains(required[:i], name) {
			all = append(all, member{name, other})
		}
	}
	return m.withMembers(dst, all, required, depth)
}

// withMembers appends an object with these members, except optional ones without a valid value.
func (m *maker) withMembers(
	dst []byte, all []member, required []string, depth int,
) (out []byte, ok bool) {
	dst = append(dst, '{')
	some := false
	for _, p := range all {
		start := len(dst)
		if some {
			dst = append(dst, ", "...)
		}
		dst = append(appendQuoted(dst, p.name), ": "...)
		if dst, ok = m.value(dst, p.value, depth+1, 0); ok {
			some = true
			continue
		}
		if dst = dst[:start]; slices.Contains(required, p.name) {
			return dst, false
		}
	}
	return append(dst, '}'), true
}

// array appends an array with the minimum number of items, or one item if items are optional.
func (m *maker) array(dst []byte, s *node, depth int) (out []byte, ok bool) {
	first, each := s.get("prefixItems"), s.get("items")
	if each != nil && each.kind == '[' { // as in drafts before 2020-12
		first, each = each, s.get("additionalItems")
	}
	least, most := s.count("minItems", 0), s.count("maxItems", math.MaxInt32)
	want := least
	if want == 0 && !m.required && depth < fullDepth {
		want = 1
	}
	if first != nil && !m.required {
		want = max(want, len(first.items))
	}
	want = min(want, most)
	if want < least {
		return dst, false
	}
	dst = append(dst, '[')
	for i := range want {
		item := each
		if first != nil && i < len(first.items) {
			item = first.items[i]
		}
		if item == nil {
			item = &node{kind: 't'}
		}
		start := len(dst)
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst, ok = m.value(dst, item, depth+1, i); !ok {
			if dst = dst[:start]; i < least {
				return dst, false
			}
			break
		}
	}
	return append(dst, ']'), true
}

// resolve follows a reference into the schema, such as "#/$defs/a"; nil if it leads nowhere.
func (m *maker) resolve(ref string) *node {
	rest, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil
	}
	n := m.root
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if rest == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if n.kind == '[' {
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil
			}
			n = n.items[i]
			continue
		}
		if n = n.get(part); n == nil {
			return nil
		}
	}
	return n
}

// without returns a schema without one keyword.
func without(s *node, name string) *node {
	out := &node{kind: s.kind, raw: s.raw}
	for _, m := range s.members {
		if m.name != name {
			out.members = append(out.members, m)
		}
	}
	return out
}

// merge combines the keywords of both schemas: properties and required are joined; for others those
// of b apply.
func merge(a, b *node) *node {
	switch {
	case b.kind != '{':
		if b.kind == 'f' {
			return b
		}
		return a
	case a.kind != '{':
		return b
	}
	out := &node{kind: '{', members: slices.Clone(a.members)}
	for _, m := range b.members {
		at := slices.IndexFunc(out.members, func(o member) bool { return o.name == m.name })
		if at < 0 {
			out.members = append(out.members, m)
			continue
		}
		old := out.members[at].value
		switch m.name {
		case "properties":
			out.members[at].value = joined(old, m.value)
		case "required":
			out.members[at].value = &node{kind: '[', items: slices.Concat(old.items, m.value.items)}
		default:
			out.members[at].value = m.value
		}
	}
	return out
}

// joined returns the properties of both; a property of both must be valid by both.
func joined(a, b *node) *node {
	out := &node{kind: '{', members: slices.Clone(a.members)}
	for _, m := range b.members {
		at := slices.IndexFunc(out.members, func(o member) bool { return o.name == m.name })
		if at < 0 {
			out.members = append(out.members, m)
		} else {
			out.members[at].value = merge(out.members[at].value, m.value)
		}
	}
	return out
}

// appendNumber appends the number in the bounds of a schema that is nearest to 0; nth steps on.
//
//nolint:revive // whole is a fact about it
func appendNumber(dst []byte, s *node, whole bool, nth int) (out []byte, ok bool) {
	low, high := math.Inf(-1), math.Inf(1)
	step, stepped := s.number("multipleOf")
	if !stepped || step <= 0 {
		step, stepped = 1, whole
	}
	if f, ok := s.number("minimum"); ok {
		low = f
	}
	if f, ok := s.number("maximum"); ok {
		high = f
	}
	above, isAbove := s.number("exclusiveMinimum")
	below, isBelow := s.number("exclusiveMaximum")
	fits := func(f float64) bool {
		return !math.IsInf(f, 0) && f >= low && f <= high &&
			(!isAbove || f > above) && (!isBelow || f < below)
	}
	from, to := low, high
	if isAbove {
		from = max(from, above)
	}
	if isBelow {
		to = min(to, below)
	}
	near := max(min(0, to), from)
	for _, f := range [...]float64{
		math.Ceil(near/step) * step,
		(math.Floor(near/step) + 1) * step,
		(math.Ceil(near/step) - 1) * step,
		near,
		from + (to-from)/2,
	} {
		for _, g := range [...]float64{f + float64(nth)*step, f} {
			onStep := !stepped || math.Abs(g/step-math.Round(g/step)) < 1e-9
			if fits(g) && onStep && (!whole || g == math.Trunc(g)) {
				return strconv.AppendFloat(dst, g+0, 'f', -1, 64), true
			}
		}
	}
	return dst, false
}
