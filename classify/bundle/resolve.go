package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/tensor"
)

// ErrSignature reports a graph whose inputs or outputs do not fit its task.
var ErrSignature = errors.New("inputs or outputs do not fit the task")

// Names that exporters give to what they mean, in the order of preference.
//
//nolint:gochecknoglobals // constant table
var (
	idsNames       = []string{"input_ids"}
	maskNames      = []string{"attention_mask", "input_mask"}
	typesNames     = []string{"token_type_ids", "segment_ids"}
	positionsNames = []string{"position_ids"}

	logitsNames = []string{"logits", "output", "predictions", "output_0", "scores"}
	tagsNames   = []string{"logits", "token_logits", "output", "predictions", "output_0"}
	pooledNames = []string{"sentence_embedding", "embedding", "embeddings", "text_embeds", "output", "output_0"}
	hiddenNames = []string{"last_hidden_state", "token_embeddings", "hidden_states", "output", "output_0"}
)

// Resolve completes the manifest of a Hugging Face folder with the inputs and outputs of one of its
// graphs: names, kind, pooling, lengths. Open has done it for the first graph. Call it for another
// one, such as half precision, whose session was opened, before the bundle is shared. It has no
// effect on a bundle with a manifest of its own. Problems are *Error values, joined, that wrap
// ErrSignature or ErrLabels; the manifest is then unchanged.
func (b *Bundle) Resolve(inputs, outputs []tensor.Spec) error {
	if b.hub == nil {
		return nil
	}
	m := b.Manifest
	r := &resolver{bundle: b, folder: b.hub.folder, o: &b.hub.options, file: m.Graphs[0].Name, outputs: outputs}
	in, err := r.inputs(inputs)
	if err != nil {
		return err
	}
	m.Inputs = in
	t, err := r.task(m.MaxTokens)
	if err != nil {
		return err
	}
	m.Tasks = []Task{*t}
	if err := m.check(&checker{file: "Hugging Face folder", hub: true}); err != nil {
		return err
	}
	b.Manifest = m
	return nil
}

// resolver determines the meaning of the inputs and outputs of one graph.
type resolver struct {
	bundle  *Bundle
	folder  *folder
	o       *OpenOptions
	file    string
	outputs []tensor.Spec
}

func (r *resolver) bad(key, format string, args ...any) error {
	return &Error{File: r.file, Key: key, Err: fmt.Errorf("%w: %s", ErrSignature, fmt.Sprintf(format, args...))}
}

func (r *resolver) inputs(specs []tensor.Spec) (Inputs, error) {
	var in Inputs
	for _, s := range specs {
		var field *string
		switch {
		case slices.Contains(idsNames, s.Name):
			field = &in.IDs
		case slices.Contains(maskNames, s.Name):
			field = &in.Mask
		case slices.Contains(typesNames, s.Name):
			field = &in.Types
		case slices.Contains(positionsNames, s.Name):
			field = &in.Positions
		case isCache(&s):
			continue
		default:
			return in, r.bad(s.Name, "nothing is known that could be given to this input: "+
				"export a graph that takes input_ids and attention_mask")
		}
		if *field != "" {
			return in, r.bad(s.Name, "means the same as %q", *field)
		}
		if s.DType != tensor.Int64 || s.Shape != nil && len(s.Shape) != 2 {
			return in, r.bad(s.Name, "is %s %v, want integers [batch, sequence]", s.DType, s.Shape)
		}
		*field = s.Name
	}
	if in.IDs == "" || in.Mask == "" {
		return in, r.bad("", "want the inputs %v and %v", idsNames, maskNames)
	}
	return in, nil
}

// isCache reports whether an input is a cache of keys and values of earlier tokens: package gpu
// passes such inputs empty.
func isCache(s *tensor.Spec) bool {
	return strings.HasPrefix(s.Name, "past_key_values.") && s.DType == tensor.Float32 &&
		len(s.Shape) == 4 && s.Shape[1] > 0 && s.Shape[2] == tensor.Dynamic && s.Shape[3] > 0
}

