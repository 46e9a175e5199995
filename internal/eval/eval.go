// Package eval runs labelled data through a classifier and scores the answers: accuracy, per-class
// precision and recall, ranking and calibration of scores, found entities, latency. It handles file
// formats and formulas, and is independent of the source of the answers.
//
// An unknown answer counts as wrong for accuracy and recall, and is left out of figures that need a
// score (AUC, calibration, coverage). Everything runs in a single thread, so latencies are those of
// one request at a time.
package eval

import (
	"context"
	"slices"
	"time"
)

// Task defines the meaning of the labels in a file.
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

// negative returns the label for scores below the threshold, for tasks with two labels.
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

// Labels returns the labels that the data of a task may have, or nil if the configuration defines
// them.
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

// Answer is the result of a classifier for one text.
type Answer struct {
	Known    bool
	Label    string   // the predicted label
	Score    float64  // probability of Label, in [0,1]
	Positive float64  // probability of the positive label in [0,1], for tasks that have one
	Entities []Entity // for pii
	Spans    []Span   // for grounding: the claims that failed
	Took     time.Duration
}

// Classifier answers for one example without reading its label. It is called from one goroutine.
type Classifier func(ctx context.Context, ex *Example) Answer

// Run classifies every example in order and scores the answers. If the data has two labels,
// threshold converts the probability of the positive label into that label; a file that labels
// complexity low or high is judged by P(high) >= 0.5. types are the entity types that count in pii.
// progress, if not nil, is called after every example.
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
