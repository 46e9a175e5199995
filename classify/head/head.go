// Package head is a small trainable classifier: regularised logistic regression over the embedding
// of a text and its n-grams, with calibrated probabilities and thresholds. Train makes one from
// labelled texts in seconds, Predict takes microseconds. The package knows no models, no file
// locations and no HTTP: the caller provides the embeddings.
//
// A Head is immutable and safe for concurrent use. Train runs Options.Workers goroutines and waits
// for them.
package head

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Mode is the relation between the labels of a head.
type Mode string

// The modes.
const (
	// Binary: two labels, one of which is the positive one.
	Binary Mode = "binary"
	// Classes: labels that exclude each other.
	Classes Mode = "classes"
	// Tags: labels of which several, or none, may apply.
	Tags Mode = "tags"
)

// Limits of a head.
const (
	MaxLabels = 512
	MaxDims   = 1 << 13 // of an embedding
)

// ErrDims reports a vector whose length differs from that in training.
var ErrDims = errors.New("the embedding has another length")

// Head is a trained classifier. Use Train or Decode to make one.
type Head struct {
	info  Info
	vocab vocabulary
	// [dims+vocabulary+1, outputs], row-major, the last row the bias
	weights []float32
	outputs int // 1 for Binary, else one per label
	pool    sync.Pool
}

// Info describes a head. Slices are shared and must not be modified.
type Info struct {
	Format    int       `json:"format"`
	Name      string    `json:"name"`
	Mode      Mode      `json:"mode"`
	Labels    []string  `json:"labels"`    // for Binary the positive one is the second
	Embedding string    `json:"embedding"` // fingerprint of the model that computes the vectors
	Dims      int       `json:"dims"`      // length of the vectors; 0: n-grams alone
	Grams     int       `json:"grams"`     // number of n-grams in the vocabulary
	Scale     []float64 `json:"scale"`     // by output: factor for logits
	// by output: added afterwards, before they become probabilities
	Shift []float64 `json:"shift"`
	// Thresholds are the probabilities from which labels apply, parallel to Labels: for Binary that
	// of the second, for Tags each. 0 for Classes, of which the most probable one applies.
	Thresholds []float64 `json:"thresholds"`
	SHA256     string    `json:"sha256,omitempty"` // of the weights file
	Report     *Report   `json:"report,omitempty"` // results on held-out texts
}

// Info returns the description of the head.
func (h *Head) Info() *Info { return &h.info }

// Result is the result of a head for one text.
type Result struct {
	// the label that applies; for Tags the most probable of them; empty if none does
	Label string
	Score float64   // its probability, or the highest one if no label applies; in [0,1]
	Probs []float32 // of every label, in the order of Info.Labels; the caller owns it
}

// Predict classifies a text; vector is its embedding, of length Info.Dims. Another length is an
// error (ErrDims). It retains neither argument.
func (h *Head) Predict(text string, vector []float32) (Result, error) {
	if len(vector) != h.info.Dims {
		return Result{}, fmt.Errorf("%w: %d, want %d", ErrDims, len(vector), h.info.Dims)
	}
	s, ok := h.pool.Get().(*scratch)
	if !ok {
		s = new(scratch)
	}
	s.scan(text)
	s.cells = h.vocab.weigh(s.cells[:0], s.grams)
	logits := make([]float32, h.outputs)
	copy(logits, h.weights[len(h.weights)-h.outputs:])
	for i, x := range vector {
		axpy(logits, x, h.weights[i*h.outputs:(i+1)*h.outputs])
	}
	for _, c := range s.cells {
		at := (h.info.Dims + int(c.at)) * h.outputs
		axpy(logits, c.value, h.weights[at:at+h.outputs])
	}
	h.pool.Put(s)
	return h.info.Result(logits), nil
}

// NewInfo describes how logits that were not computed by a Head become labels, such as those of an
// adapter: scale and shift have one number per logit, thresholds one per label. Its errors name the
// inconsistency.
func NewInfo(mode Mode, labels []string, scale, shift, thresholds []float64) (*Info, error) {
	in := &Info{
		Format: format, Mode: mode, Labels: labels, Scale: scale, Shift: shift, Thresholds: thresholds,
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	return in, nil
}

// Result converts the logits of a text, one for Binary and otherwise one per label, to
// probabilities and determines the label that applies.
func (in *Info) Result(logits []float32) Result {
	probs := in.probabilities(logits)
	r := Result{Probs: probs}
	best := 0
	for i, p := range probs {
		if p > probs[best] {
			best = i
		}
	}
	switch in.Mode {
	case Binary:
		best = 0
		if float64(probs[1]) >= in.Thresholds[1] {
			best = 1
		}
		r.Label, r.Score = in.Labels[best], float64(probs[best])
	case Classes:
		r.Label, r.Score = in.Labels[best], float64(probs[best])
	case Tags:
		r.Score = float64(probs[best])
		held := -1
		for i, p := range probs {
			if float64(p) >= in.Thresholds[i] && (held < 0 || p > probs[held]) {
				held = i
			}
		}
		if held >= 0 {
			r.Label, r.Score = in.Labels[held], float64(probs[held])
		}
	}
	return r
}

// probabilities returns calibrated probabilities: for Classes and Binary they add up to 1, for Tags
// they are independent.
func (in *Info) probabilities(logits []float32) []float32 {
	out := make([]float32, len(in.Labels))
	at := func(i int) float64 { return in.Scale[i]*float64(logits[i]) + in.Shift[i] }
	switch in.Mode {
	case Binary:
		p := sigmoid(at(0))
		out[0], out[1] = float32(1-p), float32(p)
	case Tags:
		for i := range out {
			out[i] = float32(sigmoid(at(i)))
		}
	case Classes:
		top := math.Inf(-1)
		for i := range out {
			top = max(top, at(i))
		}
		sum := 0.0
		for i := range out {
			sum += math.Exp(at(i) - top)
		}
		for i := range out {
			out[i] = float32(math.Exp(at(i)-top) / sum)
		}
	}
	return out
}

// WithThreshold returns a copy with another threshold for every label; 0 changes nothing. Labels
// that exclude each other have no thresholds.
func (in *Info) WithThreshold(t float64) *Info {
	if t <= 0 || in.Mode == Classes {
		return in
	}
	out := *in
	out.Thresholds = make([]float64, len(in.Thresholds))
	for i := range out.Thresholds {
		if in.Mode == Tags || i == 1 {
			out.Thresholds[i] = t
		}
	}
	return &out
}

// WithThreshold returns a copy of the head with another threshold, see Info.WithThreshold.
func (h *Head) WithThreshold(t float64) *Head {
	return &Head{info: *h.info.WithThreshold(t), vocab: h.vocab, weights: h.weights, outputs: h.outputs}
}

// Features returns the non-zero features of a text by index: those of the vector, then the n-grams
// of the vocabulary. The caller owns both slices.
func (h *Head) Features(text string, vector []float32) (at []int, values []float32) {
	var s scratch
	s.scan(text)
	for i, x := range vector {
		at, values = append(at, i), append(values, x)
	}
	for _, c := range h.vocab.weigh(nil, s.grams) {
		at, values = append(at, h.info.Dims+int(c.at)), append(values, c.value)
	}
	return at, values
}
