package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrLayout reports a folder that is neither a bundle nor a usable Hugging Face model.
var ErrLayout = errors.New("no model that can be used")

const (
	hubRowTokens   = maxRowTokens // longest row of a Hugging Face model, whatever it claims
	hubWindow      = 512          // default tokens of a window
	hubWindows     = 4            // default number of windows of tasks that take an average
	hubGrounding   = 4096         // tokens of a window of evidence and answer: what LettuceDetect trains and reads with
	hubThreshold   = 0.5
	hubTemperature = 1
)

// hubCanary is the text for which a Hugging Face model has to return some valid answer.
const hubCanary = "What is the derivative of x squared?"

// OpenOptions define the use of a Hugging Face folder, and override what is found there. Bundles
// with a manifest need none of them. The zero value of each field except Task means "detect".
type OpenOptions struct {
	// Task is the name of the task, required: domain, jailbreak, injection, pii, complexity,
	// factcheck, embedding, intent or grounding, whose kinds and labels have a meaning, or another
	// name. A model for grounding judges the tokens of an answer (token) or pairs of a premise and
	// a claim (pair).
	Task string
	// Kind is what the model computes. Default: derived from config.json, the files next to it and
	// the graph.
	Kind Kind
	// Name is the name of the bundle in metrics and errors. Default: Task.
	Name string
	// Labels renames labels of the model before they get a meaning, such as LABEL_1 to jailbreak.
	Labels map[string]string
	// Positive is the positive label of a yes-or-no task. Default for jailbreak, injection,
	// factcheck and grounding: the one of the two with a known name; for grounding, 1 of two
	// without names.
	Positive string
	// Template is how evidence and question are laid out for models that judge the tokens of an
	// answer. Default: Passages.
	Template Template
	// Pooling is how an embedding model's tokens become a vector. Default: its pooling module, or
	// the usual way of its type (Qwen3 the last token; EmbeddingGemma and ModernBERT the mean), or
	// none if the graph pools.
	Pooling Pooling
	// Dims truncates vectors to their first Dims numbers. Default: whole vectors.
	Dims int
	// Prefix is put before every text of an embedding model. Default: its default prompt, else its
	// prompt for queries, else nothing.
	Prefix *string
	// Layer is the exit of a two-dimensional Matryoshka model. Default: the deepest.
	Layer int
	// MaxTokens is the maximum row length, 8 to 32768, and never more than the model has positions.
	// Default: from the files, at most 32768.
	MaxTokens int
	// Window is how long texts are read. Each zero field has a default: 512 tokens or a row, a
	// stride of three quarters, 4 windows and their mean; all windows for jailbreak, injection and
	// token tasks, and for the first two the maximum. Token models for grounding read rows of up to
	// 4096 tokens.
	Window Window
	// Threshold is the probability from which an answer counts. Default 0.5, which is not
	// calibrated.
	Threshold float64
	// Temperature divides the logits. Default 1.
	Temperature float64
}

// opened is additional information of Open for Resolve.
type opened struct {
	folder  *folder
	options OpenOptions
	kind    Kind // "" if only the graph can determine it
}

// Open reads a bundle if files has a bundle.yaml at its root, and a Hugging Face folder otherwise.
// The manifest of the latter is complete: inputs and outputs are read from the graph. Problems are
// *Error values, joined, that wrap ErrLayout, ErrLabels, ErrGraph, ErrExternal, ErrSignature, or
// errors of the file system. Files without a sum in a manifest are checked when they are read.
func Open(files fs.FS, o OpenOptions) (*Bundle, error) {
	if _, err := fs.Stat(files, ManifestFile); err == nil {
		return Load(files)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, configFile); err != nil {
		return nil, fmt.Errorf("%w: neither %s nor %s: %w; %s", ErrLayout, ManifestFile, configFile, plain(err), wholeFolder)
	}
	f, err := readFolder(files)
	if err != nil {
		return nil, err
	}
	b := &Bundle{files: files, hub: &opened{folder: f, options: o}}
	if b.hub.kind, err = kindOf(f, &o); err != nil {
		return nil, &Error{File: configFile, Key: "architectures", Err: err}
	}
	if err := b.describe(); err != nil {
		return nil, err
	}
	facts, err := b.readSignature(&b.Manifest.Graphs[0])
	if err != nil {
		return nil, err
	}
	if err := b.Resolve(facts.inputs, facts.outputs); err != nil {
		return nil, err
	}
	return b, nil
}

