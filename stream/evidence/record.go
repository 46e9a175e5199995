package evidence

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds on a text that is cut as JSON; our choice. A string of more words is prose and cut like it;
// deeper values are left to the prose reader, as is all that is no JSON.
const (
	proseWords = 24
	maxNesting = 64
	maxName    = 64 // bytes of the names that lead to a field, and of what a record is called
)

// records cuts a source that is JSON, one value or several, into a sentence for each object of a list
// and for each value outside of one, so that a number stands with the names of its own record:
//
//	order A-7 items: {"name":"Desk lamp","qty":2,"unit_price":39.5}
//
// Objects within an object are told by the names that lead to their fields ("shipping.cost"). It
// returns its long strings, and whether the source is JSON of more than one record; else nothing was
// cut.
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
	// How many entries lists have, told as "order A-7 items: 2 items".
	counts []string
}

// record is an object of a list, or a value outside of one.
type record struct {
	head  string // the names that lead to it, and what its parents are called
	label string // its first short string: what it is called
	text  strings.Builder
}

// value reads one value, told under a name, into a record; false where it is no JSON or too deep.
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

// list reads a list: its objects are records of their own, its other values fields of one name.
func (c *recordCutter) list(name string, into *record, depth int) bool {
	if _, err := c.read.ReadToken(); err != nil {
		return false
	}
	head := strings.TrimSpace(strings.TrimSpace(into.head+" "+into.label) + " " + strings.ReplaceAll(name, ".", " "))
	entries, numbers := 0, 0
	for kind := c.read.PeekKind(); kind != ']'; kind = c.read.PeekKind() {
		entries++
		if kind != '{' && kind != '[' { // a value of its own, or what is no JSON
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

// count tells how many entries a list under a name has.
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

// field adds a value that is neither object nor list to a record. Strings are told as they read.
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

// wordy notes a string that has many words and is so many bytes long in the source, and reports
// whether it has.
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

// joined is the name of a field of an object that has one itself.
func joined(name, key string) string {
	if name == "" || len(name) > maxName {
		return key
	}
	return name + "." + key
}
