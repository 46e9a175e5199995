package bundle

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
)

// Format is the version of the manifest that this package reads.
const Format = 1

// maxRowTokens bounds the rows of a bundle; attention is quadratic in it.
const maxRowTokens = 32768

// Manifest is the content of bundle.yaml.
type Manifest struct {
	// Format is the version of the manifest, 1.
	Format int `yaml:"format"`
	// Name identifies the bundle in metrics, traces and the API.
	Name string `yaml:"name"`
	// Version is the version of the models.
	Version string `yaml:"version"`
	// Description is one sentence for people.
	Description string `yaml:"description"`
	// License is the SPDX identifier of the models.
	License string `yaml:"license"`
	// Languages are the ISO 639-1 codes of the languages that the models were made for.
	Languages []string `yaml:"languages"`
	// Layout says how tasks share graphs; `shared`: every graph computes every task in one pass.
	Layout string `yaml:"layout"`
	// Graphs are the same model in several precisions, the preferred one first.
	Graphs []Graph `yaml:"graphs"`
	// Tokenizer is the tokenizer.json.
	Tokenizer File `yaml:"tokenizer"`
	// Inputs names the inputs of the graphs.
	Inputs Inputs `yaml:"inputs"`
	// MaxTokens is the longest row that the model reads, special tokens included.
	MaxTokens int `yaml:"max_tokens"`
	// PadID fills rows that are shorter than others of their batch.
	PadID int64 `yaml:"pad_id"`
	// Tasks are the outputs and what they mean.
	Tasks []Task `yaml:"tasks"`
	// Canary is a text whose labels are known, run once before the bundle is used.
	Canary Canary `yaml:"canary"`
	// Provenance lists what the models were made from.
	Provenance []Provenance `yaml:"provenance"`
}

// File is a file of the bundle and how to recognise it.
type File struct {
	// Name is the path inside the bundle, with slashes.
	Name string `yaml:"file"`
	// SHA256 is the digest in lower-case hexadecimal.
	SHA256 string `yaml:"sha256"`
	// Bytes is the size.
	Bytes int64 `yaml:"bytes"`
}

// Graph is one ONNX file.
type Graph struct {
	File `yaml:",inline"`
	// Precision is fp32, fp16 or int8.
	Precision string `yaml:"precision"`
}

// Inputs names the inputs of a graph; each is int64 of shape [batch, sequence].
type Inputs struct {
	// IDs are the token ids.
	IDs string `yaml:"ids"`
	// Mask is 1 for tokens and 0 for padding.
	Mask string `yaml:"mask"`
	// Types are segment ids, all 0 for single texts. Empty when the graph has no such input.
	Types string `yaml:"types"`
}

// Kind is what a task computes.
type Kind string

// The kinds of tasks.
const (
	Sequence  Kind = "sequence"  // logits of a label, float32 [batch, len(Labels)]
	Embedding Kind = "embedding" // a vector, float32 [batch, Dims]
)

// Combine says how the windows of a long text become one value.
type Combine string

// The ways to combine windows.
const (
	Mean Combine = "mean" // average of the probabilities or vectors
	Max  Combine = "max"  // the window with the highest probability of the positive label
)

// Task is one output of the graphs and what it means.
type Task struct {
	// Name is the signal that the task gives.
	Name string `yaml:"name"`
	// Kind is sequence or embedding.
	Kind Kind `yaml:"kind"`
	// Output is the name of the graph's output.
	Output string `yaml:"output"`
	// Labels are the labels in the order of the logits. Sequence tasks only.
	Labels []string `yaml:"labels"`
	// Positive is the label that a yes-or-no task looks for. Empty for other tasks.
	Positive string `yaml:"positive"`
	// Temperature divides the logits before the softmax; it was fitted on held-out data.
	Temperature float64 `yaml:"temperature"`
	// Threshold is the probability from which the task's answer counts, in (0,1].
	Threshold float64 `yaml:"threshold"`
	// Dims is the length of the vector. Embedding tasks only.
	Dims int `yaml:"dims"`
	// Window says how long texts are read.
	Window Window `yaml:"window"`
}

// Window says how a text that is longer than one row is read.
type Window struct {
	// Tokens is the length of a row, special tokens included.
	Tokens int `yaml:"tokens"`
	// Stride is the distance between the starts of neighbouring rows in tokens.
	Stride int `yaml:"stride"`
	// Max is the most rows that are read, 0 for all: the first Max-1 and the last.
	Max int `yaml:"max"`
	// Combine is mean or max.
	Combine Combine `yaml:"combine"`
}

