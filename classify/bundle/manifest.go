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

// Format is the version of the manifest that this package reads.
const Format = 1

const (
	minRowTokens = 8
	maxRowTokens = 32768 // attention is quadratic in it
)

// outsideTag labels a token that is part of no span (Ramshaw and Marcus 1995).
const outsideTag = "O"

// The precisions of graphs.
const (
	FP32 = "fp32"
	FP16 = "fp16"
	Int8 = "int8" // weights of 8 bits, activations as the graph likes
)

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
	Tokenizer TokenizerFile `yaml:"tokenizer"`
	// Scan is the scanner of long prompts, optional: without a name there is none.
	Scan File `yaml:"scan"`
	// Inputs names the inputs of the graphs.
	Inputs Inputs `yaml:"inputs"`
	// MaxTokens is the longest row that the model reads, special tokens included.
	MaxTokens int `yaml:"max_tokens"`
	// Vocab is the number of token ids that the graphs know, 0 when that is not known.
	Vocab int `yaml:"vocab"`
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

// TokenizerFile is a tokenizer.json and what reads it.
type TokenizerFile struct {
	File `yaml:",inline"`
	// Engine names the implementation: native, sugarme, or empty for the default.
	Engine string `yaml:"engine"`
}

// Graph is one ONNX file.
type Graph struct {
	File `yaml:",inline"`
	// Precision is FP32, FP16 or Int8.
	Precision string `yaml:"precision"`
	// Weights are the files beside the graph that hold its weights; usually it holds them itself.
	Weights []File `yaml:"weights"`
}

// Inputs names the inputs of a graph; each is int64 of shape [batch, sequence].
type Inputs struct {
	// IDs are the token ids.
	IDs string `yaml:"ids"`
	// Mask is 1 for tokens and 0 for padding.
	Mask string `yaml:"mask"`
	// Types are segment ids, all 0 for single texts. Empty when the graph has no such input.
	Types string `yaml:"types"`
	// Positions count the tokens of a row from 0. Empty when the graph has no such input.
	Positions string `yaml:"positions"`
}

// Kind is what a task computes.
type Kind string

// The kinds of tasks.
const (
	Sequence  Kind = "sequence"  // logits of a label, float32 [batch, len(Labels)]
	Token     Kind = "token"     // logits of a BIO label for each token, float32 [batch, sequence, len(Labels)]
	Pair      Kind = "pair"      // logits of a label for two texts in one row, float32 [batch, len(Labels)]
	Embedding Kind = "embedding" // a vector, float32 [batch, Width], or [batch, sequence, Width] before pooling
)

// Pooling says how the vectors of a row's tokens become one.
type Pooling string

// The ways to pool. An empty value means NoPooling.
const (
	NoPooling        Pooling = "none"       // the graph pools: its output has no dimension of tokens
	MeanPooling      Pooling = "mean"       // average of the tokens whose mask is 1, special tokens included
	CLSPooling       Pooling = "cls"        // the first token
	LastTokenPooling Pooling = "last_token" // the last token whose mask is 1
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
	// Kind is sequence, token, pair or embedding.
	Kind Kind `yaml:"kind"`
	// Output is the name of the graph's output.
	Output string `yaml:"output"`
	// Labels are the labels in the order of the logits, for token tasks in BIO form: O, B-PERSON,
	// I-PERSON. In models of other makers two labels of a token task may have one name. Empty for
	// embedding tasks.
	Labels []string `yaml:"labels"`
	// Positive is the label that a yes-or-no task looks for. Empty for other tasks.
	Positive string `yaml:"positive"`
	// Temperature divides the logits before the softmax; it was fitted on held-out data.
	Temperature float64 `yaml:"temperature"`
	// Threshold is the probability from which the task's answer counts, in (0,1].
	Threshold float64 `yaml:"threshold"`
	// Dims is the length of the vector that the task gives: the first Dims numbers of the pooled
	// vector, L2-normalised after the cut (Matryoshka representation learning, arXiv 2205.13147).
	// Embedding tasks only.
	Dims int `yaml:"dims"`
	// Width is the length of the vectors of the graph, 0 for Dims. Embedding tasks only.
	Width int `yaml:"width"`
	// Pooling says how the vectors of tokens become one. Embedding tasks only.
	Pooling Pooling `yaml:"pooling"`
	// Prefix is put before every text. Embedding tasks only.
	Prefix string `yaml:"prefix"`
	// AppendID is a token that is put behind the tokens of the text, before the special tokens that
	// the tokenizer adds; 0 for none. Embedding tasks only.
	AppendID int64 `yaml:"append_id"`
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
// from a Hugging Face folder have no checksums and no canary, so they do not pass.
func (m *Manifest) Validate() error { return m.check(&checker{file: ManifestFile}) }

func (m *Manifest) check(c *checker) error {
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
		c.sum(key, g.File)
		c.oneOf(key+".precision", g.Precision, FP32, FP16, Int8)
		for j, w := range g.Weights {
			c.sum(fmt.Sprintf("%s.weights[%d]", key, j), w)
		}
	}
	c.sum("tokenizer", m.Tokenizer.File)
	c.oneOf("tokenizer.engine", m.Tokenizer.Engine, "", "native", "sugarme")
	if m.Scan != (File{}) {
		c.sum("scan", m.Scan)
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
		c.labelled(key, t)
		c.tags(key, t)
		if !c.hub {
			c.unique(key, t)
		}
	case Embedding:
		c.embedding(key, t)
	default:
		c.bad(key+".kind", "%q is not one of [sequence token pair embedding]", t.Kind)
	}
	w := t.Window
	if w.Tokens < minRowTokens || w.Tokens > m.MaxTokens {
		c.bad(key+".window.tokens", "%d is not between %d and max_tokens", w.Tokens, minRowTokens)
	}
	if w.Stride < 1 || w.Stride > w.Tokens {
		c.bad(key+".window.stride", "%d is not between 1 and window.tokens", w.Stride)
	}
	if w.Max < 0 {
		c.bad(key+".window.max", "%d is negative", w.Max)
	}
	c.oneOf(key+".window.combine", string(w.Combine), string(Mean), string(Max))
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

// labelled checks what every task with labels has.
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
