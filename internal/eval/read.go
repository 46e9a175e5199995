package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Example is one labelled text.
type Example struct {
	Text     string   `json:"text"`
	Label    string   `json:"label"`    // of every task but pii
	Entities []Entity `json:"entities"` // of pii

	// Of grounding: what an answer is checked against, what was asked, and what was answered. Spans
	// are the parts of the answer that the facts do not carry, nil when the data does not say.
	Facts    Facts   `json:"facts"`
	Question string  `json:"question"`
	Answer   string  `json:"answer"`
	Spans    *[]Span `json:"spans"`
}

// Facts is one text, or several.
type Facts []string

// UnmarshalJSON reads either form.
func (f *Facts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*f = make(Facts, 1)
		return json.Unmarshal(b, &(*f)[0])
	}
	return json.Unmarshal(b, (*[]string)(f))
}

// Span is a part of an answer, in code points; End is the place after the last.
type Span struct{ Start, End int }

// UnmarshalJSON reads [start, end].
func (s *Span) UnmarshalJSON(b []byte) error {
	var at []int
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	if len(at) != 2 {
		return fmt.Errorf("a span is [start, end], found %d numbers", len(at))
	}
	*s = Span{at[0], at[1]}
	return nil
}

// ErrFormat reports a line that is not an example.
var ErrFormat = errors.New("not an example")

// Read decodes one JSON object a line. known are the labels that the data may have, nil for any.
// limit bounds the number of examples; 0 reads all. Errors name the line and wrap ErrFormat.
func Read(r io.Reader, task Task, known []string, limit int) ([]Example, error) {
	var out []Example
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), 64<<20) // a line is a prompt; 64 MiB is the proxy's own default limit
	for line := 1; sc.Scan(); line++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		ex, err := parse(sc.Bytes(), task, known)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", line, ErrFormat, err)
		}
		out = append(out, ex)
		if limit > 0 && len(out) == limit {
			break
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read examples: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the file holds none", ErrFormat)
	}
	return out, nil
}

func parse(line []byte, task Task, known []string) (Example, error) {
	var ex Example
	if err := json.Unmarshal(line, &ex); err != nil {
		return ex, err
	}
	switch {
	case task == PII:
		return ex, ex.checkEntities(line)
	case task == Grounding:
		if err := ex.checkGrounding(); err != nil {
			return ex, err
		}
	case ex.Text == "" || ex.Label == "":
		return ex, errors.New(`"text" and "label" must both be there`)
	}
	if known != nil && !slices.Contains(known, ex.Label) {
		return ex, fmt.Errorf("unknown label %q, expected one of %s", ex.Label, strings.Join(known, ", "))
	}
	return ex, nil
}

// checkEntities checks the offsets of an example of pii.
func (ex *Example) checkEntities(line []byte) error {
	var given struct {
		Entities *[]Entity `json:"entities"`
	}
	if err := json.Unmarshal(line, &given); err != nil {
		return err
	}
	if ex.Text == "" || given.Entities == nil {
		return errors.New(`"text" and "entities" must both be there`)
	}
	n := utf8.RuneCountInString(ex.Text)
	for i, e := range ex.Entities {
		if e.Type == "" || e.Start < 0 || e.Start >= e.End || e.End > n {
			return fmt.Errorf("entities[%d]: %q from %d to %d is not in a text of %d code points", i, e.Type, e.Start, e.End, n)
		}
	}
	return nil
}

// checkGrounding checks the fields of an example of grounding, its label aside.
func (ex *Example) checkGrounding() error {
	if len(ex.Facts) == 0 || ex.Answer == "" || ex.Label == "" {
		return errors.New(`"facts", "answer" and "label" must all be there`)
	}
	if ex.Spans == nil {
		return nil
	}
	n := utf8.RuneCountInString(ex.Answer)
	for i, s := range *ex.Spans {
		if s.Start < 0 || s.Start >= s.End || s.End > n {
			return fmt.Errorf("spans[%d]: %d to %d is not in an answer of %d code points", i, s.Start, s.End, n)
		}
	}
	return nil
}
