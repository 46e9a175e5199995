// Package eval runs labelled data through a classifier and scores the answers: accuracy, per-class
// precision and recall, ranking and calibration of scores, latency. It knows file formats and
// formulas, not where answers come from.
//
// An answer that stayed unknown is counted: it is wrong for accuracy and recall, and it is left out
// of figures that need a score (AUC, calibration, coverage). Everything is single threaded, so that
// latencies are those of one request at a time.
package eval

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Task names what the labels of a file mean.
type Task string

// The tasks.
const (
	Domain    Task = "domain"
	Jailbreak Task = "jailbreak"
	Route     Task = "route"
)

// Tasks lists every task.
func Tasks() []Task { return []Task{Domain, Jailbreak, Route} }

// Positive returns the label that a yes-or-no task looks for, and false for other tasks.
func (t Task) Positive() (string, bool) {
	if t == Jailbreak {
		return "jailbreak", true
	}
	return "", false
}

// Negative returns the other label of a yes-or-no task.
func (t Task) Negative() string {
	if t == Jailbreak {
		return "benign"
	}
	return ""
}

// Example is one labelled text.
type Example struct {
	Text  string `json:"text"`
	Label string `json:"label"`
}

// ErrFormat reports a line that is not an example.
var ErrFormat = errors.New("not an example")

// Read decodes one JSON object a line. limit bounds the number of examples; 0 reads all.
func Read(r io.Reader, limit int) ([]Example, error) {
	var out []Example
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), 64<<20) // a line is a prompt; 64 MiB is the proxy's own default limit
	for line := 1; sc.Scan(); line++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var ex Example
		if err := json.Unmarshal(sc.Bytes(), &ex); err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", line, ErrFormat, err)
		}
		if ex.Text == "" || ex.Label == "" {
			return nil, fmt.Errorf(`line %d: %w: "text" and "label" must both be there`, line, ErrFormat)
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

// Answer is what a classifier said about one text.
type Answer struct {
	Known bool
	Label string  // the predicted label
	Score float64 // probability of Label; for a yes-or-no task of the positive label
	Took  time.Duration
}

// Classifier answers for one text. It is called from one goroutine.
type Classifier func(ctx context.Context, text string) Answer

// Run classifies every example in order and scores the answers. threshold turns a positive score
// into the positive label in yes-or-no tasks. progress, when not nil, is called after every example.
func Run(ctx context.Context, task Task, examples []Example, threshold float64, c Classifier, progress func(done int)) (*Report, error) {
	answers := make([]Answer, len(examples))
	positive, binary := task.Positive()
	for i, ex := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a := c(ctx, ex.Text)
		if binary && a.Known {
			a.Label = task.Negative()
			if a.Score >= threshold {
				a.Label = positive
			}
		}
		answers[i] = a
		if progress != nil {
			progress(i + 1)
		}
	}
	return score(task, examples, answers, threshold), nil
}
