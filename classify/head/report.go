package head

import (
	"cmp"
	"math"
	"slices"
)

// Report contains the results of a head on held-out rows, by cross-validation.
type Report struct {
	Rows  int `json:"rows"`
	Folds int `json:"folds"`
	// inverse regularisation of the weights, chosen by cross-validation
	Strength float64 `json:"strength"`
	// Accuracy is the share of rows with the correct label: for Binary at a probability of one
	// half, for Tags over all labels of all rows.
	Accuracy float64 `json:"accuracy"`
	MacroF1  float64 `json:"macro_f1"`
	AUC      float64 `json:"auc,omitempty"` // of Binary
	ECE      float64 `json:"ece"`           // expected calibration error, ten bins
	// by label, in the order of Info.Labels
	Labels []LabelReport `json:"labels"`
	// FalsePositives is the share that was requested.
	FalsePositives float64     `json:"false_positives,omitempty"`
	Compared       *Comparison `json:"compared,omitempty"`
}

// LabelReport is about one label. Precision, Recall and F1 are those of the most probable label,
// or, for Tags and the positive label of Binary, those at the threshold.
type LabelReport struct {
	Label          string  `json:"label"`
	Rows           int     `json:"rows"`
	Precision      float64 `json:"precision"`
	Recall         float64 `json:"recall"`
	F1             float64 `json:"f1"`
	Threshold      float64 `json:"threshold,omitempty"`
	FalsePositives float64 `json:"false_positives,omitempty"` // share of rows without the label
	// FalsePositivesMost is an upper limit of that share for other texts of this kind, valid for 95
	// of 100 such trainings: a rate from few rows is uncertain. 0 without a threshold.
	FalsePositivesMost float64 `json:"false_positives_most,omitempty"`
}

// upperShare returns the share of events that is exceeded with a probability of 5 %, if k of n
// trials were events (Clopper and Pearson 1934). For a threshold chosen so that k of n rows reach
// it, it is the 95 % quantile of the share that reaches it.
func upperShare(k, n int) float64 {
	if k >= n {
		return 1
	}
	low, high := 0.0, 1.0
	for range 40 { // to 1e-12
		p := (low + high) / 2
		// probability of no event; its logarithm, because it may underflow
		term := float64(n) * math.Log1p(-p)
		sum := math.Exp(term)
		for i := 1; i <= k; i++ {
			term += math.Log(float64(n-i+1)/float64(i)) + math.Log(p) - math.Log1p(-p)
			sum += math.Exp(term)
		}
		if sum > 0.05 {
			low = p
		} else {
			high = p
		}
	}
	return high
}

// Comparison compares a head with private intents made from the same rows, fold by fold.
type Comparison struct {
	Rows    int     `json:"rows"`    // number of rows classified by both
	Head    float64 `json:"head"`    // accuracy
	Intents float64 `json:"intents"` // accuracy
	Better  string  `json:"better"`  // head, intents or either
}

// Compare counts the rows that only one of the two classified correctly. The difference is
// significant if it exceeds two standard errors (McNemar's test).
func Compare(head, intents []bool) *Comparison {
	c := &Comparison{Rows: len(head), Better: "either"}
	var only [2]float64
	for i := range head {
		if head[i] {
			c.Head++
		}
		if intents[i] {
			c.Intents++
		}
		if head[i] && !intents[i] {
			only[0]++
		}
		if intents[i] && !head[i] {
			only[1]++
		}
	}
	if d := only[0] - only[1]; math.Abs(d) > 2*math.Sqrt(only[0]+only[1]) {
		c.Better = "head"
		if d < 0 {
			c.Better = "intents"
		}
	}
	c.Head, c.Intents = c.Head/float64(max(1, c.Rows)), c.Intents/float64(max(1, c.Rows))
	return c
}

// counts of one label.
type counts struct{ told, held, both, rows float64 }

func (c *counts) add(told, held bool) { //nolint:revive // two facts about a row
	c.rows++
	if told {
		c.told++
	}
	if held {
		c.held++
	}
	if told && held {
		c.both++
	}
}