// task makes the only task of a Hugging Face model.
func (r *resolver) task(maxTokens int) (*Task, error) {
	t := &Task{Name: r.o.Task, Kind: r.bundle.hub.kind, Window: r.window(maxTokens)}
	labels := r.folder.labels
	if t.Kind == "" {
		t.Kind = kindOfOutputs(r.outputs, len(labels))
	}
	if t.Kind == Token && r.o.Window.Max == 0 {
		t.Window.Max = 0
	}
	if t.Kind == Token && t.Name == taskGrounding {
		r.judge(t, maxTokens)
	}
	if t.Kind == Embedding {
		return t, r.embedding(t)
	}
	names, rank := logitsNames, 2
	if t.Kind == Token {
		names, rank = tagsNames, 3
	}
	out, err := r.output(r.outputs, names, rank, int64(len(labels)))
	if err != nil {
		return nil, err
	}
	if len(labels) == 0 {
		if labels, err = r.unnamed(&out); err != nil {
			return nil, err
		}
	}
	t.Output = out.Name
	t.Temperature, t.Threshold = cmp.Or(r.o.Temperature, hubTemperature), cmp.Or(r.o.Threshold, hubThreshold)
	if err := meaningOf(t, labels, r.o.Labels, r.o.Positive); err != nil {
		return nil, &Error{File: configFile, Key: "id2label", Err: err}
	}
	return t, nil
}

// defaultLabels is the number of labels of a Hugging Face model without num_labels (the default of
// PretrainedConfig, which the library does not write).
const defaultLabels = 2

// unnamed returns the labels for a folder without names: LABEL_0 and so on, as in Hugging Face's
// library. Their number comes from the output, else from num_labels.
func (r *resolver) unnamed(out *tensor.Spec) ([]string, error) {
	bad := func(format string, args ...any) ([]string, error) {
		return nil, &Error{
			File: configFile, Key: "num_labels", Err: fmt.Errorf("%w: %s", ErrLabels, fmt.Sprintf(format, args...)),
		}
	}
	told := r.folder.config.NumLabels
	n := int64(cmp.Or(told, defaultLabels))
	if k := len(out.Shape); k > 0 && out.Shape[k-1] != tensor.Dynamic {
		n = out.Shape[k-1]
	}
	switch {
	case told != 0 && int64(told) != n:
		return bad("%d here, but %d numbers for a text in %s: correct it, or name the labels in id2label", told, n, out.Name)
	case n == 1:
		return bad("%s gives one number for a text: a regression or a reranker, not a classifier", out.Name)
	case n < 1 || n > maxLabels:
		return bad("%d labels", n)
	}
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("LABEL_%d", i)
	}
	return labels, nil
}

// judge sets what is different for a task that judges an answer: rows hold evidence and answer
// together, and fewer, longer windows see more of both.
func (r *resolver) judge(t *Task, maxTokens int) {
	t.Template = cmp.Or(r.o.Template, Passages)
	if r.o.Window.Tokens == 0 {
		t.Window.Tokens = min(hubGrounding, maxTokens)
	}
	if r.o.Window.Stride == 0 {
		t.Window.Stride = max(1, t.Window.Tokens*3/4)
	}
}

// window fills in what the options leave open.
func (r *resolver) window(maxTokens int) Window {
	w := r.o.Window
	attack := r.o.Task == taskJailbreak || r.o.Task == taskInjection
	all := attack || r.o.Task == taskPII
	w.Tokens = cmp.Or(w.Tokens, min(hubWindow, maxTokens))
	w.Stride = cmp.Or(w.Stride, max(1, w.Tokens*3/4))
	if w.Max == 0 && !all {
		w.Max = hubWindows
	}
	if w.Combine == "" {
		if w.Combine = Mean; attack {
			w.Combine = Max
		}
	}
	return w
}

// kindOfOutputs derives the kind from the outputs alone: a graph whose last dimension is the number
// of labels classifies, any other embeds.
func kindOfOutputs(outputs []tensor.Spec, labels int) Kind {
	for _, s := range outputs {
		if n := len(s.Shape); s.DType == tensor.Float32 && labels > 1 && n > 0 && s.Shape[n-1] == int64(labels) {
			if n == 3 {
				return Token
			}
			return Sequence
		}
	}
	return Embedding
}

