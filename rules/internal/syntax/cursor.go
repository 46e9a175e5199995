package syntax

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxDepth is the maximum nesting depth of conditions and of values of `set`, far above
// hand-written files.
const MaxDepth = 64

// Cursor is a place in the YAML tree. Its readers report problems and return false or an empty
// result in that case. The zero value is a place that does not exist; only Node may be read from
// it.
type Cursor struct {
	Node *yaml.Node // nil if the file has no value

	report *[]Problem
	path   string
}

// At returns the cursor of a node, or of the content of a document. Problems are added to report;
// path is the path of the place in them.
func At(report *[]Problem, n *yaml.Node, path string) Cursor {
	if n != nil && n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	return Cursor{Node: n, report: report, path: path}
}

// Entry is one key of a mapping with the place of its value.
type Entry struct {
	Key string
	At  Cursor
}

func (c Cursor) add(n *yaml.Node, path, msg string, warning bool) {
	p := Problem{Path: path, Msg: msg, Warning: warning}
	if n != nil {
		p.Line, p.Col = n.Line, n.Column
	}
	*c.report = append(*c.report, p)
}

// Errorf reports an error.
func (c Cursor) Errorf(format string, args ...any) {
	c.add(c.Node, c.path, fmt.Sprintf(format, args...), false)
}

// Warnf reports a warning.
func (c Cursor) Warnf(format string, args ...any) {
	c.add(c.Node, c.path, fmt.Sprintf(format, args...), true)
}

// Mark returns the current number of problems, for Lacking.
func (c Cursor) Mark() int { return len(*c.report) }

// Lacking reports that something is missing, unless a problem since mark already explains it: a
// missing key is usually just misspelt.
func (c Cursor) Lacking(mark int, format string, args ...any) {
	if c.Mark() == mark {
		c.Errorf(format, args...)
	}
}

// Expected reports that the value is not of the expected kind.
func (c Cursor) Expected(what string) { c.Errorf("found %s, expected %s", found(c.Node), what) }

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
		return strconv.Quote(Shorten(n.Value))
	}
	return Shorten(n.Value)
}

// maxShown is the maximum length of a value in a message, in bytes.
const maxShown = 60

// Shorten cuts a text from the file to the length permitted in messages, between characters.
func Shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// plain reports an alias as an error. No reader accepts aliases: conditions are reused by name
// instead, and aliases can expand without bound.
func (c Cursor) plain() bool {
	if c.Node != nil && c.Node.Kind == yaml.AliasNode {
		c.Errorf("YAML aliases are not accepted here; write the value out, or name the condition under conditions")
		return false
	}
	return true
}

// Child returns the place of key in a mapping; n is its value, or nil.
func (c Cursor) Child(n *yaml.Node, key string) Cursor {
	path := key
	if c.path != "" {
		path = c.path + "." + key
	}
	return Cursor{n, c.report, path}
}

func (c Cursor) item(i int) Cursor {
	return Cursor{c.Node.Content[i], c.report, c.path + "[" + strconv.Itoa(i) + "]"}
}

// Mapping returns the entries with known keys, in order; without known all entries. Unknown and
// duplicate keys are errors. ok is false if the node is not a mapping.
func (c Cursor) Mapping(what string, known ...string) (entries []Entry, ok bool) {
	if !c.plain() {
		return nil, false
	}
	if !c.IsMapping() {
		c.Expected(what)
		return nil, false
	}
	for i := 0; i+1 < len(c.Node.Content); i += 2 {
		k := c.Node.Content[i]
		at := c.Child(c.Node.Content[i+1], Shorten(k.Value))
		switch {
		case k.Tag == "!!merge":
			c.add(k, c.path, "YAML merge keys are not accepted here; write the keys out", false)
		case k.Kind != yaml.ScalarNode:
			c.add(k, c.path, "found "+found(k)+" as a key, expected a word", false)
		case slices.ContainsFunc(entries, func(e Entry) bool { return e.Key == k.Value }):
			c.add(k, at.path, "this key is given twice", false)
		case len(known) > 0 && !slices.Contains(known, k.Value):
			c.add(k, at.path, fmt.Sprintf("unknown key %q%s", Shorten(k.Value), keySuggestion(k.Value, known)), false)
		default:
			entries = append(entries, Entry{k.Value, at})
		}
	}
	return entries, true
}

// List returns the items of a non-empty sequence.
func (c Cursor) List(what string) ([]Cursor, bool) {
	if !c.plain() {
		return nil, false
	}
	if c.Node == nil || c.Node.Kind != yaml.SequenceNode {
		c.Expected(what)
		return nil, false
	}
	if len(c.Node.Content) == 0 {
		c.Errorf("found an empty list, expected %s", what)
		return nil, false
	}
	out := make([]Cursor, len(c.Node.Content))
	for i := range out {
		out[i] = c.item(i)
	}
	return out, true
}

