package gpu

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/gpu/dense"
	"signalbox/internal/wire"
)

// operators lists what a model computes, in order, as name: operator.
func operators(t *testing.T, model []byte) []string {
	t.Helper()
	f := fuser{from: map[string]*node{}, uses: map[string]int{}, constants: map[string]*constant{}}
	if err := f.read(model); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range f.nodes {
		out = append(out, n.outputs[0]+": "+n.op)
	}
	return out
}

func TestLayersOfBytesBecomeOperators(t *testing.T) {
	t.Parallel()
	model := readFile(t, filepath.Join("testdata", "layers.onnx"))
	before := string(model)
	fused, layers, err := fuse(model)
	if err != nil {
		t.Fatal(err)
	}
	if layers != 5 {
		t.Errorf("%d layers, want 5", layers)
	}
	want := []string{
		"h: LayerNormalization", "up: Dense", "inner: Gelu", "down: Dense", "y: Sum", "again: Dense", "bare: Dense",
		"narrow.rounded: QuantizeLinear", "narrow: MatMulIntegerToFloat", // 50 columns
		"shifted.rounded: QuantizeLinear", "shifted: MatMulIntegerToFloat", // weights with a zero point
		"open.smoothed: Mul", "open: Dense", // how wide x is cannot be seen
	}
	if diff := cmp.Diff(want, operators(t, fused)); diff != "" {
		t.Error(diff)
	}
	if string(model) != before {
		t.Error("the caller's model was written to")
	}
	again, layers, err := fuse(fused)
	if err != nil || layers != 0 || &again[0] != &fused[0] {
		t.Errorf("a model without such layers was changed: %d layers, error %v", layers, err)
	}
}

