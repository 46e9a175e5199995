package bundle

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
)

// checker collects problems of a manifest by key.
type checker struct {
	errs []error
	file string
	hub  bool // made from a Hugging Face folder, which has neither sums nor a canary
}

func (c *checker) bad(key, format string, args ...any) {
	c.errs = append(c.errs, &Error{File: c.file, Key: key, Err: fmt.Errorf(format, args...)})
}

func (c *checker) required(key, value string) {
	if value == "" {
		c.bad(key, "missing")
	}
}

func (c *checker) oneOf(key, value string, known ...string) {
	if !slices.Contains(known, value) {
		c.bad(key, "%q is not one of %v", value, known)
	}
}

// Validate reports every problem of m as *Error values, joined, or nil. Manifests that Open made
// from a Hugging Face folder do not pass, because they have no checksums and no canary.
func (m *Manifest) Validate() error { return m.check(&checker{file: ManifestFile}) }

func (m *Manifest) check(c *checker) error {
	if m.Format != Format {
		c.bad("format", "%d is not supported, want %d", m.Format, Format)
		return errors.Join(c.errs...) // the rest may have another meaning
	}
	c.required("name", m.Name)
	c.required("version", m.Version)
	c.required("license", m.License)
	c.oneOf("layout", m.Layout, "shared")
	if len(m.Graphs) == 0 {
		c.bad("graphs", "missing")
	}
	for i, g := range m.Graphs {
		key := fmt.Sprintf("graphs[%d]", i)
		c.sum(key, g.File)
		c.oneOf(key+".precision", g.Precision, FP32, FP16, Int8)
		for j, w := range g.Weights {
			c.sum(fmt.Sprintf("%s.weights[%d]", key, j), w)
		}
		for j := range g.Taps {
			c.tap(fmt.Sprintf("%s.taps[%d]", key, j), g.Taps, j)
		}
	}
	c.sum("tokenizer", m.Tokenizer.File)
	c.oneOf("tokenizer.engine", m.Tokenizer.Engine, "", "native", "sugarme")
	if m.Scan != (File{}) {
		c.sum("scan", m.Scan)
	}
	if m.Turns != (File{}) {
		c.sum("turns", m.Turns)
	}
	if m.Fusion != (File{}) {
		c.sum("fusion", m.Fusion)
	}
	c.required("inputs.ids", m.Inputs.IDs)
	c.required("inputs.mask", m.Inputs.Mask)
	if m.MaxTokens < minRowTokens || m.MaxTokens > maxRowTokens {
		c.bad("max_tokens", "%d is not between %d and %d", m.MaxTokens, minRowTokens, maxRowTokens)
	}
	if m.Vocab < 0 {
		c.bad("vocab", "%d is negative", m.Vocab)
	}
	if m.PadID < 0 {
		c.bad("pad_id", "%d is negative", m.PadID)
	}
	if len(m.Tasks) == 0 {
		c.bad("tasks", "missing")
	}
	for i := range m.Tasks {
		c.task(fmt.Sprintf("tasks[%d]", i), m, i)
	}
	if !c.hub {
		c.canary(m)
	}
	return errors.Join(c.errs...)
}

// tap checks the tap at i of a graph.
func (c *checker) tap(key string, taps []Tap, i int) {
	t := &taps[i]
	c.required(key+".name", t.Name)
	c.required(key+".value", t.Value)
	for j := range i {
		if taps[j].Name == t.Name || taps[j].Value == t.Value {
			c.bad(key, "%q or its value is used twice", t.Name)
		}
	}
	if n := len(t.Shape); n < 2 || n > maxTapRank || t.Shape[0] != -1 || t.Shape[n-1] < 1 {
		c.bad(key+".shape", "%v is not [-1, ..., width], of at most %d dimensions", t.Shape, maxTapRank)
	}
	for _, d := range t.Shape {
		if d != -1 && (d < 1 || d > maxTapWidth) {
			c.bad(key+".shape", "%d is neither -1 nor between 1 and %d", d, maxTapWidth)
		}
	}
}

const (
	maxTapRank  = 4
	maxTapWidth = 1 << 16
)

