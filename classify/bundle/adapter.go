package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"signalbox/internal/tensor"
	"signalbox/internal/wire"
)

// ErrAdapter reports a file that is not an adapter, or has another format.
var ErrAdapter = errors.New("not an adapter")

// AdapterFormat is the latest version of the description that this package reads. A description of
// format 1 has no Stack, and its logits have no adapter axis.
const AdapterFormat = 2

// AdapterKey is the key of the description in the metadata of an adapter's graph.
const AdapterKey = "signalbox.adapter"

// Field numbers of onnx.proto3 for metadata.
const (
	modelMetadata = 14
	metadataKey   = 1
	metadataValue = 2
)

const (
	// MaxAdapterBytes is the maximum size of an adapter file.
	MaxAdapterBytes = 256 << 20
	maxAdapterInfo  = 1 << 20
)

// Adapter is a task that is added to a bundle: a graph of its own that continues from the taps of
// one of the bundle's graphs, such as the hidden states of its last shared layer. It is one ONNX
// file that describes itself in its metadata, under AdapterKey (AdapterInfo as JSON). Its inputs
// are taps, by name, and optionally attention_mask, int64 [rows, tokens]; its only output is
// logits, float32 [rows, 1, AdapterInfo.Width], where the second axis is that of adapters (Stack).
// An Adapter is immutable.
type Adapter struct {
	AdapterInfo

	// Taps are the names of its input taps.
	Taps []string
	// Masked means that it also has the input attention_mask.
	Masked bool
	// File is the whole file, for a session. It must not be modified.
	File []byte
	// Sum is the SHA-256 of the file, in hexadecimal.
	Sum string
	// Form is equal for adapters that can be combined into one graph (Stack); empty for one that
	// cannot.
	Form string
}

// The names of the inputs and the output of an adapter's graph other than taps.
const (
	AdapterMask   = "attention_mask"
	AdapterOutput = "logits"
)

// AdapterInfo is the description of an adapter.
type AdapterInfo struct {
	Format int `json:"format"`
	// Base is the graph on whose taps it was trained.
	Base AdapterBase `json:"base"`
	// Mode is binary, classes or tags: two labels of which the second is the positive one, labels
	// that exclude each other, or labels of which several may apply.
	Mode   string   `json:"mode"`
	Labels []string `json:"labels"`
	// Scale and Shift calibrate the logits, one of each per output.
	Scale []float64 `json:"scale"`
	Shift []float64 `json:"shift"`
	// Thresholds are the probabilities from which labels apply, parallel to Labels; 0 for labels
	// that exclude each other and for the first of two.
	Thresholds []float64 `json:"thresholds"`
	// Tokens is the maximum row length, special tokens included. A text that does not fit is read
	// as a skeleton of at most Skeleton tokens.
	Tokens   int `json:"tokens"`
	Skeleton int `json:"skeleton"`
	// Stack names the initializers of this adapter alone, float32 with a first axis of 1. When
	// several adapters are combined, they are concatenated along that axis, zero-padded to the
	// largest. The other initializers are frozen and equal in all adapters of the base.
	Stack []string `json:"stack,omitempty"`
	// GraphSHA256 is the digest of the serialised graph field of the ONNX file; a damaged file is
	// refused.
	GraphSHA256 string `json:"graph_sha256"`
	// Report holds evaluation results on held-out texts, for people. May be empty.
	Report map[string]any `json:"report,omitempty"`
}

// AdapterBase identifies a graph of a bundle.
type AdapterBase struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the graph's file
}

// Width returns the number of outputs of its graph per row.
func (a *AdapterInfo) Width() int {
	if a.Mode == "binary" {
		return 1
	}
	return len(a.Labels)
}

// ReadAdapter reads and checks an adapter file. It runs nothing. Errors wrap ErrAdapter or
// ErrGraph, or ErrChecksum if the graph does not match its description.
func ReadAdapter(file []byte) (*Adapter, error) {
	if len(file) > MaxAdapterBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrAdapter, len(file), MaxAdapterBytes)
	}
	info, graph, err := description(file)
	if err != nil {
		return nil, err
	}
	a := &Adapter{File: file}
	if err := json.Unmarshal(info, &a.AdapterInfo); err != nil {
		return nil, fmt.Errorf("%w: its description: %w", ErrAdapter, err)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(graph); hex.EncodeToString(sum[:]) != a.GraphSHA256 {
		return nil, fmt.Errorf("%w: the graph is not the one that it was written with", ErrChecksum)
	}
	if err := a.readSignature(); err != nil {
		return nil, err
	}
	if a.Form, _, err = a.form(file); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(file)
	a.Sum = hex.EncodeToString(sum[:])
	return a, nil
}

