package eval

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// Report is the result of one run; its JSON form is a contract. Fields that do not apply to a task
// are absent. Ratios are in [0,1].
type Report struct {
	Task     Task             `json:"task"`
	N        int              `json:"n"`
	Accuracy *float64         `json:"accuracy,omitempty"`
	MacroF1  *float64         `json:"macro_f1,omitempty"`
	PerClass map[string]Class `json:"per_class,omitempty"`

	// Tasks with a positive label: area under the ROC curve, and recall and false-positive rate at
	// Threshold.
	AUC               *float64 `json:"auc,omitempty"`
	RecallAtThreshold *float64 `json:"recall_at_threshold,omitempty"`
	FPRAtThreshold    *float64 `json:"fpr_at_threshold,omitempty"`
	Threshold         *float64 `json:"threshold,omitempty"`

	// Tasks with scores: expected calibration error over 15 equal-width bins, and the largest share
	// of examples, most confident first, on which accuracy is at least .90.
	ECE          *float64 `json:"ece,omitempty"`
	CoverageAt90 *float64 `json:"coverage_at_90,omitempty"`

	// Personal data, compared exactly and by overlap.
	Exact   *Entities `json:"exact,omitempty"`
	Overlap *Entities `json:"overlap,omitempty"`

	// Grounding, if the data has spans: the failed claims of the answers compared with them.
	Spans *Spans `json:"spans,omitempty"`

	Confusion map[string]map[string]int `json:"confusion,omitempty"` // true label -> predicted label -> examples
	LatencyMS Latency                   `json:"latency_ms"`
	Unknown   int                       `json:"unknown"`
}

// Class is the result for one label.
type Class struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	Support   int     `json:"support"`
}

// Latency holds percentiles in milliseconds, by the nearest-rank method.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// unknownLabel is the label of unknown answers in the confusion table.
const unknownLabel = "(unknown)"

func score(task Task, examples []Example, answers []Answer, threshold float64) *Report {
	r := &Report{Task: task, N: len(examples), Confusion: map[string]map[string]int{}}
	right := 0
	for i, ex := range examples {
		got := answers[i].Label
		if !answers[i].Known {
			got = unknownLabel
			r.Unknown++
		}
		row := r.Confusion[ex.Label]
		if row == nil {
			row = map[string]int{}
			r.Confusion[ex.Label] = row
		}
		row[got]++
		if got == ex.Label {
			right++
		}
	}
	accuracy := ratio(right, r.N)
	r.Accuracy = &accuracy
	r.perClass()
	r.LatencyMS = latency(answers)
	if task == Route {
		return r
	}
	if positive, ok := task.Positive(); ok {
		r.ranking(positive, examples, answers, threshold)
	}
	r.calibration(task, examples, answers)
	return r
}

// perClass covers the labels of the data. A predicted label that does not occur in the data does
// not affect any precision; it appears in the confusion table.
func (r *Report) perClass() {
	r.PerClass = map[string]Class{}
	predicted := map[string]int{}
	for _, row := range r.Confusion {
		for label, n := range row {
			predicted[label] += n
		}
	}
	sum := 0.0
	for label, row := range r.Confusion {
		support := 0
		for _, n := range row {
			support += n
		}
		c := newClass(ratio(row[label], predicted[label]), ratio(row[label], support), support)
		r.PerClass[label] = c
		sum += c.F1
	}
	macro := sum / float64(len(r.PerClass))
	r.MacroF1 = &macro
}

// ranking scores the probability of the positive label.
func (r *Report) ranking(positive string, examples []Example, answers []Answer, threshold float64) {
	var pos, neg []float64
	for i, ex := range examples {
		if !answers[i].Known {
			continue
		}
		if ex.Label == positive {
			pos = append(pos, answers[i].Positive)
		} else {
			neg = append(neg, answers[i].Positive)
		}
	}
	if len(pos) > 0 && len(neg) > 0 {
		auc := AUC(pos, neg)
		r.AUC = &auc
	}
	over := func(s float64) bool { return s >= threshold }
	recall, fpr := ratio(count(pos, over), r.PerClass[positive].Support), ratio(count(neg, over), len(neg))
	r.RecallAtThreshold, r.FPRAtThreshold, r.Threshold = &recall, &fpr, &threshold
}

// AUC is the probability that a random positive scores above a random negative, ties counting half:
// the Mann-Whitney statistic divided by the number of pairs.
func AUC(pos, neg []float64) float64 {
	type point struct {
		score    float64
		positive bool
	}
	all := make([]point, 0, len(pos)+len(neg))
	for _, s := range pos {
		all = append(all, point{s, true})
	}
	for _, s := range neg {
		all = append(all, point{s, false})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].score < all[j].score })
	rankSum := 0.0
	for i := 0; i < len(all); {
		j, positives := i, 0
		for ; j < len(all) && all[j].score == all[i].score; j++ {
			if all[j].positive {
				positives++
			}
		}
		rankSum += float64(positives) * (float64(i+1) + float64(j)) / 2 // mean of ranks i+1..j
		i = j
	}
	p, n := float64(len(pos)), float64(len(neg))
	return (rankSum - p*(p+1)/2) / (p * n)
}

// eceBins is the number of equal-width confidence bins of the expected calibration error
// (Guo et al., On Calibration of Modern Neural Networks, 2017, use 15).
const eceBins = 15

func (r *Report) calibration(task Task, examples []Example, answers []Answer) {
	type scored struct {
		confidence float64
		right      bool
	}
	positive, _ := task.Positive()
	binary := isBinary(task, examples)
	var all []scored
	for i, a := range answers {
		if !a.Known {
			continue
		}
		s := scored{a.Score, a.Label == examples[i].Label}
		if binary {
			s.right = (a.Positive >= 0.5) == (examples[i].Label == positive)
			s.confidence = math.Max(a.Positive, 1-a.Positive)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return
	}
	var n, right [eceBins]int
	var confidence [eceBins]float64
	for _, s := range all {
		b := min(eceBins-1, int(s.confidence*eceBins))
		n[b]++
		confidence[b] += s.confidence
		if s.right {
			right[b]++
		}
	}
	ece := 0.0
	for b := range n {
		ece += math.Abs(float64(right[b])-confidence[b]) / float64(len(all))
	}
	r.ECE = &ece

	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.confidence, a.confidence) })
	kept, sum := 0, 0
	for i, s := range all {
		if s.right {
			sum++
		}
		// A threshold cannot separate equal confidences.
		boundary := i+1 == len(all) || all[i+1].confidence < s.confidence
		if boundary && float64(sum) >= 0.9*float64(i+1) {
			kept = i + 1
		}
	}
	coverage := ratio(kept, r.N)
	r.CoverageAt90 = &coverage
}

func latency(answers []Answer) Latency {
	took := make([]time.Duration, 0, len(answers))
	for _, a := range answers {
		took = append(took, a.Took)
	}
	slices.Sort(took)
	at := func(p float64) float64 {
		i := max(0, int(math.Ceil(p*float64(len(took))))-1)
		return float64(took[i]) / float64(time.Millisecond)
	}
	return Latency{P50: at(.5), P90: at(.9), P99: at(.99)}
}

func count(v []float64, f func(float64) bool) int {
	n := 0
	for _, x := range v {
		if f(x) {
			n++
		}
	}
	return n
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