func (c *checker) sum(key string, f File) {
	if f.Name == "." || !fs.ValidPath(f.Name) {
		c.bad(key+".file", "%q is not a path inside the bundle", f.Name)
	}
	none := c.hub && f.SHA256 == ""
	if b, err := hex.DecodeString(f.SHA256); !none && (err != nil || len(b) != 32) {
		c.bad(key+".sha256", "want 64 hexadecimal digits")
	}
	if f.Bytes <= 0 {
		c.bad(key+".bytes", "%d is not positive", f.Bytes)
	}
}

func (c *checker) task(key string, m *Manifest, i int) {
	t := &m.Tasks[i]
	c.required(key+".name", t.Name)
	c.required(key+".output", t.Output)
	for j := range i {
		if m.Tasks[j].Name == t.Name {
			c.bad(key+".name", "%q is used twice", t.Name)
		}
	}
	switch t.Kind {
	case Sequence, Pair:
		c.labelled(key, t)
		c.unique(key, t)
	case Token:
		c.token(key, t)
	case Embedding:
		c.embedding(key, t)
	default:
		c.bad(key+".kind", "%q is not one of [sequence token pair embedding]", t.Kind)
	}
	if t.Template != "" && !t.Judges() {
		c.bad(key+".template", "only token tasks with a positive label have one")
	}
	w := t.Window
	if w.Tokens < minRowTokens || w.Tokens > m.MaxTokens {
		c.bad(key+".window.tokens", "%d is not between %d and max_tokens", w.Tokens, minRowTokens)
	}
	if w.Stride < 1 || w.Stride > w.Tokens {
		c.bad(key+".window.stride", "%d is not between 1 and window.tokens", w.Stride)
	}
	if w.Skeleton != 0 && (w.Skeleton < minSkeleton || w.Skeleton > w.Tokens) {
		c.bad(key+".window.skeleton", "%d is neither 0 nor between %d and window.tokens",
			w.Skeleton, minSkeleton)
	}
	c.oneOf(key+".window.long", string(w.Long), "", string(Skeleton), string(Windows))
	if t.Document != nil {
		c.document(key+".document", t)
	}
	if w.Max < 0 {
		c.bad(key+".window.max", "%d is negative", w.Max)
	}
	c.oneOf(key+".window.combine", string(w.Combine), string(Mean), string(Max))
}

// document checks the combination of windows into one probability.
func (c *checker) document(key string, t *Task) {
	d := t.Document
	if t.Kind != Sequence || t.Positive == "" {
		c.bad(key, "only sequence tasks with a positive label have one")
	}
	if !finite(d.Bias) {
		c.bad(key+".bias", "%v is not a number", d.Bias)
	}
	if len(d.Top) < 1 || len(d.Top) > MaxTop {
		c.bad(key+".top", "%d weights, want 1 to %d", len(d.Top), MaxTop)
	}
	for i, w := range d.Top {
		if !finite(w) || w < 0 || i == 0 && w == 0 {
			c.bad(fmt.Sprintf("%s.top[%d]", key, i),
				"%v is not positive: more evidence cannot speak for less", w)
		}
	}
	if !finite(d.Length) || d.Length < 0 {
		c.bad(key+".length", "%v is not a number of at least 0", d.Length)
	}
	if d.Close != nil {
		c.close(key+".close", d.Close, t.Window.Tokens)
	}
	if !finite(d.Single) || d.Single < 0 {
		c.bad(key+".single", "%v is not a number of at least 0", d.Single)
	}
	if d.Scan == nil {
		return
	}
	if !finite(d.Scan.Weight) || d.Scan.Weight <= 0 {
		c.bad(key+".scan.weight", "%v is not above 0", d.Scan.Weight)
	}
	if !finite(d.Scan.Bound) || d.Scan.Bound <= 0 {
		c.bad(key+".scan.bound", "%v is not above 0", d.Scan.Bound)
	}
}

