package guard

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/stream/response"
)

// form is what the start of a text says about its format: JSON, a source file, or prose.
type form uint8

const (
	blank form = iota // only white space so far
	maybe             // JSON, or prose that begins like it
	start             // a file, or prose
	json              // JSON, or text that begins with a JSON block
	file              // a file that is the whole text
	prose             // none of these
)

// maxMaybe is how many bytes may be JSON or prose; citations and links are shorter. It also limits
// the white space after a list.
const maxMaybe = 64

// blanks is the white space of JSON.
const blanks = " \t\r\n"

// fence begins a JSON block in Markdown.
const fence = "```json"

// field begins the header of a field in the format by which DSPy parses an answer.
const field = "[[ ## "

// formOf returns the form of a text by its start. A brace or a bracket alone is not enough, because
// texts begin with a citation ([1], [1, 2]), a link ([text](url)) or a checkbox ([ ]). A text is
// JSON once a member name was read, or in a list another value after a string, without an error. A
// list that ends sooner is JSON only if nothing follows.
func formOf(text []byte) form {
	text = bytes.TrimLeft(text, blanks)
	switch {
	case len(text) == 0:
		return blank
	case text[0] == '`':
		n := min(len(text), len(fence))
		switch {
		case !bytes.EqualFold(text[:n], []byte(fence[:n])):
			return prose
		case n < len(fence):
			return maybe
		}
		return json
	case text[0] != '{' && text[0] != '[':
		return formOfFile(text)
	case bytes.HasPrefix(text, []byte(field)):
		return file
	case bytes.HasPrefix([]byte(field), text):
		return maybe
	}
	return formOfValue(text)
}

// files are beginnings of files that are not prose, in any case.
//
//nolint:gochecknoglobals // constant table
var files = [...]string{"#!/", "<!doctype html", "<?xml version", "<?php", "#include <", "#include \""}

// formOfFile reports whether a text is a file, by a first line that is not a sentence.
func formOfFile(text []byte) form {
	f := prose
	for _, begin := range files {
		n := min(len(text), len(begin))
		switch {
		case !bytes.EqualFold(text[:n], []byte(begin[:n])):
		case n == len(begin):
			return file
		default:
			f = start
		}
	}
	for _, word := range [...]string{"package ", "import ", "from "} {
		n := min(len(text), len(word))
		switch {
		case string(text[:n]) != word[:n]:
		case n < len(word):
			f = start
		default:
			return formOfLine(text)
		}
	}
	return f
}

// formOfLine is formOfFile for a line that declares a package or an import.
func formOfLine(text []byte) form {
	line, _, whole := bytes.Cut(text, []byte("\n"))
	switch {
	case len(line) > maxMaybe, bytes.Contains(line, []byte(". ")):
		return prose
	case !whole:
		return start
	case declares.Match(line):
		return file
	}
	return prose
}

// declares matches such lines of Go, Java, Kotlin, Python and JavaScript.
var declares = regexp.MustCompile(`^(?:package [a-z][\w.]*|import [\w.*]+(?: as \w+)?(?:, [\w.]+)*|import \(|` +
	`from [\w.]+ import [\w.*, (]+|import (?:[^'"]* from )?['"][^'"]+['"]);?\s*$`)

// formOfValue is formOf for text that begins with a bracket or a brace.
func formOfValue(text []byte) form {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	said := false // the previous value is a string
	for {
		t, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if len(text) > maxMaybe {
				return json
			}
			return maybe
		case err != nil:
			return prose
		case d.StackDepth() == 0:
			switch behind := text[d.InputOffset():]; {
			case len(bytes.TrimSpace(behind)) > 0:
				return prose
			case len(behind) > maxMaybe:
				return json
			}
			return maybe
		}
		closes := t.Kind() == '}' || t.Kind() == ']'
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n > 0 || said && !closes {
			return json
		}
		said = t.Kind() == '"'
	}
}

// formed reports whether a text has a format to keep, or may have one.
func (l *lane) formed() bool { return l.form == maybe || l.form == json }

// beside reports whether the marks of a text are placed beside it.
func (l *ledger) beside(ln *lane) bool {
	return l.MarkerAs == Field || ln.formed() || ln.form == start || ln.form == file
}

// look examines the next piece of a text for its form if the request does not determine it. JSON is
// treated as if it had been requested: from here on, the mode for it applies.
func (l *ledger) look(ln *lane, text []byte) {
	if !l.job.MayAnnotate || l.Mode < Annotate || ln.kind != response.Text || ln.form >= json {
		return
	}
	if ln.form == blank {
		if text = bytes.TrimLeft(text, blanks); len(text) == 0 {
			return
		}
	}
	if len(ln.head) > 0 {
		ln.head = append(ln.head, text...)
		text = ln.head
	}
	switch ln.form = formOf(text); {
	case ln.form < json && len(ln.head) == 0:
		ln.head = append(ln.head, text...)
	case ln.form == json && l.job.Formed > l.Mode:
		p := l.Policy
		if p.Mode = l.job.Formed; p.Mode == Hold && !l.settled() {
			p.Mode = max(l.Mode, Terminate) // text that has begun is not held any more
		}
		l.rules = p.rules(false)
	}
	if ln.form >= json {
		ln.head = nil
	}
}
