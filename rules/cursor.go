package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// cursor is a place in the YAML tree. Its readers report what does not fit and say so with false;
// they never stop the compilation.
type cursor struct {
	report *[]Problem
	n      *yaml.Node
	path   string
}

// entry is one key of a mapping.
type entry struct {
	key string
	at  cursor // the value
}

func (c cursor) add(n *yaml.Node, path, msg string, warning bool) {
	p := Problem{Path: path, Msg: msg, Warning: warning}
	if n != nil {
		p.Line, p.Col = n.Line, n.Column
	}
	*c.report = append(*c.report, p)
}

func (c cursor) errorf(format string, args ...any) {
	c.add(c.n, c.path, fmt.Sprintf(format, args...), false)
}

func (c cursor) warnf(format string, args ...any) {
	c.add(c.n, c.path, fmt.Sprintf(format, args...), true)
}

// mark remembers how many problems there are.
func (c cursor) mark() int { return len(*c.report) }

// lacking reports that something is missing, unless a problem since mark already explains why: what
// looks missing is most often just misspelt.
func (c cursor) lacking(mark int, format string, args ...any) {
	if c.mark() == mark {
		c.errorf(format, args...)
	}
}

func (c cursor) expected(what string) { c.errorf("found %s, expected %s", found(c.n), what) }

// found describes a node for a message.
func found(n *yaml.Node) string {
	if n == nil {
		return "nothing"
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
	case yaml.DocumentNode:
		return "a document"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!str":
		return strconv.Quote(shorten(n.Value))
	}
	return shorten(n.Value)
}

// maxShown bounds how much of a value a message repeats, in bytes.
const maxShown = 60

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// plain reports an alias, which no reader accepts: a condition is repeated by its name instead, and
// an alias could expand without bound.
func (c cursor) plain() bool {
	if c.n != nil && c.n.Kind == yaml.AliasNode {
		c.errorf("YAML aliases are not accepted here; write the value out, or name the condition under conditions")
		return false
	}
	return true
}

func (c cursor) child(n *yaml.Node, key string) cursor {
	path := key
	if c.path != "" {
		path = c.path + "." + key
	}
	return cursor{c.report, n, path}
}

func (c cursor) item(i int) cursor {
	return cursor{c.report, c.n.Content[i], c.path + "[" + strconv.Itoa(i) + "]"}
}

// mapping returns the entries whose keys are known, in order. Others, and repeated ones, are errors.
// ok is false when the node is no mapping.
func (c cursor) mapping(what string, known ...string) (entries []entry, ok bool) {
	if !c.plain() {
		return nil, false
	}
	if c.n == nil || c.n.Kind != yaml.MappingNode {
		c.expected(what)
		return nil, false
	}
	for i := 0; i+1 < len(c.n.Content); i += 2 {
		k := c.n.Content[i]
		at := c.child(c.n.Content[i+1], shorten(k.Value))
		switch {
		case k.Tag == "!!merge":
			c.add(k, c.path, "YAML merge keys are not accepted here; write the keys out", false)
		case k.Kind != yaml.ScalarNode:
			c.add(k, c.path, "found "+found(k)+" as a key, expected a word", false)
		case slices.ContainsFunc(entries, func(e entry) bool { return e.key == k.Value }):
			c.add(k, at.path, "this key is given twice", false)
		case len(known) > 0 && !slices.Contains(known, k.Value):
			c.add(k, at.path, fmt.Sprintf("unknown key %q%s", shorten(k.Value), keySuggestion(k.Value, known)), false)
		default:
			entries = append(entries, entry{k.Value, at})
		}
	}
	return entries, true
}

// list returns the items of a sequence that has at least one.
func (c cursor) list(what string) ([]cursor, bool) {
	if !c.plain() {
		return nil, false
	}
	if c.n == nil || c.n.Kind != yaml.SequenceNode {
		c.expected(what)
		return nil, false
	}
	if len(c.n.Content) == 0 {
		c.errorf("found an empty list, expected %s", what)
		return nil, false
	}
	out := make([]cursor, len(c.n.Content))
	for i := range out {
		out[i] = c.item(i)
	}
	return out, true
}

func (c cursor) scalar(tag string) bool {
	return c.n != nil && c.n.Kind == yaml.ScalarNode && c.n.Tag == tag
}

// text reads a string.
func (c cursor) text(what string) (string, bool) {
	if !c.plain() {
		return "", false
	}
	if !c.scalar("!!str") {
		if c.n != nil && c.n.Kind == yaml.ScalarNode && c.n.Tag != "!!null" {
			c.errorf("found %s, expected %s; put it in quotes if it is one", found(c.n), what)
		} else {
			c.expected(what)
		}
		return "", false
	}
	return c.n.Value, true
}

// word reads a string that is not empty.
func (c cursor) word(what string) (string, bool) {
	s, ok := c.text(what)
	if ok && strings.TrimSpace(s) == "" {
		c.errorf("found an empty text, expected %s", what)
		return "", false
	}
	return s, ok
}

// words reads a word or a list of distinct words, with the place of each.
func (c cursor) words(what string) (names []string, at []cursor, ok bool) {
	items := []cursor{c}
	if c.n != nil && c.n.Kind == yaml.SequenceNode {
		if items, ok = c.list("a list with at least one " + what); !ok {
			return nil, nil, false
		}
	}
	for _, i := range items {
		s, isWord := i.word("a " + what)
		switch {
		case !isWord:
		case slices.Contains(names, s):
			i.errorf("%q is listed twice", shorten(s))
		default:
			names, at = append(names, s), append(at, i)
		}
	}
	return names, at, len(names) > 0
}

// bool reads true or false.
func (c cursor) bool() (value, ok bool) {
	if !c.plain() {
		return false, false
	}
	if !c.scalar("!!bool") || c.n.Decode(&value) != nil {
		c.expected("true or false")
		return false, false
	}
	return value, true
}

// integer reads a whole number of at least least.
func (c cursor) integer(least int) (int, bool) {
	if !c.plain() {
		return 0, false
	}
	var x int
	if !c.scalar("!!int") || c.n.Decode(&x) != nil || x < least {
		c.expected("a whole number of at least " + strconv.Itoa(least))
		return 0, false
	}
	return x, true
}

// share reads a number in [0, 1].
func (c cursor) share() (float64, bool) {
	if !c.plain() {
		return 0, false
	}
	var x float64
	if !c.scalar("!!int") && !c.scalar("!!float") || c.n.Decode(&x) != nil || math.IsNaN(x) || x < 0 || x > 1 {
		c.expected("a number from 0 to 1")
		return 0, false
	}
	return x, true
}

// choice reads one of some fixed words; it is empty when there is none of them.
func (c cursor) choice(known ...string) string {
	if !c.plain() {
		return ""
	}
	if !c.scalar("!!str") {
		c.expected(oneOf(known))
		return ""
	}
	if !slices.Contains(known, c.n.Value) {
		c.errorf("unknown value %q%s", shorten(c.n.Value), suggestion(c.n.Value, known))
		return ""
	}
	return c.n.Value
}

// known reports a name that is not among the known ones.
func (c cursor) known(what, name string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	c.errorf("unknown %s %q%s", what, shorten(name), suggestion(name, names))
	return false
}