// close checks the second look; window is the window length in tokens.
func (c *checker) close(key string, d *Close, window int) {
	if !finite(d.From) {
		c.bad(key+".from", "%v is not a number", d.From)
	}
	if !finite(d.Weight) || d.Weight <= 0 || d.Weight > 1 {
		c.bad(key+".weight", "%v is not above 0 and at most 1", d.Weight)
	}
	if d.Sentences < 1 || d.Sentences > MaxClose {
		c.bad(key+".sentences", "%d is not between 1 and %d", d.Sentences, MaxClose)
	}
	if d.Tokens != 0 && (d.Tokens < minRowTokens || d.Tokens > window) {
		c.bad(key+".tokens", "%d is neither 0 nor between %d and window.tokens",
			d.Tokens, minRowTokens)
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (c *checker) token(key string, t *Task) {
	c.labelled(key, t)
	c.oneOf(key+".template", string(t.Template), "", string(Passages), string(Separated))
	if t.Judges() {
		c.unique(key, t)
		return
	}
	c.tags(key, t)
	if !c.hub {
		c.unique(key, t)
	}
}

func (c *checker) embedding(key string, t *Task) {
	if t.Dims < 1 {
		c.bad(key+".dims", "%d is not positive", t.Dims)
	}
	if t.Width != 0 && t.Width < t.Dims {
		c.bad(key+".width", "%d is less than dims", t.Width)
	}
	c.oneOf(key+".pooling", string(t.Pooling), "", string(NoPooling), string(MeanPooling), string(CLSPooling), string(LastTokenPooling))
	if t.AppendID < 0 {
		c.bad(key+".append_id", "%d is negative", t.AppendID)
	}
	if t.Window.Combine == Max {
		c.bad(key+".window.combine", "vectors have no maximum, want mean")
	}
}

// labelled checks what is common to all tasks with labels.
func (c *checker) labelled(key string, t *Task) {
	if len(t.Labels) < 2 {
		c.bad(key+".labels", "want at least two")
	}
	if t.Positive != "" && !slices.Contains(t.Labels, t.Positive) {
		c.bad(key+".positive", "%q is not a label", t.Positive)
	}
	if t.Positive == "" && t.Window.Combine == Max && t.Kind != Token {
		c.bad(key+".positive", "missing: combine max looks for it")
	}
	if !(t.Temperature > 0) || math.IsInf(t.Temperature, 0) {
		c.bad(key+".temperature", "%v is not positive", t.Temperature)
	}
	if !(t.Threshold > 0 && t.Threshold <= 1) {
		c.bad(key+".threshold", "%v is not in (0,1]", t.Threshold)
	}
}

func (c *checker) unique(key string, t *Task) {
	for i, l := range t.Labels {
		if l == "" || slices.Contains(t.Labels[:i], l) {
			c.bad(fmt.Sprintf("%s.labels[%d]", key, i), "%q is empty or used twice", l)
		}
	}
}

// tags checks that labels are BIO tags with one O among them.
func (c *checker) tags(key string, t *Task) {
	outside := 0
	for i, l := range t.Labels {
		switch prefix, name, _ := strings.Cut(l, "-"); {
		case l == outsideTag:
			outside++
		case prefix != "B" && prefix != "I" || name == "":
			c.bad(fmt.Sprintf("%s.labels[%d]", key, i), "%q is neither O nor B- or I- and a type", l)
		}
	}
	if outside != 1 {
		c.bad(key+".labels", "want one label O, have %d", outside)
	}
}

// canary checks the canary text. If there are tasks over single texts or pairs, it must have an
// expected label for at least one; expected token labels or vectors cannot be written down.
func (c *checker) canary(m *Manifest) {
	c.required("canary.text", m.Canary.Text)
	labelled := slices.ContainsFunc(m.Tasks, func(t Task) bool { return t.Kind == Sequence })
	if labelled && len(m.Canary.Expect) == 0 {
		c.bad("canary.expect", "missing")
	}
	for name, label := range m.Canary.Expect {
		key := "canary.expect." + name
		t, ok := m.Task(name)
		if !ok || t.Kind != Sequence && t.Kind != Pair {
			c.bad(key, "no task over a text or a pair has this name")
			continue
		}
		if t.Kind == Pair && m.Canary.Second == "" {
			c.bad("canary.second", "missing: %s reads two texts", name)
		}
		if !slices.Contains(t.Labels, label) {
			c.bad(key, "%q is not a label of the task", label)
		}
	}
}
