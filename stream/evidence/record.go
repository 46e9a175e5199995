package evidence

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits on text that is split as JSON; our choice. A string with more words is prose and is split
// as prose. Deeper values, and everything that is not JSON, are left to the prose reader.
const (
	proseWords = 24
	maxNesting = 64
	maxName    = 64 // bytes of a field's path and of a record's label
)

// records splits a JSON source of one or several values into one sentence per object of a list and
// per value outside of lists, so that a number has the names of its own record:
//
//	order A-7 items: {"name":"Desk lamp","qty":2,"unit_price":39.5}
//
// Objects within an object are identified by the path to their fields ("shipping.cost"). records
// returns the long strings. It returns false, without adding sentences, if the source is not JSON
// with more than one record.
func (e *Evidence) records(source int) ([]prose, bool) {
	text := e.sources[source].Text
	if lead := strings.TrimLeft(text, " \t\r\n"); lead == "" || lead[0] != '{' && lead[0] != '[' {
		return nil, false
	}
	c := recordCutter{read: jsontext.NewDecoder(
		strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	)}
	for c.read.PeekKind() > 0 {
		one := record{}
		if !c.value("", &one, 0) {
			return nil, false
		}
		c.end(&one)
	}
	if strings.TrimSpace(text[c.read.InputOffset():]) != "" || len(c.rows)+len(c.long) < 2 {
		return nil, false
	}
	for _, row := range append(c.rows, c.counts...) {
		e.sentences = append(e.sentences, sentence{source: source, text: row, start: -1, end: -1})
	}
	return c.long, true
}

// recordCutter reads JSON and collects its records.
type recordCutter struct {
	read *jsontext.Decoder
	rows []string
	long []prose // strings of many words
	// counts are sentences on how many entries lists have: "order A-7 items: 2 items".
	counts []string
}

// record is an object of a list, or a value outside of lists.
type record struct {
	head  string // path to it, with the labels of its parents
	label string // its first short string, by which it is named
	text  strings.Builder
}

// value reads one value into a record under a name. It returns false if the text is not JSON or too
// deeply nested.
func (c *recordCutter) value(name string, into *record, depth int) bool {
	if depth > maxNesting {
		return false
	}
	kind := c.read.PeekKind()
	if kind == '{' {
		return c.object(name, into, depth)
	}
	if kind == '[' {
		return c.list(name, into, depth)
	}
	raw, err := c.read.ReadValue()
	if err != nil {
		return false
	}
	c.field(name, raw, into)
	return true
}

func (c *recordCutter) object(name string, into *record, depth int) bool {
	if _, err := c.read.ReadToken(); err != nil {
		return false
	}
	for c.read.PeekKind() == '"' {
		key, err := c.read.ReadToken()
		if err != nil || !c.value(joined(name, key.String()), into, depth+1) {
			return false
		}
	}
	_, err := c.read.ReadToken()
	return err == nil
}

// list reads a list. Its objects are separate records, its other values fields with the same name.
func (c *recordCutter) list(name string, into *record, depth int) bool {
	if _, err := c.read.ReadToken(); err != nil {
		return false
	}
	head := strings.TrimSpace(strings.TrimSpace(into.head+" "+into.label) + " " + strings.ReplaceAll(name, ".", " "))
	entries, numbers := 0, 0
	for kind := c.read.PeekKind(); kind != ']'; kind = c.read.PeekKind() {
		entries++
		if kind != '{' && kind != '[' { // a plain value, or not JSON
			if kind == '0' {
				numbers++
			}
			if !c.value(name, into, depth+1) {
				return false
			}
			continue
		}
		one := record{head: head[:min(len(head), maxRow/4)]}
		if !c.value("", &one, depth+1) {
			return false
		}
		c.end(&one)
	}
	if entries > 1 && numbers == 0 {
		c.count(head, name, entries)
	}
	_, err := c.read.ReadToken()
	return err == nil
}

// count adds a sentence on how many entries a named list has.
func (c *recordCutter) count(head, name string, entries int) {
	what := name[strings.LastIndexByte(name, '.')+1:]
	if what == "" {
		what = "results"
	}
	if head == "" {
		head = "list"
	}
	c.counts = append(c.counts, head[:min(len(head), maxRow/4)]+": "+strconv.Itoa(entries)+" "+what)
}

// field adds a value that is neither object nor list to a record. Strings are written unescaped.
func (c *recordCutter) field(name string, raw jsontext.Value, into *record) {
	text := string(raw)
	if raw.Kind() == '"' {
		said, err := jsontext.AppendUnquote(nil, raw)
		if err != nil && said == nil || c.wordy(said, len(raw)) {
			return
		}
		if into.label == "" && len(said) <= maxName {
			into.label = string(said)
		}
		text = `"` + string(said) + `"`
	}
	switch {
	case into.text.Len() > maxRow:
		head, label := into.head, into.label
		c.end(into)
		*into = record{head: strings.TrimSpace(strings.TrimSuffix(head, label) + " " + label), label: label}
	case into.text.Len() > 0:
		into.text.WriteByte(',')
	}
	if name != "" {
		into.text.WriteString(`"` + name + `":`)
	}
	into.text.WriteString(text)
}

// wordy records a string with many words, which is long bytes long in the source, and reports
// whether it did.
func (c *recordCutter) wordy(said []byte, long int) bool {
	if bytes.Count(said, []byte(" ")) < proseWords {
		return false
	}
	p := prose{text: string(said), at: -1}
	if len(said) == long-2 { // nothing is escaped
		p.at = int(c.read.InputOffset()) - long + 1
	}
	c.long = append(c.long, p)
	return true
}

// end closes a record.
func (c *recordCutter) end(one *record) {
	if one.text.Len() == 0 {
		return
	}
	row := "{" + one.text.String() + "}"
	if one.head != "" {
		row = one.head + ": " + row
	}
	c.rows = append(c.rows, row)
}

// joined returns the path of a field.
func joined(name, key string) string {
	if name == "" || len(name) > maxName {
		return key
	}
	return name + "." + key
}