// IsScalar reports whether the node is a scalar of the given tag, such as !!bool.
func (c Cursor) IsScalar(tag string) bool {
	return c.Node != nil && c.Node.Kind == yaml.ScalarNode && c.Node.Tag == tag
}

// IsMapping reports whether the node is a mapping.
func (c Cursor) IsMapping() bool { return c.Node != nil && c.Node.Kind == yaml.MappingNode }

// Empty reports whether there is no value: no node, null, or an empty list.
func (c Cursor) Empty() bool {
	return c.Node == nil || c.IsScalar("!!null") || c.Node.Kind == yaml.SequenceNode && len(c.Node.Content) == 0
}

// Text reads a string.
func (c Cursor) Text(what string) (string, bool) {
	if !c.plain() {
		return "", false
	}
	if !c.IsScalar("!!str") {
		if c.Node != nil && c.Node.Kind == yaml.ScalarNode && c.Node.Tag != "!!null" {
			c.Errorf("found %s, expected %s; put it in quotes if it is one", found(c.Node), what)
		} else {
			c.Expected(what)
		}
		return "", false
	}
	return c.Node.Value, true
}

// Word reads a non-empty string.
func (c Cursor) Word(what string) (string, bool) {
	s, ok := c.Text(what)
	if ok && strings.TrimSpace(s) == "" {
		c.Errorf("found an empty text, expected %s", what)
		return "", false
	}
	return s, ok
}

// Words reads a word or a list of distinct words and calls check with each and its place. It
// returns nil if none could be read.
func (c Cursor) Words(what string, check func(at Cursor, word string)) []string {
	items := []Cursor{c}
	if c.Node != nil && c.Node.Kind == yaml.SequenceNode {
		var ok bool
		if items, ok = c.List("a list with at least one " + what); !ok {
			return nil
		}
	}
	var out []string
	for _, i := range items {
		s, ok := i.Word(article(what))
		switch {
		case !ok:
		case slices.Contains(out, s):
			i.Errorf("%q is listed twice", Shorten(s))
		default:
			out = append(out, s)
			check(i, s)
		}
	}
	return out
}

// article puts "a" or "an" before a word.
func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

// Bool reads true or false.
func (c Cursor) Bool() (value, ok bool) {
	if !c.plain() {
		return false, false
	}
	if !c.IsScalar("!!bool") || c.Node.Decode(&value) != nil {
		c.Expected("true or false")
		return false, false
	}
	return value, true
}

// Integer reads a whole number of at least least.
func (c Cursor) Integer(least int) (int, bool) {
	if !c.plain() {
		return 0, false
	}
	var x int
	if !c.IsScalar("!!int") || c.Node.Decode(&x) != nil || x < least {
		c.Expected("a whole number of at least " + strconv.Itoa(least))
		return 0, false
	}
	return x, true
}

// Share reads a number in [0, 1].
func (c Cursor) Share() (float64, bool) {
	if !c.plain() {
		return 0, false
	}
	var x float64
	if !c.IsScalar("!!int") && !c.IsScalar("!!float") || c.Node.Decode(&x) != nil || math.IsNaN(x) || x < 0 || x > 1 {
		c.Expected("a number from 0 to 1")
		return 0, false
	}
	return x, true
}

// Choice reads one of a set of words; it returns an empty string for any other value.
func (c Cursor) Choice(known ...string) string {
	if !c.plain() {
		return ""
	}
	if !c.IsScalar("!!str") {
		c.Expected(OneOf(known))
		return ""
	}
	if !slices.Contains(known, c.Node.Value) {
		c.Errorf("unknown value %q%s", Shorten(c.Node.Value), Suggestion(c.Node.Value, known))
		return ""
	}
	return c.Node.Value
}

// Known reports whether name is one of names; if not, it also reports an error.
func (c Cursor) Known(what, name string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	said := Suggestion(name, names)
	if what == language {
		said = languageSuggestion(name, names)
	}
	if at := sectionOf(what); len(names) == 0 && at != "" {
		said += " under " + at
	}
	c.Errorf("unknown %s %q%s", what, Shorten(name), said)
	return false
}

// sectionOf returns the section that defines things of a kind, for kinds of which a configuration
// may have none.
func sectionOf(what string) string {
	switch what {
	case "intent":
		return "signals.intents"
	case "keyword set":
		return "signals.keywords"
	}
	return ""
}