// description returns the description of an adapter, and its serialised graph.
func description(file []byte) (info, graph []byte, err error) {
	graphs := 0
	err = wire.Fields(file, func(num int, _, body []byte) error {
		switch num {
		case modelGraph:
			graph = body
			graphs++
		case modelMetadata:
			var key, value []byte
			if err := wire.Fields(body, func(num int, _, body []byte) error {
				switch num {
				case metadataKey:
					key = body
				case metadataValue:
					value = body
				}
				return nil
			}); err != nil {
				return err
			}
			if string(key) == AdapterKey {
				info = value
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrGraph, err)
	case graphs != 1:
		return nil, nil, fmt.Errorf("%w: %d graphs, want one", ErrGraph, graphs)
	case info == nil:
		return nil, nil, fmt.Errorf("%w: its metadata have no %s", ErrAdapter, AdapterKey)
	case len(info) > maxAdapterInfo:
		return nil, nil, fmt.Errorf("%w: its description has %d bytes", ErrAdapter, len(info))
	}
	return info, graph, nil
}

// check returns the first problem of a description. Modes, calibration and thresholds are checked
// by their users.
func (a *AdapterInfo) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrAdapter, fmt.Sprintf(format, args...))
	}
	switch {
	case a.Format < 1 || a.Format > AdapterFormat:
		return bad("format %d, this version reads 1 to %d", a.Format, AdapterFormat)
	case (a.Format > 1) != (len(a.Stack) > 0):
		return bad("stack: what is its own is named from format 2 on")
	case a.Base.Name == "" || a.Base.SHA256 == "":
		return bad("base: a name and a sha256 are required")
	case len(a.Labels) == 0 || len(a.Labels) > maxLabels:
		return bad("labels: %d of them", len(a.Labels))
	case a.Tokens < minRowTokens || a.Tokens > maxRowTokens:
		return bad("tokens: %d is not between %d and %d", a.Tokens, minRowTokens, maxRowTokens)
	case a.Skeleton != 0 && (a.Skeleton < minSkeleton || a.Skeleton > a.Tokens):
		return bad("skeleton: %d is neither 0 nor between %d and tokens", a.Skeleton, minSkeleton)
	}
	return nil
}

// readSignature reads the inputs and outputs of the graph.
func (a *Adapter) readSignature() error {
	facts, err := readGraphFacts(bytes.NewReader(a.File), int64(len(a.File)))
	if err != nil {
		return err
	}
	if len(facts.external) > 0 {
		return fmt.Errorf("%w: its weights are in another file", ErrAdapter)
	}
	if len(facts.outputs) != 1 || facts.outputs[0].Name != AdapterOutput {
		return fmt.Errorf("%w: its outputs are not %s alone", ErrAdapter, AdapterOutput)
	}
	for _, in := range facts.inputs {
		switch {
		case in.Name == AdapterMask && in.DType == tensor.Int64:
			a.Masked = true
		case in.DType == tensor.Float32:
			a.Taps = append(a.Taps, in.Name)
		default:
			return fmt.Errorf("%w: its input %q is no tap, which are float32", ErrAdapter, in.Name)
		}
	}
	if len(a.Taps) == 0 {
		return fmt.Errorf("%w: it takes no taps", ErrAdapter)
	}
	return nil
}

// Taps returns the taps of the bundle's graph with the given sum, and the graph's precision.
// ErrNoGraph: no graph has that sum.
func (m *Manifest) Taps(sum string) (precision string, taps []Tap, err error) {
	for i := range m.Graphs {
		if g := &m.Graphs[i]; g.SHA256 == sum {
			return g.Precision, g.Taps, nil
		}
	}
	return "", nil, fmt.Errorf("bundle %q: %w: none has the sha256 %.12s", m.Name, ErrNoGraph, sum)
}

// Tapped is Graph with taps as additional outputs of the graph, under the names of their values, if
// the graph that GraphPrecision selects has the given sum; the taps of another graph are unknown.
// The computation is the same; the additional outputs are copied in every run. Names that are not
// taps of the graph are ignored.
func (b *Bundle) Tapped(precision, sum string, names []string) ([]byte, error) {
	model, err := b.Graph(precision)
	if err != nil || len(names) == 0 {
		return model, err
	}
	if g, err := b.graph(precision); err != nil || g.SHA256 != sum {
		return model, err
	}
	_, taps, err := b.Manifest.Taps(sum)
	if err != nil {
		return nil, err
	}
	shown := slices.DeleteFunc(slices.Clone(taps), func(t Tap) bool { return !slices.Contains(names, t.Name) })
	if len(shown) == 0 {
		return model, nil
	}
	return expose(model, shown), nil
}

// expose adds outputs to a serialised ModelProto: a second `graph` field, whose lists protobuf
// appends to those of the first (protobuf encoding guide, "Last One Wins").
func expose(model []byte, taps []Tap) []byte {
	var graph []byte
	for _, t := range taps {
		var shape []byte
		for _, d := range t.Shape {
			var dim []byte // without a value: any size
			if d >= 0 {
				dim = wire.AppendNumber(nil, dimValue, uint64(d))
			}
			shape = wire.AppendMessage(shape, shapeDim, dim)
		}
		typ := wire.AppendMessage(wire.AppendNumber(nil, tensorElem, tensorFloat), tensorShape, shape)
		info := wire.AppendMessage(nil, valueName, []byte(t.Value))
		info = wire.AppendMessage(info, valueType, wire.AppendMessage(nil, typeTensor, typ))
		graph = wire.AppendMessage(graph, graphOutput, info)
	}
	return wire.AppendMessage(slices.Clip(model), modelGraph, graph)
}
