package gpu

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/internal/tensor"
)

func TestSignaturesAreReadFromTheFile(t *testing.T) {
	const dyn = tensor.Dynamic
	for _, c := range []struct {
		graph string
		want  signature
	}{
		{"add", signature{
			[]value{{"x", elemFloat, []int64{dyn, dyn}}, {"y", elemFloat, []int64{dyn, dyn}}},
			[]value{{"sum", elemFloat, []int64{dyn, dyn}}},
			false,
		}},
		{"fixed", signature{[]value{{"x", elemFloat, []int64{2, 3}}}, []value{{"y", elemFloat, []int64{2, 3}}}, false}},
		{"half", signature{
			[]value{{"x", elemFloat, []int64{dyn, dyn}}},
			[]value{
				{"half", elemFloat16, []int64{dyn, dyn}},
				{"brain", elemBFloat16, []int64{dyn, dyn}},
				{"double", elemDouble, []int64{dyn, dyn}},
				{"single", elemFloat, []int64{dyn, dyn}},
			},
			false,
		}},
		{"scalar", signature{[]value{{"x", elemFloat, []int64{dyn, dyn}}}, []value{{"total", elemFloat, []int64{}}, {"y", elemFloat, []int64{dyn, dyn}}}, false}},
		{"slow", signature{[]value{{"steps", elemInt64, []int64{1}}, {"x", elemFloat, []int64{dyn, 64}}}, []value{{"y", elemFloat, []int64{dyn, 64}}}, false}},
	} {
		got, err := readSignature(readFile(t, filepath.Join("testdata", c.graph+".onnx")))
		if err != nil {
			t.Errorf("%s: %v", c.graph, err)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(signature{}, value{})); diff != "" {
			t.Errorf("%s: %s", c.graph, diff)
		}
	}
}

// graphOf wraps the bytes of GraphProto fields into a model.
func graphOf(parts ...[]byte) []byte { return field(modelGraph, parts...) }

func field(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(parts, nil))
}

func declare(num protowire.Number, name string) []byte {
	elem := protowire.AppendVarint(protowire.AppendTag(nil, tensorElem, protowire.VarintType), uint64(elemFloat))
	return field(num, field(valueName, []byte(name)), field(valueType, field(typeTensor, elem)))
}

func TestUnusualSignatures(t *testing.T) {
	x, y := declare(graphInput, "x"), declare(graphOutput, "y")
	for _, c := range []struct {
		name  string
		model []byte
		want  string // in the error, or empty
	}{
		{"an input with a default is optional", graphOf(declare(graphInput, "w"), x, y, field(graphInitializer, field(tensorName, []byte("w")))), ""},
		{"all inputs have defaults", graphOf(x, y, field(graphInitializer, field(tensorName, []byte("x")))), "no inputs"},
		{"no outputs", graphOf(x), "no inputs or no outputs"},
		{"two graphs are merged", append(graphOf(x), graphOf(y)...), ""},
		{"an input twice", graphOf(x, x, y), `input "x" is declared twice`},
		{"an output twice", graphOf(x, y, y), `output "y" is declared twice`},
		{"a name that C would cut short", graphOf(declare(graphInput, "x\x00y"), y), "cannot be used"},
		{"a value without a name", graphOf(declare(graphInput, ""), y), "cannot be used"},
		{"a length beyond the end", append(graphOf(x, y), 0x3a, 0x7f), "unexpected EOF"},
		{"a field number of zero", append(graphOf(x, y), 0x02, 0x00), "invalid field number"},
	} {
		got, err := readSignature(c.model)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q in it", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := signature{[]value{{"x", elemFloat, nil}}, []value{{"y", elemFloat, nil}}, false}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(signature{}, value{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestWideningChangesOnlyWhatNeedsIt(t *testing.T) {
	model := graphOf(declare(graphInput, "x"), declare(graphOutput, "y"))
	same, names := widen(model, []value{{"y", elemFloat, nil}, {"n", elemInt64, nil}})
	if &same[0] != &model[0] || len(same) != len(model) {
		t.Error("a model that needs nothing was copied")
	}
	if diff := cmp.Diff([]string{"y", "n"}, names); diff != "" {
		t.Error(diff)
	}

	roomy := append(make([]byte, 0, 1024), model...)
	wide, names := widen(roomy, []value{{"y", elemFloat16, nil}, {"n", elemBool, nil}})
	if diff := cmp.Diff([]string{"y/signalbox_widened", "n/signalbox_widened"}, names); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(roomy[:cap(roomy)][len(model):], make([]byte, 1024-len(model))) {
		t.Error("the caller's memory behind the model was written to")
	}
	got, err := readSignature(wide)
	if err != nil {
		t.Fatal(err)
	}
	want := []value{{"y", elemFloat, nil}, {"y/signalbox_widened", elemFloat, nil}, {"n/signalbox_widened", elemInt64, nil}}
	if diff := cmp.Diff(want, got.outputs, cmp.AllowUnexported(value{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzSignature(f *testing.F) {
	graphs, err := filepath.Glob(filepath.Join("testdata", "*.onnx"))
	if err != nil || len(graphs) == 0 {
		f.Fatalf("no graphs: %v", err)
	}
	for _, path := range graphs {
		model, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(model)
		f.Add(model[:len(model)/2])
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, model []byte) {
		sig, err := readSignature(model)
		if err != nil {
			return
		}
		if len(sig.inputs) == 0 || len(sig.outputs) == 0 {
			t.Fatal("a signature without inputs or outputs was accepted")
		}
		// A model that can be read can be read again after widening, with its outputs still there.
		wide, names := widen(model, sig.outputs)
		again, err := readSignature(wide)
		if err != nil {
			if strings.Contains(err.Error(), "declared twice") { // it declares the names of the casts itself
				return
			}
			t.Fatalf("after widening: %v", err)
		}
		have := map[string]bool{}
		for _, v := range again.outputs {
			have[v.name] = true
		}
		for _, name := range names {
			if !have[name] {
				t.Fatalf("output %q is missing after widening", name)
			}
		}
	})
}
