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
}

// ErrFormat reports a line that is not an example.
var ErrFormat = errors.New("not an example")

// Read decodes one JSON object a line. known are the labels that the data may have, nil for any. limit
// bounds the number of examples; 0 reads all. Errors name the line and wrap ErrFormat.
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
	if task == PII {
		return ex, ex.checkEntities(line)
	}
	if ex.Text == "" || ex.Label == "" {
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