func (o *OpenOptions) validate() error {
	c := &checker{file: "options"}
	c.required("task", o.Task)
	c.oneOf("kind", string(o.Kind), "", string(Sequence), string(Token), string(Pair), string(Embedding))
	c.oneOf("template", string(o.Template), "", string(Passages), string(Separated))
	c.oneOf("pooling", string(o.Pooling), "", string(NoPooling), string(MeanPooling), string(CLSPooling), string(LastTokenPooling))
	for _, n := range []struct {
		key        string
		have, most int
	}{{"dims", o.Dims, 1 << 16}, {"layer", o.Layer, 1 << 10}, {"max_tokens", o.MaxTokens, hubRowTokens}} {
		if n.have < 0 || n.have > n.most {
			c.bad(n.key, "%d is not between 0 and %d", n.have, n.most)
		}
	}
	return errors.Join(c.errs...)
}

// plain returns an error of a file system without the names of the failed call and of the file.
func plain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ErrNotExist
	}
	return err
}

// kindOf reconciles the options, the task and the folder.
func kindOf(f *folder, o *OpenOptions) (Kind, error) {
	found := cmp.Or(o.Kind, f.kind())
	var natural Kind
	switch o.Task {
	case taskDomain, taskJailbreak, taskInjection, taskComplexity, taskFactCheck:
		natural = Sequence
	case taskPII:
		natural = Token
	case taskEmbedding, taskIntent:
		natural = Embedding
	case taskGrounding:
		if found == Sequence {
			found = Pair // of evidence and claim: there is nothing else to judge
		}
		if found != "" && found != Token && found != Pair {
			natural = Token
		}
	}
	if natural != "" && found != "" && natural != found {
		return "", fmt.Errorf("%w: the task %s needs a model of kind %s, %v is of kind %s: name another model",
			ErrLayout, o.Task, natural, f.config.Architectures, found)
	}
	return cmp.Or(found, natural), nil
}

// describe makes the manifest, except for what the graph's signature provides.
func (b *Bundle) describe() error {
	f, o := b.hub.folder, &b.hub.options
	graphs, err := f.findGraphs(o.Layer)
	if err != nil {
		return err
	}
	tokenizer, err := f.findTokenizer()
	if err != nil {
		return err
	}
	m := &b.Manifest
	*m = Manifest{
		Format: Format, Name: cmp.Or(o.Name, o.Task), Version: cmp.Or(f.revision, "unversioned"), License: f.license,
		Layout: "shared", Graphs: graphs, Tokenizer: TokenizerFile{File: tokenizer}, Vocab: max(f.config.VocabSize, 0),
		MaxTokens: o.MaxTokens, Canary: Canary{Text: hubCanary},
	}
	if m.MaxTokens == 0 {
		m.MaxTokens = slices.Min(append(f.limits, hubRowTokens))
	}
	if f.positions > 0 {
		m.MaxTokens = min(m.MaxTokens, f.positions)
	}
	if f.config.PadID != nil && *f.config.PadID > 0 { // some models write -1 for none
		m.PadID = *f.config.PadID
	}
	return nil
}

// hubGraphs are the names of graphs in the order of preference, and their precision.
//
//nolint:gochecknoglobals // constant table
var hubGraphs = []Graph{
	{File: File{Name: "model.onnx"}, Precision: FP32},
	{File: File{Name: "model_quantized.onnx"}, Precision: Int8},
	{File: File{Name: "model_int8.onnx"}, Precision: Int8},
	{File: File{Name: "model_uint8.onnx"}, Precision: Int8},
	{File: File{Name: "model_sdpa_fp16.onnx"}, Precision: FP16},
	{File: File{Name: "model_fp16.onnx"}, Precision: FP16},
}