// Canary is a text with known answers.
type Canary struct {
	// Text is the prompt.
	Text string `yaml:"text"`
	// Expect maps names of sequence tasks to labels.
	Expect map[string]string `yaml:"expect"`
}

// Provenance names one thing that the models were made from.
type Provenance struct {
	// Name says what it is.
	Name string `yaml:"name"`
	// License is its licence.
	License string `yaml:"license"`
}

// Task returns the task with the given name, and false when the bundle has none.
func (m *Manifest) Task(name string) (*Task, bool) {
	for i := range m.Tasks {
		if m.Tasks[i].Name == name {
			return &m.Tasks[i], true
		}
	}
	return nil, false
}

// checker collects problems of a manifest by key.
type checker struct{ errs []error }

func (c *checker) bad(key, format string, args ...any) {
	c.errs = append(c.errs, &Error{File: ManifestFile, Key: key, Err: fmt.Errorf(format, args...)})
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

// Validate reports every problem of m as *Error values, joined, or nil.
func (m *Manifest) Validate() error {
	c := new(checker)
	if m.Format != Format {
		c.bad("format", "%d is not supported, want %d", m.Format, Format)
		return errors.Join(c.errs...) // the rest may mean something else
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
		c.file(key, g.File)
		c.oneOf(key+".precision", g.Precision, "fp32", "fp16", "int8")
	}
	c.file("tokenizer", m.Tokenizer)
	c.required("inputs.ids", m.Inputs.IDs)
	c.required("inputs.mask", m.Inputs.Mask)
	if m.MaxTokens < 8 || m.MaxTokens > maxRowTokens {
		c.bad("max_tokens", "%d is not between 8 and %d", m.MaxTokens, maxRowTokens)
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
	c.canary(m)
	return errors.Join(c.errs...)
}

func (c *checker) file(key string, f File) {
	if f.Name == "." || !fs.ValidPath(f.Name) {
		c.bad(key+".file", "%q is not a path inside the bundle", f.Name)
	}
	if b, err := hex.DecodeString(f.SHA256); err != nil || len(b) != 32 {
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
	case Sequence:
		c.sequence(key, t)
	case Embedding:
		if t.Dims < 1 {
			c.bad(key+".dims", "%d is not positive", t.Dims)
		}
		if t.Window.Combine == Max {
			c.bad(key+".window.combine", "vectors have no maximum, want mean")
		}
	default:
		c.bad(key+".kind", "%q is not one of [sequence embedding]", t.Kind)
	}
	w := t.Window
	if w.Tokens < 8 || w.Tokens > m.MaxTokens {
		c.bad(key+".window.tokens", "%d is not between 8 and max_tokens", w.Tokens)
	}
	if w.Stride < 1 || w.Stride > w.Tokens {
		c.bad(key+".window.stride", "%d is not between 1 and window.tokens", w.Stride)
	}
	if w.Max < 0 {
		c.bad(key+".window.max", "%d is negative", w.Max)
	}
	c.oneOf(key+".window.combine", string(w.Combine), string(Mean), string(Max))
}

func (c *checker) sequence(key string, t *Task) {
	if len(t.Labels) < 2 {
		c.bad(key+".labels", "want at least two")
	}
	for i, l := range t.Labels {
		if l == "" || slices.Contains(t.Labels[:i], l) {
			c.bad(fmt.Sprintf("%s.labels[%d]", key, i), "%q is empty or used twice", l)
		}
	}
	if t.Positive != "" && !slices.Contains(t.Labels, t.Positive) {
		c.bad(key+".positive", "%q is not a label", t.Positive)
	}
	if t.Positive == "" && t.Window.Combine == Max {
		c.bad(key+".positive", "missing: combine max looks for it")
	}
	if !(t.Temperature > 0) || math.IsInf(t.Temperature, 0) {
		c.bad(key+".temperature", "%v is not positive", t.Temperature)
	}
	if !(t.Threshold > 0 && t.Threshold <= 1) {
		c.bad(key+".threshold", "%v is not in (0,1]", t.Threshold)
	}
}

func (c *checker) canary(m *Manifest) {
	c.required("canary.text", m.Canary.Text)
	if len(m.Canary.Expect) == 0 {
		c.bad("canary.expect", "missing")
	}
	for name, label := range m.Canary.Expect {
		key := "canary.expect." + name
		t, ok := m.Task(name)
		if !ok || t.Kind != Sequence {
			c.bad(key, "no sequence task has this name")
			continue
		}
		if !slices.Contains(t.Labels, label) {
			c.bad(key, "%q is not a label of the task", label)
		}
	}
}