func (c *counts) report(label string) LabelReport {
	r := LabelReport{Label: label, Rows: int(c.held)}
	r.Precision, r.Recall = c.both/max(c.told, 1), c.both/max(c.held, 1)
	r.F1 = 2 * c.both / max(c.told+c.held, 1)
	return r
}

func (t *trainer) report(in *Info, held []float32) *Report {
	r := &Report{Rows: len(t.rows), Folds: t.Folds}
	k, n := t.outputs, len(in.Labels)
	at, most := make([]counts, n), make([]counts, n) // at the threshold; by the most probable label
	var score []scored
	var bins [10]bin
	right := 0.0
	for i := range t.rows {
		probs := in.probabilities(held[i*k : (i+1)*k])
		best := slices.Index(probs, slices.Max(probs))
		for j, p := range probs {
			at[j].add(float64(p) >= in.Thresholds[j], t.holds(i, j))
			most[j].add(best == j, t.holds(i, j))
		}
		if t.Mode == Tags {
			right += t.tagged(in, i, probs, &bins)
			continue
		}
		bins[binOf(float64(probs[best]))].add(float64(probs[best]), t.holds(i, best))
		if t.holds(i, best) {
			right++
		}
		if t.Mode == Binary {
			score = append(score, scored{float64(probs[1]), t.holds(i, 1)})
		}
	}
	r.Accuracy, r.ECE = right/float64(len(t.rows)), calibration(bins[:])
	for j, l := range in.Labels {
		row := most[j].report(l)
		if t.Mode == Tags || t.Mode == Binary && j == 1 {
			row = at[j].report(l)
			row.Threshold = in.Thresholds[j]
			without, wrong := at[j].rows-at[j].held, at[j].told-at[j].both
			row.FalsePositives = wrong / max(without, 1)
			row.FalsePositivesMost = upperShare(int(wrong), int(without))
			r.FalsePositives = t.FalsePositives
		}
		r.Labels = append(r.Labels, row)
		if t.Mode == Tags {
			r.MacroF1 += row.F1 / float64(n)
		} else {
			r.MacroF1 += most[j].report(l).F1 / float64(n)
		}
	}
	if t.Mode == Binary {
		r.AUC = auc(score)
	}
	return r
}

// tagged bins the probabilities of a row for Tags, and returns the share of its labels that were
// correct.
func (t *trainer) tagged(in *Info, row int, probs []float32, bins *[10]bin) (right float64) {
	for j, p := range probs {
		held := t.holds(row, j)
		bins[binOf(float64(p))].add(float64(p), held)
		if (float64(p) >= in.Thresholds[j]) == held {
			right += 1 / float64(len(probs))
		}
	}
	return right
}

// holds reports whether row i has label j.
func (t *trainer) holds(i, j int) bool {
	if t.Mode == Binary {
		return (t.target[i] == 1) == (j == 1)
	}
	return t.target[i*t.outputs+j] == 1
}

// bin collects the probabilities in one tenth of [0,1].
type bin struct{ n, sum, right float64 }

func binOf(p float64) int { return min(int(p*10), 9) }

func (b *bin) add(p float64, right bool) { //nolint:revive // a fact about the row
	b.n++
	b.sum += p
	if right {
		b.right++
	}
}

// calibration returns the expected calibration error (Guo et al., "On Calibration of Modern Neural
// Networks", section 2).
func calibration(bins []bin) float64 {
	n, sum := 0.0, 0.0
	for _, b := range bins {
		n += b.n
		sum += math.Abs(b.sum - b.right)
	}
	return sum / max(n, 1)
}

type scored struct {
	p   float64
	yes bool
}

// auc returns the share of pairs of a positive and a negative in the right order, equal scores
// counting half.
func auc(all []scored) float64 {
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(a.p, b.p) })
	var rank, yes, no float64
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].p == all[i].p {
			j++
		}
		for _, s := range all[i:j] {
			if s.yes {
				rank += float64(i+j+1) / 2
				yes++
			} else {
				no++
			}
		}
		i = j
	}
	if yes == 0 || no == 0 {
		return 0
	}
	return (rank - yes*(yes+1)/2) / (yes * no)
}