// output finds the output, among left, with one of the names whose shape can have the rank, or one
// less for graphs that drop the batch dimension of one, and ends in width numbers (0: any). Without
// such a name it returns the only output that fits.
func (r *resolver) output(left []tensor.Spec, names []string, rank int, width int64) (tensor.Spec, error) {
	var fitting []tensor.Spec
	for _, s := range left {
		n := len(s.Shape)
		if s.DType == tensor.Float32 && (s.Shape == nil || (n == rank || n == rank-1 && n > 0) &&
			(width == 0 || s.Shape[n-1] == tensor.Dynamic || s.Shape[n-1] == width)) {
			fitting = append(fitting, s)
		}
	}
	for _, name := range names {
		if i := slices.IndexFunc(fitting, func(s tensor.Spec) bool { return s.Name == name }); i >= 0 {
			return fitting[i], nil
		}
	}
	if len(fitting) == 1 {
		return fitting[0], nil
	}
	have := make([]string, len(r.outputs))
	for i, s := range r.outputs {
		have[i] = fmt.Sprintf("%s %s %v", s.Name, s.DType, s.Shape)
	}
	want := "[batch, sequence"
	if rank == 2 {
		want = "[batch"
	}
	if width > 0 {
		want = fmt.Sprintf("%s, %d", want, width)
	} else {
		want += ", numbers"
	}
	return tensor.Spec{}, r.bad("", "no one output is float32 %s]: %s", want, strings.Join(have, "; "))
}

// embedding finds the vectors of an embedding model and their pooling.
func (r *resolver) embedding(t *Task) error {
	out, err := r.pooled(t)
	if err != nil {
		return err
	}
	t.Output = out.Name
	t.Width = r.folder.config.HiddenSize
	if n := len(out.Shape); n > 0 && out.Shape[n-1] != tensor.Dynamic {
		t.Width = int(out.Shape[n-1])
	}
	if t.Width < 1 {
		return r.bad(out.Name, "neither the graph nor %s tells how long vectors are", configFile)
	}
	if t.Dims = cmp.Or(r.o.Dims, t.Width); t.Dims > t.Width {
		return r.bad(out.Name, "vectors have %d numbers, not %d", t.Width, t.Dims)
	}
	if t.Prefix = r.folder.prefix(); r.o.Prefix != nil {
		t.Prefix = *r.o.Prefix
	}
	if t.Prefix != "" && r.folder.noPrompt && t.Pooling == MeanPooling {
		return &Error{File: "1_Pooling/" + configFile, Key: "include_prompt", Err: fmt.Errorf("%w: pooling without the prompt is not supported: set no prefix", ErrLayout)}
	}
	if t.Pooling == LastTokenPooling {
		t.AppendID, err = r.bundle.endOfText()
	}
	return err
}

// pooled chooses between an output pooled by the graph and one that has to be pooled.
func (r *resolver) pooled(t *Task) (tensor.Spec, error) {
	var exact []tensor.Spec // vectors of texts, not of tokens
	for _, s := range r.outputs {
		if s.Name == "pooler_output" { // BERT's, for its pre-training task
			continue
		}
		if len(s.Shape) == 2 || s.Shape == nil && s.Name == pooledNames[0] {
			exact = append(exact, s)
		}
	}
	if r.o.Pooling == "" || r.o.Pooling == NoPooling {
		out, err := r.output(exact, pooledNames, 2, 0)
		if err == nil {
			t.Pooling = NoPooling
			return out, nil
		}
		if r.o.Pooling == NoPooling {
			return out, err
		}
	}
	var tokens []tensor.Spec
	for _, s := range r.outputs {
		if len(s.Shape) != 2 {
			tokens = append(tokens, s)
		}
	}
	out, err := r.output(tokens, hiddenNames, 3, 0)
	if err != nil {
		return out, err
	}
	if r.folder.dense {
		return out, &Error{File: "modules.json", Err: fmt.Errorf("%w: the model has layers behind its pooling that the graph does not compute", ErrLayout)}
	}
	if t.Pooling = cmp.Or(r.o.Pooling, r.folder.poolingOf()); t.Pooling == "" {
		return out, &Error{File: configFile, Err: fmt.Errorf("%w: nothing says how to pool the tokens of a %q: set pooling", ErrLayout, r.folder.config.ModelType)}
	}
	return out, nil
}
