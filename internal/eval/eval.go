// Package eval runs labelled data through a classifier and scores the answers: accuracy, per-class
// precision and recall, ranking and calibration of scores, found entities, latency. It knows file
// formats and formulas, not where answers come from.
//
// An answer that stayed unknown is counted: it is wrong for accuracy and recall, and it is left out
// of figures that need a score (AUC, calibration, coverage). Everything is single threaded, so that
// latencies are those of one request at a time.
package eval

import (
	"context"
	"slices"
	"time"
)

// Task names what the labels of a file mean.
type Task string

// The tasks.
const (
	Domain     Task = "domain"
	Jailbreak  Task = "jailbreak"
	Injection  Task = "injection"
	PII        Task = "pii"
	Complexity Task = "complexity"
	FactCheck  Task = "factcheck"
	Grounding  Task = "grounding"
	Intent     Task = "intent"
	Route      Task = "route"
)

// NoIntent is the label of a text that belongs to no intent.
const NoIntent = "none"

// Tasks lists every task.
func Tasks() []Task {
	return []Task{
		Domain, Jailbreak, Injection, PII, Complexity, FactCheck, Grounding,
		Intent, Route,
	}
}

// Positive returns the label whose probability a task ranks texts by, and false for tasks without.
func (t Task) Positive() (string, bool) {
	switch t {
	case Jailbreak:
		return "jailbreak", true
	case Injection:
		return "injection", true
	case FactCheck:
		return "needs", true
	case Complexity:
		return "high", true
	case Grounding:
		return "unsupported", true
	case Domain, PII, Intent, Route:
	}
	return "", false
}

// negative returns the label of what is below the threshold, where a task has two labels.
func (t Task) negative() string {
	switch t {
	case Jailbreak, Injection:
		return "benign"
	case FactCheck:
		return "no"
	case Complexity:
		return "low"
	case Grounding:
		return "supported"
	case Domain, PII, Intent, Route:
	}
	return ""
}

// Labels returns the labels that a task's data may have, nil where the configuration says them.
func (t Task) Labels() []string {
	positive, ok := t.Positive()
	switch {
	case t == Complexity:
		return []string{"low", "medium", positive}
	case ok:
		return []string{t.negative(), positive}
	}
	return nil
}

// Entity is a piece of personal data. Start and End are code points in the text.
type Entity struct {
	Type  string `json:"type"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Answer is what a classifier said about one text.
type Answer struct {
	Known    bool
	Label    string   // the predicted label
	Score    float64  // probability of Label, in [0,1]
	Positive float64  // of tasks with a positive label: its probability, in [0,1]
	Entities []Entity // of pii
	Spans    []Span   // of grounding: the claims that failed
	Took     time.Duration
}

// Classifier answers for one example, whose label it does not look at. It is called from one
// goroutine.
type Classifier func(ctx context.Context, ex *Example) Answer

// Run classifies every example in order and scores the answers. threshold turns the probability of
// the positive label into that label where the data has two labels; a file that calls texts low or
// high in complexity is judged by P(high) >= 0.5. types are the types of entities that count in
// pii. progress, when not nil, is called after every example.
func Run(ctx context.Context, task Task, examples []Example, threshold float64, types []string, c Classifier, progress func(done int)) (*Report, error) {
	answers := make([]Answer, len(examples))
	positive, _ := task.Positive()
	binary := isBinary(task, examples)
	if binary && task == Complexity {
		threshold = 0.5
	}
	for i := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a := c(ctx, &examples[i])
		if binary && a.Known {
			a.Label = task.negative()
			if a.Positive >= threshold {
				a.Label = positive
			}
		}
		answers[i] = a
		if progress != nil {
			progress(i + 1)
		}
	}
	if task == PII {
		return scoreEntities(examples, answers, types), nil
	}
	r := score(task, examples, answers, threshold)
	if task == Grounding {
		r.Spans = scoreSpans(examples, answers)
	}
	return r, nil
}

// isBinary reports whether the data has the two labels of a yes-or-no question.
func isBinary(task Task, examples []Example) bool {
	_, ok := task.Positive()
	return ok && !slices.ContainsFunc(examples, func(x Example) bool { return x.Label == "medium" })
}