// A layer whose weights somebody else reads in their own order stays as it is, and so does the one
// it shares them with.
func TestWeightsThatOthersReadStayInOrder(t *testing.T) {
	t.Parallel()
	model := readFile(t, filepath.Join("testdata", "layers.onnx"))
	// Only the names of weights end like this; the product called "narrow" does not fit.
	f := fuser{from: map[string]*node{}, uses: map[string]int{}, constants: map[string]*constant{}}
	if err := f.read(model); err != nil {
		t.Fatal(err)
	}
	var other []byte
	other = wire.AppendMessage(other, nodeInput, []byte("up.w"))
	other = wire.AppendMessage(other, nodeOutput, []byte("as they are"))
	other = wire.AppendMessage(other, nodeOpType, []byte("Identity"))
	model = wire.AppendMessage(slices.Clone(model), modelGraph, wire.AppendMessage(nil, graphNode, other))
	fused, layers, err := fuse(model)
	if err != nil || layers != 3 {
		t.Fatalf("%d layers, want 3; error %v", layers, err)
	}
	got := operators(t, fused)
	for _, want := range []string{"up: MatMulIntegerToFloat", "again: MatMulIntegerToFloat", "down: Dense"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// The operator trusts the shapes that fuse has seen, so no layer of a model that brings it along is
// fused.
func TestModelsCannotBringOurOperators(t *testing.T) {
	t.Parallel()
	model := readFile(t, filepath.Join("testdata", "layers.onnx"))
	theirs := encodeNode(&node{op: dense.Op, domain: dense.Domain, inputs: []string{"x"}, outputs: []string{"theirs"}})
	with := wire.AppendMessage(slices.Clone(model), modelGraph, wire.AppendMessage(nil, graphNode, theirs))
	if got, layers, err := fuse(with); err != nil || layers != 0 || &got[0] != &with[0] {
		t.Errorf("%d layers, error %v", layers, err)
	}
}

// Models that are put together so that what is checked is not what counts, or that are no models at
// all.
func TestModelsThatAreNotWhatTheySeemAreLeftAlone(t *testing.T) {
	t.Parallel()
	model := readFile(t, filepath.Join("testdata", "layers.onnx"))
	in := func(field protowire.Number, body []byte) []byte {
		return wire.AppendMessage(slices.Clone(model), modelGraph, wire.AppendMessage(nil, field, body))
	}
	tensor := func(name string, elem elemType, data []byte, dims ...uint64) []byte {
		var b []byte
		for _, d := range dims {
			b = protowire.AppendVarint(protowire.AppendTag(b, tensorDims, protowire.VarintType), d)
		}
		b = protowire.AppendVarint(protowire.AppendTag(b, tensorDataType, protowire.VarintType), uint64(elem))
		return wire.AppendMessage(wire.AppendMessage(b, tensorName, []byte(name)), tensorRawData, data)
	}
	for name, odd := range map[string][]byte{
		"a function":                 wire.AppendMessage(slices.Clone(model), modelFunctions, []byte{}),
		"our domain":                 wire.AppendMessage(slices.Clone(model), modelOpset, wire.AppendMessage(nil, opsetDomain, []byte(dense.Domain))),
		"sparse weights":             in(graphSparse, []byte{}),
		"two weights of a name":      in(graphInitializer, tensor("up.w", elemInt8, nil)),
		"a node that gives a weight": in(graphNode, encodeNode(&node{op: "Constant", outputs: []string{"up.bias"}})),
	} {
		if got, layers, err := fuse(odd); err != nil || layers != 0 || &got[0] != &odd[0] {
			t.Errorf("%s: %d layers, error %v", name, layers, err)
		}
	}
	huge := uint64(3<<60 + 48)
	for name, odd := range map[string][]byte{
		"sizes whose product overflows": slices.Concat(
			in(graphInitializer, tensor("huge", elemInt8, make([]byte, 768), 16, huge)),
			wire.AppendMessage(nil, modelGraph, slices.Concat(
				wire.AppendMessage(nil, graphInitializer, tensor("huge.vector", elemFloat, make([]byte, 4), huge)),
				wire.AppendMessage(nil, graphNode, encodeNode(&node{
					op: opProduct, domain: microsoft, outputs: []string{"overflow"},
					inputs: []string{"up.rounded", "huge", "up.step", "huge.vector", "up.middle", "", "huge.vector"},
				})),
			)),
		),
		"a norm without a gain": in(graphNode, encodeNode(&node{op: "LayerNormalization", inputs: []string{"x"}, outputs: []string{"h"}})),
		"a norm of nothing":     in(graphNode, encodeNode(&node{op: "Gelu", outputs: []string{"inner"}})),
		"a product of nothing":  in(graphNode, encodeNode(&node{op: opProduct, domain: microsoft, outputs: []string{"inner"}})),
		"a sum of itself":       in(graphNode, encodeNode(&node{op: "Sum", inputs: slices.Repeat([]string{"h"}, 1000), outputs: []string{"h"}})),
	} {
		if _, _, err := fuse(odd); err != nil { // neither a panic nor hours
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmbeddedBundlesConsistOfOperators(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"default": 27, "grounding": 24} {
		_, layers, err := fuse(readFile(t, filepath.Join("..", "models", name, "model_int8.onnx")))
		if err != nil || layers != want {
			t.Errorf("%s: %d layers, want %d; error %v", name, layers, want, err)
		}
	}
}

func TestWeightsArePackedByGroups(t *testing.T) {
	t.Parallel()
	const in, out = 16, 96
	weights := make([]byte, in*out)
	for i := range weights {
		weights[i] = byte(i*7 + i/251)
	}
	packed := dense.Pack(weights, in, out)
	if len(packed) != len(weights) {
		t.Fatalf("%d bytes, want %d", len(packed), len(weights))
	}
	for row := range in {
		for column := range out {
			at := column/48*48*in + row/4*4*48 + column%48*4 + row%4
			if packed[at] != weights[row*out+column] {
				t.Fatalf("row %d, column %d is not at %d", row, column, at)
			}
		}
	}
}

func TestShapesThatFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out int
		want    bool
	}{
		{384, 1536, true},
		{1536, 384, true},
		{16, 48, true},
		{4096, 48, true},
		{0, 48, false},
		{16, 0, false},
		{-16, 48, false},
		{24, 48, false},
		{384, 100, false},
		{4112, 48, false},
	} {
		if got := dense.Fits(c.in, c.out); got != c.want {
			t.Errorf("%d x %d: %v", c.in, c.out, got)
		}
	}
}

// Whatever the bytes are, fuse neither panics nor writes to them, and what it makes of a model is
// one that it leaves alone.
func FuzzFuse(f *testing.F) {
	for _, name := range []string{"layers", "bytes", "add", "slow"} {
		f.Add(readFile(f, filepath.Join("testdata", name+".onnx")))
	}
	f.Fuzz(func(t *testing.T, model []byte) {
		before := string(model)
		fused, layers, err := fuse(model)
		if string(model) != before {
			t.Fatal("the caller's model was written to")
		}
		if err != nil || layers == 0 {
			if string(fused) != before {
				t.Fatal("a model that was not fused was changed")
			}
			return
		}
		if _, again, err := fuse(fused); err != nil || again != 0 {
			t.Fatalf("fused twice: %d layers, error %v", again, err)
		}
	})
}