// findGraphs lists the graphs, the first existing one of each precision.
func (f *folder) findGraphs(layer int) ([]Graph, error) {
	dirs := []string{"", "onnx"}
	switch {
	case len(f.layers) > 0:
		if layer == 0 {
			layer = slices.Max(f.layers)
		}
		if !slices.Contains(f.layers, layer) {
			return nil, &Error{File: exportConfig, Key: "available_layers", Err: fmt.Errorf("%w: layer %d is not one of %v", ErrLayout, layer, f.layers)}
		}
		dirs = []string{fmt.Sprintf("onnx/layer-%d", layer), fmt.Sprintf("layer-%d", layer)}
	case layer != 0:
		return nil, &Error{File: exportConfig, Err: fmt.Errorf("%w: a layer needs the list of available_layers", ErrLayout)}
	}
	var out []Graph
	for _, want := range hubGraphs {
		if slices.ContainsFunc(out, func(g Graph) bool { return g.Precision == want.Precision }) {
			continue
		}
		for _, dir := range dirs {
			file, err := f.describeFile(path.Join(dir, want.Name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, Graph{File: file, Precision: want.Precision})
			break
		}
	}
	if len(out) == 0 {
		return nil, f.noGraph(dirs)
	}
	return out, nil
}

func (f *folder) findTokenizer() (File, error) {
	file, err := f.describeFile(vocabFile)
	if errors.Is(err, fs.ErrNotExist) {
		if inner, second := f.describeFile("onnx/" + vocabFile); second == nil {
			return inner, nil
		}
		err = &Error{File: vocabFile, Err: fmt.Errorf("%w; %s", fs.ErrNotExist, f.noTokenizer())}
	}
	if err == nil {
		if why := hollow(f.files, file.Name); why != "" {
			err = &Error{File: file.Name, Err: errors.New(why)}
		}
	}
	return file, err
}

// describeFile returns a file with its recorded sum, or else with its size only.
func (f *folder) describeFile(name string) (File, error) {
	info, err := fs.Stat(f.files, name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return File{Name: name}, &Error{File: name, Err: err}
	}
	if known, ok := f.record[name]; ok {
		return known, nil
	}
	return File{Name: name, Bytes: info.Size()}, nil
}

// readSignature reads the description in a graph, without its weights, and checks that the files of
// external weights exist.
func (b *Bundle) readSignature(g *Graph) (*graphFacts, error) {
	file, err := b.files.Open(g.Name)
	if err != nil {
		return nil, &Error{File: g.Name, Err: err}
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	if err != nil {
		return nil, &Error{File: g.Name, Err: err}
	}
	if why := hollow(b.files, g.Name); why != "" {
		return nil, &Error{File: g.Name, Err: fmt.Errorf("%w: %s", ErrGraph, why)}
	}
	facts, err := readGraphFacts(file, info.Size())
	if err != nil {
		return nil, &Error{File: g.Name, Err: fmt.Errorf(
			"%w; it is damaged or something else: fetch or export it again", err,
		)}
	}
	beside, err := facts.files(g.Name)
	if err != nil {
		return nil, &Error{File: g.Name, Err: err}
	}
	for _, name := range beside {
		if _, err := fs.Stat(b.files, name); err != nil {
			return nil, &Error{File: g.Name, Err: fmt.Errorf(
				"%w: %s: %w; it belongs beside the graph: copy it there from where the graph is from",
				ErrExternal, name, plain(err),
			)}
		}
		if why := hollow(b.files, name); why != "" {
			return nil, &Error{File: g.Name, Err: fmt.Errorf("%w: %s: %s", ErrExternal, name, why)}
		}
	}
	return facts, nil
}

// endOfText returns the token that a model with last-token pooling needs after a text: none if its
// tokenizer adds one itself.
func (b *Bundle) endOfText() (int64, error) {
	data, err := b.Tokenizer()
	if err != nil {
		return 0, err
	}
	var t struct {
		Post  postProcessor `json:"post_processor"`
		Added []struct {
			ID      int64  `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return 0, &Error{File: b.Manifest.Tokenizer.Name, Err: err}
	}
	if t.Post.endsRows() {
		return 0, nil
	}
	for _, a := range t.Added {
		if a.Content == "<|endoftext|>" { // the token that Qwen3-Embedding was trained with
			return a.ID, nil
		}
	}
	var id int64
	if raw := b.hub.folder.config.EndID; raw.Kind() == '0' {
		if err := json.Unmarshal(raw, &id); err != nil {
			return 0, &Error{File: configFile, Key: "eos_token_id", Err: err}
		}
	}
	return max(id, 0), nil
}

// postProcessor is the part of a tokenizer.json that adds special tokens to rows.
type postProcessor struct {
	Type       string                      `json:"type"`
	Single     []map[string]jsontext.Value `json:"single"`
	Processors []postProcessor             `json:"processors"`
}

// endsRows reports whether the processor adds a token at the end of every row.
func (p *postProcessor) endsRows() bool {
	switch p.Type {
	case "BertProcessing", "RobertaProcessing":
		return true
	case "TemplateProcessing":
		if len(p.Single) == 0 {
			return false
		}
		_, special := p.Single[len(p.Single)-1]["SpecialToken"]
		return special
	}
	return slices.ContainsFunc(p.Processors, func(q postProcessor) bool { return q.endsRows() })
}
